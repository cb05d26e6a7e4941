"""Boolean functions of free atoms, kept canonical so that equal functions are equal values.

A function is a reduced ordered binary decision diagram: True, False, or a node that tests
one atom. Source: R. Bryant, "Graph-Based Algorithms for Boolean Function Manipulation", 1986.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A part of a condition that is not evaluated and may have either value.

    Args:
        text: Its normalised source; two atoms are one if their texts are equal.
        unknown: Why it may itself hide a test of the architecture; empty if it cannot.
    """

    text: str
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """``high`` where the atom is true, ``low`` where it is false."""

    atom: Atom
    low: Bool
    high: Bool
    # Worked out once: a diagram shares its nodes, and would be gone through once for each path.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Keep the hash."""
        object.__setattr__(self, "_hash", hash((self.atom, self.low, self.high)))

    def __hash__(self) -> int:
        """The hash that was kept."""
        return self._hash


Bool: TypeAlias = "bool | Node"


class TooManyStepsError(Exception):
    """A function, or what is worked out with functions, takes too long."""


@dataclass(slots=True)
class Budget:
    """How many steps may still be made before ``TooManyStepsError`` is raised.

    A diagram of n atoms may have 2 ** n nodes, and two values of many cases have the product of them.
    """

    left: float = float("inf")

    def spend(self, steps: int) -> None:
        """Make some steps.

        Raises:
            TooManyStepsError: There are none left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooManyStepsError


BUDGET = Budget()
"""What whoever works something out for strangers' code sets before it starts."""


def atom(text: str, *, unknown: str = "") -> Bool:
    """Return the function that is one atom's value."""
    return Node(Atom(text, unknown), False, True)


def not_(function: Bool) -> Bool:
    """Return the negation."""
    return if_then_else(function, False, True)


def and_(*functions: Bool) -> Bool:
    """Return the conjunction; True for none."""
    result: Bool = True
    for function in functions:
        result = if_then_else(result, function, False)
    return result


def or_(*functions: Bool) -> Bool:
    """Return the disjunction; False for none."""
    result: Bool = False
    for function in functions:
        result = if_then_else(result, True, function)
    return result


@lru_cache(maxsize=65536)
def if_then_else(test: Bool, then: Bool, other: Bool) -> Bool:
    """Return ``then`` where ``test`` holds and ``other`` where it does not."""
    if isinstance(test, bool):
        return then if test else other
    BUDGET.spend(1)
    top = min(f.atom for f in (test, then, other) if isinstance(f, Node))
    low, high = (
        if_then_else(*(_restrict(f, top, value) for f in (test, then, other)))
        for value in (False, True)
    )
    # `is` on the constants: in Python True == 1, and here only True is True.
    return low if low == high else Node(top, low, high)


def _restrict(function: Bool, top: Atom, value: bool) -> Bool:
    if isinstance(function, bool) or function.atom != top:
        return function
    return function.high if value else function.low


def atoms(function: Bool) -> frozenset[Atom]:
    """Return the atoms that the function depends on."""
    return frozenset(node.atom for node in _nodes(function))


def _nodes(function: Bool) -> Iterator[Node]:
    seen: set[Node] = set()
    stack = [function]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node not in seen:
            seen.add(node)
            yield node
            stack += [node.low, node.high]


def evaluate(function: Bool, value_of: Callable[[Atom], bool]) -> bool:
    """Return the function's value under one assignment of its atoms."""
    while isinstance(function, Node):
        function = function.high if value_of(function.atom) else function.low
    return function


def to_text(function: Bool) -> str:
    """Write the function for a person: ``yes``, ``no``, or its atoms with ``and``, ``or``, ``not``."""
    if isinstance(function, bool):
        return "yes" if function else "no"
    name = function.atom.text
    match (function.low, function.high):
        case (False, True):
            return name
        case (True, False):
            return f"not {_operand(name)}"
        case (False, high):
            return f"{_operand(name)} and {_operand(to_text(high))}"
        case (True, high):
            return f"not {_operand(name)} or {_operand(to_text(high))}"
        case (low, True):
            return f"{_operand(name)} or {_operand(to_text(low))}"
        case (low, False):
            return f"not {_operand(name)} and {_operand(to_text(low))}"
        case (low, high):
            return f"{_operand(to_text(high))} if {name} else {_operand(to_text(low))}"


def _operand(text: str) -> str:
    return f"({text})" if " " in text else text
