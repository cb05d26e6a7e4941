"""The ``#if`` language: parsing, spans, structure, and values with unknown macros."""

from __future__ import annotations

import pytest

from gatepatch.boolean import to_text
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_eval import Free, Known, Macro, Unknown, evaluate, integer
from gatepatch.gates.preprocessor_tree import (
    Chain,
    Defined,
    macros,
    operands,
    shape,
    strip,
    to_source,
)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "the condition ends too early", 0),
        ("A &&", "the condition ends too early", 4),
        ("(A", "the condition ends too early", 2),
        ("A B", "expected an operator, found 'B'", 2),
        ("A) ", "expected an operator, found ')'", 1),
        ("defined(1)", "expected a macro's name, found '1'", 8),
        ("defined(A", "the condition ends too early", 9),
        ('A == "x"', "expected a value, found '\"x\"'", 5),
        ("A ? B", "the condition ends too early", 5),
        ("A = 1", "expected an operator, found '='", 2),
        ("1.0 < A", "'1.0' is not an integer", 0),
        ("089", "'089' is not an integer", 0),
        ("12x", "'12x' is not an integer", 0),
        ("0x1ffffffffffffffff", "'0x1ffffffffffffffff' is too large", 0),
        ("'ab'", "'ab' is not a single character", 0),
        ("'\\xff'", "'\\xff' is not an ASCII character", 0),
        ("FOO(1", "the condition ends too early", 5),
        ("(" * 101 + "1" + ")" * 101, "nested more than 100 deep", 0),
        ("!" * 101 + "1", "nested more than 100 deep", 0),
    ],
)
def test_says_what_is_wrong_with_a_condition(text: str, message: str, offset: int) -> None:
    with pytest.raises(ConditionError) as error:
        parse(text)
    assert (str(error.value), error.value.offset) == (message, offset)


@pytest.mark.parametrize(
    "spelling",
    [
        "defined(A) && (B < 3 || !C)",
        "defined A&&(B<3||!C)",
        "(defined(A)) and ((B < 0x3) or (not C))",
        "defined /* of */ A && /* a\n comment */ (B < 3 || !C) // and more",
        "defined(A) \\\n && (B < 3 \\\r\n || !C)",
        "def\\\nined(A) & \\\n& (B < 3 || !C)".replace("& \\", "&\\"),
    ],
)
def test_one_structure_has_many_spellings(spelling: str) -> None:
    assert shape(parse(spelling)) == shape(parse("defined(A) && (B < 3 || !C)"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A && B", "B && A"),
        ("A < 3", "3 > A"),
        ("A && B || C", "A && (B || C)"),
        ("A < 3", "A < 3u"),
        ("defined(A)", "A"),
        ("A - (B - C)", "A - B - C"),
        ("A()", "A"),
    ],
)
def test_other_operands_or_another_order_are_another_structure(one: str, other: str) -> None:
    assert shape(parse(one)) != shape(parse(other))


def test_a_chain_is_flat_through_parentheses() -> None:
    flat = operands(parse("(A && (B && (C || D))) && E"))
    assert [to_source(node) for node in flat] == ["A", "B", "C || D", "E"]


def test_nodes_know_their_bytes_across_continuations() -> None:
    source = b"FOO \\\r\n && ARCH\\\n_MIN /* \xc3\xa9 */ >= 3"
    chain = strip(parse(source))
    assert isinstance(chain, Chain)
    pieces = [source[node.start : node.end] for node in chain.operands]
    assert pieces == [b"FOO", b"ARCH\\\n_MIN /* \xc3\xa9 */ >= 3"]
    assert macros(chain) == ("FOO", "ARCH_MIN")


def test_a_node_is_written_so_that_it_parses_to_itself() -> None:
    text = "A ? (B | 2u) << 1 == C : !defined(D) && F(x, <y.h>) || ~(E)"
    assert shape(parse(to_source(parse(text)))) == shape(parse(text))


def test_a_name_that_starts_like_defined_is_a_name() -> None:
    assert macros(parse("definedX")) == ("definedX",)
    assert parse("defined(X)") == Defined("X")


def _lookup(name: str) -> Macro:
    if name.startswith("SM"):
        return Unknown("it may be set for one architecture")
    return {"ARCH": Known(1200), "NONE": Known(None)}.get(name, Free())


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("ARCH >= 900 && ARCH < 1200", "no"),
        ("ARCH / 100 == 12", "yes"),
        ("NONE == 0 && !defined(NONE)", "yes"),
        ("NONE >= 900", "no"),
        ("ARCH >= 900 && FOO", "FOO"),
        ("ARCH < 900 && FOO", "no"),
        ("ARCH >= 900 || FOO", "yes"),
        ("!FOO || FOO", "yes"),
        ("FOO != 0 && !defined(BAR)", "FOO and (not defined(BAR))"),
        ("FOO == 0", "not FOO"),
        ("CUDA_VERSION >= 12080", "CUDA_VERSION >= 12080"),
        ("(FOO ? 900 : 1300) <= ARCH", "FOO"),
        ("defined(FOO) + defined(BAR) == 2", "defined(BAR) and defined(FOO)"),
        ("(FOO ? ARCH : 0) >= 900", "FOO"),
        ("!(FOO && ARCH)", "not FOO"),
        ("0 && 1 / 0", "no"),
        ("__has_include(<a/b-1.h>)", "__has_include(<a/b-1.h>)"),
        ("-1 > 0u && ~0u == 18446744073709551615u", "yes"),
        ("'a' == 97 && '\\n' == 10 && '\\0' == 0", "yes"),
        ("true and not false", "yes"),
        ("(1 ? -1 : 0u) > 0", "yes"),
    ],
)
def test_values(condition: str, value: str) -> None:
    assert to_text(evaluate(parse(condition), _lookup)) == value


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("ARCH >= MIN", "the value of MIN beside ARCH is not known"),
        ("NONE >= MIN", "the value of MIN beside NONE is not known"),
        ("F(ARCH) == 1", "the value of F beside ARCH is not known"),
        ("(ARCH + MIN) / 2", "the value of MIN beside ARCH is not known"),
        ("defined(SM_FLAG)", "it may be set for one architecture"),
        ("SM_FLAG > ARCH", "it may be set for one architecture"),
        ("ARCH / 0", "it divides by zero"),
        ("(FOO ? 1 : 1 / 0) + 1", "it divides by zero"),
        ("-(1 / 0)", "it divides by zero"),
    ],
)
def test_what_may_hide_the_architecture_is_unknown(condition: str, reason: str) -> None:
    value = evaluate(parse(condition), _lookup)
    assert not isinstance(value, bool)
    assert value.atom.unknown == reason


def test_an_unknown_part_that_does_not_matter_is_not_asked_for() -> None:
    assert evaluate(parse("ARCH < 900 && ARCH >= MIN"), _lookup) is False
    assert evaluate(parse("ARCH > 900 || SM_FLAG"), _lookup) is True


def test_the_integer_of_an_expression() -> None:
    assert integer(parse("ARCH / 100 % 10"), _lookup) == 2
    assert integer(parse("ARCH + FOO"), _lookup) is None
