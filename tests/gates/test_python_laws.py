"""Laws of the Python engine, over generated conditions, against Python itself as the judge."""

from __future__ import annotations

import ast

from hypothesis import given, settings
from hypothesis import strategies as st
from python_sets import archs, gate, run

from gatepatch.arch import TABLE, Arch
from gatepatch.edits import splice
from gatepatch.errors import RefusedError
from gatepatch.spec import Goal

_ATOMS = (
    "major == 10", "major != 10", "major in [9, 10]", "major not in (8, 9)", "major >= 9",
    "major < 12", "sm in [90, 100]", "sm == 100", "9 <= major < 11", "sm <= 103",
    "(major, minor) == (10, 0)", "(major, minor) < (12, 0)", "a", "b",
)  # fmt: skip
_HEAD = "import torch\nmajor, minor = torch.cuda.get_device_capability()\nsm = major * 10 + minor\n"


def _expressions() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(_ATOMS),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda p: f"({p[0]} and {p[1]})"),
            st.tuples(inner, inner).map(lambda p: f"({p[0]} or {p[1]})"),
            inner.map(lambda e: f"(not {e})"),
        ),
        max_leaves=4,
    )


_GOALS = st.sampled_from(
    [
        Goal(action="open", archs=archs("12.0 12.1"), like=Arch(10, 0)),
        Goal(action="open", archs=archs("12.0"), like=Arch(10, 0)),
        Goal(action="close", archs=archs("10.0 10.3")),
    ]
)


def _truth(expression: str, arch: Arch, a: bool, b: bool) -> bool:
    """What Python itself says."""
    names = {"major": arch.major, "minor": arch.minor, "sm": arch.sm, "a": a, "b": b}
    return bool(eval(expression, {"__builtins__": {}}, names))


@given(expression=_expressions(), atom=st.sampled_from(_ATOMS[:-2]), goal=_GOALS)
@settings(max_examples=50, deadline=None)
def test_what_is_edited_changes_for_the_architectures_named_alone(
    expression: str, atom: str, goal: Goal
) -> None:
    source = f"{_HEAD}x = {expression}\n".encode()
    edit = gate(atom, action=goal.action, count=None)
    try:
        found = run(source, edit, goal=goal)
    except RefusedError:
        return
    result = splice(source, found.edits)
    after = ast.unparse(ast.parse(result.splitlines()[-1].removeprefix(b"x = ").decode()))
    for a, b in ((False, False), (False, True), (True, False), (True, True)):
        for arch in TABLE:
            if arch not in goal.archs:
                assert _truth(after, arch, a, b) == _truth(expression, arch, a, b)
            elif goal.action == "close":
                assert _truth(after, arch, a, b) is False
    assert run(result, edit, goal=goal).edits == ()


@given(expression=_expressions())
@settings(max_examples=50, deadline=None)
def test_a_verdict_is_what_python_says(expression: str) -> None:
    source = f"{_HEAD}x = (major == 77) or {expression}\n"
    edit = gate("major == 77", operand="major == 12", unproved="only to be read")
    try:
        (change,) = run(source, edit).changes
    except RefusedError:
        return
    assert change.verdict_before is not None
    for point, function in change.verdict_before.table.items():
        assert isinstance(point, Arch)
        values = {_truth(expression, point, a, b) for a in (False, True) for b in (False, True)}
        assert (function in (True, False)) == (len(values) == 1)
        if len(values) == 1:
            assert values == {function}
