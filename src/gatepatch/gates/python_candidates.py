"""Ways in which a Python gate could be opened or closed, the simplest first.

They are guesses from the gate's shape; each is proved before it is taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from gatepatch.arch import Arch
from gatepatch.edits import ByteEdit
from gatepatch.gates.python_source import Match, Source, flattened
from gatepatch.spec import GateEdit
from gatepatch.verdict import Goal

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
    """Ways to change one match."""
    if edit.operand is not None:
        yield _joined(source, match, edit.operand, goal)
        return
    for node in match.nodes:
        if isinstance(node, ast.Compare):
            yield from _compare(source, node, goal)
    for operand in _siblings(source, match, goal):
        yield _joined(source, match, operand, goal)


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
                text = "".join(f", {_spelt(source, node, value)}" for value in missing)
                yield (ByteEdit(end, b"", text.encode()),)
        else:
            kept = [e for e, value in zip(node.elts, values, strict=True) if value not in named]
            if len(kept) < len(values):
                yield _without(source, node, kept)


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
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _joined(source: Source, match: Match, operand: str, goal: Goal) -> tuple[ByteEdit, ...]:
    """Join an operand to a match: ``or`` to open, ``and not`` to close, in parentheses if need be."""
    start = source.outer(match.nodes[0])[0]
    end = source.outer(match.nodes[-1])[1]
    root = match.nodes[0] is match.top.node
    if root:
        start, end = source.span(match.nodes[0])
    own = match.parent if isinstance(match.parent, ast.BoolOp) else None
    wanted: type[ast.boolop] = ast.Or if goal.action == "open" else ast.And
    whole = own is not None and len(flattened(own)) == len(match.nodes) and own is match.top.node
    inside = (own is not None and isinstance(own.op, wanted)) or (
        (root or whole) and goal.action == "open"
    )
    text = operand if goal.action == "open" else f"not {_grouped(operand)}"
    word = " or " if goal.action == "open" else " and "
    simple = goal.action == "open" or inside or (root and not isinstance(match.nodes[0], ast.IfExp))
    if inside or (root and simple):
        return (ByteEdit(end, b"", f"{word}{text}".encode()),)
    if goal.action == "close" and own is not None and not isinstance(own.op, wanted):
        opening, closing = ("((", ")") if len(match.nodes) > 1 else ("(", "")
        return (
            ByteEdit(start, b"", opening.encode()),
            ByteEdit(end, b"", f"{closing}{word}{text})".encode()),
        )
    return (ByteEdit(start, b"", b"("), ByteEdit(end, b"", f"{word}{text})".encode()))


def _grouped(operand: str) -> str:
    node = ast.parse(f"({operand})", mode="eval").body
    return operand if isinstance(node, ast.Name | ast.Call | ast.Attribute) else f"({operand})"


def _siblings(source: Source, match: Match, goal: Goal) -> Iterator[str]:
    """Predicates named like those of the gate, with the number of an architecture named."""
    first = goal.like if goal.action == "open" else None
    for node in reversed(match.nodes):
        text = source.text(node)
        numbers = [first.sm] if first else [int(n) for n in re.findall(r"sm_?(\d{2,3})", text)]
        for number in numbers:
            for arch in sorted(goal.archs):
                sibling = re.sub(
                    rf"(?<=sm){number}(?!\d)|(?<=sm_){number}(?!\d)", f"{arch.sm}", text
                )
                if sibling != text or goal.action == "close":
                    yield sibling


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
