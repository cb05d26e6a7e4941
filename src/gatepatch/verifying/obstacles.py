"""What may stand between a patched source and the server: imports, bytecode, built binaries."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gatepatch import cachecheck, jitcache
from gatepatch.aot import compiled_elsewhere, find_aot
from gatepatch.target import Target
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.importing import Imported, ask, module_of
from gatepatch.workspace import Workspace

FLASHINFER = "flashinfer-python"


def obstacles(
    workspace: Workspace,
    name: str,
    files: Sequence[tuple[Target, str]],
    jit: Mapping[str, Sequence[str]],
    jit_roots: Sequence[Path],
) -> tuple[list[Finding], tuple[str, ...]]:
    """Find what keeps a set from having its effect.

    Args:
        workspace: The environment.
        name: The set.
        files: Its files, by their names in their distributions.
        jit: The modules that derive from what it edits.
        jit_roots: More JIT cache roots.

    Returns:
        The findings, and notes on what could not be looked at.
    """
    findings, notes = _imports(workspace, files)
    findings += _shadows(files)
    flashinfer = workspace.target(FLASHINFER)
    if jit:
        findings += binaries(workspace, name, jit)
        more, said = _built(flashinfer, jit, jit_roots)
        findings += more
        notes += said
    return findings, tuple(notes)


def _shadows(files: Sequence[tuple[Target, str]]) -> Iterator[Finding]:
    """Packages that come before a target's own: headers are not imported, their package is."""
    for target, path in files:
        if (other := target.shadow(path)) is not None:
            yield Finding(
                kind="shadowed",
                where=str(other),
                expected=f"{path} of {target.distribution} {target.version}, in {target.root.path}",
                found=f"{other} is imported in its place",
                command=f"take {other.parent} off the import path (PYTHONPATH), or remove it",
            )


def _imports(
    workspace: Workspace, files: Sequence[tuple[Target, str]]
) -> tuple[list[Finding], list[str]]:
    modules = {
        module: target.locate(path)
        for target, path in files
        if (module := module_of(path)) is not None and target.shadow(path) is None
    }
    answer = ask(workspace.environment, list(modules))
    if isinstance(answer, str):
        return [], [f"{answer}: what it would import, and its bytecode, were not looked at"]
    return [f for one in answer for f in _imported(one, modules[one.module])], []


def _imported(one: Imported, file: Path) -> Iterator[Finding]:
    if one.origin is None or os.path.realpath(one.origin) != os.path.realpath(file):
        if file.exists():
            yield Finding(
                kind="shadowed",
                where=str(one.origin or file),
                expected=f"import {one.module} gives {file}",
                found=f"it gives {one.origin}" if one.origin else one.reason or "it gives no file",
                command=f"remove {one.origin}, or take what it lies in off the import path"
                if one.origin
                else "reinstall the package",
            )
        return
    grounds = {
        "unchecked": "it is hash-based and unchecked, so it is loaded whatever the source says",
        "hash": "it has the source's hash, and other code",
        "mtime": "it has the source's mtime and size, and was compiled from something else",
    }
    for pyc, how in one.stale:
        yield Finding(
            kind="stale-bytecode",
            where=str(pyc),
            expected=f"bytecode of {file} as it stands",
            found=grounds[how],
            command=f"rm {shlex.quote(str(pyc))}",
        )


def binaries(
    workspace: Workspace, name: str, jit: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """What FlashInfer would load or compile in place of the sources that a set edits."""
    flashinfer = workspace.target(FLASHINFER)
    yield from _elsewhere(flashinfer)
    yield from _prebuilt(workspace, name, flashinfer, jit)


def _elsewhere(flashinfer: Target | None) -> Iterator[Finding]:
    if flashinfer is not None and (folder := compiled_elsewhere(flashinfer)) is not None:
        yield Finding(
            kind="compiled-elsewhere",
            where=str(flashinfer.locate("flashinfer/jit/env.py")),
            expected="FlashInfer compiles the sources that are installed here",
            found=f"it is a link, and FlashInfer compiles those in {folder}",
            command="install it without links: uv pip install --link-mode copy --no-deps "
            f"--reinstall-package {FLASHINFER} {FLASHINFER}=={flashinfer.version}",
        )


def _prebuilt(
    workspace: Workspace,
    name: str,
    flashinfer: Target | None,
    jit: Mapping[str, Sequence[str]],
) -> Iterator[Finding]:
    for binary in find_aot(workspace.environment, flashinfer, jit):
        yield Finding(
            kind="prebuilt",
            where=str(binary.root.path / binary.path),
            expected=f"{binary.module} is compiled from the patched sources",
            found="a prebuilt binary, which would be loaded in its place",
            command=f"gatepatch apply {name} --hide-aot",
        )


def _built(
    flashinfer: Target | None, jit: Mapping[str, Sequence[str]], jit_roots: Sequence[Path]
) -> tuple[list[Finding], list[str]]:
    packages = () if flashinfer is None else (flashinfer.locate("flashinfer/__init__.py").parent,)
    names = {module for modules in jit.values() for module in modules}
    findings = []
    notes = []
    for one in cachecheck.check(jitcache.cache_roots(extra=jit_roots), packages):
        if one.module not in names:
            continue
        if one.command is None:
            notes.append(f"{one.folder}: {one.message}")
            continue
        findings.append(
            Finding(
                kind="jit-binary",
                where=str(one.folder),
                expected=f"a {one.module} that is built from the sources of this environment",
                found=one.message,
                command=one.command,
            )
        )
    return findings, notes
