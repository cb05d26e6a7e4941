"""Short ways to write goals, packages and edits in the tests of the Python engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pytest

from gatepatch.arch import Arch
from gatepatch.edits import splice
from gatepatch.errors import RefusedError
from gatepatch.gates.python import plan
from gatepatch.gates.result import Context, FileEdits
from gatepatch.spec import Edit, GateEdit, Goal, Import, Insert, Replace, Text


def archs(text: str) -> frozenset[Arch]:
    return frozenset(map(Arch.parse, text.split()))


def opening(names: str, *, like: str = "10.0") -> Goal:
    return Goal(action="open", archs=archs(names), like=Arch.parse(like))


def closing(names: str) -> Goal:
    return Goal(action="close", archs=archs(names))


OPEN_12 = opening("12.0 12.1")
CLOSE_12 = closing("12.0 12.1")

PATH = "pkg/layer.py"

UTILS = b"""\
from functools import lru_cache, partial
import torch

def is_cuda():
    return torch.version.cuda is not None

def _major_is(majors):
    return is_cuda() and torch.cuda.get_device_capability()[0] in majors

@lru_cache(maxsize=1)
def is_sm90_supported(device=None):
    return is_cuda() and torch.cuda.get_device_capability(device)[0] == 9

is_sm100_supported = lru_cache(maxsize=1)(partial(_major_is, majors=[10]))
is_sm120_supported = lru_cache(maxsize=1)(partial(_major_is, majors=[12]))
is_blackwell_supported = partial(_major_is, majors=(10, 12))
"""
"""A module of predicates like those of serving stacks."""

HEAD = """\
import torch
from pkg.utils import is_blackwell_supported, is_cuda, is_sm90_supported
from pkg.utils import is_sm100_supported, is_sm120_supported

major, minor = torch.cuda.get_device_capability()
sm = major * 10 + minor
"""
"""The head of a module that has gates."""


def gate(
    condition: str | None,
    *,
    action: Literal["open", "close"] = "open",
    keyword: str | None = None,
    operand: str | None = None,
    within: str | None = None,
    shut: bool | None = None,
    count: int | None = 1,
    unproved: str = "",
) -> GateEdit:
    return GateEdit(
        where="edits[0]",
        action=action,
        within=within,
        condition=condition,
        keyword=keyword,
        operand=operand,
        shut=shut,
        count=count,
        unproved=unproved,
    )


def replace(
    expression: str, by: str, *, within: str | None = None, count: int = 1, unproved: str = ""
) -> Replace:
    return Replace(
        where="edits[0]",
        within=within,
        expression=expression,
        by=by,
        count=count,
        unproved=unproved,
    )


def importing(name: str, module: str = "pkg.utils") -> Import:
    return Import(where="edits[1]", module=module, name=name)


def insert(
    anchor: str,
    code: str,
    *,
    side: Literal["before", "after"] = "after",
    within: str | None = None,
    unproved: str = "",
) -> Insert:
    return Insert(
        where="edits[2]", within=within, anchor=anchor, side=side, code=code, unproved=unproved
    )


def text(find: str, new: str, *, count: int = 1) -> Text:
    return Text(where="edits[3]", find=find, replace=new, count=count, unproved="no gate")


def run(
    source: bytes | str,
    *edits: Edit,
    goal: Goal = OPEN_12,
    files: Mapping[str, bytes] | None = None,
    predicates: Mapping[str, str] | None = None,
) -> FileEdits:
    """Plan in a package of ``pkg/utils.py``, of more files, and of the source itself."""
    data = source.encode() if isinstance(source, str) else source
    others = {"pkg/utils.py": UTILS, "pkg/__init__.py": b"", **(files or {})}
    context = Context(
        path=PATH,
        goal=goal,
        read=others.get,
        read_after=others.get,
        predicates={name: archs(where) for name, where in (predicates or {}).items()},
    )
    return plan(data, edits, context)


def apply(
    source: bytes | str,
    *edits: Edit,
    goal: Goal = OPEN_12,
    files: Mapping[str, bytes] | None = None,
    predicates: Mapping[str, str] | None = None,
) -> bytes:
    """The result; planning it again changes nothing and finds as many places."""
    data = source.encode() if isinstance(source, str) else source
    first = run(data, *edits, goal=goal, files=files, predicates=predicates)
    result = splice(data, first.edits)
    again = run(result, *edits, goal=goal, files=files, predicates=predicates)
    assert again.edits == ()
    assert len(again.changes) == len(first.changes)
    return result


def body(line: str) -> str:
    """A module with one gate: a whole ``if`` line, or an expression."""
    statement = line if line.startswith(("if ", "x = ", "f(")) else f"x = {line}"
    block = " pass" if statement.endswith(":") else ""
    return f"{HEAD}{statement}{block}\n"


def refusal(
    source: bytes | str,
    edits: Sequence[Edit] | Edit,
    *,
    goal: Goal = OPEN_12,
    files: Mapping[str, bytes] | None = None,
    predicates: Mapping[str, str] | None = None,
) -> str:
    """Why the edits are refused."""
    several = edits if isinstance(edits, Sequence) else [edits]
    with pytest.raises(RefusedError) as caught:
        run(source, *several, goal=goal, files=files, predicates=predicates)
    return str(caught.value)
