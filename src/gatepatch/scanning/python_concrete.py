"""Tables that a module builds out of constants: worked out with constants alone, or not at all.

A registry is often written in short and expanded by a function or a comprehension. Where all that this takes is
constants, what comes of it is a constant as well, the same on every architecture.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol

from gatepatch.gates.python_calls import METHODS
from gatepatch.gates.python_operations import BINARY, COMPARE, is_small
from gatepatch.gates.python_scope import Assigned, Defined, Found, Module, Package, dotted_name

_MOST = 2_000_000
"""How many characters of data are read."""

TABLE = 100_000
"""How many expressions are worked out for one table of a module."""

_BUILTINS: Mapping[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        *(abs, all, any, bool, dict, enumerate, float, frozenset, int, len, list, max, min, range),
        *(reversed, round, set, sorted, str, sum, tuple, zip),
    )
}
_PURE: Mapping[type, frozenset[str]] = {
    **METHODS,
    str: METHODS[str] | {"rsplit", "partition", "rpartition", "format"},
    dict: METHODS[dict] | {"copy"},
    list: METHODS[list] | {"copy"},
    set: METHODS[frozenset] | {"copy"},
    PurePosixPath: frozenset(["with_name", "with_suffix", "joinpath"]),
}
_CHANGES: Mapping[type, frozenset[str]] = {
    dict: frozenset(["update", "setdefault", "pop"]),
    list: frozenset(["append", "extend", "insert", "pop", "sort"]),
    set: frozenset(["add", "update", "discard"]),
}
_KINDS: Mapping[str, type] = {
    kind.__name__: kind for kind in (str, int, float, bool, dict, list, tuple)
}
_MADE = (dict, list, set)


def _kinds(node: ast.expr) -> tuple[type, ...]:
    """The types that a value is asked to be of."""
    match node:
        case ast.Name(id=name) if name in _KINDS:
            return (_KINDS[name],)
        case ast.Tuple(elts=parts):
            return tuple(kind for part in parts for kind in _kinds(part))
    raise UntoldError


class UntoldError(Exception):
    """Something that is not made of constants alone, or takes too long."""


class RaisedError(Exception):
    """The code raises an exception."""


class Functions(Protocol):
    """What carries out a function's statements."""

    def __call__(
        self, concrete: Concrete, found: Found, args: Sequence[Any], named: Mapping[str, Any]
    ) -> Any: ...


