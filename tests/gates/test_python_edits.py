"""Python gates opened and closed: the source before, and after."""

from __future__ import annotations

import pytest
from python_sets import CLOSE_12, HEAD, OPEN_12, apply, body, closing, gate, opening, replace, run

from gatepatch.arch import Arch
from gatepatch.spec import Goal

_OPEN = [
    # predicates: the sibling's name is derived from the architecture
    ("is_sm100_supported()", "x = is_sm100_supported()", "x = is_sm100_supported() or is_sm120_supported()"),
    ("is_sm100_supported()", "if is_sm100_supported():", "if is_sm100_supported() or is_sm120_supported():"),
    ("is_sm100_supported()", "if (is_sm100_supported()):", "if (is_sm100_supported() or is_sm120_supported()):"),
    ("is_sm90_supported() or is_sm100_supported()", "if is_sm90_supported() or is_sm100_supported():", "if is_sm90_supported() or is_sm100_supported() or is_sm120_supported():"),
    ("is_sm100_supported()", "if is_sm90_supported() or is_sm100_supported():", "if is_sm90_supported() or is_sm100_supported() or is_sm120_supported():"),
    ("is_sm90_supported() or is_sm100_supported()", "if ok and (is_sm90_supported() or is_sm100_supported()) and more:", "if ok and (is_sm90_supported() or is_sm100_supported() or is_sm120_supported()) and more:"),
    # a bare predicate in a chain of `and` gets parentheses
    ("is_sm100_supported()", "if ok and is_sm100_supported():", "if ok and (is_sm100_supported() or is_sm120_supported()):"),
    ("is_sm100_supported()", "if is_sm100_supported() and ok:", "if (is_sm100_supported() or is_sm120_supported()) and ok:"),
    ("is_sm100_supported()", "if a and is_sm100_supported() and b:", "if a and (is_sm100_supported() or is_sm120_supported()) and b:"),
    ("is_sm100_supported()", "if not is_sm100_supported():", "if not (is_sm100_supported() or is_sm120_supported()):"),
    ("is_sm100_supported()", "x = 1 if is_sm100_supported() else 2", "x = 1 if is_sm100_supported() or is_sm120_supported() else 2"),
    ("is_sm100_supported()", "f(a=is_sm100_supported())", "f(a=is_sm100_supported() or is_sm120_supported())"),
    # lists, tuples, sets; majors, numbers, pairs
    ("major in [9, 10]", "if major in [9, 10]:", "if major in [9, 10, 12]:"),
    ("major in (9, 10)", "if major in (9, 10):", "if major in (9, 10, 12):"),
    ("major in (10,)", "if major in (10,):", "if major in (10, 12,):"),
    ("major in {9, 10}", "if major in {9, 10}:", "if major in {9, 10, 12}:"),
    ("sm in [90, 100]", "if sm in [90, 100]:", "if sm in [90, 100, 120, 121]:"),
    ("(major, minor) in [(9, 0), (10, 0)]", "if (major, minor) in [(9, 0), (10, 0)]:", "if (major, minor) in [(9, 0), (10, 0), (12, 0), (12, 1)]:"),
    ("major not in [9, 10]", "if major not in [9, 10]: raise ValueError", "if major not in [9, 10, 12]: raise ValueError"),
    ("not (major in [9, 10])", "if not (major in [9, 10]): raise ValueError", "if not (major in [9, 10, 12]): raise ValueError"),
    ("major in [9, 10]", "if ok and major in [9, 10]:", "if ok and major in [9, 10, 12]:"),
    # equality
    ("major == 10", "if major == 10:", "if major in (10, 12):"),
    ("major != 10", "if major != 10: raise ValueError", "if major not in (10, 12): raise ValueError"),
    ("major == 10", "if ok and major == 10:", "if ok and major in (10, 12):"),
    ("sm == 100", "if sm == 100:", "if sm in (100, 120, 121):"),
    ("torch.cuda.get_device_capability() == (10, 0)", "x = torch.cuda.get_device_capability() == (10, 0)", "x = torch.cuda.get_device_capability() in ((10, 0), (12, 0), (12, 1))"),
    ("torch.cuda.get_device_capability()[0] == 10", "x = torch.cuda.get_device_capability()[0] == 10", "x = torch.cuda.get_device_capability()[0] in (10, 12)"),
    # bounds
    ("major < 12", "if major >= 9 and major < 12:", "if major >= 9 and major < 13:"),
    ("major <= 11", "if major >= 9 and major <= 11:", "if major >= 9 and major <= 12:"),
    ("12 > major", "if major >= 9 and 12 > major:", "if major >= 9 and 13 > major:"),
    ("9 <= major < 12", "if 9 <= major < 12:", "if 9 <= major < 13:"),
    ("sm < 120", "if sm >= 90 and sm < 120:", "if sm >= 90 and sm < 122:"),
    ("(major, minor) < (12, 0)", "if (major, minor) < (12, 0):", "if (major, minor) < (12, 2):"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "before", "after"),
    _OPEN,
    ids=[case[1] for case in _OPEN],
)
def test_open(condition: str, before: str, after: str) -> None:
    source = body(before) if not before.endswith("ValueError") else f"{HEAD}{before}\n"
    wanted = source.replace(before, after)
    assert apply(source, gate(condition)).decode() == wanted


