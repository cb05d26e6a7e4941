"""Finding directives in C and CUDA source."""

from __future__ import annotations

import pytest

from gatepatch.gates.directives import scan
from gatepatch.gates.preprocessor import ConditionError
from gatepatch.gates.preprocessor_tree import Expr, to_source


def _conditions(source: bytes) -> list[tuple[int, int, str, str]]:
    found = []
    for branch in scan(source).branches.values():
        directive = branch.directive
        assert not isinstance(branch.condition, ConditionError)
        text = "" if branch.condition is None else to_source(branch.condition)
        found.append((directive.line, directive.end_line, directive.keyword, text))
    return found


@pytest.mark.parametrize(
    "source",
    [
        b"// #if A\n",
        b"// to be continued \\\n#if A\n",
        b"/* \n#if A\n*/\n",
        b'const char* s = "\\\n#if A\\n";\n',
        b'auto s = R"(\n#if A\n)";\n',
        b'auto s = u8R"x(\n)"\n#if A\n)x";\n',
        b"int x; #if A\n",
        b"int x; /* \n */ #if A\n",
        b"#define Y \\\n#if A\n",
        b"# if_not A\n",
        b"#",
        b"",
        b"char c = '\"'; // \"\n",
        b"int x; /* c */ #if A\n",
        b"#pragma unroll /* \n#if A\n*/\n",
    ],
    ids=repr,
)
def test_no_directive(source: bytes) -> None:
    assert _conditions(source) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (b"#if A\n#endif\n", [(1, 1, "if", "A")]),
        (b"  #  if A", [(1, 1, "if", "A")]),
        (b"\xef\xbb\xbf#if A\r\n#endif", [(1, 1, "if", "A")]),
        (b"%:if A\n", [(1, 1, "if", "A")]),
        (b"/* c */ # /* c */ if /* c */ A /* c\n c */ && B // c\n", [(1, 2, "if", "A && B")]),
        (b"x\n#if A && \\\n   B || \\\r\n C\n", [(2, 4, "if", "(A && B) || C")]),
        (b"#i\\\nf A\n", [(1, 2, "if", "A")]),
        (b"#if A \\  \n && B\n", [(1, 2, "if", "A && B")]),
        (b"#ifdef A\n#elifndef B\n#else\n", [
            (1, 1, "ifdef", "defined(A)"),
            (2, 2, "elifndef", "!defined(B)"),
            (3, 3, "else", ""),
        ]),
        (b"int n = 1'000'000; char c = '\"';\n#if A\n", [(2, 2, "if", "A")]),
        (b"#error don't\n#if A\n", [(2, 2, "if", "A")]),
        (b'auto s = notR"(";\n#if A\n', [(2, 2, "if", "A")]),
        (b"\0\xff\xfe \x80\n\0#if\0A\n", [(2, 2, "if", "A")]),
        (b"a / b /\n#if A\n", [(2, 2, "if", "A")]),
        (b"/* c */ #if A\n", [(1, 1, "if", "A")]),
        (b"#pragma unroll\n#pragma once /* c */\nf(/* n */ 1); // c\n#if A\n", [(4, 4, "if", "A")]),
        (b"#endif\n#else\n#if A\n", [(2, 2, "else", ""), (3, 3, "if", "A")]),
    ],
    ids=repr,
)  # fmt: skip
def test_directives(source: bytes, found: list[tuple[int, int, str, str]]) -> None:
    assert _conditions(source) == found


def test_branches_know_where_they_stand() -> None:
    source = b"#if A\n#if B\n#elif C\n#else\n#endif\n#elif D\n#endif\n"
    a, b, c, other, d = scan(source).branches.values()
    assert (a.parent, b.parent, c.parent, other.parent, d.parent) == (None, a, a, a, None)
    assert (b.earlier, c.earlier, other.earlier, d.earlier) == ((), (b,), (b, c), (a,))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (b"#if\n", "the condition ends too early"),
        (b"#if A B\n", "expected an operator, found 'B'"),
        (b"#ifdef\n", "expected a macro's name"),
        (b"#ifdef 1\n", "expected a macro's name"),
    ],
)
def test_a_condition_that_does_not_parse_is_kept_as_such(condition: bytes, message: str) -> None:
    (branch,) = scan(condition).branches.values()
    assert isinstance(branch.condition, ConditionError)
    assert str(branch.condition) == message


@pytest.mark.parametrize(
    ("guarded", "rejects"),
    [
        (b'#error "too old"\n', True),
        (b"// why\n#error too old\n", True),
        (b'asm volatile("trap;");\n', True),
        (b'  asm ( "trap;" ) ;\n', True),
        (b"__trap();\n", True),
        (b"\n", False),
        (b"int x;\n#error too old\n", False),
        (b"#define X\n#error too old\n", False),
        (b"return;\n", False),
    ],
)
def test_what_only_rejects(guarded: bytes, rejects: bool) -> None:
    source = b"#if A\n" + guarded + b"#else\nint y;\n#endif\n"
    found = scan(source)
    first, second = found.branches.values()
    assert found.rejects(source, first) is rejects
    assert not found.rejects(source, second)


def test_without_an_end_nothing_is_said_to_reject() -> None:
    source = b"#if A\n#error no\n"
    found = scan(source)
    assert not any(found.rejects(source, branch) for branch in found.branches.values())


def test_include_guards() -> None:
    source = (
        b"#ifndef X_H\n#define X_H\n#if !(defined(Y))\n#define Y 1\n#endif\n#ifndef Z\n#endif\n"
    )
    found = scan(source)
    guards = [found.is_include_guard(branch) for branch in found.branches.values()]
    assert guards == [True, True, False]


def test_offsets_are_those_of_the_file() -> None:
    source = b"\xef\xbb\xbfint \\\n x;\r\n#if A \\\r\n && BB /* c */\r\n"
    (branch,) = scan(source).branches.values()
    condition = branch.condition
    assert condition is not None
    assert not isinstance(condition, ConditionError)
    expression: Expr = condition
    assert source[expression.start : expression.end] == b"A \\\r\n && BB"
    assert source[slice(*branch.span)] == b"A \\\r\n && BB"
