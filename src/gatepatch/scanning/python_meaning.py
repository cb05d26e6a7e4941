"""What a Python condition means to a scan: as for a proof, and by the names where that ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from gatepatch.arch import Arch
from gatepatch.boolean import Bool, and_, atom, not_
from gatepatch.gates import python_calls
from gatepatch.gates.python_evaluator import Evaluator
from gatepatch.gates.python_scope import (
    Assigned,
    Binding,
    Element,
    Found,
    FunctionNode,
    Module,
    Package,
    dotted_name,
    name_of,
)
from gatepatch.gates.python_values import (
    Choice,
    Const,
    Frame,
    Opaque,
    Properties,
    Raises,
    Value,
    from_bool,
    leaves,
    lift,
    of_device,
    reason,
    text_of,
    truth,
)
from gatepatch.scanning import names
from gatepatch.scanning.alike import Alike, found_in
from gatepatch.scanning.python_givens import LONG
from gatepatch.scanning.python_lazy import lazily
from gatepatch.scanning.python_mappings import items_of, picked
from gatepatch.scanning.python_named import CAPABILITY, Named, is_named, member_of, number_of
from gatepatch.scanning.python_shapes import literal
from gatepatch.scanning.python_tuples import entry_of, rows
from gatepatch.scanning.speaking import asks_of_one, speaks

_PLATFORM: Mapping[str, Callable[[Arch, Arch], bool]] = {
    "has_device_capability": lambda arch, asked: arch >= asked,
    "is_device_capability": lambda arch, asked: arch == asked,
    "is_device_capability_family": lambda arch, asked: arch.major == asked.major,
}
"""Methods of vLLM's platforms, and of what was made after them: the number is 100 or (10, 0)."""

_LOOKED = frozenset({"get", "getattr", "is_family_of"})

_TRANSPARENT = frozenset({"const_expr", "constexpr", "bool", "dict", "MappingProxyType"})
"""Functions whose truth, or what they hold, is that of what they are given."""

_CACHED = re.compile(r"(?i)\w*cached?(?:_\w+)?|\w*once\w*|staticmethod|classmethod|property")
"""Decorators after which a function returns what its body says."""

_OF_TENSORS = frozenset({"shape", "dtype", "ndim"})
"""Attributes that say nothing of an architecture, whatever it was that made the tensor."""

_ABSENT = object()
"""What a table gives for what is not in it."""

_CUDA_DEVICE = re.compile(r"torch\.device\(f?['\"]cuda\b")

_PLAIN = (ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.JoinedStr)


def _is_followed(node: FunctionNode | ast.Lambda) -> bool:
    """Whether a function returns what its body says, as far as its decorators' names tell."""
    return python_calls.runs_through(node) and all(
        _CACHED.fullmatch(name) for name in python_calls.decorators(node)
    )


def _is_dict(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, dict)


def _is_of_several(node: ast.expr, frame: Frame) -> bool:
    """Whether it is asked if one of several values that a call gave at once is None."""
    match node:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()]):
            return any(isinstance(one, Element) for one in frame.locals.get(name, ()))
    return False


