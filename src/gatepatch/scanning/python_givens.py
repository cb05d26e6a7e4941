"""What a name may be that a loop binds or a function is handed, and an entry that is picked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from gatepatch.arch import TABLE
from gatepatch.boolean import BUDGET, TooManyStepsError, atom
from gatepatch.gates.python_operations import COMPARE
from gatepatch.gates.python_scope import (
    Assigned,
    Binding,
    Defined,
    Element,
    FunctionNode,
    Other,
    hides,
)
from gatepatch.gates.python_values import (
    Choice,
    Const,
    Frame,
    Held,
    Opaque,
    Value,
    from_bool,
    leaves,
    reason,
    text_of,
)
from gatepatch.scanning.python_flow import functions_around, parameters
from gatepatch.scanning.python_objects import Objects, locals_of
from gatepatch.scanning.python_shapes import MAKERS
from gatepatch.scanning.python_sites import (
    TAKEN,
    CallSite,
    Loop,
    argument_of,
    calls_in,
    kinds_in,
    loops_in,
    position_of,
    roots_of,
)

_MOST = 5_000
"""How many entries are gone through."""

_DEEPEST = 3
"""How many calls are gone up, and how many aliases are gone through."""

_HANDY = 16
"""How many lines a function has that hands out an entry."""

_PART = 150
"""How many expressions are evaluated to try again."""

_TRIES = 3
"""On how many architectures a comparison is tried again before that is given up."""

_TAKEN_APART = re.compile(r"\}(?:\[|\.get\()| for \w+ in |^(\w+): \1 depends on ")
"""What a reason speaks of that may be told with what calls may give."""

_COPIERS = MAKERS - {"dict", "range"}
"""Functions that make a collection of the elements that they are given."""

LONG = 400
"""How much is shown of a part of a condition that is not evaluated."""


def _options(value: Value) -> Sequence[Any]:
    """The constants that a value may be; none where that is not known."""
    match value:
        case Const(value=constant):
            return (constant,)
        case Opaque(held=Held(among=among)):
            return among
        case Choice():
            every = [_options(leaf) for leaf in leaves(value)]
            return [part for one in every for part in one] if all(every) else ()
    return ()


def _entries(container: Any, named: re.Pattern[str] | None = None) -> Sequence[Any]:
    """What stands in a collection, under the keys of a form if there is one."""
    match container:
        case dict() if named:
            return [container[key] for key in container if named.fullmatch(str(key))]
        case dict():
            return [*container.values()]
        case list() | tuple():
            return container
    return ()


def _elements(container: Any) -> Sequence[Any]:
    return [*container] if isinstance(container, list | tuple | dict | frozenset) else ()


def _named_like(key: Value) -> re.Pattern[str] | None:
    """The form of a key of which only parts are known: an f-string's."""
    if not isinstance(key, Opaque) or not key.text.startswith(("f'", 'f"')):
        return None
    try:
        node = ast.parse(key.text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
    return re.compile("".join(".*" if part is None else re.escape(str(part)) for part in parts))


def _at(container: Any, key: Any) -> Iterator[Any]:
    """What stands under a key, if there is something: elsewhere it raises."""
    try:
        yield container[key]
    except (TypeError, LookupError):
        return


class Givens(Objects):
    """An evaluator that knows what a value may be which is one of a constant table's.

    Whether an architecture is in it is told where that is the same for all that it may be; else
    it depends on which of them it is.
    """

    _up = 0

    def tells(self, node: FunctionNode | ast.Lambda) -> bool:
        """Whether a function that tests nothing is looked into: one that hands out an entry, too."""
        return (self.handing and (_is_handy(node) or _joins(node))) or super().tells(node)

    def handing_only(self, frame: Frame) -> bool:
        """Whether nothing is known in a frame but that calls are looked into once more."""
        return self.handing and frame.values.keys() == TAKEN

    untold: dict[ast.expr, int]
    """On how many architectures it did not help to try a comparison again: less than 0 where it did on one."""

    def _item(self, base: Value, index: Value, text: str) -> Value:
        value = super()._item(base, index, text)
        if not isinstance(value, Opaque) or value.held is not None:
            return value
        options = _options(base)
        if options and reason(index):
            keys = tuple(key for one in options if isinstance(one, dict) for key in one)
            index = self.beside(index, Const(keys), ast.In())
        if isinstance(index, Const):
            value = self._one_of(value, [part for one in options for part in _at(one, index.value)])
            # It is one of these, whichever record it is of.
            told = value.held is not None and index.device and not reason(base)
            return replace(value, unknown="") if told else value
        named = _named_like(index)
        return self._one_of(value, [part for one in options for part in _entries(one, named)])

    def _one_of(self, value: Opaque, options: Sequence[Any]) -> Opaque:
        if not options or len(options) > _MOST:
            return value
        return replace(value, held=Held(among=tuple(options)))

    def _picked(self, table: Value, key: Value, default: Value) -> Sequence[Any]:
        """What ``table.get(key, default)`` may be."""
        tables = [one for one in _options(table) if isinstance(one, dict)]
        if not tables or not isinstance(default, Const):
            return ()
        if isinstance(key, Const):
            return [one.get(key.value, default.value) for one in tables]
        return [*(part for one in tables for part in one.values()), default.value]

    def _called_again(self, node: ast.Call, value: Value, frame: Frame) -> Value:
        """What a call that is not told may give: an entry that is got, or what a tuple is made of."""
        if not self.handing or not isinstance(value, Opaque) or value.held:
            return value
        match node:
            case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[key, *rest]):
                default = self.value(rest[0], frame) if rest else Const(None)
                options = self._picked(self.value(base, frame), self.value(key, frame), default)
                return self._one_of(value, options)
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _COPIERS:
                every = _options(self.value(inner, frame))
                return self._one_of(value, [one for one in every if one is not None])
        return value

    def beside(self, value: Value, other: Value, op: ast.cmpop) -> Value:
        """A value that is not followed, in the unit of the constant that it is compared with."""
        raise NotImplementedError

    def among(self, op: ast.cmpop, left: Value, right: Value) -> Value | None:
        """A comparison with one of several constants: where they do not agree, it depends on which."""
        if isinstance(op, ast.Eq | ast.NotEq) and isinstance(left, Opaque) and left.held:
            left, right = (left, right) if _is_among(right) else (right, left)
        if not isinstance(right, Opaque) or right.held is None or not right.held.among:
            return None
        options = right.held.among
        whole = options
        if isinstance(op, ast.In | ast.NotIn):
            if not all(isinstance(one, list | tuple | frozenset | dict) for one in options):
                return None
            whole = tuple(dict.fromkeys(part for one in options for part in one if _is_key(part)))
        elif not isinstance(op, ast.Eq | ast.NotEq):
            return None
        key = self.beside(left, Const(whole), ast.In())
        if not isinstance(key, Const) or not key.device:
            return None
        if isinstance(op, ast.In | ast.NotIn):
            found = {key.value in one for one in options}
        else:
            found = {key.value == one for one in options}
        if len(found) != 1:
            if right.unknown:
                return None
            self.asked = True
            text = f"{text_of(key)} {COMPARE[type(op)][0]} {right.text}"
            return from_bool(atom(text[:LONG]), device=True)
        return self.device(found.pop() is isinstance(op, ast.In | ast.Eq))

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        value = super()._compare(node, frame)
        if self.handing or not hasattr(node, "lineno"):
            return value
        asks = isinstance(node.ops[0], ast.Is | ast.IsNot) and _is_got(node.left, frame)
        if not reason(self.value(node.left, frame) if asks else value):
            return value
        tries = self.untold.get(node, 0)
        if tries >= _TRIES:
            return value
        found = self._once_more(node, frame) if self.depth < self.deepest else None
        if found is None or reason(found) or (asks and not isinstance(found, Const)):
            self.untold[node] = tries + 1
            return value
        self.untold[node] = -len(TABLE)
        return found

    def _once_more(self, node: ast.Compare, frame: Frame) -> Value | None:
        """A comparison with what its names may be; None where that is not known."""
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[other]):
                sides = [other]
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[other]):
                sides = [left, other]
            case ast.Compare(left=ast.Name() as left, ops=[ast.Is() | ast.IsNot()]):
                sides = [left]
            case _:
                return None
        with self._trying():
            # With something bound, what was worked out with less is not taken up again.
            names = frozenset[str]().union(*(self._leading(side, frame) for side in sides))
            if not names:
                return None
            inner = self._framed(node, names, frame)
            if names >= TAKEN:
                inner = inner.bound("()", Const(None))
            return None if inner is frame else super()._compare(node, inner)
        return None

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Look into what calls may give, for a few steps that do not count; end where they are used up."""
        before, longest, left_over = self.steps, self.longest, BUDGET.left
        self.longest = before + _PART
        self.handing = True
        try:
            with suppress(TooManyStepsError):
                yield
        finally:
            self.steps, self.longest, BUDGET.left = before, longest, left_over
            self.handing = False

    def _framed(self, node: ast.expr, names: frozenset[str], frame: Frame) -> Frame:
        """A frame with what the names may be that an expression is taken out of."""
        for name in sorted(names - TAKEN):
            value = self._of_name(name, node, frame)
            if value is not None:
                frame = frame.bound(name, value)
        return frame

    def handed(self, node: ast.expr, frame: Frame, untold: Sequence[str]) -> Frame:
        """A frame with the tables that a condition's function is handed by all of its callers in the file.

        Args:
            node: The condition.
            frame: Where it stands.
            untold: What of it is not known.
        """
        with self._trying():
            names = self._parameters(node, frame)
            for name in sorted(names - TAKEN):
                if not any(f"{name}[" in text or f"{name}.get(" in text for text in untold):
                    continue
                value = self._of_name(name, node, frame)
                if value is not None and all(map(_is_table, _options(value))):
                    frame = frame.bound(name, value)
            if names >= TAKEN and any(map(_TAKEN_APART.search, untold)):
                frame = frame.bound("()", Const(None))
        return frame

    def _parameters(self, node: ast.expr, frame: Frame) -> frozenset[str]:
        """The parameters that the values are taken out of that a condition names."""
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Call)]
        return frozenset[str]().union(*(self._leading(part, frame) for part in names))

    def _leading(self, node: ast.expr, frame: Frame) -> frozenset[str]:
        """The parameters and loop variables that a value is taken out of."""
        found: set[str] = set()
        seen: set[str] = set()
        level = [*self.package.once(roots_of, node)]
        for _ in range(_DEEPEST):
            following: list[str] = []
            for name in level:
                if name in seen or name in frame.values:
                    continue
                turns = frame.locals.get(name) == (Other(),)
                if hides(name) and not (turns and name not in frame.hidden):
                    continue
                seen.add(name)
                if name in frame.hidden or name in TAKEN or turns:
                    found.add(name)
                    continue
                match frame.locals.get(name):
                    case (Assigned(), Assigned(), *_) as bound if all(map(_is_picked, bound)):
                        found.add(name)
                    case (Assigned(value=value) | Element(value=value),):
                        following += self.package.once(roots_of, value)
            level = following
        return frozenset(found)

    def _of_name(self, name: str, node: ast.expr, frame: Frame) -> Value | None:
        module, line = frame.module, node.lineno
        for function in reversed([*functions_around(module.tree.body, line)]):
            for loop in reversed(self.package.once(loops_in, function)):
                if loop.first <= line <= loop.last:
                    position = position_of(loop.target, name)
                    if position is not None:
                        turning = self._turning(name, loop, position, frame)
                        return self._kept(name, turning, function, loop, line)
            if name in self.package.once(parameters, function):
                # What is named as an architecture may be handed over by other files, too.
                return None if hides(name) else self._handed(name, function, frame)
        match frame.locals.get(name):
            case (Assigned(), Assigned(), *_) as bound if all(map(_is_picked, bound)):
                return self._one_bound(name, bound, frame)
        return None

    def _one_bound(self, name: str, bound: Sequence[Binding], frame: Frame) -> Value | None:
        """What a name may be that is bound more than once."""
        options: list[Any] = []
        if self._up >= _DEEPEST:
            return None
        self._up += 1
        try:
            for one in bound:
                if not isinstance(one, Assigned):
                    return None
                inner = self._framed(one.value, self._leading(one.value, frame), frame)
                for leaf in leaves(self.value(one.value, inner)):
                    if not (found := _options(leaf)) or (isinstance(leaf, Const) and leaf.device):
                        return None
                    options += found
        finally:
            self._up -= 1
        return self._one_of(Opaque(name), options)

    def _turning(
        self, name: str, loop: Loop, position: Sequence[int], frame: Frame
    ) -> Value | None:
        """What a loop's variable may be."""
        match loop.source:
            case ast.Call(func=ast.Attribute(value=base, attr="items"), args=[], keywords=[]):
                if not position:
                    return None
                take = _entries if position[0] else _elements
                position = position[1:]
            case ast.Call(func=ast.Attribute(value=base, attr="values"), args=[], keywords=[]):
                take = _entries
            case ast.Call(func=ast.Name(id="enumerate"), args=[base]):
                if position[:1] != (1,):
                    return None
                take, position = _elements, position[1:]
            case base:
                take = _elements
        options = [part for one in _options(self.value(base, frame)) for part in take(one)]
        for index in position:
            options = [part for one in options for part in _at(one, index)]
        found = self._one_of(Opaque(name), options)
        return found if found.held else None

    def _kept(
        self, name: str, value: Value | None, function: FunctionNode, loop: Loop, line: int
    ) -> Value | None:
        """What a loop's variable may be on a line that some turns do not come to: ``if x["kind"] == "a":``."""
        if value is None or not (asked := self.package.once(kinds_in, function)):
            return value
        options = list(_options(value))
        for one in asked:
            within = max(one.first, loop.first) <= line <= min(one.last, loop.last)
            if one.name == name and within and all(isinstance(o, dict) for o in options):
                options = [o for o in options if o.get(one.key) == one.value]
        match options:
            case []:
                return value
            case [one]:
                return Const(one)
        return self._one_of(Opaque(name), options)

    def _handed(self, name: str, function: FunctionNode, frame: Frame) -> Value | None:
        """What a function's parameter may be, as all of its calls in its file tell."""
        module = frame.module
        match module.bindings.get(function.name):
            case [Defined(node=node)] if node is function and self._up < _DEEPEST:
                pass
            case _:
                return None
        calls = self.package.once(calls_in, module.tree).get(function.name, [])
        options: dict[str, Any] = {}
        self._up += 1
        try:
            for call in calls:
                asked = argument_of(call.node, function, name)
                for leaf in leaves(self._argument_value(asked, call, frame)):
                    found = _options(leaf)
                    if not found or (isinstance(leaf, Const) and leaf.device):
                        return None
                    options.update((repr(one), one) for one in found)
        finally:
            self._up -= 1
        match [*options.values()]:
            case []:
                return None
            case [one]:
                return Const(one)
            case several:
                return self._one_of(Opaque(name), several)

    def _argument_value(self, node: ast.expr | None, call: CallSite, frame: Frame) -> Value:
        if node is None:
            return Opaque("")
        place = Frame(frame.module, {}, locals_of(self.package, frame.module, call.within))
        return self.value(node, self._framed(node, self._leading(node, place), place))


