"""Evaluate a Python expression on one architecture.

An evaluator over an explicit environment, in which what is not known is a value. Nothing is
imported or run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar
from zlib import crc32

from gatepatch.arch import Arch
from gatepatch.boolean import Bool, TooManyStepsError, and_, not_, or_
from gatepatch.gates import python_calls
from gatepatch.gates.python_changes import changed_in
from gatepatch.gates.python_operations import Operations
from gatepatch.gates.python_scope import (
    Assigned,
    Binding,
    Defined,
    Element,
    Found,
    FunctionNode,
    Imported,
    Other,
    Package,
    bound_in,
    dotted_name,
    hides,
    is_plain,
    names_in,
)
from gatepatch.gates.python_values import (
    Callee,
    Choice,
    Const,
    Frame,
    Held,
    Opaque,
    Raises,
    Value,
    choose,
    from_bool,
    has_many,
    lift,
    of_device,
    reason,
    text_of,
    truth,
)

DEPTH = 16
"""How many calls and aliases are followed from one to the next."""

STEPS = 20_000
"""How many expressions are evaluated for one verdict on one architecture."""

CASES = 500_000
"""How many cases of values, and nodes of diagrams, are gone through for one of those."""


_LONG = 1_000
"""Characters of a text that is put in for a name."""


class Evaluator(Operations):
    """Evaluates on one architecture.

    Args:
        package: As for ``Meaning``.
        predicates: As for ``Meaning``.
        arch: The architecture.
        given: Values that certain nodes, by their ids, have whatever they say.
    """

    deepest: ClassVar[int] = DEPTH
    longest: int = STEPS
    cases: ClassVar[int] = CASES
    beyond_too: ClassVar[bool] = False
    """Whether a function is looked into that is given more than it has names for."""
    handing: bool = False
    """Whether calls are looked into once more: for what they may give, and for each of a few values."""
    is_followed = staticmethod(python_calls.is_followed)

    def __init__(
        self,
        package: Package,
        predicates: Mapping[str, frozenset[Arch]],
        arch: Arch,
        given: Mapping[int, Value] | None = None,
    ):
        super().__init__(arch)
        self.package = package
        self.predicates = predicates
        self.depth = 0
        self.steps = 0
        self.branches = 0
        self.limit: int | None = None
        self.asked = False
        self._active: set[ast.expr] = set()
        self._given = given or {}
        names = (name.removesuffix("()") for name in predicates)
        self._last_names = frozenset(name.rpartition(".")[2] for name in names)
        self._known: dict[Hashable, tuple[Value, bool]] = {}

    def follows(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
        """Whether a function that is called is looked into."""
        return True

    def tells(self, node: FunctionNode | ast.Lambda) -> bool:
        """Whether a function that tests nothing is looked into for what it returns."""
        return False

    def asks_outside(self, callee: Callee, statement: ast.stmt) -> bool:
        """Whether a statement that is not followed depends on what is installed beside the package."""
        return False

    def goes_through(self, statement: ast.stmt | None, frame: Frame) -> bool:
        """Whether a statement that is not followed looks for something that is asked for beside the architecture."""
        return False

    def worked_out(
        self, callee: Callee, args: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value | None:
        """What a function returns that is handed constants and not followed; None if that is not told."""
        return None

    def handing_only(self, frame: Frame) -> bool:
        """Whether nothing is known in a frame but that calls are looked into once more."""
        return False

    def is_display(self, node: ast.expr) -> bool:
        """Whether an alias of it is followed, whatever names are in it."""
        return isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)

    def is_changed(self, name: str, first: Value, frame: Frame) -> bool:
        """Whether a collection is another one than it was first; an empty one is there to be."""
        match first:
            case Const(value=list() | dict() | set() | frozenset() as made):
                pass
            case Opaque(held=Held(items=Mapping() as made)):
                pass
            case _:
                return False
        return not made or name in self.package.once(changed_in, frame.module.tree)

    def device(self, constant: Any) -> Value:
        """An answer of the device."""
        self.asked = True
        return Const(constant, device=True)

    def truth_of(self, node: ast.expr, frame: Frame) -> Bool:
        """The truth of an expression."""
        if id(node) in self._given:
            return truth(self._given[id(node)])
        match node:
            case ast.BoolOp(op=op, values=values):
                result: Bool = isinstance(op, ast.And)
                for operand in values:
                    part = self.truth_of(operand, frame)
                    result = and_(result, part) if isinstance(op, ast.And) else or_(result, part)
                    # Python stops at the first operand that decides.
                    if result is not isinstance(op, ast.And) and isinstance(result, bool):
                        break
                return result
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not_(self.truth_of(operand, frame))
        return truth(self.value(node, frame))

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        self.steps += 1
        if self.steps > self.longest:
            raise TooManyStepsError
        if id(node) in self._given:
            return self._given[id(node)]
        known = self._predicate(node, frame)
        if known is not None:
            return known
        value = self._value(node, frame)
        many = isinstance(value, Choice) and has_many(value)
        return self.whole(node, frame) if many else value

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Constant(value=constant):
                return Const(constant)
            case ast.Name(id=name):
                return self._name(name, frame)
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.Subscript(value=base, slice=index):
                return self._subscript(node, base, index, frame)
            case ast.Call():
                return python_calls.call(self, node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._collection(node, parts, frame)
            case ast.Dict(keys=keys, values=parts):
                return self._dict(node, keys, parts, frame)
            case ast.BoolOp():
                return self._bool_op(node, frame)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.value(operand, frame)
                if isinstance(inner, Const):
                    return Const(not inner.value, inner.device)
                return from_bool(not_(truth(inner)), device=of_device(inner))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return lift(
                    lambda v: self._negative(v[0], node, frame), [self.value(operand, frame)]
                )
            case ast.BinOp(left=left, right=right):
                parts_of = [self.value(left, frame), self.value(right, frame)]
                return lift(lambda v: self._binary(v[0], v[1], node, frame), parts_of)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                taken = self.truth_of(test, frame)
                if isinstance(taken, bool):
                    return self.value(body if taken else orelse, frame)
                return choose(taken, self.value(body, frame), self.value(orelse, frame))
            case ast.NamedExpr(value=inner_node):
                return self.value(inner_node, frame)
            case ast.JoinedStr(values=parts):
                return self._joined(node, parts, frame)
            case ast.Lambda():
                return Callee(node, frame)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node, frame)
        return self.whole(node, frame)

    def _predicate(self, node: ast.expr, frame: Frame) -> Value | None:
        """A predicate whose meaning the set gives: by its source, or its dotted name."""
        if not self._last_names:
            return None
        called = node.func if isinstance(node, ast.Call) else node
        last = getattr(called, "attr", None) or getattr(called, "id", None)
        if last not in self._last_names:
            return None
        text = ast.unparse(node)
        spellings = [text, text.removesuffix("()")]
        dotted = dotted_name(called)
        if dotted is not None and (origin := self.package.origin(frame.module, dotted)):
            spellings.append(origin)
        for spelling in spellings:
            if spelling in self.predicates:
                return self.device(self.arch in self.predicates[spelling])
        return None

    def _name(self, name: str, frame: Frame) -> Value:
        if name in frame.hidden:
            return Opaque(name, hides(name))
        if name in frame.values:
            return frame.values[name]
        if name in frame.locals:
            # What it is bound to stands outside the lambda that the name may stand in.
            outer = Frame(frame.module, frame.values, frame.locals)
            bound = partial(self._bound, name, frame.locals[name], outer)
            if frame.values and not self.handing_only(frame):
                return bound()
            return self.remembered((frame.locals[name], name, bool(frame.values)), bound)
        found = self.package.lookup(frame.module, name)
        if found is None:
            return Opaque(name, hides(name))
        return self.found(name, found)

    def found(self, name: str, found: Found) -> Value:
        """The value of a module's name."""
        bound = partial(self._bound, found.name, found.bindings, Frame(found.module))
        if self.package.module(found.module.path) is not found.module:
            return bound()
        value = self.remembered((found.module, found.name), bound)
        # An alias that is not followed is called what it is called here.
        if isinstance(value, Opaque) and value.text == found.name:
            return replace(value, text=name)
        return value

    def remembered(self, key: Hashable, work_out: Callable[[], Value]) -> Value:
        """A value that is worked out once, and whether that asked the device."""
        if key not in self._known:
            before, self.asked = self.asked, False
            value = work_out()
            self._known[key] = (value, self.asked)
            self.asked = self.asked or before
        value, asked = self._known[key]
        self.asked = self.asked or asked
        return value

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        if len(bindings) != 1:
            smells = hides(name) or any(
                self.package.binding_smells(frame.module, b) for b in bindings
            )
            return Opaque(name, f"{name} is bound more than once" if smells else "")
        match bindings[0]:
            case Assigned(value=value):
                if isinstance(value, ast.Constant):
                    return Const(value.value)
                first = self._followed(name, value, frame)
                return Opaque(name, hides(name)) if self.is_changed(name, first, frame) else first
            case Element(value=value, index=index):
                whole = self._followed(name, value, frame)
                return lift(lambda v: _element(name, v[0], index), [whole])
            case Defined(node=node):
                return Callee(node, Frame(frame.module))
            case Imported() as imported:
                if self.package.is_module(imported):
                    return Opaque(name)
                found = self.package.follow(imported)
                return self.found(name, found) if found else Opaque(name, hides(name))
            case Other():
                return Opaque(name, hides(name))

    def _followed(self, name: str, value: ast.expr, frame: Frame) -> Value:
        """What an alias stands for: evaluated if it may test the architecture, else its name."""
        literal = self.is_display(value)
        plain = literal or isinstance(value, ast.Lambda) or is_plain(value)
        if not (plain or self.package.smells(frame.module, value) or self._local(value, frame)):
            return Opaque(name)
        if value in self._active:
            return Opaque(name, hides(name))  # bound to something made of itself
        if self.depth >= self.deepest:
            return Opaque(name, f"{name} leads too far")
        self.depth += 1
        self._active.add(value)
        try:
            found = self.value(value, frame)
        finally:
            self.depth -= 1
            self._active.discard(value)
        if literal and isinstance(found, Opaque):
            return replace(found, text=name)
        return found

    def _local(self, value: ast.expr, frame: Frame) -> bool:
        return any(map(frame.is_local, self.package.once(names_in, value)))

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        dotted = dotted_name(node)
        if dotted is not None and not frame.is_local(dotted[0]):
            found = self.module_attribute(dotted, frame)
            if found is not None:
                return found
        return lift(lambda v: self._member(v[0], node.attr), [self.value(node.value, frame)])

    def module_attribute(self, dotted: Sequence[str], frame: Frame) -> Value | None:
        """A name of another module of the distribution: ``utils.is_sm100_supported``."""
        found = self.package.member(frame.module, dotted)
        return self.found(dotted[-1], found) if found is not None else None

    def whole(self, node: ast.expr, frame: Frame) -> Value:
        """An expression that is not worked out, with what is known put in."""
        names = self.package.once(names_in, node)
        if names.isdisjoint(frame.values):
            text = self.package.once(ast.unparse, node)
        else:
            text = self.with_known(node, frame)
        for name in sorted(names - self.package.once(bound_in, node)):
            if frame.is_local(name) and of_device(self._name(name, frame)):
                return Opaque(text, _not_followed(text))
        smells = self.package.smells(frame.module, node)
        return Opaque(text, _not_followed(text) if smells else "")

    def with_known(self, node: ast.expr, frame: Frame) -> str:
        """The text of an expression with what is known put in."""
        names = self.package.once(names_in, node)
        known = {name: value for name, value in frame.values.items() if name in names}
        texts = {name: _told_short(name, text_of(value)) for name, value in known.items()}
        try:
            return ast.unparse(_Renamed(texts).visit(copy.deepcopy(node)))
        except ValueError:  # before Python 3.12 an f-string holds no text that has a backslash
            return ast.unparse(node)

    def opaque(self, text: str, *, parts: Sequence[Value], name: str = "") -> Opaque:
        """A value that is not known, and why it may hide a test of the architecture."""
        for part in parts:
            if why := reason(part):
                return Opaque(text, why)
        if any(map(of_device, parts)):
            return Opaque(text, _not_followed(text))
        return Opaque(text, hides(name, of=text))


class _Renamed(ast.NodeTransformer):
    """Put texts in for names."""

    def __init__(self, texts: Mapping[str, str]):
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._texts.get(node.id, node.id), ctx=node.ctx)


def _told_short(name: str, text: str) -> str:
    """The text of a value, or a name for it where it is that of a whole table: writing takes its time."""
    return text if len(text) <= _LONG else f"{name}_{crc32(text.encode()):08x}"


def _not_followed(text: str) -> str:
    return f"{text} depends on the architecture in a way that is not followed"


def _element(name: str, value: Value, index: int) -> Value:
    match value:
        case Const(value=tuple() | list() as items, device=device) if index < len(items):
            return Const(items[index], device)
        case Const(value=None):
            return Raises()
        case Opaque(held=Held(items=held)) if held and index in held:
            return held[index]
    return Opaque(name, _not_followed(name) if of_device(value) else "")
