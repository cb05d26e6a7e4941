"""What operators, displays and subscripts give, by what their operands are."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeGuard

from gatepatch.arch import Arch
from gatepatch.boolean import Bool, and_
from gatepatch.gates.python_values import (
    Const,
    Frame,
    Opaque,
    Properties,
    Raises,
    Value,
    choose,
    from_bool,
    lift,
    of_device,
    text_of,
    truth,
)

MANY = 64
"""How many elements a comprehension may go over."""

BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
"""Operators that are worked out."""

_GROWING = (ast.Mult, ast.LShift)

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

COMPARE: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}
"""Comparisons, and how they are written."""


class Operations(ABC):
    """The part of an evaluator that works out operations.

    Args:
        arch: The architecture that is evaluated on.
    """

    def __init__(self, arch: Arch):
        self.arch = arch

    @abstractmethod
    def value(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""

    @abstractmethod
    def truth_of(self, node: ast.expr, frame: Frame) -> Bool:
        """The truth of an expression."""

    @abstractmethod
    def whole(self, node: ast.expr, frame: Frame) -> Value:
        """An expression that is not worked out, with what is known put in."""

    @abstractmethod
    def with_known(self, node: ast.expr, frame: Frame) -> str:
        """The text of an expression with what is known put in."""

    @abstractmethod
    def opaque(self, text: str, *, parts: Sequence[Value], name: str = "") -> Opaque:
        """A value that is not known, and why it may hide a test of the architecture."""

    @abstractmethod
    def device(self, constant: Any) -> Value:
        """An answer of the device."""

    def _collection(self, node: ast.expr, parts: Sequence[ast.expr], frame: Frame) -> Value:
        kind: Callable[[Any], Any] = frozenset
        if isinstance(node, ast.Tuple | ast.List):
            kind = tuple if isinstance(node, ast.Tuple) else list

        def collect(values: Sequence[Value]) -> Value:
            if all(isinstance(value, Const) for value in values):
                known = [value.value for value in values if isinstance(value, Const)]
                made = _constant(lambda: kind(known), any(map(of_device, values)))
                return made or Opaque(ast.unparse(node))
            text = f"({', '.join(map(text_of, values))})"
            return self.gathered(node, text, values)

        return lift(collect, [self.value(part, frame) for part in parts])

    def _dict(
        self,
        node: ast.expr,
        keys: Sequence[ast.expr | None],
        values: Sequence[ast.expr],
        frame: Frame,
    ) -> Value:
        if any(key is None for key in keys):
            return self.whole(node, frame)

        def collect(parts: Sequence[Value]) -> Value:
            known = [part.value for part in parts if isinstance(part, Const)]
            if len(known) == len(parts):
                names, results = known[: len(keys)], known[len(keys) :]
                made = _constant(
                    lambda: dict(zip(names, results, strict=True)), any(map(of_device, parts))
                )
                if made is not None:
                    return made
            return self.gathered(node, ast.unparse(node), parts)

        every = [*(key for key in keys if key is not None), *values]
        return lift(collect, [self.value(part, frame) for part in every])

    def gathered(self, node: ast.expr, text: str, parts: Sequence[Value]) -> Value:
        """A collection of which not all is known: a dictionary's keys come before its values."""
        return self.opaque(text, parts=parts)

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> Value:
        is_and = isinstance(node.op, ast.And)
        values: list[Value] = []
        for operand in node.values:
            value = self.value(operand, frame)
            values.append(value)
            decided = truth(value)
            # Python stops at the first operand that decides.
            if isinstance(decided, bool) and decided is not is_and:
                break
        result = values.pop()
        for value in reversed(values):
            test = truth(value)
            if is_and and isinstance(result, Raises) and not isinstance(value, Raises):
                result = Const(False)  # there is no other outcome
                continue
            result = choose(test, result, value) if is_and else choose(test, value, result)
        return result

    def _negative(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        if isinstance(value, Const) and isinstance(value.value, int | float):
            return Const(-value.value, value.device)
        return self.opaque(f"-{text_of(value)}", parts=(value,))

    def _binary(self, left: Value, right: Value, node: ast.BinOp, frame: Frame) -> Value:
        action = BINARY.get(type(node.op))
        if isinstance(left, Const) and isinstance(right, Const) and action is not None:
            small = not isinstance(node.op, _GROWING) or is_small(left.value, right.value)
            made = _constant(
                lambda: action(left.value, right.value), of_device(left) or of_device(right)
            )
            if small and made is not None:
                return made
        text = _operation(type(node.op).__name__).format(text_of(left), text_of(right))
        return self.opaque(text, parts=(left, right))

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        values = [self.value(n, frame) for n in (node.left, *node.comparators)]
        pairs = [
            lift(partial(self._pair, op), [left, right])
            for left, op, right in zip(values, node.ops, values[1:], strict=False)
        ]
        if len(pairs) == 1:
            return pairs[0]
        return from_bool(and_(*map(truth, pairs)), device=any(map(of_device, pairs)))

    def _pair(self, op: ast.cmpop, sides: Sequence[Value]) -> Value:
        left, right = sides
        word, action = COMPARE[type(op)]
        if isinstance(left, Const) and isinstance(right, Const):
            made = _constant(
                lambda: bool(action(left.value, right.value)), of_device(left) or of_device(right)
            )
            if made is not None:
                return made
        if isinstance(op, _ORDERS) and any(isinstance(s, Const) and s.value is None for s in sides):
            return Raises()
        # `x is None` of what cannot be None is not an unknown test of the architecture.
        text = f"{text_of(left)} {word} {text_of(right)}"
        return from_bool(truth(self.opaque(text, parts=(left, right))))

    def _member(self, base: Value, name: str) -> Value:
        text = f"{text_of(base)}.{name}"
        match base:
            case Properties() if name in ("major", "minor"):
                return self.device(getattr(self.arch, name))
            case Properties():
                return Opaque(text)
            case Const(value=(int(), int()), device=True) if name in ("major", "minor"):
                # A named tuple, such as a platform's DeviceCapability.
                return self.device(getattr(self.arch, name))
            case Const(value=None, device=True):
                return Raises()
        return self.opaque(text, parts=(base,), name=name)

    def _subscript(
        self, node: ast.expr, base_node: ast.expr, index_node: ast.expr, frame: Frame
    ) -> Value:
        base = self.value(base_node, frame)
        if not isinstance(index_node, ast.Slice):
            parts = [base, self.value(index_node, frame)]
            return lift(lambda v: self._item(v[0], v[1], text_of(v[1])), parts)
        bounds = [
            self.value(n, frame) if n is not None else Const(None)
            for n in (index_node.lower, index_node.upper, index_node.step)
        ]
        if any(not isinstance(bound, Const) for bound in bounds):
            return self.whole(node, frame)
        known = [bound.value for bound in bounds if isinstance(bound, Const)]
        cut = Const(slice(*known), any(map(of_device, bounds)))
        return lift(lambda v: self._item(v[0], cut, ast.unparse(index_node)), [base])

    def _item(self, base: Value, index: Value, text: str) -> Value:
        if isinstance(base, Const) and isinstance(index, Const):
            made = _constant(lambda: base.value[index.value], of_device(base) or of_device(index))
            if made is not None:
                return made
        if isinstance(base, Const) and base.value is None:
            return Raises()
        return self.opaque(f"{text_of(base)}[{text}]", parts=(base, index))

    def _joined(self, node: ast.expr, parts: Sequence[ast.expr], frame: Frame) -> Value:
        values = []
        for part in parts:
            match part:
                case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                    values.append(self.value(inner, frame))
                case ast.Constant():
                    values.append(self.value(part, frame))
                case _:
                    return self.whole(node, frame)

        def join(known: Sequence[Value]) -> Value:
            if all(isinstance(value, Const) for value in known):
                text = "".join(str(value.value) for value in known if isinstance(value, Const))
                return Const(text, any(map(of_device, known)))
            return self.opaque(self.with_known(node, frame), parts=known)

        return lift(join, values)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame
    ) -> Value:
        results = self.elements(node, frame)
        if results is None:
            return self.whole(node, frame)
        kind = frozenset if isinstance(node, ast.SetComp) else list

        def collect(values: Sequence[Value]) -> Value:
            known = [value.value for value in values if isinstance(value, Const)]
            made = _constant(lambda: kind(known), True) if len(known) == len(values) else None
            return made or self.whole(node, frame)

        return lift(collect, results)

    def elements(self, node: ast.expr, frame: Frame) -> list[Value] | None:
        """What a display or a comprehension goes over, where that is known."""
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return [self.value(part, frame) for part in parts]
            case (
                ast.ListComp(elt=result, generators=[generator])
                | ast.SetComp(elt=result, generators=[generator])
                | ast.GeneratorExp(elt=result, generators=[generator])
            ) if isinstance(generator.target, ast.Name):
                return self._each(result, generator.target.id, generator, frame)
        return None

    def _each(
        self, result: ast.expr, name: str, generator: ast.comprehension, frame: Frame
    ) -> list[Value] | None:
        source = self.value(generator.iter, frame)
        if not is_iterable(source):
            return None
        found = []
        for item in source.value:
            inner = frame.bound(name, Const(item, source.device))
            taken = and_(*(self.truth_of(test, inner) for test in generator.ifs))
            if not isinstance(taken, bool):
                return None
            if taken:
                found.append(self.value(result, inner))
        return found


def is_iterable(value: Value) -> TypeGuard[Const]:
    """Whether a comprehension is worked out that goes over a value."""
    return (
        isinstance(value, Const)
        and isinstance(value.value, tuple | list | set | frozenset | str)
        and len(value.value) <= MANY
    )


def _constant(make: Callable[[], Any], device: bool) -> Const | None:
    try:
        return Const(make(), device)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return None


@cache
def _operation(operator: str) -> str:
    """The source of an operation such as ``FloorDiv``, with places for its operands."""
    x, y = ast.Name(id="x"), ast.Name(id="y")
    sample = ast.unparse(ast.BinOp(left=x, op=getattr(ast, operator)(), right=y))
    return sample.replace("x", "{}", 1).replace("y", "{}", 1)


def is_small(left: object, right: object) -> bool:
    """Whether two numbers may be multiplied, or shifted."""
    numbers = [value for value in (left, right) if isinstance(value, int | float)]
    return len(numbers) == 2 and all(abs(number) <= 4096 for number in numbers)
