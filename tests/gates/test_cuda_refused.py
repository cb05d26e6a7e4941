"""What the CUDA engine refuses, and in which words."""

from __future__ import annotations

import pytest
from cuda_sets import CLOSE_12, OPEN_12, apply, gate, opening, replace, run, text

from gatepatch.errors import RefusedError
from gatepatch.spec import Edit, GateEdit, Goal, Import, Insert

_BOUNDED = (
    b"#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)\n#endif\n"
)


def _refusal(source: bytes, *edits: Edit, goal: Goal = OPEN_12) -> str:
    with pytest.raises(RefusedError) as error:
        run(source, *edits, goal=goal)
    return str(error.value)


# The proof, tried on wrong edits: each is what someone might write by hand.


@pytest.mark.parametrize(
    ("expression", "by", "complaint"),
    [
        pytest.param(
            "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200",
            "__CUDA_ARCH__ >= 900",
            "13.0 becomes yes, must stay no",
            id="a bound dropped instead of raised",
        ),
        pytest.param(
            "__CUDA_ARCH__ < 1200",
            "__CUDA_ARCH__ < 1210",
            "12.1 is no, must be yes",
            id="right for 12.0 and not for 12.1",
        ),
        pytest.param(
            "__CUDA_ARCH__ < 1200",
            "__CUDA_ARCH__ <= 1300",
            "13.0 becomes yes, must stay no",
            id="one architecture too many",
        ),
        pytest.param(
            "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200",
            "__CUDA_ARCH__ < 1300",
            "the host becomes yes, must stay no",
            id="other operands lost",
        ),
        pytest.param(
            "__CUDA_ARCH__ >= 900",
            "__CUDA_ARCH__ >= 800",
            "8.0 becomes yes, must stay no",
            id="another operand changed",
        ),
        pytest.param(
            "__CUDA_ARCH__ < 1200",
            "(__CUDA_ARCH__ < 1300 && FOO)",
            "9.0 becomes FOO, must stay yes",
            id="a condition of its own added",
        ),
    ],
)
def test_a_replacement_that_is_wrong(expression: str, by: str, complaint: str) -> None:
    message = _refusal(_BOUNDED, replace(expression, by))
    assert message.startswith(
        "a/b.cuh:1 (edits[0]): nothing makes the condition open for 12.0, 12.1 like 10.0 "
        "and the same for all others: "
    )
    assert complaint in message
    assert "\n  line 1: #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) &&" in message
    assert "\n  tried line 1: #if " in message


def test_a_replacement_gets_the_parentheses_that_its_author_forgot() -> None:
    source = b"#if FOO && __CUDA_ARCH__ == 1000\n#endif\n"
    edit = replace("__CUDA_ARCH__ == 1000", "__CUDA_ARCH__ == 1000 || __CUDA_ARCH__ / 100 == 12")
    result = apply(source, [edit])
    assert b"FOO && (__CUDA_ARCH__ == 1000 || __CUDA_ARCH__ / 100 == 12)\n" in result
    assert run(result, edit).edits == ()


def test_the_missing_parentheses_are_refused() -> None:
    # `FOO && X || Y` as text admits 12.x without FOO; as a whole condition it is judged.
    source = b"#if FOO && __CUDA_ARCH__ == 1000\n#endif\n"
    by = "FOO && __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ / 100 == 12"
    message = _refusal(source, replace("FOO && __CUDA_ARCH__ == 1000", by))
    assert "12.0 is yes, must be FOO" in message


@pytest.mark.parametrize(
    ("operand", "complaint"),
    [
        ("__CUDA_ARCH__ >= 1200", "13.0 becomes yes, must stay no"),
        ("__CUDA_ARCH__ == 1200", "12.1 is no, must be yes"),
        ("USE_SM120", "the host becomes USE_SM120, must stay no"),
    ],
)
def test_an_operand_that_is_wrong(operand: str, complaint: str) -> None:
    source = b"#if __CUDA_ARCH__ == 1000\n#endif\n"
    assert complaint in _refusal(source, gate("__CUDA_ARCH__ == 1000", operand=operand))


def test_a_gate_that_nothing_derived_opens() -> None:
    source = b"#if FOO && __CUDA_ARCH__ == 1000\n#endif\n"
    assert _refusal(source, gate("FOO", goal=OPEN_12)) == (
        "a/b.cuh:1 (edits[0]): nothing makes the condition open for 12.0, 12.1 like 10.0 "
        "and the same for all others: 12.0 is no, must be FOO; 12.1 is no, must be FOO\n"
        "  line 1: #if FOO && __CUDA_ARCH__ == 1000\n"
        "  tried line 1: #if (FOO || (__CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300)) "
        "&& __CUDA_ARCH__ == 1000"
    )