def _is_among(value: Value) -> bool:
    """Whether a value is one of several constants."""
    return isinstance(value, Opaque) and value.held is not None and bool(value.held.among)


def _is_handy(node: FunctionNode | ast.Lambda) -> bool:
    """Whether a function is short, or does nothing but hand something out, however much it is told of."""
    match node:
        case ast.FunctionDef(body=[ast.Expr(value=ast.Constant()), ast.Return()]):
            return True
    return (node.end_lineno or node.lineno) - node.lineno < _HANDY


def _joins(node: FunctionNode | ast.Lambda) -> bool:
    """Whether a function does nothing but join conditions."""
    match node:
        case ast.FunctionDef(body=[*_, ast.Return(value=ast.BoolOp())]) if len(node.body) <= 2:
            return True
    return False


def _is_got(node: ast.expr, frame: Frame) -> bool:
    """Whether an expression is a local name that is bound to what a table gives."""
    if not isinstance(node, ast.Name) or node.id in frame.values:
        return False
    match frame.locals.get(node.id):
        case (Assigned(value=ast.Call(func=ast.Attribute(attr="get"))),):
            return True
    return False


def _is_picked(bound: Binding) -> bool:
    """Whether a name is bound to an entry of something."""
    match bound:
        case Assigned(value=ast.Subscript() | ast.Call(func=ast.Attribute(attr="get"))):
            return True
    return False


def _is_table(constant: object) -> bool:
    """Whether something is looked up in, if it is given: what else is handed over, others may choose."""
    return constant is None or isinstance(constant, dict)


def _is_key(part: object) -> bool:
    return isinstance(part, str | int | tuple)
