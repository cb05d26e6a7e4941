"""Short ways to write goals, contexts and edits in the tests of the CUDA engine."""

from __future__ import annotations

from collections.abc import Sequence

from gatepatch.arch import Arch
from gatepatch.edits import splice
from gatepatch.gates.cuda import plan
from gatepatch.gates.result import Context, FileEdits
from gatepatch.spec import Edit, GateEdit, Goal, Replace, Text


def opening(*archs: str, like: str = "10.0") -> Goal:
    return Goal(action="open", archs=frozenset(map(Arch.parse, archs)), like=Arch.parse(like))


def closing(*archs: str) -> Goal:
    return Goal(action="close", archs=frozenset(map(Arch.parse, archs)))


OPEN_12 = opening("12.0", "12.1")
CLOSE_12 = closing("12.0", "12.1")


def gate(
    condition: str,
    *,
    goal: Goal = OPEN_12,
    operand: str | None = None,
    shut: bool | None = None,
    count: int | None = 1,
    unproved: str = "",
) -> GateEdit:
    return GateEdit(
        where="edits[0]",
        action=goal.action,
        condition=condition,
        operand=operand,
        shut=shut,
        count=count,
        unproved=unproved,
    )


def replace(expression: str, by: str, *, count: int = 1, unproved: str = "") -> Replace:
    return Replace(where="edits[0]", expression=expression, by=by, count=count, unproved=unproved)


def text(find: str, new: str, *, count: int = 1) -> Text:
    return Text(where="edits[1]", find=find, replace=new, count=count, unproved="no gate")


def run(source: bytes, *edits: Edit, goal: Goal = OPEN_12) -> FileEdits:
    context = Context(
        path="a/b.cuh", goal=goal, read=lambda path: None, read_after=lambda path: None
    )
    return plan(source, edits, context)


def apply(source: bytes, edits: Sequence[Edit], goal: Goal = OPEN_12) -> bytes:
    return splice(source, run(source, *edits, goal=goal).edits)
