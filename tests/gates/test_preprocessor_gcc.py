"""The evaluator against ``gcc -E`` on expressions that nobody would write."""

from __future__ import annotations

from gcc_judge import judge
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gatepatch.boolean import Atom, Node
from gatepatch.boolean import evaluate as value_of
from gatepatch.gates.preprocessor import parse
from gatepatch.gates.preprocessor_eval import Free, Known, Macro, evaluate
from gatepatch.gates.preprocessor_tree import shape, to_source

_DEFINES = {"ARCH": "1200", "SMALL": "-3", "ONE": "1", "BIG": "9223372036854775807"}

_LEAVES = st.sampled_from(
    [
        *("0", "1", "2", "3u", "7", "900", "1'200", "0x4B0", "01130", "0b11", "5L", "6ULL", "8uz"),
        *("9223372036854775807", "0xffffffffffffffff", "-1", "'a'", "'\\n'", "true", "false"),
        *("ARCH", "SMALL", "ONE", "BIG", "NOWHERE", "defined(ARCH)", "defined NOWHERE"),
    ]
)
_BINARY = st.sampled_from(
    [
        *("||", "&&", "|", "^", "&", "==", "!=", "<", "<=", ">", ">=", "<<", ">>"),
        *("+", "-", "*", "/", "%", "and", "or", "bitand", "bitor", "xor", "not_eq"),
    ]
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda op, a: f"{op} {a}", st.sampled_from(["!", "~", "-", "+", "not"]), inner),
        st.builds(lambda a: f"({a})", inner),
        st.builds(lambda a, op, b: f"{a} {op} {b}", inner, _BINARY, inner),
        st.builds(lambda a, op, b: f"({a}) {op} ({b})", inner, _BINARY, inner),
        st.builds(lambda a, b, c: f"{a} ? {b} : {c}", inner, inner, inner),
    )


_EXPRESSIONS = st.recursive(_LEAVES, _grow, max_leaves=8)


def _lookup(name: str) -> Macro:
    return Known(int(_DEFINES[name]) if name in _DEFINES else None)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_EXPRESSIONS, min_size=60, max_size=60))
def test_the_evaluator_agrees_with_gcc(conditions: list[str]) -> None:
    for condition, verdict in zip(conditions, judge(conditions, _DEFINES), strict=True):
        mine = evaluate(parse(condition), _lookup)
        if verdict is None:
            assert "/" in condition or "%" in condition, condition
        elif isinstance(mine, Node):
            # gcc shrugs at a division by zero that it need not carry out.
            assert mine.atom.unknown == "it divides by zero", condition
        else:
            assert mine is verdict, condition


@given(_EXPRESSIONS)
def test_writing_and_parsing_again_keeps_the_structure(text: str) -> None:
    assert shape(parse(to_source(parse(text)))) == shape(parse(text))


_FREE = ("ARCH", "ONE", "NOWHERE")


@settings(deadline=None)
@given(_EXPRESSIONS, st.tuples(*[st.none() | st.integers(-3, 3)] * len(_FREE)))
def test_a_free_macro_stands_for_each_of_its_values(
    text: str, values: tuple[int | None, ...]
) -> None:
    chosen = dict(zip(_FREE, values, strict=True))

    def known(name: str) -> Macro:
        return Known(chosen[name]) if name in chosen else _lookup(name)

    def free(name: str) -> Macro:
        return Free() if name in chosen else _lookup(name)

    def atom(found: Atom) -> bool:
        value = evaluate(parse(found.text), known)
        assume(isinstance(value, bool))
        return value is True

    expected = evaluate(parse(text), known)
    assume(isinstance(expected, bool))
    assert value_of(evaluate(parse(text), free), atom) is expected
