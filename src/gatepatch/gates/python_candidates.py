"""Ways in which a Python gate could be opened or closed, the simplest first.

They are guesses from the gate's shape; each is proved before it is taken.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from gatepatch.arch import Arch
from gatepatch.edits import ByteEdit
from gatepatch.gates.python_source import Match, Source, flattened
from gatepatch.spec import GateEdit, Goal

Literal: TypeAlias = "ast.Tuple | ast.List | ast.Set"
Unit = Callable[[Arch], object]

UNITS: tuple[Unit, ...] = (
    lambda arch: arch.major,
    lambda arch: arch.sm,
    lambda arch: arch.cuda_arch,
    lambda arch: (arch.major, arch.minor),
    lambda arch: arch.name,
    lambda arch: f"{arch.name}a",
)
"""How a number, a pair or a text may stand for an architecture."""


def candidates(
    source: Source, match: Match, edit: GateEdit, goal: Goal
) -> Iterator[tuple[ByteEdit, ...]]:
    """Ways to change one match.

    An operand joins with ``or`` to open and with ``and not`` to close; where the condition turns
    architectures away it is the other way round, so both are tried.
    """
    joins = (_with_or, _with_and_not) if goal.action == "open" else (_with_and_not, _with_or)
    if edit.operand is not None:
        for join in joins:
            yield join(source, match, edit.operand)
        return
    for node in match.nodes:
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node = node.operand
        if isinstance(node, ast.Compare):
            yield from _compare(source, node, goal)
    operands = list(
        dict.fromkeys([*_siblings(source, match, goal), *_spelt_out(source, match, goal)])
    )
    for join in joins:
        for operand in operands:
            yield join(source, match, operand)


def literal_edits(source: Source, node: Literal, goal: Goal) -> Iterator[tuple[ByteEdit, ...]]:
    """Ways to change a list, tuple or set of architectures."""
    values = [constant(element) for element in node.elts]
    for unit in UNITS:
        named = list(dict.fromkeys(unit(arch) for arch in sorted(goal.archs)))
        if not all(type(value) is type(named[0]) for value in values):
            continue
        if goal.action == "open":
            missing = [value for value in named if value not in values]
            if missing and node.elts:
                end = source.outer(node.elts[-1])[1]
                between = _between(source, node)
                text = "".join(f"{between}{_spelt(source, node, value)}" for value in missing)
                yield (ByteEdit(end, b"", text.encode()),)
        else:
            kept = [e for e, value in zip(node.elts, values, strict=True) if value not in named]
            if len(kept) < len(values):
                yield _without(source, node, kept)


def _between(source: Source, node: Literal) -> str:
    """What separates two elements: a line each, where they stand so."""
    if len(node.elts) < 2:
        return ", "
    end, start = source.outer(node.elts[-2])[1], source.outer(node.elts[-1])[0]
    between = source.data[end:start].decode()
    lines = between.count("\n")
    return between if lines == 1 and not between.strip(", \t\r\n") else ", "


def _spelt(source: Source, node: Literal, value: object) -> str:
    quote = "'" if "'" in source.text(node) else '"'
    return f"{quote}{value}{quote}" if isinstance(value, str) else repr(value)


_BRACKETS = {ast.List: ("[", "]"), ast.Set: ("{", "}")}


def _without(source: Source, node: Literal, kept: Sequence[ast.expr]) -> tuple[ByteEdit, ...]:
    start, end = source.span(node)
    texts = [source.text(element) for element in kept]
    opening, closing = _BRACKETS.get(type(node), ("(", ")"))
    if not texts:
        body = "()" if isinstance(node, ast.Set) else opening + closing
    elif len(texts) == 1 and isinstance(node, ast.Tuple):
        body = f"({texts[0]},)"
    else:
        body = f"{opening}{', '.join(texts)}{closing}"
    return (ByteEdit(start, source.data[start:end], body.encode()),)


def constant(node: ast.expr) -> object:
    """A literal's value; None if it is none."""
    if isinstance(node, ast.Constant):
        return node.value
    try:
        # Of its text: what literal_eval leaves behind would keep the node, and so the whole tree,
        # until the next collection (CPython's closures in it call each other).
        return ast.literal_eval(ast.unparse(node))
    except (ValueError, TypeError, SyntaxError):
        return None


