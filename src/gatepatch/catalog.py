"""Where patch sets are found: the ones that ship, and folders that the user names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gatepatch.errors import Problem, SpecError, UnknownSetError, UsageError, did_you_mean
from gatepatch.spec import PatchSet

VARIABLE = "GATEPATCH_PATCHES"
"""Environment variable: folders of patch sets, separated as in ``PATH``."""

SET_FILE = "set.yaml"


def shipped() -> Path:
    """The folder of the sets that ship: beside the package in a wheel, or in the checkout."""
    inside = Path(__file__).parent / "patches"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "patches"


def folders(patches: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The folders to look in, the user's first.

    Raises:
        UsageError: A folder that was named is not there.
    """
    named = (*patches, *from_variable())
    demand(named)
    return (*named, shipped())


def from_variable() -> tuple[Path, ...]:
    """The folders that the environment variable names, whether they are there or not."""
    return tuple(Path(p) for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p)


def demand(named: Iterable[Path]) -> None:
    """Demand that folders of sets are there.

    Raises:
        UsageError: One is not.
    """
    for folder in named:
        if not folder.is_dir():
            raise UsageError(Problem(message="no such folder of patch sets", where=str(folder)))


def files(patches: Sequence[Path] = ()) -> dict[str, Path]:
    """Every set's name and file: ``NAME/set.yaml`` or ``NAME.yaml``; the first folder wins."""
    found: dict[str, Path] = {}
    for folder in folders(patches):
        for name, path in files_in(folder).items():
            found.setdefault(name, path)
    return dict(sorted(found.items()))


def files_in(folder: Path) -> dict[str, Path]:
    """The sets of one folder."""
    return dict(sets_in(folder))


def sets_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and files of one folder; of two with one name the last counts."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".yaml" and path.is_file():
            yield path.stem, path
        elif (path / SET_FILE).is_file():
            yield path.name, path / SET_FILE


def find(name: str, patches: Sequence[Path] = ()) -> Path:
    """The file of a set.

    Raises:
        UnknownSetError: No set has this name; the message has the nearest.
    """
    known = files(patches)
    if name not in known:
        raise UnknownSetError(
            Problem(message=f"no patch set is named {name!r}", hint=did_you_mean(name, known))
        )
    return known[name]


def load(name: str, patches: Sequence[Path] = ()) -> PatchSet:
    """Find a set, and take what was read of it when it was pinned, or read it.

    Raises:
        UnknownSetError: No set has this name.
        SpecError: It cannot be read, or it names itself otherwise.
    """
    return load_file(name, find(name, patches))


def load_file(name: str, path: Path) -> PatchSet:
    """The same for a file that has been found.

    Raises:
        SpecError: It cannot be read, or it names itself otherwise.
    """
    from gatepatch import parsed

    return _checked(parsed.load(path) or _read(path), name)


def load_each(found: Mapping[str, Path]) -> tuple[dict[str, PatchSet], dict[str, SpecError]]:
    """The same for files that have been found: the sets that can be read, and why the others cannot."""
    sets: dict[str, PatchSet] = {}
    failed: dict[str, SpecError] = {}
    for name, path in found.items():
        try:
            sets[name] = load_file(name, path)
        except SpecError as error:
            failed[name] = error
    return sets, failed


def read(name: str, patches: Sequence[Path] = ()) -> PatchSet:
    """Find and read a set.

    Raises:
        UnknownSetError: No set has this name.
        SpecError: It cannot be read, or it names itself otherwise.
    """
    return _checked(_read(find(name, patches)), name)


def _read(path: Path) -> PatchSet:
    from gatepatch import loader

    return loader.load(path)


def _checked(patch_set: PatchSet, name: str) -> PatchSet:
    """The set, if its place has its name."""
    if patch_set.name != name:
        raise SpecError(
            Problem(
                message=f"names itself {patch_set.name!r}, and its place says {name!r}",
                where=patch_set.source,
                hint="rename one of them",
            )
        )
    return patch_set
