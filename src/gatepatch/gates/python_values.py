"""Values of the Python evaluator: known, not known, or one of several by free atoms.

A value that depends on atoms is a decision diagram over them with values at its leaves, ordered
as Boolean functions are, so that ``x if a else y`` keeps both ``x`` and ``y``.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gatepatch.boolean import BUDGET, Atom, Bool, Node, atom, atoms, if_then_else, to_text
from gatepatch.gates.python_scope import Binding, FunctionNode, Module

LEAVES = 64
"""How many cases a value may have before it counts as not known."""


@dataclass(frozen=True, slots=True)
class Const:
    """A value that is known.

    Args:
        value: The value.
        device: Whether it was worked out from the device's architecture.
    """

    value: Any
    device: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not known.

    Args:
        text: Its source, with what is known put in.
        unknown: Why it may hide a test of the architecture; empty if it cannot.
        held: What is known of its parts, if anything.
    """

    text: str
    unknown: str = ""
    held: Held | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What is known of the parts of a value that is not known as a whole.

    Args:
        items: What is under its indices or keys: all of them.
        fields: Its attributes, as far as they are known.
        made_by: The class that it is an instance of, or is itself.
        module: Where that class stands.
        is_mapping: Whether its items are a dictionary's.
        among: The constants that the value is one of, if that is all that is known.
    """

    items: Mapping[Any, Value] | None = None
    fields: Mapping[str, Value] = field(default_factory=dict)
    made_by: ast.ClassDef | None = None
    module: Module | None = None
    is_mapping: bool = False
    among: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """A value that is True where a function holds, and False elsewhere.

    Args:
        function: The function of atoms, no constant.
        device: Whether it was worked out from the device's architecture.
    """

    function: Node
    device: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """``high`` where the atom is true, ``low`` where it is false."""

    atom: Atom
    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class Callee:
    """A function, with the arguments that it was bound to.

    Args:
        node: Its definition.
        frame: Where that stands.
    """

    node: FunctionNode | ast.Lambda
    frame: Frame
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Properties:
    """What ``torch.cuda.get_device_properties`` returns."""


@dataclass(frozen=True, slots=True)
class Raises:
    """An exception instead of a value: it leaves an architecture out as False does."""


Leaf: TypeAlias = "Const | Truth | Opaque | Callee | Properties | Raises"
Value: TypeAlias = "Leaf | Choice"


@dataclass(frozen=True, slots=True)
class Frame:
    """Where an expression stands.

    Args:
        module: Its module.
        values: Local names that are known: arguments and assignments already carried out.
        locals: Local names that are bound somewhere in the enclosing functions.
        hidden: Names that lambdas and comprehensions around it bind.
    """

    module: Module
    values: Mapping[str, Value] = field(default_factory=dict)
    locals: Mapping[str, tuple[Binding, ...]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def bound(self, name: str, value: Value) -> Frame:
        """The frame after an assignment."""
        return Frame(self.module, {**self.values, name: value}, self.locals, self.hidden - {name})

    def hides(self, names: Iterable[str]) -> Frame:
        """The frame inside a lambda or a comprehension that binds these names."""
        return Frame(self.module, self.values, self.locals, self.hidden.union(names))

    def is_local(self, name: str) -> bool:
        """Whether a name is not the module's."""
        return name in self.hidden or name in self.values or name in self.locals


def truth(value: Value) -> Bool:
    """The truth of a value."""
    match value:
        case Const(value=constant):
            return bool(constant)
        case Truth(function=function):
            return function
        case Opaque(text=text, unknown=unknown):
            return atom(text, unknown=unknown)
        case Choice(atom=tested, low=low, high=high):
            return if_then_else(Node(tested, False, True), truth(high), truth(low))
        case Callee() | Properties():
            return True
        case Raises():
            return False


def from_bool(function: Bool, *, device: bool = False) -> Value:
    """The value that is True where a function holds, and False elsewhere."""
    return Const(function, device) if isinstance(function, bool) else Truth(function, device)


def is_boolean(value: Value) -> bool:
    """Whether a value is True or False, whichever it is."""
    return isinstance(value, Truth) or (isinstance(value, Const) and isinstance(value.value, bool))


