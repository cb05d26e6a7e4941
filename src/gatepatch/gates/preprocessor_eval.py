"""What a condition of ``#if`` is worth where some of its macros are not known.

Integers are those of the preprocessor: 64 bits, signed or unsigned, wrapping as ``gcc -E`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from gatepatch.boolean import Bool, and_, atom, if_then_else, not_, or_
from gatepatch.gates.preprocessor_tree import (
    Binary,
    Call,
    Chain,
    Conditional,
    Defined,
    Expr,
    Group,
    Name,
    Number,
    Unary,
    macros,
    to_source,
)

_BITS = 64
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
}


@dataclass(frozen=True, slots=True)
class Known:
    """A macro that is known: its value, or None where it is not defined."""

    value: int | None


@dataclass(frozen=True, slots=True)
class Free:
    """A macro that may have any value, the same in every pass."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A macro that may itself hide a test of the architecture.

    Args:
        reason: Why.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A macro that the source itself defines, or does not, under conditions.

    Args:
        defined: When it is defined.
        value: What it is worth, by what it is not known for sure to be.
        call: What it is worth with arguments; None for one that takes none.
    """

    defined: Bool
    value: Value
    call: Callable[[tuple[str, ...]], Value] | None = None


Macro: TypeAlias = "Known | Free | Unknown | Settled"
Lookup: TypeAlias = "Callable[[str], Macro]"
"""The environment: what a macro means in the pass at hand."""


@dataclass(frozen=True, slots=True)
class _Integer:
    value: int
    unsigned: bool = False

    def as_unsigned(self, unsigned: bool) -> _Integer:
        value = self.value % (1 << _BITS)
        if not unsigned and value >> (_BITS - 1):
            value -= 1 << _BITS
        return _Integer(value, unsigned)


@dataclass(frozen=True, slots=True)
class _Opaque:
    """An integer that is not known: its source, and why it may hide a test of the architecture."""

    text: str
    unknown: str


_Leaf: TypeAlias = "_Integer | _Opaque"
Value: TypeAlias = "dict[_Leaf, Bool]"
"""The integers that an expression can be, each with the condition under which it is that one."""


def evaluate(node: Expr, lookup: Lookup) -> Bool:
    """Return whether a condition holds, as a function of what is not known."""
    match node:
        case Group():
            return evaluate(node.inner, lookup)
        case Unary("!"):
            return not_(evaluate(node.operand, lookup))
        case Chain():
            join = and_ if node.operator == "&&" else or_
            return join(*(evaluate(operand, lookup) for operand in node.operands))
        case Conditional():
            return if_then_else(*(evaluate(n, lookup) for n in (node.test, node.then, node.other)))
        case Defined():
            return _defined(node, lookup)
        case Binary("==" | "!=") if _is_zero(node.right):
            truth = evaluate(node.left, lookup)
            return truth if node.operator == "!=" else not_(truth)
        case _:
            return or_(*(and_(when, _truth(leaf)) for leaf, when in _value(node, lookup).items()))


def integer(node: Expr, lookup: Lookup) -> int | None:
    """Return the one integer that an expression is; None if that is not known."""
    leaves = list(_value(node, lookup))
    if len(leaves) == 1 and isinstance(leaves[0], _Integer):
        return leaves[0].value
    return None


def settled(name: str, macro: Macro) -> Settled:
    """Say of a macro, whatever is known of it, when it is defined and what it is worth."""
    if isinstance(macro, Settled):
        return macro
    return Settled(_defined(Defined(name), lambda _: macro), _macro(Name(name), lambda _: macro))


def unread(name: str, reason: str) -> Value:
    """The value of a macro whose definition is there, and is not read."""
    return {_Opaque(name, reason): True}


def value_of(node: Expr, lookup: Lookup) -> Value:
    """Return the integers that an expression can be, each with when it is that one."""
    return _value(node, lookup)


def one_of(cases: Iterable[tuple[Value, Bool]]) -> Value:
    """Return the value that is each of some under its condition."""
    return _merge((leaf, and_(when, own)) for value, when in cases for leaf, own in value.items())


def _is_zero(node: Expr) -> bool:
    return isinstance(node, Number) and node.value == 0


def _truth(leaf: _Leaf) -> Bool:
    if isinstance(leaf, _Opaque):
        return atom(leaf.text, unknown=leaf.unknown)
    return leaf.value != 0


def _defined(node: Defined, lookup: Lookup) -> Bool:
    match found := lookup(node.name):
        case Known(value):
            return value is not None
        case Free():
            return atom(to_source(node))
        case Unknown(reason):
            return atom(to_source(node), unknown=reason)
        case Settled():
            return found.defined


def _value(node: Expr, lookup: Lookup) -> Value:
    match node:
        case Group():
            return _value(node.inner, lookup)
        case Number():
            return {_Integer(node.value, node.unsigned): True}
        case Name():
            return _macro(node, lookup)
        case Call():
            found = lookup(node.name)
            if isinstance(found, Settled) and found.call is not None:
                return found.call(node.arguments)
            return {_opaque(node, lookup): True}
        case Unary("+" | "-" | "~"):
            return _map(_value(node.operand, lookup), lambda leaf: _unary(node, leaf, lookup))
        case Binary():
            return _binary(node, lookup)
        case Conditional():
            return _conditional(node, lookup)
        case Unary() | Chain() | Defined():
            truth = evaluate(node, lookup)
            return _merge([(_Integer(1), truth), (_Integer(0), not_(truth))])


def _merge(cases: Iterable[tuple[_Leaf, Bool]]) -> Value:
    merged: Value = {}
    for leaf, when in cases:
        if when is not False:
            merged[leaf] = or_(merged.get(leaf, False), when)
    return merged


def _map(value: Value, change: Callable[[_Leaf], _Leaf]) -> Value:
    return _merge((change(leaf), when) for leaf, when in value.items())


def _macro(node: Name, lookup: Lookup) -> Value:
    found = lookup(node.name)
    if isinstance(found, Known):
        return {_Integer(found.value or 0): True}
    if isinstance(found, Settled):
        return found.value
    return {_opaque(node, lookup): True}


def _opaque(node: Expr, lookup: Lookup, *leaves: _Leaf) -> _Opaque:
    """Make one unknown integer of a node, which inherits what is unknown of its parts."""
    inherited = [leaf.unknown for leaf in leaves if isinstance(leaf, _Opaque) and leaf.unknown]
    return _Opaque(to_source(node), (inherited or [_why_unknown(node, lookup)])[0])


def _why_unknown(node: Expr, lookup: Lookup) -> str:
    found = {name: lookup(name) for name in macros(node)}
    for macro in found.values():
        if isinstance(macro, Unknown):
            return macro.reason
    if isinstance(node, Call) and isinstance(found[node.name], Settled):
        return "it takes no arguments where it is defined"
    known = [name for name, macro in found.items() if isinstance(macro, Known | Settled)]
    others = [name for name, macro in found.items() if isinstance(macro, Free)]
    if known and others:
        return f"the value of {', '.join(others)} beside {known[0]} is not known"
    return ""


def _unary(node: Unary, leaf: _Leaf, lookup: Lookup) -> _Leaf:
    if isinstance(leaf, _Opaque):
        return _opaque(node, lookup, leaf)
    value = {"+": leaf.value, "-": -leaf.value, "~": ~leaf.value}[node.operator]
    return _Integer(value).as_unsigned(leaf.unsigned)


def _binary(node: Binary, lookup: Lookup) -> Value:
    left, right = _value(node.left, lookup), _value(node.right, lookup)
    cases: list[tuple[_Leaf, Bool]] = []
    for x, when_x in left.items():
        for y, when_y in right.items():
            when = and_(when_x, when_y)
            if isinstance(x, _Opaque) or isinstance(y, _Opaque):
                cases.append((_opaque(node, lookup, x, y), when))
            elif (result := _apply(node.operator, x, y)) is None:
                cases.append((_Opaque(to_source(node), "it divides by zero"), when))
            else:
                cases.append((result, when))
    if node.operator in _COMPARISONS:
        cases = [case for leaf, when in cases for case in _as_truth(leaf, when)]
    return _merge(cases)


def _as_truth(leaf: _Leaf, when: Bool) -> tuple[tuple[_Leaf, Bool], ...]:
    truth = _truth(leaf)
    return ((_Integer(1), and_(when, truth)), (_Integer(0), and_(when, not_(truth))))


def _apply(operator: str, x: _Integer, y: _Integer) -> _Integer | None:
    if operator in ("<<", ">>"):
        return _shift(x, y.value if operator == "<<" else -y.value)
    unsigned = x.unsigned or y.unsigned
    a, b = x.as_unsigned(unsigned).value, y.as_unsigned(unsigned).value
    if operator in _COMPARISONS:
        return _Integer(int(_COMPARISONS[operator](a, b)))
    if operator in _ARITHMETIC:
        return _Integer(_ARITHMETIC[operator](a, b)).as_unsigned(unsigned)
    if b == 0:
        return None
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return _Integer(quotient if operator == "/" else a - b * quotient).as_unsigned(unsigned)


def _shift(x: _Integer, left: int) -> _Integer:
    # A negative count shifts the other way, and one past the width shifts everything out.
    count = min(abs(left), _BITS)
    value = x.value << count if left >= 0 else x.value >> count
    return _Integer(value).as_unsigned(x.unsigned)


def _conditional(node: Conditional, lookup: Lookup) -> Value:
    test = evaluate(node.test, lookup)
    then, other = _value(node.then, lookup), _value(node.other, lookup)
    leaves = [*then, *other]
    if any(isinstance(leaf, _Opaque) for leaf in leaves):
        # Whether the other branch is signed depends on what is not known.
        return {_opaque(node, lookup, *leaves): True}
    unsigned = any(isinstance(leaf, _Integer) and leaf.unsigned for leaf in leaves)

    def convert(leaf: _Leaf) -> _Leaf:
        return leaf.as_unsigned(unsigned) if isinstance(leaf, _Integer) else leaf

    return _merge(
        (convert(leaf), and_(when, guard))
        for value, guard in ((then, test), (other, not_(test)))
        for leaf, when in value.items()
    )
