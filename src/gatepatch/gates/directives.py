"""Find the directives of a C or CUDA file, and how its conditional ones nest.

A directive is a ``#`` (or ``%:``) first on its line, outside comments, strings and raw strings;
a line is what is left once its continuations are taken out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import TypeAlias

from gatepatch.gates.preprocessor import ConditionError, parse_tokens
from gatepatch.gates.preprocessor_tokens import Spliced, Token, splice_lines, tokens
from gatepatch.gates.preprocessor_tree import Defined, Expr, Unary, strip

_NAMED = ("ifdef", "ifndef", "elifdef", "elifndef")
_LATER = ("elif", "elifdef", "elifndef", "else")

_BLANKS = " \t\f\v\r\0"

# What begins a directive, and what hides lines: a string or another comment ends with its own line.
_MARKS = ("#", "%:", "/*", 'R"')

# A directive whose tokens no one reads, without a comment or literal that the next line continues.
_UNREAD = re.compile(
    r"""\#[ \t]*(?P<name>include|pragma|error|endif|else(?=[ \t]*(?:\r?\n|//)))\b
        (?P<rest>[^\n"'/]*(?:(?:(?<!R)"[^"\\\n]*"|/(?![/*]))[^\n"'/]*)*)(?://[^\n]*)?(?=\n)""",
    re.VERBOSE,
)

_REJECTS = re.compile(
    r"(?:(?:asm|__asm__)(?:volatile|__volatile__)?\(\"(?:trap|brkpt);?\"\)|__trap\(\)|__brkpt\(\));"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Directive:
    """One directive.

    Args:
        keyword: ``if``, ``define`` and so on; empty for a ``#`` with none.
        start: The offset of its ``#``.
        end: The offset behind its last token.
        name: The keyword's token; None with an empty keyword.
        body: The tokens behind the keyword; may be left out where it is no condition or macro.
        line: Its first line, from 1.
        end_line: Its last.
        branch: The branch that it stands in; None outside all.
    """

    keyword: str
    start: int
    end: int
    name: Token | None
    body: tuple[Token, ...]
    line: int
    end_line: int
    branch: Branch | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Branch:
    """A conditional directive.

    Args:
        directive: The ``#if``, ``#elif``, ``#else`` or the like.
        condition: What it tests, or why that does not parse; None for ``#else``.
        earlier: The branches of the same ``#if`` before it.
    """

    directive: Directive
    condition: Expr | ConditionError | None
    earlier: tuple[Branch, ...]

    @property
    def parent(self) -> Branch | None:
        """The branch around it; None outside all."""
        return self.directive.branch

    @property
    def span(self) -> tuple[int, int]:
        """Where its condition stands: the first byte, and the byte behind the last."""
        body = self.directive.body
        return (body[0].start, body[-1].end) if body else (self.directive.end,) * 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A file's directives.

    Args:
        directives: All of them but most pragmas, in order.
        branches: The conditional ones, in order, by the offset at which they start.
        ends: The directive that ends a branch; none where the file ends too early.
    """

    directives: tuple[Directive, ...]
    branches: Mapping[int, Branch]
    ends: Mapping[Branch, Directive]

    def is_include_guard(self, branch: Branch) -> bool:
        """Whether it is ``#ifndef X``, or the same by ``#if``, straight before ``#define X``."""
        name = _not_defined(branch.condition)
        place = bisect_left(self.directives, branch.directive.start, key=_start) + 1
        following = self.directives[place] if place < len(self.directives) else None
        return (
            name is not None
            and following is not None
            and following.keyword == "define"
            and [token.text for token in following.body[:1]] == [name]
        )

    def _between(self, start: int, stop: int) -> tuple[Directive, ...]:
        """The directives in a part of the file."""
        first, last = (bisect_left(self.directives, p, key=_start) for p in (start, stop))
        return self.directives[first:last]

    def rejects(self, source: bytes, branch: Branch) -> bool:
        """Whether it guards an ``#error`` or a trap, and nothing else."""
        if (end := self.ends.get(branch)) is None:
            return False
        start, stop = branch.directive.end, end.start
        inside = self._between(start, stop)
        if any(d.keyword != "error" for d in inside):
            return False
        texts = []
        for left, right in zip(
            [start, *(d.end for d in inside)], [*(d.start for d in inside), stop], strict=True
        ):
            texts += [
                token.text
                for token in tokens(splice_lines(source[left:right]))
                if token.kind != "newline"
            ]
        code = "".join(texts)
        return bool(_REJECTS.fullmatch(code)) if code else bool(inside)


def _start(directive: Directive) -> int:
    return directive.start


def _not_defined(condition: Expr | ConditionError | None) -> str | None:
    if isinstance(condition, Unary) and condition.operator == "!":
        inner = strip(condition.operand)
        return inner.name if isinstance(inner, Defined) else None
    return None


def scan(source: bytes) -> Scan:
    """Find all directives of a file, and nest them; an unmatched ``#endif`` or ``#else`` is alone."""
    directives: list[Directive] = []
    branches: dict[int, Branch] = {}
    ends: dict[Branch, Directive] = {}
    stack: list[Branch] = []
    for directive in _directives(source):
        keyword = directive.keyword
        earlier: tuple[Branch, ...] = ()
        if stack and keyword in (*_LATER, "endif"):
            last = stack.pop()
            directive = _placed(directive, last.parent)
            ends[last] = directive
            earlier = (*last.earlier, last)
        else:
            directive = _placed(directive, stack[-1] if stack else None)
        directives.append(directive)
        if keyword in ("if", "ifdef", "ifndef", *_LATER):
            branch = Branch(directive=directive, condition=_condition(directive), earlier=earlier)
            branches[directive.start] = branch
            stack.append(branch)
    return Scan(directives=tuple(directives), branches=branches, ends=ends)


def _placed(directive: Directive, branch: Branch | None) -> Directive:
    # Not by dataclasses.replace: that takes a tenth of the time that a file takes.
    if branch is None:
        return directive
    return Directive(
        keyword=directive.keyword,
        start=directive.start,
        end=directive.end,
        name=directive.name,
        body=directive.body,
        line=directive.line,
        end_line=directive.end_line,
        branch=branch,
    )


def _condition(directive: Directive) -> Expr | ConditionError | None:
    try:
        if directive.keyword == "else":
            return None
        if directive.keyword in _NAMED:
            return _named(directive)
        return parse_tokens(directive.body, directive.end)
    except ConditionError as error:
        return error


def _named(directive: Directive) -> Expr:
    if not directive.body or directive.body[0].kind != "name":
        raise ConditionError("expected a macro's name", directive.end)
    name = directive.body[0]
    defined = Defined(name.text, start=name.start, end=name.end)
    if directive.keyword in ("ifdef", "elifdef"):
        return defined
    return Unary("!", defined, start=name.start, end=name.end)


def _directives(source: bytes) -> Iterator[Directive]:
    offset, line = 0, 1
    for mark, name, body, last in _lines(splice_lines(source)):
        line += source.count(b"\n", offset, mark)
        offset = mark
        yield Directive(
            keyword=name.text if name else "",
            start=mark,
            end=last,
            name=name,
            body=body,
            line=line,
            end_line=line + source.count(b"\n", offset, last),
            branch=None,
        )


_Line: TypeAlias = "tuple[int, Token | None, tuple[Token, ...], int]"
"""A directive's ``#``, its keyword, the tokens behind that, and where the last of them ends."""


def _lines(source: Spliced) -> Iterator[_Line]:
    """Yield the directives; whatever is no directive, and hides none, is gone past by searching."""
    text = source.text
    index = 3 if text.startswith("\xef\xbb\xbf") else 0
    for found in merge(*(_places(text, mark) for mark in _MARKS)):
        if found < index:
            continue
        start = max(index, text.rfind("\n", 0, found) + 1)
        blank = not text[start:found].strip(_BLANKS)
        if blank and (unread := _UNREAD.match(text, found)):
            if unread["name"] != "pragma":
                yield _unread(source, unread)
            index = unread.end()
        elif blank or text[found] in "/R":
            line, index = _line(source, start)
            if line and line[0].text in ("#", "%:"):
                name = line[1] if line[1:] and line[1].kind == "name" else None
                yield line[0].start, name, tuple(line[2 if name else 1 :]), line[-1].end


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _unread(source: Spliced, found: re.Match[str]) -> _Line:
    start, end = found.span("name")
    last = found.start("rest") + len(found["rest"].rstrip(_BLANKS))
    name = Token("name", found["name"], source.start(start), source.end(end), start)
    return source.start(found.start()), name, (), source.end(last)


def _line(source: Spliced, index: int) -> tuple[list[Token], int]:
    """The tokens up to the end of a line, and where the next one begins."""
    line: list[Token] = []
    for token in tokens(source, index):
        if token.kind == "newline":
            return line, token.index + 1
        line.append(token)
    return line, len(source.text)