class Concrete:
    """Works out expressions of constants.

    What it is given is never changed: only what it made itself is.

    Args:
        package: Where definitions are read.
        module: Where the expressions stand.
        functions: What carries out a function's statements.
        steps: How many expressions are worked out, in a list that all of its kind share.
    """

    def __init__(self, package: Package, module: Module, functions: Functions, steps: list[int]):
        self.package = package
        self.module = module
        self.functions = functions
        self.steps = steps
        self.names: dict[str, Any] = {}
        self.own: dict[int, Any] = {}
        self.deep = 0

    def inside(self, module: Module) -> Concrete:
        """The same in a function of a module."""
        inner = Concrete(self.package, module, self.functions, self.steps)
        inner.own = self.own
        inner.deep = self.deep
        return inner

    def made(self, value: Any) -> Any:
        """A collection that was made here, and so may be changed."""
        if isinstance(value, _MADE):
            self.own[id(value)] = value
        return value

    def value(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            UntoldError: It is not made of constants alone.
            RaisedError: It raises an exception.
        """
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise UntoldError
        try:
            return self._value(node)
        except (LookupError, ArithmeticError) as error:
            raise RaisedError from error
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UntoldError from error

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name):
                return self.names[name] if name in self.names else self._of_module(name)
            case ast.Subscript(value=base, slice=index):
                return self.value(base)[self.value(index)]
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(one and self.value(one) for one in (lower, upper, step)))
            case ast.Call():
                return self._call(node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared(left, ops, others)
            case ast.BoolOp(op=op, values=values):
                result = None
                for operand in values:
                    result = self.value(operand)
                    if bool(result) is isinstance(op, ast.Or):
                        break
                return result
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.value(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.Tuple(elts=parts):
                return tuple(self._spread(parts))
            case ast.List(elts=parts):
                return self.made([*self._spread(parts)])
            case ast.Set(elts=parts):
                return self.made({*self._spread(parts)})
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
                return self.made([self.value(part) for _ in self._turns(node.generators)])
            case ast.SetComp(elt=part):
                return self.made({self.value(part) for _ in self._turns(node.generators)})
            case ast.DictComp(key=key, value=value):
                turns = self._turns(node.generators)
                return self.made({self.value(key): self.value(value) for _ in turns})
            case ast.JoinedStr(values=values):
                return "".join(map(self._formatted, values))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return self._binary(self.value(left), self.value(right), op)
            case ast.Attribute():
                return self._attribute(node)
        raise UntoldError

    def _binary(self, left: Any, right: Any, op: ast.operator) -> Any:
        if isinstance(left, PurePosixPath) and isinstance(op, ast.Div):
            return left / right
        if isinstance(op, ast.Mult | ast.LShift) and not is_small(left, right):
            raise UntoldError
        return self.made(BINARY[type(op)](left, right))

    def _of_module(self, name: str) -> Any:
        if name == "__file__":
            return self.module.path
        found = self.package.lookup(self.module, name)
        if found is None:
            raise UntoldError
        return self.found(found)

    def found(self, found: Found) -> Any:
        """What a module's name is."""
        match found.bindings:
            case (Assigned(value=value),):
                key = (found.module, "concrete", found.name)
                told = self.package.asked(key, lambda: self._told(value, found.module))
                if told:
                    return told[0]
        raise UntoldError

    def _told(self, node: ast.expr, module: Module) -> tuple[Any, ...]:
        """The value of what a module's name is bound to; nothing where it is not told, or to be filled."""
        try:
            apart = Concrete(self.package, module, self.functions, [TABLE])
            value = apart.value(node)
        except (UntoldError, RaisedError):
            return ()
        return () if isinstance(value, _MADE) and not value else (value,)

    def _attribute(self, node: ast.Attribute) -> Any:
        found = self._member(node)
        if found is not None:
            return self.found(found)
        base = self.value(node.value)
        if isinstance(base, PurePosixPath) and node.attr in ("parent", "name", "stem"):
            return getattr(base, node.attr)
        raise UntoldError

    def _member(self, node: ast.Attribute) -> Found | None:
        dotted = dotted_name(node)
        if dotted is None or dotted[0] in self.names:
            return None
        return self.package.member(self.module, dotted)

    def _call(self, node: ast.Call) -> Any:
        match node.func:
            case ast.Name(id=name) if name not in self.names:
                found = self.package.lookup(self.module, name)
                if found is None:
                    return self._builtin(name, node)
                return self._function(found, node)
            case ast.Attribute() as func:
                found = self._member(func)
                if found is not None:
                    return self._function(found, node)
                if isinstance(func.value, ast.Name) and func.value.id == "json":
                    return self._read(node)
                return self._method(self.value(func.value), func.attr, node)
        raise UntoldError

    def _read(self, node: ast.Call) -> Any:
        match node:
            case ast.Call(func=ast.Attribute(attr="loads"), args=[text], keywords=[]):
                return self.package.asked(
                    ("json", self.value(text)), lambda: json.loads(self.value(text))
                )
        raise UntoldError

    def _builtin(self, name: str, node: ast.Call) -> Any:
        if name == "MappingProxyType" and len(node.args) == 1:
            return self.value(node.args[0])
        if name == "isinstance" and len(node.args) == 2:
            return isinstance(self.value(node.args[0]), _kinds(node.args[1]))
        args, named = self._arguments(node)
        if name == "Path" and len(args) == 1:
            return PurePosixPath(args[0])
        action = _BUILTINS.get(name)
        if action is None or (named and name != "dict"):
            raise UntoldError
        result = action(*args, **named)
        return self.made([*result] if isinstance(result, Iterator) else result)

    def _function(self, found: Found, node: ast.Call) -> Any:
        match found.bindings:
            case (Defined(),):
                return self.functions(self, found, *self._arguments(node))
        raise UntoldError

    def _method(self, base: Any, name: str, node: ast.Call) -> Any:
        args, named = self._arguments(node)
        if isinstance(base, PurePosixPath) and name in ("resolve", "absolute"):
            return base
        if isinstance(base, PurePosixPath) and name == "read_text":
            return self._text(base)
        kind = type(base)
        pure = name in _PURE.get(kind, ())
        changes = name in _CHANGES.get(kind, ()) and id(base) in self.own
        if not (pure or changes) or (named and (kind, name) != (dict, "update")):
            raise UntoldError
        result = getattr(base, name)(*args, **named)
        listed = pure and kind is dict and name in ("keys", "values", "items")
        return self.made([*result] if listed else result) if pure else result

    def _text(self, path: PurePosixPath) -> str:
        data = self.package.read(str(path))
        if data is None or len(data) > _MOST:
            raise UntoldError
        return data.decode()

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            named.update(value if keyword.arg is None else {keyword.arg: value})
        return [*self._spread(node.args)], named

    def _spread(self, parts: Sequence[ast.expr]) -> Iterator[Any]:
        for part in parts:
            if isinstance(part, ast.Starred):
                yield from self.value(part.value)
            else:
                yield self.value(part)

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            found.update(self.value(value) if key is None else {self.value(key): self.value(value)})
        return self.made(found)

    def _compared(
        self, left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr]
    ) -> bool:
        mine = self.value(left)
        for op, other in zip(ops, others, strict=True):
            its = self.value(other)
            if not COMPARE[type(op)][1](mine, its):
                return False
            mine = its
        return True

    def _formatted(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return str(self.value(inner))
        raise UntoldError

    def _turns(self, generators: Sequence[ast.comprehension]) -> Iterator[None]:
        """Bind what a comprehension binds, turn by turn."""
        before = self.names
        self.names = dict(before)
        try:
            yield from self._turn(generators)
        finally:
            self.names = before

    def _turn(self, generators: Sequence[ast.comprehension]) -> Iterator[None]:
        if not generators:
            yield
            return
        first, *rest = generators
        for item in self.value(first.iter):
            self.bind(first.target, item)
            if all(self.value(test) for test in first.ifs):
                yield from self._turn(rest)

    def bind(self, target: ast.expr, value: Any) -> None:
        """Assign to a name, to several, or under a key of what was made here."""
        match target:
            case ast.Name(id=name):
                self.names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items: Iterable[Any] = value
                for part, item in zip(parts, items, strict=True):
                    self.bind(part, item)
            case ast.Subscript(value=base, slice=index):
                table = self.value(base)
                if id(table) not in self.own:
                    raise UntoldError
                table[self.value(index)] = value
            case _:
                raise UntoldError