_GIVEN = [
    ("is_sm100_supported()", "is_sm120_supported()", "if ok and is_sm100_supported():", "if ok and (is_sm100_supported() or is_sm120_supported()):"),
    ("is_sm100_supported()", "major == 12", "if is_sm100_supported():", "if is_sm100_supported() or major == 12:"),
    ("ok and is_sm100_supported()", "ok and major == 12", "if ok and is_sm100_supported():", "if ok and is_sm100_supported() or ok and major == 12:"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "operand", "before", "after"), _GIVEN)
def test_open_with_an_operand_that_is_given(
    condition: str, operand: str, before: str, after: str
) -> None:
    source = body(before).replace("major == 12", "is_cuda() and major == 12")
    operand = operand.replace("major == 12", "is_cuda() and major == 12")
    after = after.replace("major == 12", "is_cuda() and major == 12")
    result = apply(source, gate(condition, operand=operand))
    assert result.decode() == source.replace(before, after)


_CLOSE = [
    ("is_blackwell_supported()", "x = is_blackwell_supported()", "is_sm120_supported()", "x = is_blackwell_supported() and not is_sm120_supported()"),
    ("is_blackwell_supported()", "if ok and is_blackwell_supported():", "is_sm120_supported()", "if ok and is_blackwell_supported() and not is_sm120_supported():"),
    ("major in [10, 12]", "if major in [10, 12]:", None, "if major in [10]:"),
    ("major in (10, 12)", "if major in (10, 12):", None, "if major in (10,):"),
    ("major in {10, 12}", "if major in {10, 12}:", None, "if major in {10}:"),
    ("sm in [100, 120, 121]", "if sm in [100, 120, 121]:", None, "if sm in [100]:"),
    ("major not in [10, 12]", "if major not in [10, 12]: raise ValueError", None, "if major not in [10]: raise ValueError"),
    ("not (major in [10, 12])", "if not (major in [10, 12]): raise ValueError", None, "if not (major in [10]): raise ValueError"),
    ("major < 13", "if major >= 9 and major < 13:", None, "if major >= 9 and major < 12:"),
    ("major >= 9", "if major >= 9 and major < 13:", "major == 12", "if major >= 9 and major != 12 and major < 13:"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "before", "operand", "after"),
    _CLOSE,
    ids=[case[1] for case in _CLOSE],
)
def test_close(condition: str, before: str, operand: str | None, after: str) -> None:
    source = body(before) if not before.endswith("ValueError") else f"{HEAD}{before}\n"
    edit = gate(condition, action="close", operand=operand)
    assert apply(source, edit, goal=CLOSE_12).decode() == source.replace(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x, majors=[9, 10])", "f(x, majors=[9, 10, 12])"),
        ("f(x, majors=(9, 10))", "f(x, majors=(9, 10, 12))"),
        ("f(g(majors=[10]))", "f(g(majors=[10, 12]))"),
        ("f(x, majors=[(9, 0), (10, 0)])", "f(x, majors=[(9, 0), (10, 0), (12, 0), (12, 1)])"),
        ("f(x, majors=[100])", "f(x, majors=[100, 120, 121])"),
        ("f(x, majors=['sm_100'])", "f(x, majors=['sm_100', 'sm_120', 'sm_121'])"),
        ('f(x, majors=["sm_100a"])', 'f(x, majors=["sm_100a", "sm_120a", "sm_121a"])'),
    ],
)
def test_open_and_close_a_list_in_a_keyword(before: str, after: str) -> None:
    opened = apply(body(before), gate(None, keyword="majors")).decode()
    assert opened == body(after)
    edit = gate(None, keyword="majors", action="close")
    assert apply(opened, edit, goal=CLOSE_12).decode() == body(before)