def test_operands_on_both_sides_of_a_parenthesis() -> None:
    source = b"#if (FOO && __CUDA_ARCH__ >= 900) && __CUDA_ARCH__ < 1200\n#endif\n"
    pattern = "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200"
    assert apply(source, [gate(pattern)]) == source.replace(b"1200", b"1300")
    by = "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1300"
    assert apply(source, [replace(pattern, by)]) == source.replace(b"1200", b"1300")
    message = _refusal(source, replace(pattern, "BAR(__CUDA_ARCH__)", unproved="it is so"))
    assert message.startswith("a/b.cuh:1 (edits[0]): nothing makes the condition open for")


# Conditions that cannot be judged.


def test_a_macro_that_speaks_of_an_architecture() -> None:
    source = b"#if defined(CUTLASS_ARCH_MMA_SM100_ENABLED) && __CUDA_ARCH__ < 1200\n#endif\n"
    edit = gate("__CUDA_ARCH__ < 1200")
    assert _refusal(source, edit) == (
        "a/b.cuh:1 (edits[0]): cannot be judged: defined(CUTLASS_ARCH_MMA_SM100_ENABLED): "
        "its name speaks of an architecture\n"
        "  line 1: #if defined(CUTLASS_ARCH_MMA_SM100_ENABLED) && __CUDA_ARCH__ < 1200\n"
        "  give the reason why it is right as `unproved:`"
    )
    planned = run(source, gate("__CUDA_ARCH__ < 1200", unproved="the build sets it"))
    assert [change.unproved for change in planned.changes] == ["the build sets it"]
    assert planned.edits[0].new == b"1300"


def test_a_macro_beside_the_architecture() -> None:
    source = b"#if __CUDA_ARCH__ >= LEAST && __CUDA_ARCH__ < 1200\n#endif\n"
    message = _refusal(source, gate("__CUDA_ARCH__ < 1200"))
    assert "__CUDA_ARCH__ >= LEAST: the value of LEAST beside __CUDA_ARCH__ is not kn" in message


def test_a_reason_is_not_shown_where_a_proof_is_had() -> None:
    planned = run(_BOUNDED, gate("__CUDA_ARCH__ < 1200", unproved="not needed"))
    assert [change.unproved for change in planned.changes] == [""]


def test_an_unproved_replacement_is_made_as_written() -> None:
    edit = replace("__CUDA_ARCH__ < 1200", "__CUDA_ARCH__ < MAX_ARCH", unproved="MAX_ARCH is 1300")
    planned = run(_BOUNDED, edit)
    assert [change.unproved for change in planned.changes] == ["MAX_ARCH is 1300"]
    result = apply(_BOUNDED, [edit])
    assert b"(__CUDA_ARCH__ < MAX_ARCH)" in result
    assert run(result, edit).edits == ()


# Places that are not there as often as they must be.


def test_too_few_places() -> None:
    source = b"int x;\n" + _BOUNDED + _BOUNDED
    assert _refusal(source, gate("__CUDA_ARCH__ < 1200", count=3)) == (
        "a/b.cuh (edits[0]): expected 3 places with `__CUDA_ARCH__ < 1200`, found 2\n"
        "  found:\n"
        "  line 2: #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)\n"
        "  line 4: #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)"
    )


def test_too_many_places() -> None:
    message = _refusal(_BOUNDED * 12, gate("__CUDA_ARCH__ < 1200"))
    assert "expected 1 place with `__CUDA_ARCH__ < 1200`, found 12\n" in message
    assert message.endswith("\n  and 2 more")


def test_no_place_but_one_like_it() -> None:
    assert _refusal(_BOUNDED, gate("__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100")) == (
        "a/b.cuh (edits[0]): expected 1 place with "
        "`__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100`, found 0\n"
        "  nearest:\n"
        "  line 1: #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200)"
    )


@pytest.mark.parametrize(
    "condition",
    [
        "900 <= __CUDA_ARCH__",
        "__CUDA_ARCH__ < 1200 && __CUDA_ARCH__ >= 900",
        "defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1200",
        "__CUDA_ARCH__ >= 900 || __CUDA_ARCH__ < 1200",
    ],
    ids=["reversed", "in another order", "not adjacent", "another operator"],
)
def test_what_is_not_the_same_structure_does_not_match(condition: str) -> None:
    assert "found 0" in _refusal(_BOUNDED, gate(condition))


def test_a_condition_in_a_comment_or_string_is_none() -> None:
    source = b'// #if __CUDA_ARCH__ < 1200\nauto s = R"(\n#if __CUDA_ARCH__ < 1200\n)";\n'
    assert "found 0" in _refusal(source, gate("__CUDA_ARCH__ < 1200"))