def _with_or(source: Source, match: Match, operand: str) -> tuple[ByteEdit, ...]:
    node = ast.parse(f"({operand})", mode="eval").body
    loose = isinstance(node, ast.IfExp | ast.Lambda | ast.NamedExpr)
    return _joined(source, match, ast.Or, f" or ({operand})" if loose else f" or {operand}")


def _with_and_not(source: Source, match: Match, operand: str) -> tuple[ByteEdit, ...]:
    node = ast.parse(f"({operand})", mode="eval").body
    match node:
        case ast.Name() | ast.Call() | ast.Attribute():
            return _joined(source, match, ast.And, f" and not {operand}")
        case ast.Compare(ops=[ast.Eq()]):
            left, right = operand.split(" == ", 1)
            return _joined(source, match, ast.And, f" and {left} != {right}")
        case ast.Compare(ops=[ast.In()]):
            left, right = operand.split(" in ", 1)
            return _joined(source, match, ast.And, f" and {left} not in {right}")
    return _joined(source, match, ast.And, f" and not ({operand})")


def _joined(source: Source, match: Match, op: type[ast.boolop], text: str) -> tuple[ByteEdit, ...]:
    """Put an operand behind a match, with parentheses where it would bind to something else."""
    first, last = match.nodes[0], match.nodes[-1]
    chain = match.parent if isinstance(match.parent, ast.BoolOp) else None
    if chain is not None and isinstance(chain.op, op):
        return (ByteEdit(source.outer(last)[1], b"", text.encode()),)
    part = chain is not None and len(match.nodes) < len(flattened(chain))
    whole: ast.expr = first if chain is None or part else chain
    single = len(match.nodes) == 1
    around = chain if part else _around(match.top.node, whole)
    start, end = source.outer(first)[0], source.outer(last)[1]
    inner = (start, end)
    if not part:
        inner = source.span(whole)
        start, end = source.outer(whole) if around is not None else inner
    if not part and isinstance(around, ast.BoolOp) and isinstance(around.op, op):
        return (ByteEdit(end, b"", text.encode()),)
    # An `or` in front of `and not` is read as its own last operand's.
    split = op is ast.And and not single and chain is not None and isinstance(chain.op, ast.Or)
    loose = isinstance(whole, ast.IfExp | ast.Lambda | ast.NamedExpr) and not part
    grouped = (start, end) != inner
    if (split or loose) and not grouped:
        bare = around is None and not match.top.tight
        opening, closing = (
            (b"(", b")" + text.encode()) if bare else (b"((", b")" + text.encode() + b")")
        )
        return (ByteEdit(start, b"", opening), ByteEdit(end, b"", closing))
    if split or loose:
        return (ByteEdit(start, b"", b"("), ByteEdit(end, b"", text.encode() + b")"))
    if grouped or (around is None and not match.top.tight):
        return (ByteEdit(inner[1], b"", text.encode()),)
    return (ByteEdit(inner[0], b"", b"("), ByteEdit(inner[1], b"", text.encode() + b")"))


def _around(root: ast.expr, node: ast.expr) -> ast.expr | None:
    """The operator whose operand a node is; None for the whole expression."""
    if root is node:
        return None
    operands: list[ast.expr] = []
    match root:
        case ast.BoolOp(values=values):
            operands = values
        case ast.UnaryOp(operand=operand):
            operands = [operand]
    for operand in operands:
        if operand is node:
            return root
        if (found := _around(operand, node)) is not None:
            return found
    return None


