"""Architectures that are alike: what is worked out on one holds for those that are left."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepatch.arch import TABLE, Arch
from gatepatch.scanning.alike import Alike, found_in

Expression = Callable[[Arch], Any]

_NUMBERS = st.sampled_from([0, 1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 89, 90, 100, 103, 120, 1000, 2.5])
_COMBINED = st.sampled_from(
    [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv]
)
_ASKED = st.sampled_from(
    [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)


def _values() -> st.SearchStrategy[Expression]:
    parts: st.SearchStrategy[Expression] = st.one_of(
        st.just(operator.attrgetter("major")),
        st.just(operator.attrgetter("minor")),
        st.just(operator.attrgetter("sm")),
        st.just(operator.attrgetter("cuda_arch")),
        _NUMBERS.map(lambda number: lambda arch: number),
    )
    return st.recursive(
        parts,
        lambda inner: st.builds(
            lambda action, a, b: lambda arch: action(a(arch), b(arch)), _COMBINED, inner, inner
        ),
        max_leaves=4,
    )


@st.composite
def _questions(draw: st.DrawFn) -> Expression:
    """Code that asks something of an architecture, and goes one way or another by the answer."""
    value, other = draw(_values()), draw(_values())
    action = draw(_ASKED)
    more = draw(_values())
    kind = draw(st.sampled_from(["truth", "compare", "choose", "text", "pair", "table", "member"]))
    if kind == "truth":
        return lambda arch: bool(value(arch))
    if kind == "compare":
        return lambda arch: action(value(arch), other(arch))
    if kind == "choose":
        return lambda arch: repr(value(arch)) if action(other(arch), 9) else more(arch) > 3
    if kind == "text":
        return lambda arch: f"sm_{value(arch)}".startswith("sm_1")
    if kind == "pair":
        return lambda arch: action((arch.major, arch.minor), (10, 3))
    if kind == "table":
        return lambda arch: found_in({(9, 0): "a", (12, 1): "b"}, (arch.major, arch.minor))
    return lambda arch: {90: 1, 100: 2}.get(value(arch)) or "%d" % value(arch)  # noqa: UP031, C code that wants a number


def _outcome(question: Expression, arch: Arch) -> Any:
    try:
        return question(arch)
    except (ArithmeticError, TypeError) as error:
        return type(error)


@given(_questions(), st.integers(0, len(TABLE) - 1))
def test_those_that_are_left_have_the_same_outcome(question: Expression, index: int) -> None:
    alike = Alike(TABLE)
    outcome = _outcome(question, alike.watched(index))

    left = [*alike.archs()]

    assert outcome == _outcome(question, TABLE[index])
    assert TABLE[index] in left
    assert {arch: _outcome(question, arch) for arch in left} == dict.fromkeys(left, outcome)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        (lambda arch: arch.major >= 9, ["9.0", "10.0", "10.3", "11.0", "12.0", "12.1", "13.0"]),
        (lambda arch: arch.major == 10, ["10.0", "10.3"]),
        (lambda arch: arch.sm >= 100, ["10.0", "10.3", "11.0", "12.0", "12.1", "13.0"]),
        (lambda arch: (arch.major, arch.minor) == (10, 0), ["10.0"]),
        (lambda arch: arch.major in (9, 10, 11), ["10.0", "10.3"]),
        (lambda arch: None, [str(arch) for arch in TABLE]),
    ],
)
def test_no_more_are_told_apart_than_have_to_be(question: Expression, left: list[str]) -> None:
    alike = Alike(TABLE)

    question(alike.watched(TABLE.index(Arch(10, 0))))

    assert [str(arch) for arch in alike.archs()] == left


def test_a_set_of_architectures_tells_apart_what_is_in_it_from_what_is_not() -> None:
    alike = Alike(TABLE)

    assert alike.holds(TABLE.index(Arch(12, 0)), frozenset({Arch(12, 0), Arch(12, 1)}))
    assert [*map(str, alike.archs())] == ["12.0", "12.1"]


def test_a_number_says_to_be_an_int_and_hides_nothing_from_code_in_c() -> None:
    alike = Alike(TABLE)
    major = alike.watched(TABLE.index(Arch(10, 0))).major

    assert isinstance(major, int)
    assert [*range(12)][major] == 10
    assert [*map(str, alike.archs())] == ["10.0", "10.3"]


def test_what_was_asked_before_counts_no_more_once_it_is_forgotten() -> None:
    alike = Alike(TABLE)
    alike.watched(0).major.__hash__()

    alike.forget()

    assert [*alike.archs()] == [*TABLE]
