"""Gates opened and closed: the condition before, and after."""

from __future__ import annotations

import pytest
from cuda_sets import CLOSE_12, OPEN_12, apply, closing, gate, opening, run

from gatepatch.edits import ByteEdit
from gatepatch.spec import Goal

_RANGE = "(__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300)"


def _file(directive: str, guarded: str = "int x;") -> bytes:
    return f"{directive}\n{guarded}\n#endif\n".encode()


_OPEN = [
    # an upper bound
    ("A >= 900 && A < 1200", "#if A >= 900 && A < 1200", "#if A >= 900 && A < 1300"),
    ("A >= 900 && A < 1200", "#if defined(A) && (A >= 900) && (A < 1200)", "#if defined(A) && (A >= 900) && (A < 1300)"),
    ("A >= 900 && A < 1200", "#if ((defined(A) && (A >= 900)) && (A < 1200))", "#if ((defined(A) && (A >= 900)) && (A < 1300))"),
    ("A < 1200U", "#if A >= 900 && A < 1200U", "#if A >= 900 && A < 1300U"),
    ("A < 1200", "#if A >= 900 && A < 0x4B0", "#if A >= 900 && A < 1300"),
    ("A <= 1199", "#if A >= 900 && A <= 1199", "#if A >= 900 && A <= 1299"),
    ("A <= 1100", "#if A >= 900 && A <= 1100", "#if A >= 900 && A <= 1210"),
    ("1200 > A", "#if A >= 900 && 1200 > A", "#if A >= 900 && 1300 > A"),
    ("A / 100 < 12", "#if A / 100 >= 9 && A / 100 < 12", "#if A / 100 >= 9 && A / 100 < 13"),
    ("A / 10 <= 119", "#if A / 10 >= 90 && A / 10 <= 119", "#if A / 10 >= 90 && A / 10 <= 129"),
    ("A < 1200", "#if FOO && (A >= 900 && A < 1200 || BAR)", "#if FOO && (A >= 900 && A < 1300 || BAR)"),
    # equality
    ("A == 1000", "#if A == 1000", f"#if A == 1000 || {_RANGE}"),
    ("A == 1000", "#if (A == 1000)", f"#if (A == 1000 || {_RANGE})"),
    ("A == 1000", "#if defined(A) && A == 1000", f"#if defined(A) && (A == 1000 || {_RANGE})"),
    ("A == 1000", "#if defined(A) && (A == 1000)", f"#if defined(A) && (A == 1000 || {_RANGE})"),
    ("defined(A) && A == 1000", "#if defined(A) && A == 1000 && FOO", f"#if defined(A) && (A == 1000 || {_RANGE}) && FOO"),
    ("A == 1000 || A == 1030", "#if A == 1000 || A == 1030", f"#if A == 1000 || A == 1030 || {_RANGE}"),
    ("A == 1000", "#if A == 1000 || A == 1030", f"#if A == 1000 || {_RANGE} || A == 1030"),
    ("A / 100 == 10", "#if A / 100 == 10 && FOO", f"#if (A / 100 == 10 || {_RANGE}) && FOO"),
    # a range by another
    ("A >= 1000 && A < 1100", "#if A >= 1000 && A < 1100", f"#if A >= 1000 && (A < 1100 || {_RANGE})"),
    # polarity
    ("A == 1000", "#if !(A == 1000)", f"#if !(A == 1000 || {_RANGE})"),
    ("defined(F100)", "#if !defined(F100)", "#if !(defined(F100) || defined(F120) || defined(F121))"),
    ("A < 900 || A >= 1200", "#if A < 900 || A >= 1200", "#if A < 900 || A >= 1300"),
    # target macros
    ("defined(F100)", "#if defined(F100)", "#if defined(F100) || defined(F120) || defined(F121)"),
    ("defined(F100)", "#ifdef F100", "#if defined(F100) || defined(F120) || defined(F121)"),
    ("defined(F100)", "#ifndef F100", "#if !(defined(F100) || defined(F120) || defined(F121))"),
    ("!defined(F100)", "#ifndef F100 // c", "#if !defined(F100) && !defined(F120) && !defined(F121) // c"),
    ("defined(F100)", "#if A >= 1000 && defined(F100)", "#if A >= 1000 && (defined(F100) || defined(F120) || defined(F121))"),
    ("SPECIFIC == 1000", "#if SPECIFIC == 1000", "#if SPECIFIC == 1000 || (SPECIFIC >= 1200 && SPECIFIC < 1300)"),
    ("FAMILY == 1000", "#if FAMILY == 1000", "#if FAMILY == 1000 || (FAMILY >= 1200 && FAMILY < 1300)"),
    ("defined(F100) || FAMILY == 1000", "#if defined(F100) || FAMILY == 1000", "#if defined(F100) || FAMILY == 1000 || (FAMILY >= 1200 && FAMILY < 1300)"),
    # words, comments, continuations
    ("A >= 900 && A < 1200", "#if defined A and (A >= 900 /* Hopper */) and A < 1200 // more", "#if defined A and (A >= 900 /* Hopper */) and A < 1300 // more"),
    ("A >= 900 && A < 1200", "#if A >= 900 \\\n  && A < 12\\\n00", "#if A >= 900 \\\n  && A < 1300"),
    ("A == 1000", "#if defined(A) && \\\n    A == 1000 /* Blackwell */", f"#if defined(A) && \\\n    (A == 1000 || {_RANGE}) /* Blackwell */"),
]  # fmt: skip


