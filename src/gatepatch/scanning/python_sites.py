"""Where Python code binds and hands over: its loops and calls, and what those give to a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatepatch.gates.python_scope import FunctionNode

TAKEN = frozenset({"()"})
"""Beside the roots of a value that a call gives."""

COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, and the lines on which its target is bound."""

    target: ast.expr
    source: ast.expr
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call, and the function that it stands in."""

    node: ast.Call
    within: FunctionNode


@dataclass(frozen=True, slots=True)
class Kind:
    """What an entry says of itself on some lines: ``name["key"] == value``."""

    name: str
    key: object
    value: object
    first: int
    last: int


def kinds_in(function: FunctionNode) -> Sequence[Kind]:
    """The tests in a function of what an entry says of itself."""
    found: list[Kind] = []
    for part in ast.walk(function):
        match part:
            case ast.If(test=test, body=body):
                found += _kinds(test, body[0].lineno, body[-1].end_lineno or 0)
    return found


def _kinds(test: ast.expr, first: int, last: int) -> Iterator[Kind]:
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            pass
        case _:
            parts = [test]
    for part in parts:
        match part:
            case ast.Compare(
                left=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=value)],
            ):
                yield Kind(name, key, value, first, last)


def loops_in(node: ast.AST) -> Sequence[Loop]:
    """The loops in some code, the outer ones first."""
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.For):
            found.append(Loop(part.target, part.iter, part.lineno, part.end_lineno or 0))
        elif isinstance(part, COMPREHENSIONS):
            found += [
                Loop(one.target, one.iter, part.lineno, part.end_lineno or 0)
                for one in part.generators
            ]
    return found


def calls_in(tree: ast.Module) -> Mapping[str, list[CallSite]]:
    """The calls in a module's functions, by the name of what is called: no table is looked into."""
    found: dict[str, list[CallSite]] = {}
    stack: list[ast.stmt] = [*tree.body]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.ClassDef):
            stack += part.body
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(part):
                match node:
                    case ast.Call(func=ast.Name(id=name)):
                        found.setdefault(name, []).append(CallSite(node, part))
    return found


def roots_of(node: ast.expr) -> frozenset[str]:
    """The names that a value is taken out of, without those that say which; ``()`` for a call."""
    match node:
        case ast.Name(id=name):
            return frozenset((name,))
        case ast.Subscript(value=base) | ast.Attribute(value=base):
            return roots_of(base)
        case ast.Call(func=ast.Attribute(value=base, attr="get")):
            return roots_of(base) | TAKEN
        case ast.Call(func=ast.Name() | ast.Attribute(), args=args):
            return frozenset[str]().union(*map(roots_of, args)) | TAKEN
        case ast.BoolOp(values=values):
            return frozenset[str]().union(*map(roots_of, values))
        case ast.IfExp(body=body, orelse=other):
            return roots_of(body) | roots_of(other)
    return frozenset()


def argument_of(call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
    """What a call hands over as a parameter, its default included; None where it is not told."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    arguments = function.args
    every = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    given: dict[str, ast.expr | None] = dict(
        zip(reversed(every), reversed(arguments.defaults), strict=False)
    )
    only = [arg.arg for arg in arguments.kwonlyargs]
    given.update(zip(only, arguments.kw_defaults, strict=True))
    given.update(zip(every, call.args, strict=False))
    given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg})
    return given.get(name)


def position_of(target: ast.expr, name: str) -> Sequence[int] | None:
    """Where a loop's target binds a name; None if it does not."""
    match target:
        case ast.Name(id=own):
            return () if own == name else None
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for index, part in enumerate(parts):
                inner = position_of(part, name)
                if inner is not None:
                    return (index, *inner)
    return None
