"""Write new patch sets, whose reasons their authors are to give."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet

from gatepatch.authoring.emitter import to_yaml
from gatepatch.catalog import SET_FILE
from gatepatch.errors import GatepatchError, Problem, RefusedError, UsageError
from gatepatch.files import write_new
from gatepatch.loader import load
from gatepatch.spec import (
    Edit,
    FileSpec,
    GateEdit,
    Goal,
    PatchSet,
    Requirements,
    TargetSpec,
)

SUMMARY = "TODO: say in one line what the set does"
WHY = "TODO: say why these gates may be changed, and where that is known from"
UNPROVED = "TODO: say why this is right although it is not proved"
"""What stands where the author is to give a reason; a set that has one is not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenGate:
    """A gate that a set is to open or close.

    Args:
        path: Relative to where the distribution is imported from.
        kind: ``condition``, or ``keyword`` for a list that is handed to a call.
        what: The condition's source, or the keyword's name.
        within: Qualified name of the enclosing Python function; empty for none.
        count: How many places have it.
    """

    path: str
    kind: Literal["condition", "keyword"]
    what: str
    within: str = ""
    count: int = 1


def gates_target(
    distribution: str, versions: str, gates: Iterable[ChosenGate], action: Literal["open", "close"]
) -> TargetSpec:
    """The block of a distribution with edits for some gates; equal ones are counted together.

    Args:
        distribution: Canonical name.
        versions: Version range.
        gates: In any order.
        action: What to do to all of them.
    """
    counts: dict[ChosenGate, int] = {}
    for gate in gates:
        key = replace(gate, count=1)
        counts[key] = counts.get(key, 0) + gate.count
    files: dict[str, list[Edit]] = {}
    for gate, count in counts.items():
        files.setdefault(gate.path, []).append(
            GateEdit(
                where="",
                action=action,
                within=gate.within or None,
                condition=gate.what if gate.kind == "condition" else None,
                keyword=gate.what if gate.kind == "keyword" else None,
                count=count,
            )
        )
    return TargetSpec(
        distribution=distribution,
        versions=SpecifierSet(versions),
        files=tuple(
            FileSpec(where="", path=path, edits=tuple(files[path])) for path in sorted(files)
        ),
        jit={},
    )


def new_set(name: str, goal: Goal, targets: Sequence[TargetSpec]) -> PatchSet:
    """A set whose reasons are still to be given."""
    return PatchSet(
        name=name,
        summary=SUMMARY,
        why=WHY,
        action=goal.action,
        archs=goal.archs,
        like=goal.like,
        advisories=(),
        predicates={},
        targets=tuple(targets),
        requires=Requirements(),
        source="",
        digest="",
    )


def write_set(
    name: str,
    goal: Goal,
    targets: Sequence[TargetSpec],
    folder: Path,
    header: Sequence[str] = (),
) -> Path:
    """Write a new set, its reasons left for the author; return its file.

    Args:
        name: The set's name.
        goal: What its gate edits are to bring about.
        targets: Its blocks, such as ``gates_target`` makes.
        folder: The folder of sets that it goes into.
        header: Lines of a comment that comes first.

    Raises:
        UsageError: Something stands there already.
        SpecError: The set cannot be read: the name is no name, or the like.
        GatepatchError: It cannot be written.
    """
    path = check_free(folder, name)
    _, data = read_back(new_set(name, goal, targets), header)
    publish(path, data)
    return path


def check_free(folder: Path, name: str) -> Path:
    """Where a set is going to stand.

    Raises:
        UsageError: Something stands there.
    """
    for path in (folder / name, folder / f"{name}.yaml"):
        if path.exists() or path.is_symlink():
            raise UsageError(
                Problem(
                    message="is there already, and is not overwritten",
                    where=str(path),
                    hint="choose another name, or another folder: --output DIR",
                )
            )
    return folder / name / SET_FILE


def read_back(patch_set: PatchSet, header: Sequence[str] = ()) -> tuple[PatchSet, bytes]:
    """Put a set into YAML and read it again.

    Returns:
        The set as it was read, with the places of its edits; and the YAML.

    Raises:
        SpecError: It cannot be read: the name is no name, or the like.
        RefusedError: It reads otherwise than it was meant.
    """
    data = to_yaml(patch_set, header).encode()
    with tempfile.TemporaryDirectory(prefix="gatepatch-") as folder:
        path = Path(folder, SET_FILE)
        path.write_bytes(data)
        found = load(path)
    if _content(found) != _content(patch_set):
        raise RefusedError(
            Problem(
                message="cannot be put into YAML so that it reads the same",
                where=patch_set.name,
                hint="report it, with the edits",
            )
        )
    return found, data


def publish(path: Path, data: bytes) -> None:
    """Write a set's file, with its folder; nothing of it is left where that fails.

    Raises:
        UsageError: The folder is there already.
        GatepatchError: It cannot be written.
    """
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        check_free(path.parent.parent, path.parent.name)
        path.parent.mkdir()
    except OSError as error:
        raise GatepatchError(_unwritable(path, error)) from None
    try:
        write_new(path, data)
    except OSError as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise GatepatchError(_unwritable(path, error)) from None


def _unwritable(path: Path, error: OSError) -> Problem:
    return Problem(
        message=f"cannot be written: {error.strerror}",
        where=str(path),
        hint="name another folder: --output DIR",
    )


def _content(patch_set: PatchSet) -> PatchSet:
    """A set without its places and its source."""

    def bare(target: TargetSpec) -> TargetSpec:
        files = tuple(
            replace(file, where="", edits=tuple(replace(edit, where="") for edit in file.edits))
            for file in target.files
        )
        units = tuple(
            replace(unit, where="", expect=tuple(replace(each, where="") for each in unit.expect))
            for unit in target.units
        )
        return replace(target, files=files, units=units)

    return replace(patch_set, targets=tuple(map(bare, patch_set.targets)), source="", digest="")
