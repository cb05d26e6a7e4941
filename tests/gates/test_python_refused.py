"""Edits of Python gates that would do something else than they say, each with its own reason."""

from __future__ import annotations

import pytest
from python_sets import CLOSE_12, HEAD, OPEN_12, body, closing, gate, opening, refusal, replace

from gatepatch.spec import Edit, Goal

_BOTH = "is_sm100_supported() or is_sm120_supported()"

_WRONG = [
    (
        "the parentheses of a chain are missing",
        "if ok and is_sm100_supported():",
        replace("ok and is_sm100_supported()", f"ok and {_BOTH}"),
        OPEN_12,
        "12.0",
    ),
    (
        "a wider predicate than was meant",
        "if ok and is_sm90_supported():",
        replace("is_sm90_supported()", "(is_sm90_supported() or is_blackwell_supported())"),
        opening("12.0 12.1", like="9.0"),
        "10.0",
    ),
    (
        "the other operands of the guard changed",
        "if ok and is_sm100_supported():",
        replace("ok and is_sm100_supported()", f"({_BOTH})"),
        OPEN_12,
        "must be",
    ),
    (
        "right for 12.0, but not for 12.1",
        "if sm in [90, 100]:",
        replace("sm in [90, 100]", "sm in [90, 100, 120]"),
        OPEN_12,
        "12.1",
    ),
    (
        "what comes next is let in",
        "if major >= 9 and major < 12:",
        replace("major < 12", "major < 14"),
        OPEN_12,
        "13.0",
    ),
    (
        "no upper bound at all",
        "if major >= 9 and major < 12:",
        replace("major >= 9 and major < 12", "sm >= 90"),
        OPEN_12,
        "13.0",
    ),
    (
        "a gate of majors, and less than the family named",
        "if major in [9, 10]:",
        gate("major in [9, 10]"),
        opening("12.0"),
        "the gate sees majors only, so it admits 12.1 too",
    ),
    (
        "another operand still shuts the architecture out",
        "if major < 11 and is_sm100_supported():",
        gate("is_sm100_supported()"),
        OPEN_12,
        "would still leave 12.0, 12.1 out",
    ),
    (
        "the operand given holds for others too",
        "if ok and is_sm100_supported():",
        gate("is_sm100_supported()", operand="major >= 12"),
        OPEN_12,
        "13.0",
    ),
    (
        "the operand given holds for too few",
        "if ok and is_sm100_supported():",
        gate("is_sm100_supported()", operand="sm == 120"),
        OPEN_12,
        "12.1",
    ),
    (
        "closed for others too",
        "if major in [10, 12]:",
        gate("major in [10, 12]", operand="major >= 10", action="close"),
        CLOSE_12,
        "10.0",
    ),
    (
        "closed for a part of a family that is one number",
        "if major in [10, 12]:",
        gate("major in [10, 12]", action="close"),
        closing("12.0"),
        "12.1",
    ),
    (
        "what is not known of an operand given",
        "if ok and is_sm100_supported():",
        gate("is_sm100_supported()", operand="is_sm120_anything()"),
        OPEN_12,
        "is_sm120_anything()",
    ),
    (
        "a keyword's list is none of architectures",
        "f(names=['a', 'b'])",
        gate(None, keyword="names"),
        OPEN_12,
        "is no list of architectures",
    ),
    (
        "a replaced expression that is no gate",
        "if ok and more:",
        replace("more", "less"),
        OPEN_12,
        "is no gate",
    ),
]


@pytest.mark.parametrize(
    ("line", "edit", "goal", "reason"), [case[1:] for case in _WRONG], ids=[c[0] for c in _WRONG]
)
def test_a_wrong_edit(line: str, edit: Edit, goal: Goal, reason: str) -> None:
    found = refusal(body(line), edit, goal=goal)
    assert reason in found
    assert "pkg/layer.py:" in found
    assert "edits[0]" in found


def test_the_list_of_the_neighbouring_function_is_not_taken() -> None:
    source = HEAD + (
        "def first():\n    return major in [9, 10]\n\n"
        "def second():\n    return major in [8, 9, 10]\n"
    )
    found = refusal(source, gate("major in [9, 10]", within="second"))
    assert "expected 1 of `major in [9, 10]` within second, found 0" in found


def test_too_many_are_listed_by_their_lines() -> None:
    source = HEAD + "x = major in [9, 10]\ny = major in [9, 10]\n"
    found = refusal(source, gate("major in [9, 10]"))
    assert "found 2: on lines 7, 8" in found


def test_the_nearest_is_named_where_nothing_matches() -> None:
    source = HEAD + "x = major in [8, 9, 10]\n"
    found = refusal(source, gate("major in [9, 10]"))
    assert "found 0: the nearest: line 7: major in [8, 9, 10]" in found


def test_nothing_like_it_is_said() -> None:
    assert "nothing like it" in refusal("x = 1\n", gate("major in [9, 10]"))


def test_all_problems_of_a_file_are_told_at_once() -> None:
    edits: list[Edit] = [gate("major == 77"), replace("is_nothing()", "1")]
    found = refusal(body("if major == 10:"), edits)
    assert "major == 77" in found
    assert "is_nothing()" in found


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# -*- coding: latin-1 -*-\nx = major == 10\n", "latin-1"),
        (b"#!/bin/python\n# coding: iso-8859-1\nx = major == 10\n", "iso-8859-1"),
        (b"x = '\xe9'\n", "UTF-8"),
        (b"if major == 10\n    pass\n", "parse"),
    ],
    ids=["latin-1 cookie", "cookie on line 2", "not UTF-8", "does not parse"],
)
def test_a_file_that_cannot_be_kept(data: bytes, reason: str) -> None:
    assert reason in refusal(data, gate("major == 10"))


@pytest.mark.parametrize("goal", [opening("12.5"), opening("12.0 12.1 12.5"), closing("12.5")])
def test_an_architecture_that_verdicts_are_not_compared_for(goal: Goal) -> None:
    edit = gate("sm in [90, 100]", action=goal.action)
    assert "12.5" in refusal(body("if sm in [90, 100]:"), edit, goal=goal)
