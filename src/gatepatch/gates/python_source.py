"""The syntax of one Python file, with byte offsets: expressions, chains, statements."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.python_scope import FunctionNode, binds

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Expression:
    """The largest Boolean expression around a place: no ``and``, ``or`` or ``not`` is outside it.

    Args:
        node: Its root.
        functions: The functions around it, the outermost first.
        within: Qualified name of the function or class around it.
        rejects: Whether what it guards rejects when it holds, as in ``if …: raise``.
        bound: Names that lambdas and comprehensions around it bind.
        tight: Whether it is an operand of an operator that binds closer than ``or``.
        tested: Whether it is what an ``if``, ``while`` or ``assert`` tests.
    """

    node: ast.expr
    functions: tuple[FunctionNode, ...]
    within: str
    rejects: bool
    bound: frozenset[str]
    tight: bool
    tested: bool


@dataclass(frozen=True, slots=True)
class Match:
    """Adjacent operands of a chain, or one expression, that a pattern matches.

    Args:
        nodes: The operands.
        parent: The operator that they are operands of; None for the whole expression.
        top: The largest Boolean expression around them.
    """

    nodes: tuple[ast.expr, ...]
    parent: ast.BoolOp | ast.UnaryOp | ast.expr | None
    top: Expression


class Source:
    """One file.

    Raises:
        RefusedError: It is not UTF-8, or does not parse.
    """

    def __init__(self, path: str, data: bytes):
        self.path = path
        self.data = data
        self._skip = len(BOM) if data.startswith(BOM) else 0
        for line in data[self._skip :].split(b"\n", 2)[:2]:
            declared = _CODING.match(line)
            if declared and declared[1].lower() not in (b"utf-8", b"utf8"):
                raise RefusedError(
                    Problem(
                        message=f"is {declared[1].decode()}, and only UTF-8 is kept", where=path
                    )
                )
        try:
            data.decode("utf-8")
            self.tree = ast.parse(data)
        except UnicodeDecodeError as error:
            raise RefusedError(Problem(message=f"is not UTF-8: {error}", where=path)) from None
        except (SyntaxError, ValueError) as error:
            line_number = getattr(error, "lineno", None)
            where = f"{path}:{line_number}" if line_number else path
            raise RefusedError(Problem(message=f"does not parse: {error}", where=where)) from None
        self._starts = [0, *accumulate(map(len, data[self._skip :].splitlines(keepends=True)))]
        self.newline = b"\r\n" if b"\r\n" in data else b"\n"

    @cached_property
    def tops(self) -> tuple[Expression, ...]:
        """Every largest Boolean expression."""
        return tuple(_tops(self.tree.body, _Place()))

    def tops_on(self, lines: Sequence[int]) -> tuple[Expression, ...]:
        """Those in statements that have one of some lines, which are in order."""
        return tuple(_tops(self.tree.body, _Place(lines=tuple(lines))))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The byte offsets of a node, without parentheses around it."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._skip + self._starts[node.lineno - 1] + node.col_offset,
            self._skip + self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def outer(self, node: ast.expr) -> tuple[int, int]:
        """The byte offsets of an operand, with the parentheses around it alone."""
        start, end = self.span(node)
        while True:
            before = re.search(rb"\((?:[ \t\r\n\\]|#[^\n]*\n)*$", self.data[:start])
            after = re.match(rb"(?:[ \t\r\n\\]|#[^\n]*\n)*\)", self.data[end:])
            if before is None or after is None:
                return start, end
            start, end = before.start(), end + after.end()

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node."""
        start, end = self.span(node)
        return self.data[start:end].decode("utf-8")

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The byte offsets of whole lines, from 1, the line breaks included."""
        starts = [*self._starts, len(self.data) - self._skip]
        return self._skip + starts[first - 1], self._skip + starts[last]

    def matches(self, pattern: str, within: str | None) -> list[Match]:
        """Every place where a pattern matches, parentheses and white space ignored."""
        root = ast.parse(f"({pattern})", mode="eval").body
        return [
            match
            for top in self.tops
            if is_within(top.within, within)
            for match in _matches(root, top)
        ]

    def keywords(self, name: str, within: str | None) -> list[tuple[ast.expr, str]]:
        """Every value of a keyword argument of this name, and the function that it stands in."""
        return [
            (keyword.value, place)
            for call, place in self.calls()
            if is_within(place, within)
            for keyword in call.keywords
            if keyword.arg == name
        ]

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call, and the function that it stands in."""
        for top in self.tops:
            for operand, _ in _with_parents(top.node, None):
                if isinstance(operand, ast.Call):
                    yield operand, top.within