def test_one_member_of_a_family_alone() -> None:
    goal = opening("12.0")
    assert b"sm in [100, 120]" in apply(body("if sm in [100]:"), gate("sm in [100]"), goal=goal)


def test_within_picks_one_function_and_count_takes_several() -> None:
    source = HEAD + "".join(
        f"def {name}():\n    return major in [9, 10]\n" for name in ("first", "second")
    )
    one = apply(source, gate("major in [9, 10]", within="second")).decode()
    head, _, tail = one.partition("def second")
    assert ", 12]" not in head
    assert ", 12]" in tail
    both = apply(source, gate("major in [9, 10]", count=2)).decode()
    assert both.count("[9, 10, 12]") == 2
    assert apply(source, gate("major in [9, 10]", count=None)).decode() == both


def test_a_method_is_found_by_its_qualified_name() -> None:
    source = HEAD + "class A:\n    def f(self):\n        return major == 10\n"
    for within in ("A", "A.f", "f"):
        assert b"major in (10, 12)" in apply(source, gate("major == 10", within=within))


def test_white_space_parentheses_and_comments_do_not_matter_and_stay() -> None:
    source = HEAD + "if (\n    ok  # one\n    and (  is_sm100_supported() )\n    # two\n): pass\n"
    result = apply(source, gate("is_sm100_supported()")).decode()
    assert "# one" in result
    assert "# two" in result
    assert "or is_sm120_supported()" in result


def test_replace_takes_parentheses_of_its_own() -> None:
    edit = replace("is_sm100_supported()", "(is_sm100_supported() or is_sm120_supported())")
    result = apply(body("if ok and is_sm100_supported():"), edit)
    assert b"(is_sm100_supported() or is_sm120_supported())" in result


def test_replace_puts_parentheses_where_they_are_needed() -> None:
    edit = replace("is_sm100_supported()", "is_sm100_supported() or is_sm120_supported()")
    source = body("if ok and is_sm100_supported():")
    wanted = "if ok and (is_sm100_supported() or is_sm120_supported()):"
    assert wanted in apply(source, edit).decode()


@pytest.mark.parametrize(("goal", "shut"), [(OPEN_12, False), (CLOSE_12, True)])
def test_what_is_in_place_is_found_and_stays(goal: Goal, shut: bool) -> None:
    line = "if major in [10]:" if shut else "if major in [10, 12]:"
    condition = "major in [10]" if shut else "major in [10, 12]"
    found = run(body(line), gate(condition, action=goal.action), goal=goal)
    assert [change.edits for change in found.changes] == [()]


def test_the_verdicts_before_and_after_are_given() -> None:
    (change,) = run(body("if major in [10]:"), gate("major in [10]")).changes
    assert change.verdict_before is not None
    assert change.verdict_after is not None
    assert change.verdict_before.words()["yes"] == "10.0 10.3"
    assert change.verdict_after.words()["yes"] == "10.0 10.3 12.0 12.1"
    assert change.verdict_after.table[Arch(13, 0)] is False


@pytest.mark.parametrize(
    ("operand", "after"),
    [(None, "if major < 10:"), ("major == 9", "if major < 9 or major == 9:")],
)
def test_a_guard_that_rejects_is_shut_when_it_holds(operand: str | None, after: str) -> None:
    source = HEAD + "if major < 9:\n    raise ValueError\n"
    edit = gate("major < 9", action="close", operand=operand)
    result = apply(source, edit, goal=closing("9.0")).decode()
    assert result == source.replace("if major < 9:", after)