def choose(test: Bool, then: Value, other: Value) -> Value:
    """``then`` where the test holds, ``other`` where it does not.

    Where one of them is an exception, the value is the other one's: there is none but that.
    """
    if isinstance(test, bool):
        return then if test else other
    if is_boolean(then) and is_boolean(other):
        device = of_device(then) or of_device(other)
        return from_bool(if_then_else(test, truth(then), truth(other)), device=device)
    top = min(part.atom for part in (test, then, other) if isinstance(part, Choice | Node))
    low, high = (
        choose(
            _function_at(test, top, side), _value_at(then, top, side), _value_at(other, top, side)
        )
        for side in (False, True)
    )
    return _node(top, low, high)


def lift(action: Callable[[Sequence[Any]], Value], values: Sequence[Value]) -> Value:
    """Carry out an action on each case of its operands.

    Raises:
        TooManyStepsError: There are too many of them.
    """
    BUDGET.spend(1 + len(values))
    tested = [value.atom for value in values if isinstance(value, Choice)]
    tested += [value.function.atom for value in values if isinstance(value, Truth)]
    if not tested:
        return Raises() if any(isinstance(v, Raises) for v in values) else action(values)
    top = min(tested)
    low, high = (
        lift(action, [_case(_value_at(value, top, side), top, side) for value in values])
        for side in (False, True)
    )
    return _node(top, low, high)


def _case(value: Value, top: Atom, side: bool) -> Value:
    if not isinstance(value, Truth):
        return value
    return from_bool(_function_at(value.function, top, side), device=value.device)


def _node(top: Atom, low: Value, high: Value) -> Value:
    if isinstance(low, Raises):
        return high
    if isinstance(high, Raises) or _same(low, high):
        return low
    if is_boolean(low) and is_boolean(high):
        function = if_then_else(Node(top, False, True), truth(high), truth(low))
        return from_bool(function, device=of_device(low) or of_device(high))
    return Choice(top, low, high)


def _same(first: Value, second: Value) -> bool:
    # In Python 1 == True == 1.0, and here they are three values.
    if first is second or first != second:
        return first is second
    if isinstance(first, Const) and isinstance(second, Const):
        return _of_one_kind(first.value, second.value)
    return text_of(first) == text_of(second)


def _of_one_kind(first: Any, second: Any) -> bool:
    """Whether two constants that are equal are of one type, and all that is in them."""
    if isinstance(first, tuple | list):
        return type(first) is type(second) and all(map(_of_one_kind, first, second))
    if isinstance(first, frozenset | dict):
        return text_of(Const(first)) == text_of(Const(second))
    return type(first) is type(second)


def _function_at(function: Bool, top: Atom, side: bool) -> Bool:
    if isinstance(function, bool) or function.atom != top:
        return function
    return function.high if side else function.low


def _value_at(value: Value, top: Atom, side: bool) -> Value:
    if not isinstance(value, Choice) or value.atom != top:
        return value
    return value.high if side else value.low


def leaves(value: Value) -> Iterator[Leaf]:
    """The cases of a value."""
    if isinstance(value, Choice):
        yield from leaves(value.low)
        yield from leaves(value.high)
    else:
        yield value


def has_many(value: Value) -> bool:
    """Whether a value has more cases than are followed."""
    return next(itertools.islice(leaves(value), LEAVES, None), None) is not None


def reason(value: Value) -> str:
    """Why a value may hide a test of the architecture; empty if it cannot."""
    match value:
        case Opaque(unknown=unknown):
            return unknown
        case Truth(function=function):
            return next((a.unknown for a in sorted(atoms(function)) if a.unknown), "")
        case Choice(atom=tested, low=low, high=high):
            return tested.unknown or reason(low) or reason(high)
    return ""


def of_device(value: Value) -> bool:
    """Whether a value was worked out from the device's architecture, or may have been."""
    match value:
        case Const(device=device) | Truth(device=True as device):
            return device
        case Choice(low=low, high=high):
            return of_device(low) or of_device(high)
        case Properties():
            return True
    return bool(reason(value))


def text_of(value: Value) -> str:
    """The source of a value."""
    match value:
        case Const(value=frozenset() as constant):  # its own order differs from run to run
            return f"{{{', '.join(sorted(map(repr, constant)))}}}" if constant else "set()"
        case Const(value=constant):
            return repr(constant)
        case Opaque(text=text):
            return text
        case Callee(node=node):
            return f"({ast.unparse(node)})" if isinstance(node, ast.Lambda) else node.name
        case Properties():
            return "device_properties"
        case Raises():
            return "an exception"
        case Truth(function=Node(atom=tested, low=False, high=True)):
            return tested.text
        case Truth(function=function):
            return f"({to_text(function)})"
        case Choice(atom=tested, low=low, high=high):
            return f"({text_of(high)} if {tested.text} else {text_of(low)})"