def is_within(place: str, within: str | None) -> bool:
    """Whether a qualified name is the one named, or lies in it; its last names are enough."""
    if within is None:
        return True
    names, wanted = place.split("."), within.split(".")
    return any(names[i : i + len(wanted)] == wanted for i in range(len(names)))


def same(first: ast.AST, second: ast.AST) -> bool:
    """Whether two pieces of syntax are equal, places ignored."""
    return ast.dump(first) == ast.dump(second)


def flattened(node: ast.BoolOp) -> list[ast.expr]:
    """The operands of a chain, nested chains of the same operator opened."""
    found: list[ast.expr] = []
    for operand in node.values:
        if isinstance(operand, ast.BoolOp) and type(operand.op) is type(node.op):
            found += flattened(operand)
        else:
            found.append(operand)
    return found


def _matches(pattern: ast.expr, top: Expression) -> Iterator[Match]:
    if isinstance(pattern, ast.BoolOp):
        wanted = flattened(pattern)
        for chain in _chains(top.node):
            if type(chain.op) is not type(pattern.op):
                continue
            operands = flattened(chain)
            position = 0
            while position + len(wanted) <= len(operands):
                window = operands[position : position + len(wanted)]
                if all(same(a, b) for a, b in zip(window, wanted, strict=True)):
                    yield Match(tuple(window), chain, top)
                    position += len(wanted)
                else:
                    position += 1
        return
    for node, parent in _with_parents(top.node, None):
        if same(node, pattern):
            yield Match((node,), parent, top)


def _chains(node: ast.AST) -> Iterator[ast.BoolOp]:
    """The chains in an expression, each flattened one once."""
    for child, parent in _with_parents(node, None):
        inner = isinstance(parent, ast.BoolOp) and isinstance(child, ast.BoolOp)
        if isinstance(child, ast.BoolOp) and not (inner and type(child.op) is type(parent.op)):  # type: ignore[union-attr]
            yield child


