"""Judge a set's gates by the bytes on disk, whatever state, pins and hashes say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace

from gatepatch.arch import TABLE, Arch
from gatepatch.edits import sha256, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.engines import run_engine
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.spec import Edit
from gatepatch.verdict import Verdict, arch_of, differences, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPlace:
    """One place of a set, as it stands on disk.

    Args:
        where: The edit's place in its set.
        line: First line on disk, from 1.
        end_line: Last line.
        within: Qualified name of the enclosing function, if any.
        source: What stands there.
        verdict: ``yes``, ``no`` or ``depends``, to the architectures where it is so; empty for an
            edit that is no gate.
        admitted: Each architecture that the set names, to whether it has the verdict that the set
            is for.
        left: What an apply would put there; empty if it is in place.
        kept: Whether every other architecture has the verdict that it had before the set; None
            where that is not known.
        wrong: Where the verdict is not what the set makes of the pristine one, an architecture
            each.
        unproved: The set's reason for an edit without a proof.
    """

    where: str
    line: int
    end_line: int
    within: str
    source: str
    verdict: Mapping[str, str]
    admitted: Mapping[str, bool]
    left: str
    kept: bool | None
    wrong: tuple[str, ...]
    unproved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One file of a set, as it stands on disk.

    Args:
        expected: SHA-256 of what the set makes of the pristine bytes, worked out now; empty where
            these are not to be had, or the set cannot be planned on them.
        places: Every place of the set.
        problem: Why the places could not be judged.
    """

    expected: str
    places: tuple[JudgedPlace, ...]
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of one file.

    Args:
        edits: The set's.
        current: The bytes on disk.
        pristine: The bytes that the edits are for; None where they are not to be had.
        context: What an engine is given; its ``read`` gives the files as they stand.
        read_pristine: Reads another file as it stood before the set.
        others: Architectures that other applied sets name for this file.
    """

    edits: tuple[Edit, ...]
    current: bytes
    pristine: bytes | None
    context: Context
    read_pristine: Callable[[str], bytes | None]
    others: frozenset[Arch] = frozenset()


def judge(question: Question) -> Judged:
    """Judge a file: plan the set on the bytes on disk, and compare with its plan for the pristine.

    Where nothing is left to do, each gate has the verdict that the set is to bring about. That
    the rest is as it was follows from the pristine bytes.
    """
    context = question.context
    first = _planned(
        question.pristine,
        question.edits,
        replace(context, read=question.read_pristine, read_after=context.read),
    )
    expected = ""
    if isinstance(first, FileEdits) and question.pristine is not None:
        expected = sha256(splice(question.pristine, first.edits))
    now = _planned(question.current, question.edits, context)
    if isinstance(now, Problem):
        return Judged(expected=expected, places=(), problem=now)
    assert now is not None
    old = _ordered(first) if isinstance(first, FileEdits) else []
    new = _ordered(now)
    paired = len(old) == len(new)
    places = (_place(c, old[i] if paired else None, question) for i, c in enumerate(new))
    return Judged(expected=expected, places=tuple(places))


def _ordered(found: FileEdits) -> list[Change]:
    """Places in the order of the set, and of their lines, which edits do not change."""
    return sorted(found.changes, key=lambda change: (change.where, change.line))


def _planned(
    source: bytes | None, edits: tuple[Edit, ...], context: Context
) -> FileEdits | Problem | None:
    if source is None:
        return None
    try:
        return run_engine(source, edits, context)
    except RefusedError as error:
        return error.problems[0]


def _place(change: Change, planned: Change | None, question: Question) -> JudgedPlace:
    now = change.verdict_before
    before = planned.verdict_before if planned else None
    # What was proved just now; other operands of a chain may tell the architectures apart still.
    must = planned.verdict_after if planned else None
    goal = question.context.goal
    others = question.others | goal.archs
    return JudgedPlace(
        where=change.where,
        line=change.line,
        end_line=change.end_line,
        within=change.within,
        source=change.before,
        verdict=words_of(now)[0] if now else {},
        admitted={
            str(arch): not change.edits and not _differences(must, now, skip=_ALL - {arch})
            for arch in (sorted(goal.archs) if now else ())
        },
        left=change.after if change.edits else "",
        kept=not _differences(before, now, skip=others) if before and now else None,
        wrong=_differences(must, now, skip=question.others - goal.archs)
        if not change.edits
        else (),
        unproved=change.unproved,
    )


_ALL = frozenset[Arch | None]((*TABLE, None))


def _differences(
    expected: Verdict | None, found: Verdict | None, *, skip: Set[Arch | None]
) -> tuple[str, ...]:
    """Where a verdict is not the expected one; nothing where either is not known.

    Args:
        skip: The architectures that do not count; None stands for the host pass.
    """
    if expected is None or found is None:
        return ()
    table = {p: f for p, f in expected.table.items() if arch_of(p) not in skip}
    return differences(Verdict(table), found)
