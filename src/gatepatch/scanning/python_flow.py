"""What a name that is bound more than once stands for where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gatepatch.boolean import BUDGET, TooManyStepsError
from gatepatch.gates.python_scope import (
    Assigned,
    Binding,
    Element,
    FunctionNode,
    Other,
    hides,
)
from gatepatch.gates.python_values import Const, Frame, Opaque, Value, lift, reason
from gatepatch.scanning.python_built import Built


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A name is an expression here; ``None`` where that cannot be told."""

    value: ast.expr | None


class _Gone:
    """What is here is not reached: it was left with ``raise`` or ``return``."""


_State = _Known | _Gone
_UNTOLD = _Known(None)
_LEAVES = ast.Raise | ast.Return | ast.Continue | ast.Break


class Parameter(ast.Name):
    """What a function was handed under a name, whatever was assigned to it later."""


class Joined(ast.IfExp):
    """What a name is after two branches."""


def assigned(node: ast.stmt) -> frozenset[str]:
    """The names that a statement binds, in its blocks too."""
    return frozenset(_assigned(node))


def _assigned(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.alias():
            yield (node.asname or node.name).partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from (n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            return
    for child in ast.iter_child_nodes(node):
        yield from _assigned(child)


class _Walk:
    """Follows one name through statements, up to a place.

    Args:
        name: The name.
        line: The line of the place; past the end where the last value is asked for.
    """

    def __init__(self, name: str, line: float, once: Built):
        self._name = name
        self._line = line
        self._package = once.package
        self.found: _State | None = None

    def block(self, body: Sequence[ast.stmt], state: _State) -> _State:
        for node in body:
            if self.found is not None or isinstance(state, _Gone):
                return state
            if node.lineno <= self._line <= (node.end_lineno or node.lineno):
                self.found = self._inside(node, state)
                return self.found
            if node.lineno > self._line:
                self.found = state
                return state
            state = self._step(node, state)
        return state

    def _touches(self, node: ast.stmt) -> bool:
        return self._name in self._package.once(assigned, node)

    def _inside(self, node: ast.stmt, state: _State) -> _State:
        """The state at a place that is in a statement."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return _UNTOLD
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and self._touches(node):
            state = _UNTOLD  # by an earlier turn
        for block in _blocks(node):
            if block and block[0].lineno <= self._line <= (block[-1].end_lineno or 0):
                return self.block(block, state)
        return state

    def _step(self, node: ast.stmt, state: _State) -> _State:
        """The state after a statement."""
        if isinstance(node, _LEAVES):
            return _Gone()
        if not self._touches(node):
            return state
        match node:
            case ast.Assign(targets=[target], value=value):
                return self._target(target, value)
            case ast.Assign(targets=targets, value=value):
                return _Known(value) if all(isinstance(t, ast.Name) for t in targets) else _UNTOLD
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._target(target, value)
            case ast.AnnAssign():
                return state
            case ast.AugAssign(target=ast.Name(id=self._name), op=op, value=value):
                if not isinstance(state, _Known) or state.value is None:
                    return _UNTOLD
                return _Known(_at(ast.BinOp(left=state.value, op=op, right=value), node))
            case ast.If(test=test, body=body, orelse=orelse):
                itself = isinstance(test, ast.Name) and test.id == self._name
                if itself and isinstance(state, _Known) and state.value is not None:
                    test = state.value
                return self._join(test, self.block(body, state), self.block(orelse, state), node)
            case ast.With(body=body):
                return self.block(body, state)
            case ast.Try(body=body, handlers=[handler], orelse=orelse, finalbody=[]):
                done = self.block([*body, *orelse], state)
                test = ast.Name(id=f"the try on line {node.lineno} succeeds", ctx=ast.Load())
                return self._join(test, done, self.block(handler.body, state), node)
        return _UNTOLD

    def _target(self, target: ast.expr, value: ast.expr) -> _State:
        match target:
            case ast.Name():
                return _Known(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for index, part in enumerate(parts):
                    if isinstance(part, ast.Starred):
                        break
                    if isinstance(part, ast.Name) and part.id == self._name:
                        if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                            item = value.elts[index]
                            return _UNTOLD if isinstance(item, ast.Starred) else _Known(item)
                        position = _at(ast.Constant(value=index), value)
                        item = ast.Subscript(value=value, slice=position, ctx=ast.Load())
                        return _Known(_at(item, value))
        return _UNTOLD

    def _join(self, test: ast.expr, then: _State, other: _State, node: ast.stmt) -> _State:
        if isinstance(then, _Gone):
            return other
        if isinstance(other, _Gone) or then.value is other.value:
            return then
        if then.value is None or other.value is None:
            return _UNTOLD
        return _Known(_at(Joined(test=test, body=then.value, orelse=other.value), node))


def _at(node: ast.expr, place: ast.AST) -> ast.expr:
    return ast.copy_location(node, place)


def _blocks(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, ())
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _is_unset_test(node: ast.Compare, frame: Frame) -> bool:
    """Whether it is asked if a local name is None that is None at first, and is bound again."""
    match node:
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Is() | ast.IsNot()],
            comparators=[ast.Constant(value=None)],
        ) if hasattr(node, "lineno"):
            bound = frame.locals.get(name, ())
            return len(bound) > 1 and name not in frame.hidden and any(map(_is_none, bound))
    return False


def _is_none(binding: Binding) -> bool:
    match binding:
        case Assigned(value=ast.Constant(value=None)):
            return True
    return False


def functions_around(body: Sequence[ast.stmt], line: int) -> Iterator[FunctionNode]:
    """The functions around a line, the outermost first."""
    for node in body:
        if node.lineno > line:
            return
        if line <= (node.end_lineno or node.lineno):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            for block in _blocks(node):
                yield from functions_around(block, line)


def parameters(function: FunctionNode) -> frozenset[str]:
    """The names of a function's parameters."""
    return frozenset(n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg))


class Flow(Built):
    """An evaluator that follows a name from one assignment to the next, and through branches."""

    part: ClassVar[int] = 60
    """How many expressions are evaluated to follow one name."""

    most: ClassVar[int] = 1_000_000
    """How many names may take too long to follow before none is followed any more."""

    patiently = False
    """Whether a name is followed beside others that are bound already."""

    late = 0
    """How many did, for the condition at hand."""

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case Parameter(id=name):
                return Opaque(name, hides(name))
            case Joined():
                work_out = partial(super()._value, node, frame)
                if frame.values and not self.handing_only(frame):
                    return work_out()
                return self.remembered((node, bool(frame.values)), work_out)
            case ast.Name(id="sm" | "cc" as name) if frame.locals.get(name) == (Other(),):
                place = (frame.module, "counter", name, node.lineno)
                if self.package.asked(place, lambda: self._is_counter(name, node, frame)):
                    return Opaque(name)
            case ast.Name(id=name) if (
                len(frame.locals.get(name, ())) > 1
                and (not frame.values or (self.patiently and name not in frame.values))
                and name not in frame.hidden
                and hasattr(node, "lineno")
            ):
                value = super()._value(node, frame)
                found = self._here(name, node, frame) if reason(value) else None
                return value if found is None else found
            case ast.Name(id=name) if (
                not (frame.locals or frame.values or frame.hidden)
                and len(frame.module.bindings.get(name, ())) > 1
                and hasattr(node, "lineno")
            ):
                found = self._at_top(name, node, frame)
                return super()._value(node, frame) if found is None else found
        return super()._value(node, frame)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        """A comparison; whether a name is None that is set on some devices alone is what those say."""
        if not frame.values and self.is_unset_test(node, frame):
            assert isinstance(node.left, ast.Name)
            before, self.asked = self.asked, False
            found = self._here(node.left.id, node.left, frame)
            told, self.asked = self.asked, self.asked or before
            if told and found is not None and not reason(found):
                (op,) = node.ops
                return lift(lambda v: self._pair(op, v), [found, Const(None)])
        return super()._compare(node, frame)

    def _at_top(self, name: str, node: ast.Name, frame: Frame) -> Value | None:
        """What a module's name is at a place outside of functions; None where that cannot be told."""
        body = frame.module.tree.body
        place = (frame.module, "top", name, node.lineno)
        expression = self.package.asked(place, lambda: self._up_to(name, node.lineno, body))
        if expression is None or expression in self._active or self.depth >= self.deepest:
            return None
        return self.again(expression, frame)

    def _up_to(self, name: str, line: int, body: Sequence[ast.stmt]) -> ast.expr | None:
        if any(True for _ in functions_around(body, line)):
            return None
        walk = _Walk(name, line, self)
        walk.block(body, _UNTOLD)
        return walk.found.value if isinstance(walk.found, _Known) else None

    def _is_counter(self, name: str, node: ast.Name, frame: Frame) -> bool:
        """Whether a name counts the turns of a loop around it, as a tile's index does."""
        for function in reversed([*functions_around(frame.module.tree.body, node.lineno)]):
            if name in self.package.once(parameters, function):
                return False
            for loop in ast.walk(function):
                match loop:
                    case ast.For(target=ast.Name(id=own), iter=ast.Call(func=func)) if own == name:
                        return "range" in ast.unparse(func)
        return False

    def _here(self, name: str, node: ast.Name, frame: Frame) -> Value | None:
        """What a local name is at a place; None where that cannot be told."""
        expression = self._origin(name, node, frame)
        if expression is None or expression in self._active or self.depth >= self.deepest:
            return None
        return self.again(expression, frame)

    def _origin(self, name: str, node: ast.Name, frame: Frame) -> ast.expr | None:
        """The expression that a local name has at a place; None where that cannot be told."""
        place = (frame.module, name, node.lineno)
        return self.package.asked(place, lambda: self._reaching(name, node, frame))

    def is_unset_test(self, node: ast.expr, frame: Frame) -> bool:
        """Whether it is asked if a local name is None that is bound under a test of the architecture."""
        if not (isinstance(node, ast.Compare) and _is_unset_test(node, frame)):
            return False
        assert isinstance(node.left, ast.Name)
        origin = self._origin(node.left.id, node.left, frame)
        return origin is not None and self.package.names_a_test(origin)

    def _reaching(self, name: str, node: ast.Name, frame: Frame) -> ast.expr | None:
        for function in reversed([*functions_around(frame.module.tree.body, node.lineno)]):
            given = name in self.package.once(parameters, function)
            if given or any(name in self.package.once(assigned, s) for s in function.body):
                start = Parameter(id=name, ctx=ast.Load()) if given else None
                walk = _Walk(name, node.lineno, self)
                walk.block(function.body, _Known(start and _at(start, function)))
                return walk.found.value if isinstance(walk.found, _Known) else None
        return None

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        value = super()._bound(name, bindings, frame)
        if len(bindings) < 2 or frame.locals or frame.values or not reason(value):
            return value
        place = (frame.module, name, 0)
        expression = self.package.asked(place, lambda: self._last(name, frame))
        if expression is None or expression in self._active or self.depth >= self.deepest:
            return value
        return self.again(expression, frame) or value

    def _last(self, name: str, frame: Frame) -> ast.expr | None:
        """What a module's name is in the end, unless a function binds it."""
        bindings = frame.module.bindings.get(name, [])
        if not all(isinstance(one, Assigned | Element) for one in bindings):
            return None
        state = _Walk(name, float("inf"), self).block(frame.module.tree.body, _UNTOLD)
        return state.value if isinstance(state, _Known) else None

    def again(self, expression: ast.expr, frame: Frame) -> Value | None:
        """The value of an expression; None where it takes more than a part of what is left."""
        if self.late > self.most:
            return None
        before, longest, left = self.steps, self.longest, BUDGET.left
        self.longest = min(longest, before + self.part)
        self.depth += 1
        self._active.add(expression)
        try:
            return self.value(expression, frame)
        except TooManyStepsError:
            self.steps, BUDGET.left = before, left
            self.late += 1
            return None
        finally:
            self.longest = longest
            self.depth -= 1
            self._active.discard(expression)
