"""The syntax tree of a condition of ``#if``; its grammar stands in ``preprocessor``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a node stands in the source; two nodes are equal wherever they stand."""

    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Number(_Place):
    """An integer or a character."""

    value: int
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Name(_Place):
    """An object-like macro, or a name that is none."""

    name: str


@dataclass(frozen=True, slots=True)
class Defined(_Place):
    """``defined(name)``."""

    name: str


@dataclass(frozen=True, slots=True)
class Call(_Place):
    """A function-like macro with its arguments' tokens, parentheses included."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unary(_Place):
    """``!``, ``~``, ``+`` or ``-``."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(_Place):
    """Any operator of two operands but ``&&`` and ``||``."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Chain(_Place):
    """Operands joined by ``&&``, or by ``||``."""

    operator: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional(_Place):
    """``test ? then : other``."""

    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Group(_Place):
    """Parentheses."""

    inner: Expr


Expr: TypeAlias = "Number | Name | Defined | Call | Unary | Binary | Chain | Conditional | Group"


def strip(node: Expr) -> Expr:
    """Return the node inside its parentheses."""
    while isinstance(node, Group):
        node = node.inner
    return node


def operands(node: Expr) -> tuple[Expr, ...]:
    """Return the operands of a chain flattened through parentheses; a node that is none, alone."""
    chain = strip(node)
    if not isinstance(chain, Chain):
        return (node,)
    flat: list[Expr] = []
    for operand in chain.operands:
        inner = strip(operand)
        same = isinstance(inner, Chain) and inner.operator == chain.operator
        flat += operands(inner) if same else (operand,)
    return tuple(flat)


def children(node: Expr) -> tuple[Expr, ...]:
    """Return the nodes directly inside a node."""
    match node:
        case Number() | Name() | Defined() | Call():
            return ()
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Chain():
            return node.operands
        case Conditional():
            return (node.test, node.then, node.other)
        case Group():
            return (node.inner,)


def walk(node: Expr) -> Iterator[Expr]:
    """Yield a node and all nodes inside it."""
    yield node
    for child in children(node):
        yield from walk(child)


def macros(node: Expr) -> tuple[str, ...]:
    """Return the names of the macros in a node, each once, in order."""
    found: dict[str, None] = {}
    for inner in walk(node):
        if isinstance(inner, Name | Defined | Call):
            found[inner.name] = None
        if isinstance(inner, Call) and not inner.name.startswith("__has_"):
            found |= {text: None for text in inner.arguments if re.match(r"[A-Za-z_$]", text)}
    return tuple(found)


def shape(node: Expr) -> Expr:
    """Return a node that is equal for equal structure: parentheses gone, chains flattened."""
    node = strip(node)
    match node:
        case Number() | Name() | Defined() | Call():
            return node
        case Unary():
            return Unary(node.operator, shape(node.operand))
        case Binary():
            return Binary(node.operator, shape(node.left), shape(node.right))
        case Chain():
            return Chain(node.operator, tuple(map(shape, operands(node))))
        case Conditional():
            return Conditional(shape(node.test), shape(node.then), shape(node.other))
        case Group():
            raise AssertionError("a group was stripped")


def to_source(node: Expr) -> str:
    """Write a node in one way for all its spellings."""
    node = strip(node)
    match node:
        case Number():
            return f"{node.value}{'u' if node.unsigned else ''}"
        case Name():
            return node.name
        case Defined():
            return f"defined({node.name})"
        case Call():
            return node.name + "".join(", " if text == "," else text for text in node.arguments)
        case Unary():
            return node.operator + _part(node.operand)
        case Binary():
            return f"{_part(node.left)} {node.operator} {_part(node.right)}"
        case Chain():
            return f" {node.operator} ".join(map(_part, operands(node)))
        case Conditional():
            return f"{_part(node.test)} ? {_part(node.then)} : {_part(node.other)}"
        case Group():
            raise AssertionError("a group was stripped")


def _part(node: Expr) -> str:
    text = to_source(node)
    return f"({text})" if isinstance(strip(node), Binary | Chain | Conditional | Unary) else text
