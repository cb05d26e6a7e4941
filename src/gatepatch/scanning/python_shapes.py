"""Shapes of Python code that a scan works out, and a proof does without."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gatepatch.boolean import BUDGET, TooManyStepsError, and_
from gatepatch.gates.python_evaluator import Evaluator
from gatepatch.gates.python_operations import MANY, is_iterable
from gatepatch.gates.python_values import Const, Frame, Held, Opaque, Value

MAKERS = frozenset({"frozenset", "set", "tuple", "list", "dict", "sorted", "range"})
"""Functions that make a collection of another one."""
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.DictComp)
_JOINS = (ast.BitOr, ast.BitAnd, ast.Add, ast.Sub)


def is_collection(node: ast.expr) -> bool:
    """Whether code makes a collection out of what stands in it."""
    match node:
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
            return True
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return True
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in MAKERS:
            return isinstance(inner, ast.Name | ast.Attribute) or is_collection(inner)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name[:1].isupper():
            return True  # an instance
        case ast.Call(
            func=ast.Name(id="getattr"), args=[ast.Name(), ast.Constant(), ast.Dict(keys=[])]
        ):
            return True  # a module's table, if it has that
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _JOINS):
            return is_collection(left) or is_collection(right)
    return False


class _NoLiteralError(Exception):
    """Something that is not made of constants alone."""


def _literal(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.Tuple(elts=parts):
            return tuple(map(_literal, parts))
        case ast.List(elts=parts):
            return list(map(_literal, parts))
        case ast.Set(elts=parts):
            return frozenset(map(_literal, parts))
        case ast.Dict(keys=keys, values=parts):
            return dict(zip(map(_literal, keys), map(_literal, parts), strict=True))
    raise _NoLiteralError


def literal(node: ast.expr) -> Const | None:
    """The value of a collection that is made of constants alone; None for another.

    A table of thousands of records is read at once, instead of one expression at a time.
    """
    try:
        return Const(_literal(node))
    except (_NoLiteralError, TypeError):
        return None


class Shapes(Evaluator):
    """An evaluator of more shapes: unions of sets, comprehensions that unpack, ``*`` in a tuple."""

    def is_display(self, node: ast.expr) -> bool:
        """Whether an alias of it is followed, whatever names are in it."""
        return self.package.once(is_collection, node)

    def iterated(self, value: Value) -> Value:
        """What a comprehension goes over where a value is its source."""
        return value

    def elements(self, node: ast.expr, frame: Frame) -> list[Value] | None:
        """What a display or a comprehension goes over, where that is known."""
        match node:
            case (
                ast.ListComp(elt=result, generators=[generator])
                | ast.SetComp(elt=result, generators=[generator])
                | ast.GeneratorExp(elt=result, generators=[generator])
            ):
                frames = self._turns(generator, frame)
                if frames is None:
                    return None
                return [self.value(result, inner) for inner in frames]
        return super().elements(node, frame)

    def _turns(self, generator: ast.comprehension, frame: Frame) -> list[Frame] | None:
        """The frames of a comprehension's turns; None where they are not known."""
        items = self._items(self.iterated(self.value(generator.iter, frame)))
        if items is None:
            return None
        frames = []
        for item in items:
            inner = _bind(generator.target, item, frame)
            if inner is None:
                return None
            taken = and_(*(self.truth_of(test, inner) for test in generator.ifs))
            if not isinstance(taken, bool):
                return None
            if taken:
                frames.append(inner)
        return frames

    def _items(self, source: Value) -> list[Value] | None:
        """The elements of a collection; None where they are not known."""
        match source:
            case Opaque(held=Held(items=held, is_mapping=mapping)) if held and len(held) <= MANY:
                return [*map(Const, held)] if mapping else [*held.values()]
            case Const(value=dict() as table, device=device):
                source = Const(tuple(table), device)
        if not is_iterable(source):
            return None
        return [Const(item, source.device) for item in source.value]

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        if isinstance(node, _DISPLAYS):
            if not isinstance(node, ast.DictComp):
                found = self.package.once(literal, node)
                if found is not None:
                    return found
            elif len(node.generators) == 1:
                return self._mapping(node, frame)
        return super()._value(node, frame)

    def _mapping(self, node: ast.DictComp, frame: Frame) -> Value:
        frames = self._turns(node.generators[0], frame)
        if frames is None:
            return self.whole(node, frame)
        pairs = [
            (self.value(node.key, inner), value) for inner, value in self._each_value(node, frames)
        ]
        known = {
            key.value: value.value
            for key, value in pairs
            if isinstance(key, Const) and isinstance(value, Const) and _is_hashable(key.value)
        }
        if len(known) == len(pairs):
            return Const(
                known,
                any(part.device for pair in pairs for part in pair if isinstance(part, Const)),
            )
        items = {
            key.value: value
            for key, value in pairs
            if isinstance(key, Const) and not key.device and _is_hashable(key.value)
        }
        whole = self.whole(node, frame)
        if len(items) < len(pairs) or not isinstance(whole, Opaque):
            return whole
        return replace(whole, held=Held(items=items, is_mapping=True))

    def _each_value(
        self, node: ast.DictComp, frames: Sequence[Frame]
    ) -> Iterator[tuple[Frame, Value]]:
        """The values of a mapping, turn by turn; none of them where they take too long."""
        before, left, longest = self.steps, BUDGET.left, self.longest
        self.longest = before + (longest - before) // 2
        untold = Opaque(self.package.once(ast.unparse, node.value), "it takes too long to work out")
        late = False
        for inner in frames:
            value: Value = untold
            if not late:
                try:
                    value = self.value(node.value, inner)
                except TooManyStepsError:
                    late = True
                    self.steps, BUDGET.left = before, left
            yield inner, value
        self.longest = longest

    def _collection(self, node: ast.expr, parts: Sequence[ast.expr], frame: Frame) -> Value:
        if not any(isinstance(part, ast.Starred) for part in parts):
            return super()._collection(node, parts, frame)
        spread: list[ast.expr] = []
        for part in parts:
            if not isinstance(part, ast.Starred):
                spread.append(part)
                continue
            inside = self._spread(self.iterated(self.value(part.value, frame)))
            if inside is None:
                return self.whole(node, frame)
            frame, names = _put(inside, frame)
            spread += names
        return super()._collection(node, spread, frame)

    def _spread(self, value: Value) -> list[Value] | None:
        """What ``*`` puts into a tuple; None where that is not known."""
        match value:
            case Opaque(held=Held(items=held, is_mapping=False)) if held:
                return [*held.values()]
        if not is_iterable(value):
            return None
        return [Const(item, value.device) for item in value.value]


def _put(inside: Sequence[Value], frame: Frame) -> tuple[Frame, list[ast.expr]]:
    """Bind the elements of a value to names that no code can have."""
    names: list[ast.expr] = []
    for item in inside:
        name = f"*{len(frame.values)}"
        frame = frame.bound(name, item)
        names.append(ast.Name(id=name, ctx=ast.Load()))
    return frame, names


def _bind(target: ast.expr, value: Value, frame: Frame) -> Frame | None:
    match target:
        case ast.Name(id=name):
            return frame.bound(name, value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            match value:
                case Const(value=tuple() | list() as items, device=device):
                    inside: list[Value] = [Const(item, device) for item in items]
                case Opaque(held=Held(items=held, is_mapping=False)) if held:
                    inside = [*held.values()]
                case _:
                    return None
            if len(inside) != len(parts):
                return None
            for part, item in zip(parts, inside, strict=True):
                inner = _bind(part, item, frame)
                if inner is None:
                    return None
                frame = inner
            return frame
    return None


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
