"""A function's statements, carried out on constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatepatch.gates.python_calls import decorators, runs_through
from gatepatch.gates.python_operations import BINARY
from gatepatch.gates.python_scope import (
    Binding,
    Defined,
    Found,
    FunctionNode,
    Module,
    Package,
    bind,
)
from gatepatch.scanning.python_concrete import Concrete, RaisedError, UntoldError

_CACHES = frozenset({"cache", "lru_cache"})
_DEEPEST = 12


class _ReturnError(Exception):
    def __init__(self, value: Any):
        super().__init__()
        self.value = value


class _LoopError(Exception):
    def __init__(self, *, ends: bool):
        super().__init__()
        self.ends = ends


def call(concrete: Concrete, found: Found, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a function returns."""
    match found.bindings:
        case (Defined(node=ast.FunctionDef() as node),):
            return run(concrete, node, found.module, args, named)
    raise UntoldError


def run(
    concrete: Concrete,
    node: FunctionNode,
    module: Module,
    args: Sequence[Any],
    named: Mapping[str, Any],
) -> Any:
    """What a function returns that is handed constants.

    Raises:
        UntoldError: It does not work on constants alone.
        RaisedError: It raises an exception.
    """
    if not (set(decorators(node)) <= _CACHES and concrete.package.once(runs_through, node)):
        raise UntoldError
    inner = concrete.inside(module)
    inner.deep = concrete.deep + 1
    if inner.deep > _DEEPEST:
        raise UntoldError
    inner.names = _parameters(inner, node.args, args, named)
    try:
        _block(inner, node.body)
    except _ReturnError as returned:
        return returned.value
    return None


def _parameters(
    concrete: Concrete, spec: ast.arguments, args: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    names = [one.arg for one in (*spec.posonlyargs, *spec.args)]
    only = [one.arg for one in spec.kwonlyargs]
    fits = len(args) <= len(names) and named.keys() <= {*names, *only}
    if not fits or spec.vararg or spec.kwarg:
        raise UntoldError
    given = {**dict(zip(names, args, strict=False)), **named}
    defaults = [*zip(reversed(names), reversed(spec.defaults), strict=False)]
    defaults += [(n, d) for n, d in zip(only, spec.kw_defaults, strict=True) if d is not None]
    for name, default in defaults:
        if name not in given:
            given[name] = concrete.value(default)
    if len(given) < len(names) + len(only):
        raise UntoldError
    return given


def _block(concrete: Concrete, body: Sequence[ast.stmt]) -> None:
    for node in body:
        _step(concrete, node)


def _step(concrete: Concrete, node: ast.stmt) -> None:
    match node:
        case ast.Return(value=value):
            raise _ReturnError(None if value is None else concrete.value(value))
        case ast.Assign(targets=targets, value=value):
            result = concrete.value(value)
            for target in targets:
                _bind(concrete, target, result)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _bind(concrete, target, concrete.value(value))
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in BINARY:
            summed = ast.BinOp(left=ast.Name(id=name), op=op, right=value)
            concrete.names[name] = concrete.value(summed)
        case ast.If(test=test, body=then, orelse=other):
            _block(concrete, then if concrete.value(test) else other)
        case ast.For(target=target, iter=source, body=inside, orelse=other):
            for item in [*_items(concrete, source)]:
                try:
                    _bind(concrete, target, item)
                    _block(concrete, inside)
                except _LoopError as left:
                    if left.ends:
                        return
            _block(concrete, other)
        case ast.Continue() | ast.Break():
            raise _LoopError(ends=isinstance(node, ast.Break))
        case ast.Raise():
            raise RaisedError
        case ast.Assert(test=test):
            if not concrete.value(test):
                raise RaisedError
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return
        case ast.Expr(value=value):
            concrete.value(value)
        case ast.Import() | ast.ImportFrom():
            bindings: dict[str, list[Binding]] = {}
            bind(concrete.module, node, bindings)
            known = {**concrete.module.bindings, **bindings}
            concrete.module = replace(concrete.module, bindings=known)
        case _:
            raise UntoldError


def _items(concrete: Concrete, source: ast.expr) -> Iterator[Any]:
    value = concrete.value(source)
    if not isinstance(value, list | tuple | dict | set | frozenset | str | range):
        raise UntoldError
    yield from value


def _bind(concrete: Concrete, target: ast.expr, value: Any) -> None:
    try:
        concrete.bind(target, value)
    except (TypeError, ValueError) as error:
        raise UntoldError from error
    except LookupError as error:
        raise RaisedError from error


def concrete_in(package: Package, module: Module, steps: int) -> Concrete:
    """What works out expressions of constants in a module."""
    return Concrete(package, module, call, [steps])