# A gate that is opened in vain.


def test_an_earlier_branch_that_takes_the_architecture() -> None:
    source = b"#if __CUDA_ARCH__ >= 1200\n#elif __CUDA_ARCH__ >= 900\n#endif\n"
    assert _refusal(source, gate("__CUDA_ARCH__ >= 900")) == (
        "a/b.cuh:2 (edits[0]): opening this has no effect: "
        "what it guards is kept from 12.0, 12.1 elsewhere\n"
        "  line 1: #if __CUDA_ARCH__ >= 1200"
    )


def test_a_condition_around_it_that_leaves_the_architecture_out() -> None:
    source = b"#if __CUDA_ARCH__ < 1100\n#if __CUDA_ARCH__ < 1200\n#endif\n#endif\n"
    message = _refusal(source, gate("__CUDA_ARCH__ < 1200"))
    assert message.endswith("\n  line 1: #if __CUDA_ARCH__ < 1100")
    assert run(source, gate("__CUDA_ARCH__ < 1200"), gate("__CUDA_ARCH__ < 1100")).edits


# Edits that make no sense here.


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            GateEdit(where="e", action="open", condition="A", within="f"),
            "a/b.cuh (e): within is for Python files\n  the condition is enough here",
        ),
        (
            GateEdit(where="e", action="open", keyword="archs"),
            "a/b.cuh (e): keyword is for Python files\n  name the condition",
        ),
        (
            GateEdit(where="e", action="open"),
            "a/b.cuh (e): expected a condition\n  name the gate by its condition",
        ),
        (
            Import(where="e", module="m", name="n"),
            "a/b.cuh (e): import is for Python files\n  use text",
        ),
        (
            Insert(where="e", anchor="a", side="before", code="pass"),
            "a/b.cuh (e): insert is for Python files\n  use text",
        ),
        (
            GateEdit(where="e", action="open", condition="A &&"),
            "a/b.cuh (e): this is no preprocessor condition: the condition ends too early\n  A &&\n      ^",
        ),
        (
            GateEdit(where="e", action="open", condition="A", operand="1 2"),
            "a/b.cuh (e): this is no preprocessor condition: expected an operator, found '2'\n  1 2\n    ^",
        ),
    ],
)
def test_an_edit_that_is_not_for_this_language(edit: Edit, message: str) -> None:
    assert _refusal(b"#if A\n#endif\n", edit) == message


def test_an_architecture_outside_the_table() -> None:
    message = _refusal(_BOUNDED, gate("__CUDA_ARCH__ < 1200"), goal=opening("12.0", "12.5"))
    assert message.startswith("a/b.cuh (edits[0]): nothing can be proved for 12.5, only for 7.0, ")


def test_all_problems_are_said_at_once() -> None:
    message = _refusal(_BOUNDED, gate("__CUDA_ARCH__ < 1100"), gate("FOO"), text("int y", "int z"))
    assert message.count("a/b.cuh (edits[") == 3


# Text edits.


def test_text_edits_stand_beside_gates() -> None:
    source = b"int x = 1;\r\n" + _BOUNDED.replace(b"\n", b"\r\n")
    planned = run(source, gate("__CUDA_ARCH__ < 1200"), text("x = 1", "x = 2"))
    assert [(c.line, c.where, c.unproved) for c in planned.changes] == [
        (1, "edits[1]", "no gate"),
        (2, "edits[0]", ""),
    ]


def test_a_text_edit_that_overlaps_a_gate() -> None:
    message = _refusal(_BOUNDED, gate("__CUDA_ARCH__ < 1200"), text("< 1200", "< 9999"))
    assert message.startswith("a/b.cuh: the edits overlap: ")


@pytest.mark.parametrize(
    ("find", "new"),
    [("#if defined", "#if FOO || defined"), ("#if defined", "int y; #if defined")],
    ids=["another condition", "no directive any more"],
)
def test_a_text_edit_that_undoes_a_proof(find: str, new: str) -> None:
    message = _refusal(_BOUNDED, gate("__CUDA_ARCH__ < 1200"), text(find, new))
    assert message == "a/b.cuh:1 (edits[0]): another edit of the file undoes this one"


def test_closing_names_its_aim() -> None:
    source = b"#if __CUDA_ARCH__ >= 900\n#endif\n"
    edit = replace("__CUDA_ARCH__ >= 900", "__CUDA_ARCH__ >= 1000")
    assert "nothing makes the condition closed for 12.0, 12.1 and the same for all others" in (
        _refusal(source, edit, goal=CLOSE_12)
    )
