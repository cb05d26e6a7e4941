"""Make one result of several sets' edits of one file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from gatepatch.edits import ByteEdit
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.result import FileEdits
from gatepatch.records import replace
from gatepatch.spec import Edit, GateEdit, Goal
from gatepatch.state import Merge, SetFile

Replan = Callable[[tuple[Edit, ...], Goal], FileEdits]
"""Plans some edits of the pristine file anew, under a goal of its own."""


def conflicts(first: Iterable[ByteEdit], second: Iterable[ByteEdit]) -> bool:
    """Whether two sets' edits touch a common place without being equal."""
    return any(a != b and a.touches(b) for a, b in itertools.product(first, second))


def groups(files: Mapping[str, SetFile]) -> list[tuple[str, ...]]:
    """The sets of a file, those in conflict with each other together, in order of their names."""
    result: list[set[str]] = []
    for name in sorted(files):
        linked = [
            group
            for group in result
            if any(conflicts(files[name].edits, files[other].edits) for other in group)
        ]
        result = [group for group in result if group not in linked]
        result.append({name}.union(*linked))
    return sorted(tuple(sorted(group)) for group in result)


def merged(
    path: str, files: Mapping[str, SetFile], merges: Iterable[Merge]
) -> tuple[ByteEdit, ...]:
    """All edits of one file; for sets in conflict, those that were worked out together.

    Raises:
        RefusedError: Sets are in conflict, and nobody has worked their edits out together.
    """
    known = {(merge.path, merge.sets): merge.edits for merge in merges}
    edits: set[ByteEdit] = set()
    for group in groups(files):
        if len(group) == 1:
            edits.update(files[group[0]].edits)
        elif (path, group) in known:
            edits.update(known[path, group])
        else:
            raise _conflict(path, group)
    return tuple(sorted(edits))


def new_merges(
    path: str,
    files: Mapping[str, SetFile],
    goals: Mapping[str, Goal],
    name: str,
    replan: Replan,
) -> tuple[Merge, ...]:
    """Work out the edits of every group of sets in conflict that the set ``name`` makes possible.

    Groups of every size are worked out now, so that reverting any of the sets later needs no
    parser.

    Raises:
        RefusedError: Two sets cannot be made one, naming both; or the union cannot be proved.
    """
    rivals = [
        other
        for other in sorted(files)
        if other != name and conflicts(files[name].edits, files[other].edits)
    ]
    result = []
    for size in range(1, len(rivals) + 1):
        for chosen in itertools.combinations(rivals, size):
            group = tuple(sorted((name, *chosen)))
            edits = _together(path, group, files, goals, replan)
            result.append(Merge(path=path, sets=group, edits=edits))
    return tuple(result)


def _together(
    path: str,
    group: tuple[str, ...],
    files: Mapping[str, SetFile],
    goals: Mapping[str, Goal],
    replan: Replan,
) -> tuple[ByteEdit, ...]:
    first = goals[group[0]]
    if any((goals[n].action, goals[n].like) != (first.action, first.like) for n in group):
        raise _conflict(path, group)
    union = Goal(
        action=first.action,
        archs=frozenset().union(*(goals[n].archs for n in group)),
        like=first.like,
    )
    specs = [spec for n in group for spec in files[n].spec]
    try:
        found = replan(_union_edits(path, specs), union)
    except RefusedError as error:
        raise RefusedError((*_conflict(path, group).problems, *error.problems)) from None
    except ValueError:  # what ``splice`` says of edits that overlap
        raise _conflict(path, group) from None
    own = {edit for n in group for edit in files[n].edits}
    kept = {edit for edit in own if not any(edit.touches(new) for new in found.edits)}
    if any(a.overlaps(b) for a, b in itertools.combinations(kept, 2)):
        raise _conflict(path, group)
    return tuple(sorted(kept | set(found.edits)))


def _union_edits(path: str, specs: list[Edit]) -> tuple[Edit, ...]:
    """The gates that several sets name, once each, and what else the sets edit, once each."""
    gates: dict[tuple[str | None, ...], list[GateEdit]] = {}
    others: dict[Edit, Edit] = {}
    for spec in specs:
        if isinstance(spec, GateEdit):
            gates.setdefault((spec.within, spec.condition, spec.keyword), []).append(spec)
        else:
            others.setdefault(replace(spec, where=""), spec)
    word = " or " if path.endswith(".py") else " || "
    shared = []
    for same in gates.values():
        if len(same) > 1:
            operands = dict.fromkeys(spec.operand for spec in same if spec.operand)
            shared.append(replace(same[0], operand=word.join(operands) or None))
    return (*others.values(), *shared)


def _conflict(path: str, group: tuple[str, ...]) -> RefusedError:
    return RefusedError(
        Problem(
            message=f"the sets {' and '.join(group)} edit the same place in different ways",
            where=path,
            hint=f"revert one of them first: gatepatch revert {group[0]}",
        )
    )