def _spell(text: str) -> str:
    """Write the target macros out: A, SPECIFIC, FAMILY, F100."""
    import re

    names = {"A": "__CUDA_ARCH__", "SPECIFIC": "__CUDA_ARCH_SPECIFIC__", "FAMILY": "__CUDA_ARCH_FAMILY_SPECIFIC__"}  # fmt: skip
    text = re.sub(r"\bF(\d+)\b", r"__CUDA_ARCH_FEAT_SM\1_ALL", text)
    return re.sub(r"\b(?:A|SPECIFIC|FAMILY)\b", lambda match: names[match[0]], text)


@pytest.mark.parametrize(("condition", "before", "after"), _OPEN, ids=[case[1] for case in _OPEN])
def test_open(condition: str, before: str, after: str) -> None:
    edit = gate(_spell(condition))
    source = _file(_spell(before))
    result = apply(source, [edit])
    assert result.decode() == _file(_spell(after)).decode()
    again = run(result, edit)
    assert again.edits == ()
    assert len(again.changes) == 1


_FAR = opening("8.9", "12.0")
_OPEN_ELSE = [
    (opening("12.0"), "A < 1200", "#if A >= 900 && A < 1200", "#if A >= 900 && A < 1210"),
    (opening("12.0"), "A == 1000", "#if A == 1000", "#if A == 1000 || A == 1200"),
    (opening("12.1"), "A < 1200", "#if A >= 900 && A < 1200", "#if A >= 900 && (A < 1200 || A == 1210)"),
    (opening("8.9", like="9.0"), "A >= 900", "#if A >= 900", "#if A >= 890"),
    (opening("8.9", like="9.0"), "A > 890", "#if A > 890", "#if A > 889"),
    (opening("8.9", like="9.0"), "A < 900", "#if A < 900", "#if A < 890"),
    # parentheses where they are needed
    (_FAR, "A >= 900 && A < 1200", "#if A >= 900 && A < 1200", "#if (A >= 900 && A < 1200) || A == 890 || A == 1200"),
    (_FAR, "A >= 900 && A < 1200", "#if defined(A) && A >= 900 && A < 1200", "#if defined(A) && ((A >= 900 && A < 1200) || A == 890 || A == 1200)"),
    (_FAR, "A >= 900 && A < 1200", "#if FOO && (A >= 900 && A < 1200)", "#if FOO && ((A >= 900 && A < 1200) || A == 890 || A == 1200)"),
    (_FAR, "A >= 900 && A < 1200", "#if (A >= 900 && A < 1200) && FOO", "#if ((A >= 900 && A < 1200) || A == 890 || A == 1200) && FOO"),
    (_FAR, "A >= 900 && A < 1200", "#if FOO || A >= 900 && A < 1200", "#if FOO || (A >= 900 && A < 1200) || A == 890 || A == 1200"),
    (_FAR, "A >= 900 && A < 1200", "#if FOO ? A >= 900 && A < 1200 : 0", "#if FOO ? ((A >= 900 && A < 1200) || A == 890 || A == 1200) : 0"),
    (_FAR, "A < 900 || A >= 1200", "#if A < 900 || A >= 1200", "#if (A < 900 || A >= 1200) && A != 890 && A != 1200"),
    (opening("10.3"), "A == 1000", "#if A == 1000", "#if A == 1000 || A == 1030"),
    (opening("11.0", "10.3"), "A == 1000", "#if A == 1000", "#if A == 1000 || (A >= 1030 && A < 1200)"),
    (opening("12.0", like="9.0"), "defined(F90)", "#ifdef F90", "#if defined(F90) || defined(F120)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("goal", "condition", "before", "after"), _OPEN_ELSE, ids=[str(c[2]) for c in _OPEN_ELSE]
)
def test_open_for_others(goal: Goal, condition: str, before: str, after: str) -> None:
    edit = gate(_spell(condition), goal=goal)
    result = apply(_file(_spell(before)), [edit], goal)
    assert result.decode() == _file(_spell(after)).decode()
    assert run(result, edit, goal=goal).edits == ()


_CLOSE = [
    (CLOSE_12, "A < 1300", "#if A >= 900 && A < 1300", "#if A >= 900 && A < 1200"),
    (CLOSE_12, "A <= 1299", "#if A >= 900 && A <= 1299", "#if A >= 900 && A <= 1199"),
    (CLOSE_12, "A >= 1200", "#if A >= 1200", "#if A >= 1300"),
    (CLOSE_12, "A >= 900", "#if A >= 900", "#if A >= 900 && !(A >= 1200 && A < 1300)"),
    (CLOSE_12, "A >= 900", "#if A >= 900 || FOO", "#if (A >= 900 || FOO) && !(A >= 1200 && A < 1300)"),
    (closing("12.0"), "A >= 900", "#if A >= 900", "#if A >= 900 && A != 1200"),
    (closing("9.0"), "A >= 900", "#if A >= 900", "#if A >= 1000"),
    (closing("9.0"), "A > 890", "#if A > 890", "#if A > 900"),
    (closing("8.9", "12.0"), "A >= 800", "#if A >= 800", "#if A >= 800 && A != 890 && A != 1200"),
    (closing("9.0"), "defined(F90) || defined(F100)", "#if defined(F90) || defined(F100)", "#if (defined(F90) || defined(F100)) && !defined(F90)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("goal", "condition", "before", "after"), _CLOSE, ids=[str(c[2]) for c in _CLOSE]
)
def test_close(goal: Goal, condition: str, before: str, after: str) -> None:
    wide = before == "#if A >= 900 || FOO"
    edit = gate(_spell(f"{condition} || FOO" if wide else condition), goal=goal)
    result = apply(_file(_spell(before)), [edit], goal)
    assert result.decode() == _file(_spell(after)).decode()
    assert run(result, edit, goal=goal).edits == ()


@pytest.mark.parametrize(
    "guarded", ["#error too old", "// too old\n#error no", '  asm volatile("trap;");']
)
def test_a_guard_that_only_rejects_is_shut_when_it_holds(guarded: str) -> None:
    goal = closing("9.0")
    source = _file("#if __CUDA_ARCH__ < 900", guarded)
    after = apply(source, [gate("__CUDA_ARCH__ < 900", goal=goal)], goal)
    assert after == _file("#if __CUDA_ARCH__ < 1000", guarded)


def test_the_author_may_say_what_shuts() -> None:
    goal = closing("9.0")
    source = _file("#if __CUDA_ARCH__ < 900", "slow_path();")
    edit = gate("__CUDA_ARCH__ < 900", goal=goal, shut=True)
    assert apply(source, [edit], goal) == _file("#if __CUDA_ARCH__ < 1000", "slow_path();")
    assert run(source, gate("__CUDA_ARCH__ < 900", goal=goal), goal=goal).edits == ()


def test_the_author_may_name_the_operand() -> None:
    source = _file("#if defined(FOO) && __CUDA_ARCH__ == 1000")
    operand = "__CUDA_ARCH__ / 100 == 12 && FOO"
    edit = gate("__CUDA_ARCH__ == 1000", operand="__CUDA_ARCH__ / 100 == 12")
    result = apply(source, [edit])
    assert result == _file(
        "#if defined(FOO) && (__CUDA_ARCH__ == 1000 || __CUDA_ARCH__ / 100 == 12)"
    )
    assert run(result, edit).edits == ()
    edit = gate("FOO && __CUDA_ARCH__ == 1000", operand=operand)
    result = apply(_file("#if FOO && __CUDA_ARCH__ == 1000"), [edit])
    assert result == _file(f"#if (FOO && __CUDA_ARCH__ == 1000) || ({operand})")


def test_only_the_bytes_that_must_change_are_replaced() -> None:
    source = b"\xef\xbb\xbfint caf\xc3\xa9;\0\xff\r\n#if (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)\r\n#endif"
    planned = run(source, gate("__CUDA_ARCH__ < 1200"))
    (change,) = planned.changes
    assert planned.edits == (ByteEdit(source.index(b"1200"), b"1200", b"1300"),)
    assert (change.line, change.end_line, change.where) == (2, 2, "edits[0]")
    assert change.before == "#if (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)"
    assert change.after == "#if (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1300)"
    assert change.verdict_before is not None
    assert change.verdict_after is not None
    assert change.verdict_before.words()["yes"] == "9.0 10.0 10.3 11.0"
    assert change.verdict_after.words()["yes"] == "9.0 10.0 10.3 11.0 12.0 12.1"
    assert change.unproved == ""


def test_a_gate_that_admits_already_is_in_place() -> None:
    source = _file("#if __CUDA_ARCH__ >= 900")
    (change,) = run(source, gate("__CUDA_ARCH__ >= 900", count=None)).changes
    assert (change.edits, change.before) == ((), change.after)
    assert change.verdict_before == change.verdict_after


def test_several_places_some_of_them_in_place() -> None:
    source = b"".join(
        _file(f"#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < {bound}")
        for bound in (1200, 1300, 1200)
    )
    edit = gate("__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200", count=3)
    planned = run(source, edit)
    assert [len(change.edits) for change in planned.changes] == [1, 0, 1]
    assert [change.line for change in planned.changes] == [1, 4, 7]


def test_two_places_in_one_condition() -> None:
    source = _file("#if (FOO && __CUDA_ARCH__ < 1200) || (BAR && __CUDA_ARCH__ < 1200)")
    edit = gate("__CUDA_ARCH__ < 1200", count=2)
    result = apply(source, [edit])
    assert result == source.replace(b"1200", b"1300")
    assert len(run(result, edit).changes) == 2
    assert run(result, edit).edits == ()


def test_two_edits_of_one_condition_where_the_first_is_enough() -> None:
    source = _file("#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200")
    planned = run(source, gate("__CUDA_ARCH__ < 1200"), gate("__CUDA_ARCH__ >= 900"))
    assert [len(change.edits) for change in planned.changes] == [1, 0]


def test_both_branches_of_an_if_are_opened_together() -> None:
    source = b"#if FOO && __CUDA_ARCH__ == 1000\n#elif __CUDA_ARCH__ == 1000\n#endif\n"
    result = apply(source, [gate("__CUDA_ARCH__ == 1000", count=2)])
    assert result.count(_RANGE.encode()) == 2


def test_a_gate_and_what_is_around_it_are_opened_together() -> None:
    source = b"#if __CUDA_ARCH__ < 1200\n#if __CUDA_ARCH__ < 1200\n#endif\n#endif\n"
    assert apply(source, [gate("__CUDA_ARCH__ < 1200", count=2)]) == source.replace(b"12", b"13")


def test_elifdef_is_rewritten() -> None:
    source = b"#if FOO\n#elifdef __CUDA_ARCH_FEAT_SM100_ALL\n#endif\n"
    result = apply(source, [gate("defined(__CUDA_ARCH_FEAT_SM100_ALL)", goal=OPEN_12)])
    assert b"#elif defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA" in result
