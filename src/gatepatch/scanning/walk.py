"""The files of a distribution that may hold gates."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gatepatch.errors import Problem
from gatepatch.metadata import record_names
from gatepatch.scanning.records import Tree
from gatepatch.target import Target

PYTHON = (".py",)
CUDA = (
    *(".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"),
    *(".inc", ".inl", ".ipp", ".tpp", ".hip", ".jinja", ".j2"),
)
LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that is read: more is no source that a person wrote."""

_VENDORED = re.compile(
    r"(?i)(?:^|/)(?:_?vendor(?:ed)?|third_?party|3rd_?party|external|extern|deps|cutlass|cccl|spdlog"
    r"|fmt|pybind11|dlpack|json|nlohmann|flatbuffers|googletest|deep_?gemm|_cudnn_frost|cudnn_frost)/"
)
_GENERATED = re.compile(
    r"(?i)(?:^|/)_?(?:auto)?gen(?:erated)?/|[_.][0-9a-f]{12,}(?:[_.]|$)|_pb2(?:_grpc)?\.py$"
)
_HEADER = re.compile(
    rb"(?i)\b(?:auto-?\s?generated|@generated|(?:this file (?:is|was)|code|automatically) generated"
    rb"|generated (?:by|from|automatically|code|file)|do not edit)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to be scanned.

    Args:
        path: Relative to where the distribution is imported from, with ``/``.
        file: Where it is.
        stamp: What changes when its content does: size, and the times of change, in ns.
    """

    path: str
    file: str
    stamp: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.stamp[0]


def files_of(target: Target, problems: list[Problem]) -> tuple[SourceFile, ...]:
    """List a distribution's sources; what cannot be looked at is a problem.

    Args:
        target: The distribution.
        problems: Is added to.
    """
    found: dict[str, SourceFile] = {}
    listed = [] if target.editable else record_names(target.metadata)
    paths = _listed(target, listed) if listed else _walked(target, problems)
    for path, file in paths:
        try:
            status = os.stat(file)  # noqa: PTH116, twenty thousand paths cost a second
        except OSError as error:
            problems.append(_problem(target, path, error.strerror or str(error)))
            continue
        if status.st_size > LARGEST:
            size = f"{status.st_size // 1_000_000} MB are more than {LARGEST // 1_000_000} MB"
            problems.append(_problem(target, path, f"is not read: {size}"))
            continue
        stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        found[path] = SourceFile(path=path, file=file, stamp=stamp)
    return tuple(found[path] for path in sorted(found))


def _problem(target: Target, path: str, message: str) -> Problem:
    return Problem(message=message, where=f"{target.distribution}: {path}")


def _listed(target: Target, names: list[str]) -> Iterator[tuple[str, str]]:
    """The sources that RECORD lists."""
    base = str(target.metadata.parent)
    for name in names:
        if name.endswith((*PYTHON, *CUDA)) and not name.startswith(("../", "/")):
            yield name, f"{base}/{name}"


def _walked(target: Target, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """The sources in the packages of an editable install, or of one without RECORD."""
    for top, folder in _packages(target):
        if folder.is_file():
            yield top, str(folder)
            continue
        seen: set[str] = set()
        stack = [(top, str(folder))]
        while stack:
            name, place = stack.pop()
            real = os.path.realpath(place)
            if real in seen:
                continue
            seen.add(real)
            try:
                entries = sorted(os.scandir(place), key=lambda entry: entry.name)
            except OSError as error:
                problems.append(_problem(target, name, error.strerror or str(error)))
                continue
            for entry in entries:
                path = f"{name}/{entry.name}"
                if entry.is_symlink() and _leads_up(entry.path, target.root.path):
                    problems.append(_problem(target, path, "is a link that is not followed"))
                elif entry.is_dir():
                    if entry.name not in ("__pycache__", ".git", "node_modules"):
                        stack.append((path, entry.path))
                elif entry.name.endswith((*PYTHON, *CUDA)):
                    yield path, entry.path


def _leads_up(link: str, root: Path) -> bool:
    """Whether a link leads nowhere, in a circle, or out of the root."""
    try:
        real = os.path.realpath(link, strict=True)
    except OSError:
        return True
    above = os.path.realpath(os.path.dirname(link))  # noqa: PTH120
    return not Path(real).is_relative_to(root) or (above + os.sep).startswith(real + os.sep)


def _packages(target: Target) -> Iterator[tuple[str, Path]]:
    """The top-level packages of a distribution, by its metadata, or else by what is there."""
    if target.location.packages:
        for name, path in target.location.packages.items():
            yield name.replace(".", "/"), path
        return
    top_level = target.metadata / "top_level.txt"
    names = top_level.read_text("utf-8", "replace").split() if top_level.is_file() else []
    for folder in target.location.folders:
        chosen = names or [
            entry.name
            for entry in sorted(folder.iterdir())
            if entry.is_dir() and (entry / "__init__.py").is_file()
        ]
        for name in chosen:
            for path in (folder / name, folder / f"{name}.py"):
                if path.exists():
                    yield path.name, path


def tree_of(path: str, head: bytes) -> Tree:
    """Whether a file is vendored or generated, by its path and its first lines."""
    if _GENERATED.search(path):
        return "generated"
    if _VENDORED.search(path):
        return "vendored"
    return "generated" if _HEADER.search(head) else "own"


def folder_of(path: str, tree: Tree) -> str:
    """The folder that a vendored or generated file is counted with."""
    if tree == "vendored" and (found := _VENDORED.search(path)):
        return path[: found.end() - 1]
    return path.rpartition("/")[0] or path
