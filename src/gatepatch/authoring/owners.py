"""Find which installed distribution a path of a diff belongs to."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import PurePosixPath

from gatepatch.authoring.edited import import_places
from gatepatch.errors import Problem, RefusedError, TargetError
from gatepatch.metadata import canonical_name, metadata_in, record_names
from gatepatch.target import Target
from gatepatch.workspace import Workspace


class Owners:
    """The distributions of an environment, and their files.

    Args:
        workspace: The environment.
    """

    def __init__(self, workspace: Workspace):
        self.workspace = workspace

    def find(self, path: str, where: str) -> tuple[Target, str]:
        """The distribution that has a file, and the file's path in it.

        Args:
            path: From the top of a checkout or of site-packages, or with more in front.
            where: The place in the diff, for messages.

        Raises:
            RefusedError: None has it, or several have.
        """
        found = self._nearest(PurePosixPath(path).parts)
        if len(found) == 1:
            return found[0]
        if found:
            named = ", ".join(f"{t.distribution}: {name}" for t, name in found[:4])
            message = f"{path} may be any of several installed files: {named}"
            raise RefusedError(Problem(message=message, where=where, hint="spell the path out"))
        raise RefusedError(
            Problem(
                message=f"no installed distribution has a file {path}",
                where=where,
                hint="name the environment that has it: --python EXE or --prefix DIR",
            )
        )

    def _nearest(self, parts: tuple[str, ...]) -> list[tuple[Target, str]]:
        """The files that agree with most of a path."""
        for tails in (self._as_imported, self._inside):
            for first in range(len(parts)):
                tail = parts[first:]
                if len(tail) == 1 and first:
                    break
                if found := list(tails(tail)):
                    return found
        return []

    def _as_imported(self, tail: tuple[str, ...]) -> Iterator[tuple[Target, str]]:
        name = "/".join(tail)
        for target, names in self._all:
            if name in names:
                yield target, name
            elif target.editable:
                yield from _in_checkout(target, tail)

    def _inside(self, tail: tuple[str, ...]) -> Iterator[tuple[Target, str]]:
        """Files that an installer has put deeper, as FlashInfer's headers."""
        ending = "/" + "/".join(tail)
        for target, names in self._all:
            yield from ((target, name) for name in sorted(names) if name.endswith(ending))

    @functools.cached_property
    def _all(self) -> list[tuple[Target, frozenset[str]]]:
        found = []
        for name in self._names():
            try:
                target = self.workspace.target(name)
            except TargetError:
                continue  # damaged, and not what the diff is about
            if target is not None:
                found.append((target, frozenset(record_names(target.metadata))))
        return found

    def _names(self) -> list[str]:
        names: dict[str, None] = {}
        for folder in self.workspace.environment.paths:
            for entry in metadata_in(folder):
                stem = entry.name.rpartition(".")[0]
                own = stem if entry.suffix == ".egg-link" else stem.split("-")[0]
                names[canonical_name(own)] = None
        return list(names)


def _in_checkout(target: Target, tail: tuple[str, ...]) -> Iterator[tuple[Target, str]]:
    file = target.root.path.joinpath(*tail)
    if file.is_file():
        for folder, name in import_places(target):
            if file.is_relative_to(folder):
                yield target, f"{name}/{file.relative_to(folder).as_posix()}"
                return
    place = target.location.find(tail)
    if place is not None and place.is_file() and (place.parent / "__init__.py").is_file():
        yield target, "/".join(tail)