@lru_cache(maxsize=1 << 8)
def _keywords(text: str) -> Mapping[str, Any]:
    """The constants that a call is given by keyword."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return {}
    # Not by literal_eval: each call of it leaves a cycle behind, and no garbage is collected here.
    given = node.keywords if isinstance(node, ast.Call) else ()
    told = {keyword.arg or "": literal(keyword.value) for keyword in given}
    return {name: constant.value for name, constant in told.items() if constant}


def _entry(table: Value, asked: ast.expr) -> frozenset[Arch] | None:
    """The architectures of an entry such as ``sm90`` in a table of capabilities that was handed
    over; None for any other."""
    match table, asked:
        case Opaque(unknown=str(why)), ast.Constant(value=str(key)) if (
            why and "capabilities" in names.last_name(table.text).lower()
        ):
            return names.in_key(key)
    return None


class Modules(Package):
    """The modules of one distribution, not looked into as far as for a proof."""

    reach: ClassVar[int] = 2

    def lazily(self, module: Module, name: str, depth: int) -> Found | None:
        """What a module imports when it is first asked for a name that it does not bind."""
        return lazily(self, module, name, depth)


class ByName(Named):
    """An evaluator that takes what it cannot follow for what its name says.

    ``named`` is set where that was done. What it works out without asking the device is shared
    with the evaluators of the other architectures. It follows less far than a proof does: there are thousands
    of conditions to read, and a predicate is a few calls away.
    """

    deepest: ClassVar[int] = 6
    longest: int = 400
    cases: ClassVar[int] = 1_500
    tallest: int = 30
    """How many lines a predicate may have."""
    is_followed = staticmethod(_is_followed)

    def __init__(
        self,
        package: Package,
        alike: Alike,
        index: int,
        shared: dict[Hashable, Value],
        untold: dict[ast.expr, int],
    ):
        super().__init__(package, {}, alike.watched(index))
        self._alike = alike
        self._index = index
        self._shared = shared
        self.untold = untold
        self.named = False
        self.raised = False
        self.aliases: frozenset[str] = frozenset()
        self._named_keys: set[Hashable] = set()
        self._told_alike: dict[Hashable, int] = {}

    def is_one_of(self, archs: frozenset[Arch]) -> bool:
        """Whether the architecture is one of some."""
        return self._alike.holds(self._index, archs)

    def follows(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
        """Whether a function that is called is looked into: one that is as short as a predicate."""
        return (node.end_lineno or node.lineno) - node.lineno < self.tallest

    def is_changed(self, name: str, first: Value, frame: Frame) -> bool:
        """Whether a collection is another one later: read as it was first, as a person would."""
        return False

    def remembered(self, key: Hashable, work_out: Callable[[], Value]) -> Value:
        """A value that is worked out once, and whether that was by its name."""
        if (known := self._shared.get(key)) is not None:
            return known
        before, self.named = self.named, key in self._named_keys
        left, self._alike.left = self._alike.left, self._told_alike.get(key, self._alike.every)
        try:
            value = super().remembered(key, work_out)
            self._told_alike[key] = self._alike.left
        finally:
            self._alike.left &= left
        if not self._known[key][1] and self._told_alike[key] == self._alike.every:
            self._shared[key] = value
        if self.named:
            self._named_keys.add(key)
        self.named = self.named or before
        return value

    def truth_of(self, node: ast.expr, frame: Frame) -> Bool:
        """The truth of an expression."""
        if isinstance(node, ast.BoolOp | ast.Constant) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            function = super().truth_of(node, frame)
            return True if self.raised and self._is_told_before(node, frame) else function
        if self.depth == 0 and not (
            speaks(node, self.aliases)
            or asks_of_one(node, self.aliases)
            or _is_of_several(node, frame)
            or self.is_unset_test(node, frame)
        ):
            return atom(self.package.once(ast.unparse, node)[:LONG])  # a part that is of no concern
        value = self._predicated(self.value(node, frame))
        if isinstance(node, ast.Name) and reason(value):
            chain = self._chain(node.id, frame)
            if chain is not None and chain not in self._active and self.depth < self.deepest:
                return self._truth_of_chain(chain, frame)
        if isinstance(node, ast.Name | ast.Attribute) and is_named(value):
            return atom(text_of(value))  # whether it was given at all
        if isinstance(value, Opaque) and value.held and value.held.items:
            return True
        self.raised = self.raised or (self.depth == 0 and isinstance(value, Raises))
        return truth(value)

    def _is_told_before(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a part of ``a or b`` raises: one before it must be true, for there is no other outcome."""
        match node:
            case ast.BoolOp(op=ast.Or(), values=parts):
                plain = [part for part in parts if isinstance(part, ast.Call | ast.Compare)]
                return any(isinstance(self.value(part, frame), Raises) for part in plain)
        return False

    def _chain(self, name: str, frame: Frame) -> ast.BoolOp | None:
        """What a function's name is bound to that stands for ``a and b``: None for all else."""
        if name in frame.values or name in frame.hidden:
            return None
        match frame.locals.get(name):
            case (Assigned(value=ast.BoolOp() as chain),):
                return chain
        return None

    def _truth_of_chain(self, chain: ast.BoolOp, frame: Frame) -> Bool:
        """Its truth, where its value is one of too many: only one of them matters here."""
        self.depth += 1
        self._active.add(chain)
        try:
            return self.truth_of(chain, Frame(frame.module, frame.values, frame.locals))
        finally:
            self.depth -= 1
            self._active.discard(chain)

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        if isinstance(node, _PLAIN):  # most of them: no need to ask what this reads beside a proof
            return Evaluator._value(self, node, frame)
        if isinstance(node, ast.Call):
            func = node.func
            name = name_of(func)
            if name in CAPABILITY:
                return self.device((self.arch.major, self.arch.minor))
            if name in _PLATFORM and node.args:
                number = number_of(self.value(node.args[0], frame))
                if number is not None:
                    return self._by_name(_PLATFORM[name](self.arch, number))
            if name == "hasattr" and node.args and self.value(node.args[0], frame) == Properties():
                return Const(True)
            if name in _LOOKED and (found := self._looked_up(name, node, frame)) is not None:
                return found
            if name in _TRANSPARENT and len(node.args) == 1:
                return self.value(node.args[0], frame)
            found = self._told(node, frame) or self._called_predicate(node, frame)
            if found is not None:
                return found
            value = self._predicated(super()._value(node, frame))
            if name in ("any", "all") and reason(value):
                return self.over_free(node, frame) or value
            return self._called_again(node, value, frame)
        return self._predicated(super()._value(node, frame))

    def _member(self, base: Value, name: str) -> Value:
        if name in _OF_TENSORS and isinstance(base, Opaque) and base.held is None:
            return Opaque(f"{base.text}.{name}")
        if name == "type" and isinstance(base, Opaque) and _CUDA_DEVICE.match(base.text):
            return Const("cuda")
        told = isinstance(base, Opaque) and (base.unknown or names.is_number(name))
        if told and f"{name}=" in text_of(base):
            # A field of a record, as it was made.
            made = _keywords(text_of(base))
            if name in made:
                return self.device(made[name])
        return super()._member(base, name)

    def _called_predicate(self, node: ast.Call, frame: Frame) -> Value | None:
        """A predicate of an object that is not known, by its name; None for another call."""
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
                archs = names.predicate(name)
                if archs is not None and isinstance(self.value(node.func, frame), Const):
                    return self._by_name(self.is_one_of(archs))
        return None

    def _looked_up(self, name: str, node: ast.Call, frame: Frame) -> Value | None:
        """What a table gives for an architecture, or an enumeration says of one; None otherwise."""
        match node:
            case ast.Call(args=[base, ast.Constant(value=str(attribute)), _]) if name == "getattr":
                dotted = dotted_name(base)
                if dotted is not None and not frame.is_local(dotted[0]):
                    there = self.module_attribute((*dotted, attribute), frame)
                    if isinstance(there, Const):
                        return there
                if (properties := self.value(base, frame)) == Properties():
                    return self._member(properties, attribute)
                found = Opaque(f"{ast.unparse(base)}.{attribute}")
                return found if member_of(found) else None
            case ast.Call(func=ast.Attribute(), args=[asked]) if name == "is_family_of":
                member = member_of(self.value(asked, frame))
                if member is None:
                    return None
                major, minor = divmod(member[0], 10)
                return self._by_name(self.arch.major == major and self.arch.minor >= minor)
            case ast.Call(func=ast.Attribute(value=base), args=[asked, *rest], keywords=[]):
                table = self.value(base, frame)
                if (archs := _entry(table, asked)) is not None:
                    return self._by_name(self.is_one_of(archs))
                if (items := items_of(table)) is not None:
                    key = self.beside(self.value(asked, frame), Const(tuple(items)), ast.In())
                    default = self.value(rest[0], frame) if rest else Const(None)
                    return picked(self, items, key, default)
                if isinstance(table, Choice) and all(map(_is_dict, leaves(table))):
                    if not reason(self.value(asked, frame)):
                        return None
                    parts = [self.value(part, frame) for part in node.args]
                    return lift(
                        lambda v: (
                            self._got(v[0], node.args, frame)
                            or python_calls.method(self, v[0], name, parts)
                        ),
                        [table],
                    )
                return self._got(table, node.args, frame)
        return None

    def _got(self, table: Value, args: Sequence[ast.expr], frame: Frame) -> Value | None:
        """What a table gives for an architecture; None where that is not told."""
        asked, *rest = args
        if not isinstance(table, Const) or not isinstance(table.value, dict):
            return None
        if not table.value:  # a cache, to be filled
            return self.value(rest[0], frame) if rest else Const(None)
        key = self.beside(self.value(asked, frame), table, ast.In())
        default = self.value(rest[0], frame) if rest else Const(None)
        if (known := rows(self, key, table)) is not None:
            self.asked = True
            return entry_of(table, key, known, default)
        if not isinstance(key, Const) or not key.device:
            return None
        self.asked = True
        there = found_in(table.value, key.value, _ABSENT)
        if there is not _ABSENT:
            return self.device(there)
        return self.device(default.value) if isinstance(default, Const) else default

    def _item(self, base: Value, index: Value, text: str) -> Value:
        items = items_of(base)
        table = Const(tuple(items)) if items is not None else base
        if isinstance(table, Const) and isinstance(base, Opaque | Const) and reason(index):
            whole = isinstance(table.value, dict) or items is not None
            key = self.beside(index, table, ast.In()) if whole else index
            if isinstance(key, Const) and key.device:
                if key.value not in (table.value if items is None else items):
                    self.asked = True
                    return Raises()
                index = key
        return super()._item(base, index, text)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        match node:
            case ast.Compare(
                left=ast.Tuple(elts=mine), ops=[op], comparators=[ast.Tuple(elts=others)]
            ) if isinstance(op, ast.Eq | ast.NotEq) and len(mine) == len(others):
                # (major, minor) == (10, n): what n is matters for major 10 alone.
                pairs = [
                    ast.Compare(left=other, ops=[ast.Eq()], comparators=[one])
                    for one, other in zip(mine, others, strict=True)
                ]
                values = [super(ByName, self)._compare(pair, frame) for pair in pairs]
                same = and_(*map(truth, values))
                function = same if isinstance(op, ast.Eq) else not_(same)
                return from_bool(function, device=any(map(of_device, values)))
        return super()._compare(node, frame)

    def _bound(self, name: str, bindings: tuple[Binding, ...], frame: Frame) -> Value:
        if len(bindings) > 1 and all(isinstance(one, Assigned) for one in bindings):
            told = [
                self.package.once(ast.unparse, b.value) for b in bindings if hasattr(b, "value")
            ]
            if len(set(told)) == 1 and "(" in told[0]:
                # One call, made in several branches.
                return super()._bound(name, bindings[:1], frame)
        return super()._bound(name, bindings, frame)
