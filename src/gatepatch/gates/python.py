"""The Python engine: find gates by structure, work edits out, prove them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gatepatch.arch import TABLE
from gatepatch.edits import ByteEdit, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.python_gates import plan_gate, plan_keyword, plan_replace
from gatepatch.gates.python_prover import Prover
from gatepatch.gates.python_source import Source
from gatepatch.gates.python_statements import Pending, plan_import, plan_insert, prove_inserted
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.gates.text import plan_text
from gatepatch.spec import Edit, GateEdit, Import, Insert, Replace, Text


class OverlapError(RefusedError, ValueError):
    """Two edits of one plan touch one place; a ValueError as ``splice``'s own is."""


def plan(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    """Plan the edits of a Python file.

    Raises:
        RefusedError: With every edit that does not match, cannot be proved, or cannot be kept.
    """
    _check_goal(context)
    found = _plan(source, edits, context)
    if found.edits:
        _check(_spliced(source, found.edits, context), edits, context)
    return found


def _check_goal(context: Context) -> None:
    """Refuse architectures that verdicts are not compared for: nothing would be proved."""
    named = {*context.goal.archs, *filter(None, [context.goal.like])}
    if odd := [str(arch) for arch in sorted(named) if arch not in TABLE]:
        raise RefusedError(
            Problem(
                message=f"nothing can be proved for {', '.join(odd)}: known are "
                + ", ".join(map(str, TABLE)),
                where=context.path,
            )
        )


def _check(after: bytes, edits: Sequence[Edit], context: Context) -> None:
    """The result parses, and planning it again changes nothing."""
    again = _plan(after, edits, replace(context, read=context.read_after))
    if again.edits:
        raise RefusedError(
            Problem(
                message="planning the result again would change it again: "
                + "; ".join(f"line {c.line}: {c.before}" for c in again.changes if c.edits),
                where=context.path,
                hint="name the places more exactly, with within or a longer condition",
            )
        )


def _plan(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    prover = Prover(Source(context.path, source), context)
    problems: list[Problem] = []
    changes: list[Change] = []
    pending: list[tuple[Insert, Pending]] = []
    # What opened gates need comes first: their proofs read it.
    for edit in edits:
        with _collecting(problems):
            match edit:
                case Import():
                    changes.append(plan_import(prover.source, prover.before.module, edit))
                case Insert():
                    change, left = plan_insert(prover.source, prover.before, edit)
                    changes.append(change)
                    pending += [(edit, left)] if left is not None else []
                case Text():
                    changes += plan_text(source, edit, context.path)
                case GateEdit() | Replace():
                    pass
    if problems:
        raise RefusedError(problems)
    prover.read_after(_spliced(source, _edits(changes), context))
    for insert, left in pending:
        with _collecting(problems):
            prove_inserted(prover, insert, left)
    gates: list[Change] = []
    for edit in edits:
        with _collecting(problems):
            match edit:
                case GateEdit(keyword=str()):
                    gates += plan_keyword(prover, edit)
                case GateEdit():
                    gates += plan_gate(prover, edit)
                case Replace():
                    gates += plan_replace(prover, edit)
                case Import() | Insert() | Text():
                    pass
    if problems:
        raise RefusedError(problems)
    _spliced(source, _edits(gates), context)  # two edits that overlap cannot be read together
    prover.check_structure(_edits(gates))
    places = {edit.where: index for index, edit in enumerate(edits)}
    every = sorted([*changes, *gates], key=lambda c: (places[c.where], c.line))
    return FileEdits(changes=tuple(every))


@contextmanager
def _collecting(problems: list[Problem]) -> Iterator[None]:
    """Keep the problems of a refusal, and go on."""
    try:
        yield
    except RefusedError as error:
        problems += error.problems


def _spliced(source: bytes, edits: Iterable[ByteEdit], context: Context) -> bytes:
    try:
        return splice(source, edits)
    except ValueError as error:
        raise OverlapError(
            Problem(
                message=f"two edits of the set touch one place: {error}",
                where=context.path,
                hint="make one edit of them, or put one statement after the other",
            )
        ) from None


def _edits(changes: Iterable[Change]) -> set[ByteEdit]:
    return {edit for change in changes for edit in change.edits}
