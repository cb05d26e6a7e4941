"""Laws of the CUDA engine: whatever it plans, it plans once, and only for those named."""

from __future__ import annotations

import pytest
from cuda_sets import apply, gate, run
from gcc_judge import judge
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from gatepatch.arch import CUDA_PASSES, TABLE, Arch, CudaPass
from gatepatch.edits import splice, unsplice
from gatepatch.errors import RefusedError
from gatepatch.gates.cuda import gates_in
from gatepatch.gates.cuda_macros import target_macro
from gatepatch.spec import Goal
from gatepatch.verdict import arch_of

_BOUNDS = st.sampled_from([arch.cuda_arch for arch in TABLE] + [899, 1199, 1299])
_OPERANDS = st.one_of(
    st.builds(
        lambda op, n: f"__CUDA_ARCH__ {op} {n}",
        st.sampled_from(["<", "<=", ">", ">=", "=="]),
        _BOUNDS,
    ),
    st.builds(lambda n, op: f"{n} {op} __CUDA_ARCH__", _BOUNDS, st.sampled_from(["<", ">="])),
    st.sampled_from(["defined(__CUDA_ARCH__)", "defined(__CUDA_ARCH_FEAT_SM100_ALL)"]),
    st.sampled_from(["FOO", "CUDA_VERSION >= 12080", "!defined(BAR)"]),
)
_SHAPES = st.recursive(
    _OPERANDS,
    lambda inner: st.one_of(
        st.builds(lambda a, b: f"{a} && {b}", inner, inner),
        st.builds(lambda a, b: f"({a} || {b})", inner, inner),
        st.builds(lambda a: f"({a})", inner),
        st.builds(lambda a: f"!({a})", inner),
    ),
    max_leaves=4,
)
_ARCHS = st.sampled_from(TABLE[:-1])
_SETS = st.one_of(
    st.frozensets(_ARCHS, min_size=1, max_size=3),
    st.just(frozenset({Arch(12, 0), Arch(12, 1)})),
)


def _goal(archs: frozenset[Arch], like: Arch | None) -> Goal:
    return Goal(action="open" if like else "close", archs=archs, like=like)


_GOALS = st.builds(_goal, _SETS, st.none() | _ARCHS)
_NEWLINES = st.sampled_from(["\n", "\r\n"])


def _file(condition: str, newline: str) -> bytes:
    return newline.join([f"#if {condition}", "int x;", "#endif // é"]).encode()


_LAW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@_LAW
@given(_SHAPES, _GOALS, _NEWLINES)
@example("__CUDA_ARCH__ < 750", _goal(frozenset({Arch(7, 0), Arch(7, 5), Arch(8, 0)}), None), "\n")
def test_planning_again_gives_no_edits_and_undoing_gives_the_file(
    condition: str, goal: Goal, newline: str
) -> None:
    source = _file(condition, newline)
    edit = gate(condition, goal=goal)
    try:
        planned = run(source, edit, goal=goal)
    except RefusedError:
        assume(False)
    result = splice(source, planned.edits)
    assert unsplice(result, planned.edits) == source
    again = run(result, edit, goal=goal)
    assert again.edits == ()
    assert len(again.changes) == 1


@_LAW
@given(_SHAPES, _GOALS)
def test_every_other_pass_is_as_it_was(condition: str, goal: Goal) -> None:
    source = _file(condition, "\n")
    try:
        result = apply(source, [gate(condition, goal=goal)], goal)
    except RefusedError:
        assume(False)
    found, made = gates_in(source), gates_in(result)
    assume(found)
    before, after = found[0].verdict.table, made[0].verdict.table
    for point in CUDA_PASSES:
        arch = arch_of(point)
        if arch not in goal.archs:
            assert after[point] == before[point]
        elif goal.like is None:
            assert after[point] is False
        elif CudaPass(goal.like, point.suffix) in before:
            assert after[point] == before[CudaPass(goal.like, point.suffix)]


@settings(_LAW, max_examples=6)
@given(st.lists(st.tuples(_SHAPES, _GOALS), min_size=25, max_size=25))
def test_gcc_sees_what_was_planned(cases: list[tuple[str, Goal]]) -> None:
    conditions: list[tuple[str, str, Goal]] = []
    for condition, goal in cases:
        try:
            result = apply(_file(condition, "\n"), [gate(condition, goal=goal)], goal)
        except RefusedError:
            continue
        conditions.append((condition, result.decode().split("\n")[0][len("#if ") :], goal))
    names = ("__CUDA_ARCH__", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__")
    features = tuple(f"__CUDA_ARCH_FEAT_SM{arch.sm}_ALL" for arch in TABLE)
    verdicts: dict[CudaPass, list[tuple[bool | None, bool | None]]] = {}
    for point in CUDA_PASSES:
        values = {name: target_macro(name, point) for name in (*names, *features)}
        defines = {name: str(value) for name, value in values.items() if value is not None}
        both = judge([text for pair in conditions for text in pair[:2]], {**defines, "FOO": "1"})
        verdicts[point] = list(zip(both[::2], both[1::2], strict=True))
    for point, judged in verdicts.items():
        for number, (_, _, goal) in enumerate(conditions):
            before, after = judged[number]
            arch = arch_of(point)
            if arch not in goal.archs:
                assert after is before
            elif goal.like is None:
                assert after is False
            elif (like := CudaPass(goal.like, point.suffix)) in verdicts:
                assert after is verdicts[like][number][0]


@pytest.mark.parametrize("arch", TABLE[:-1], ids=str)
def test_every_architecture_can_be_opened_where_only_another_is_admitted(arch: Arch) -> None:
    like = Arch(10, 0) if arch != Arch(10, 0) else Arch(9, 0)
    goal = _goal(frozenset({arch}), like)
    source = f"#if __CUDA_ARCH__ == {like.cuda_arch}\n#endif\n".encode()
    result = apply(source, [gate(f"__CUDA_ARCH__ == {like.cuda_arch}", goal=goal)], goal)
    (found,) = gates_in(result)
    assert {arch_of(p) for p, value in found.verdict.table.items() if value} == {arch, like}