def _siblings(source: Source, match: Match, goal: Goal) -> Iterator[str]:
    """Predicates named like those of the gate, with the number of an architecture named."""
    first = goal.like if goal.action == "open" else None
    for node in reversed(match.nodes):
        inner = node.operand if isinstance(node, ast.UnaryOp) else node
        text = source.text(inner)
        numbers = [first.sm] if first else [int(n) for n in re.findall(r"sm_?(\d{2,3})", text)]
        for number in numbers:
            for arch in sorted(goal.archs):
                sibling = re.sub(
                    rf"(?<=sm){number}(?!\d)|(?<=sm_){number}(?!\d)", f"{arch.sm}", text
                )
                if sibling != text or goal.action == "close":
                    yield sibling


def _spelt_out(source: Source, match: Match, goal: Goal) -> Iterator[str]:
    """The architectures named, compared as the gate compares."""
    for node in match.nodes:
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, right in itertools.pairwise(sides):
            for side, bound in ((left, right), (right, left)):
                value = constant(bound)
                if isinstance(value, tuple | list | set) and value and not _is_pair(value):
                    value = next(iter(value))
                for unit in UNITS:
                    named = list(dict.fromkeys(unit(arch) for arch in sorted(goal.archs)))
                    if value is None or type(named[0]) is not type(value):
                        continue
                    text = source.text(side)
                    if not isinstance(side, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                        text = f"({text})" if not text.startswith("(") else text
                    if len(named) == 1:
                        yield f"{text} == {named[0]!r}"
                    else:
                        yield f"{text} in ({', '.join(map(repr, named))})"


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(v) is int for v in value)


def _compare(source: Source, node: ast.Compare, goal: Goal) -> Iterator[tuple[ByteEdit, ...]]:
    sides = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        left, right = sides[index], sides[index + 1]
        match op:
            case ast.In() | ast.NotIn() if isinstance(right, ast.Tuple | ast.List | ast.Set):
                yield from literal_edits(source, right, goal)
            case ast.Eq() | ast.NotEq() if goal.action == "open" and len(node.ops) == 1:
                yield from _membership(source, left, right, goal, isinstance(op, ast.NotEq))
            case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE():
                for bound, upper in ((right, True), (left, False)):
                    below = isinstance(op, ast.Lt | ast.LtE) == upper
                    strict = isinstance(op, ast.Lt | ast.Gt)
                    yield from _bound(source, bound, goal, below=below, strict=strict)


def _membership(
    source: Source, left: ast.expr, right: ast.expr, goal: Goal, negated: bool
) -> Iterator[tuple[ByteEdit, ...]]:
    value = constant(right)
    for unit in UNITS:
        named = list(dict.fromkeys(unit(arch) for arch in sorted(goal.archs)))
        if type(named[0]) is type(value) and value is not None:
            start, end = source.outer(left)[1], source.outer(right)[1]
            word = "not in" if negated else "in"
            items = ", ".join([source.text(right), *map(repr, named)])
            yield (ByteEdit(start, source.data[start:end], f" {word} ({items})".encode()),)


def _bound(
    source: Source, node: ast.expr, goal: Goal, *, below: bool, strict: bool
) -> Iterator[tuple[ByteEdit, ...]]:
    """Other values for a bound, the nearest first."""
    value = constant(node)
    if not isinstance(value, int | tuple) or isinstance(value, bool):
        return
    archs = sorted(goal.archs)
    first, last = archs[0], archs[-1]
    edges = {
        Arch(last.major + 1, 0),
        Arch(last.major, last.minor + 1),
        Arch(first.major, 0),
        first,
        last,
    }
    for unit in UNITS[:4]:
        for edge in sorted(edges):
            bound = unit(edge)
            if type(bound) is type(value) and bound != value:
                start, end = source.span(node)
                yield (ByteEdit(start, source.data[start:end], repr(bound).encode()),)