def _with_parents(
    node: ast.AST, parent: ast.expr | None
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The operands of a Boolean expression, down to what is no operator any more."""
    if isinstance(node, ast.expr):
        yield node, parent
        if isinstance(node, ast.BoolOp):
            for operand in node.values:
                yield from _with_parents(operand, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from _with_parents(node.operand, node)


@dataclass(frozen=True, slots=True)
class _Place:
    functions: tuple[FunctionNode, ...] = ()
    within: str = ""
    bound: frozenset[str] = frozenset()
    lines: tuple[int, ...] | None = None

    def inside(self, name: str, function: FunctionNode | None = None) -> _Place:
        """The place in a function or class of this name."""
        functions = (*self.functions, function) if function is not None else self.functions
        within = f"{self.within}.{name}" if self.within else name
        return _Place(functions, within, lines=self.lines)

    def binding(self, names: Set[str]) -> _Place:
        """The place in an expression that binds some names."""
        if not names:
            return self
        return _Place(self.functions, self.within, self.bound | names, self.lines)

    def covers(self, node: ast.stmt | ast.expr) -> bool:
        """Whether some code has one of the lines that are looked at; all has without any."""
        if self.lines is None:
            return True
        first = node.lineno
        if decorators := getattr(node, "decorator_list", None):
            first = min(first, *(one.lineno for one in decorators))
        found = bisect_left(self.lines, first)
        return found < len(self.lines) and self.lines[found] <= (node.end_lineno or first)


def _tops(body: Sequence[ast.stmt], place: _Place) -> Iterator[Expression]:
    for statement in body:
        if not place.covers(statement):
            continue
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for expression in (*statement.decorator_list, *_defaults(statement)):
                    yield from _expressions(expression, place)
                yield from _tops(statement.body, place.inside(statement.name, statement))
            case ast.ClassDef():
                for expression in (*statement.decorator_list, *statement.bases):
                    yield from _expressions(expression, place)
                yield from _tops(statement.body, place.inside(statement.name))
            case ast.If(test=test):
                rejects = _rejects(statement.body)
                yield from _expressions(test, place, rejects=rejects, tested=True)
                yield from _tops(statement.body, place)
                yield from _tops(statement.orelse, place)
            case ast.While(test=test) | ast.Assert(test=test):
                yield from _expressions(test, place, tested=True)
                yield from _in_parts(statement, place, besides=test)
            case _:
                yield from _in_parts(statement, place)


_WHOLE = (ast.BoolOp, ast.Name, ast.Constant, ast.JoinedStr)
"""Expressions without parts of their own; before Python 3.12 the places inside an f-string are wrong."""


def _in_parts(
    node: ast.AST, place: _Place, besides: ast.expr | None = None
) -> Iterator[Expression]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.expr() if child is besides:
                continue
            case ast.stmt():
                yield from _tops([child], place)
            case ast.expr():
                yield from _expressions(child, place)
            case ast.ExceptHandler() | ast.match_case() | ast.withitem():
                yield from _in_parts(child, place)


def _expressions(
    node: ast.expr,
    place: _Place,
    *,
    rejects: bool = False,
    tight: bool = False,
    tested: bool = False,
) -> Iterator[Expression]:
    """A maximal Boolean expression, and those inside its operands' own parts."""
    if not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        functions, within, bound = place.functions, place.within, place.bound
        yield Expression(node, functions, within, rejects, bound, tight, tested)
    for operand, _ in _with_parents(node, None):
        if isinstance(operand, _WHOLE):
            continue
        if isinstance(operand, ast.UnaryOp) and isinstance(operand.op, ast.Not):
            continue
        inner = place.binding(binds(operand))
        for field, value in ast.iter_fields(operand):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    for part in _outermost(child):
                        if not place.covers(part):
                            continue
                        loose = _is_loose(operand, field)
                        is_test = (isinstance(operand, ast.IfExp) and field == "test") or (
                            isinstance(child, ast.comprehension) and part in child.ifs
                        )
                        yield from _expressions(part, inner, tight=not loose, tested=is_test)


def _is_loose(node: ast.expr, field: str) -> bool:
    """Whether a part of an expression may be an ``or`` without parentheses."""
    match node:
        case ast.Call():
            return field != "func"
        case ast.Subscript():
            return field == "slice"
        case ast.IfExp() | ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Lambda():
            return True
        case ast.NamedExpr() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return True
        case ast.Slice() | ast.Yield():
            return True
    return False


def _outermost(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.expr):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _outermost(child)


def _defaults(node: FunctionNode) -> list[ast.expr]:
    return [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]


def _rejects(body: Sequence[ast.stmt]) -> bool:
    """Whether a block does nothing but turn the caller away."""
    match [s for s in body if not isinstance(s, ast.Expr)]:
        case [ast.Raise()]:
            return True
        case [ast.Return(value=None)] | [ast.Return(value=ast.Constant(value=False | None))]:
            return True
    return False


def same_but(before: ast.AST, after: ast.AST, changed: Mapping[ast.AST, ast.expr]) -> bool:
    """Whether two trees are equal but for some expressions, each with the one in its place.

    Statements that have none of them are not looked into: their text is the same.
    """
    if before in changed:
        return same(changed[before], after)
    if type(before) is not type(after):
        return False
    if isinstance(before, ast.stmt) and not any(_encloses(before, node) for node in changed):
        return True
    for field in before._fields:
        old, new = getattr(before, field, None), getattr(after, field, None)
        if isinstance(old, list) and isinstance(new, list):
            if len(old) != len(new):
                return False
            pairs = zip(old, new, strict=True)
        else:
            pairs = iter([(old, new)])  # type: ignore[assignment]
        for first, second in pairs:
            if isinstance(first, ast.AST) and isinstance(second, ast.AST):
                if not same_but(first, second, changed):
                    return False
            elif first != second:
                return False
    return True


def _encloses(statement: ast.stmt, node: ast.AST) -> bool:
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    line: int = getattr(node, "lineno", 0)
    return bool(first <= line <= (statement.end_lineno or first))
