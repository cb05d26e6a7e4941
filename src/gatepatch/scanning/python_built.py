"""What a module or a function builds out of constants, put in where a condition asks for it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatepatch.gates.python_scope import Assigned, Binding, Found, names_in
from gatepatch.gates.python_values import (
    Callee,
    Const,
    Frame,
    Raises,
    Value,
    leaves,
    lift,
    of_device,
)
from gatepatch.scanning.python_concrete import TABLE, RaisedError, UntoldError
from gatepatch.scanning.python_running import concrete_in, run
from gatepatch.scanning.python_shapes import MAKERS, Shapes, literal
from gatepatch.scanning.python_sites import COMPREHENSIONS

_STEPS = 3_000
"""How many expressions are worked out for one call or comprehension."""

_MADE = COMPREHENSIONS | ast.Call | ast.BinOp
_DISPLAYS = ast.Dict | ast.Tuple | ast.List | ast.Set


def frozen(value: Any) -> Any:
    """A constant with its sets as they are known to an evaluator."""
    match value:
        case set():
            return frozenset(value)
        case range():
            return tuple(value)
        case dict() if any(isinstance(one, set) for one in value.values()):
            return {key: frozen(one) for key, one in value.items()}
    return value


def _is_entry(node: ast.expr) -> bool:
    """Whether code takes an entry out of what a function without arguments gives: ``_catalog()["arches"]``."""
    match node:
        case ast.Subscript(value=base) | ast.Call(func=ast.Attribute(value=base, attr="get")):
            return _is_entry(base)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in MAKERS:
            return _is_entry(inner)
    match node:
        case ast.Call(func=ast.Name(), args=[], keywords=[]):
            return True
    return False


class Built(Shapes):
    """An evaluator that works out what is made of constants alone."""

    def is_display(self, node: ast.expr) -> bool:
        """Whether an alias of it is followed, whatever names are in it."""
        return super().is_display(node) or (
            isinstance(node, ast.Subscript | ast.Call) and self.package.once(_is_entry, node)
        )

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        match bindings:
            case (Assigned(value=value),) if not (frame.locals or frame.values):
                if isinstance(value, _MADE) or (
                    isinstance(value, _DISPLAYS) and self.package.once(literal, value) is None
                ):
                    found = self._table(Found(frame.module, bindings, name))
                    if found is not None:
                        return found
        return super()._bound(name, bindings, frame)

    def _table(self, found: Found) -> Const | None:
        """The constant that a module's name is; None where it is not told."""
        try:
            value = concrete_in(self.package, found.module, 1).found(found)
        except UntoldError:
            return None
        return (
            Const(frozen(value))
            if isinstance(value, dict | list | tuple | set | frozenset)
            else None
        )

    def worked_out(
        self, callee: Callee, args: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value | None:
        """What a function returns that is handed constants and not followed; None if that is not told."""
        given = [*args, *keywords.values()]
        node = callee.node
        if callee.args or callee.keywords or callee.frame.values:
            return None
        if not isinstance(node, ast.FunctionDef):
            return None
        if not given:
            place = (callee.node, "worked out")
            return self.package.asked(place, lambda: self._ran(callee, node, [], {}, TABLE))
        if not all(isinstance(one, Const) for one in given):
            return None
        values = [one.value for one in args if isinstance(one, Const)]
        named = {key: one.value for key, one in keywords.items() if isinstance(one, Const)}
        found = self._ran(callee, node, values, named, _STEPS)
        if found is None or not any(map(of_device, given)):
            return found
        self.asked = True
        return replace(found, device=True) if isinstance(found, Const) else found

    def _ran(
        self,
        callee: Callee,
        node: ast.FunctionDef,
        args: Sequence[Any],
        named: Mapping[str, Any],
        steps: int,
    ) -> Const | Raises | None:
        module = callee.frame.module
        try:
            value = run(concrete_in(self.package, module, steps), node, module, args, named)
        except RaisedError:
            return Raises()
        except UntoldError:
            return None
        return Const(frozen(value))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame
    ) -> Value:
        return self._turned(node, frame) or super()._comprehension(node, frame)

    def elements(self, node: ast.expr, frame: Frame) -> list[Value] | None:
        """What a display or a comprehension goes over, where that is known."""
        if isinstance(node, COMPREHENSIONS):
            match self._turned(node, frame):
                case Const(value=list() | frozenset() as items, device=device):
                    return [Const(item, device) for item in items]
        return super().elements(node, frame)

    def _mapping(self, node: ast.DictComp, frame: Frame) -> Value:
        return self._turned(node, frame) or super()._mapping(node, frame)

    def _turned(self, node: ast.expr, frame: Frame) -> Value | None:
        """A comprehension of constants alone, in each case of those; None for another one."""
        used: dict[str, Value] = {}
        for name in self.package.once(_free, node):
            if name in frame.values:
                used[name] = frame.values[name]
            elif name in frame.locals or name in frame.hidden:
                return None
        for value in used.values():
            if not all(isinstance(leaf, Const | Raises) for leaf in leaves(value)):
                return None

        def turn(values: Sequence[Value]) -> Value:
            concrete = concrete_in(self.package, frame.module, _STEPS)
            known = [value for value in values if isinstance(value, Const)]
            concrete.names.update(zip(used, (one.value for one in known), strict=True))
            return Const(frozen(concrete.value(node)), any(one.device for one in known))

        try:
            return lift(turn, [*used.values()])
        except (UntoldError, RaisedError, ValueError):
            return None


def _free(node: ast.expr) -> frozenset[str]:
    """The names that a comprehension takes from around it."""
    return names_in(node) - {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
