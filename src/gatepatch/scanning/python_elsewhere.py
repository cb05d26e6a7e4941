"""Conditions that are not told, and ask for something else than the device's architecture."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set

from gatepatch.gates.python_scope import (
    Defined,
    Found,
    FunctionNode,
    Imported,
    Package,
    hides,
    identifiers,
    statements_in,
)
from gatepatch.gates.python_source import Expression
from gatepatch.gates.python_values import Frame
from gatepatch.scanning import names
from gatepatch.scanning.speaking import speaks
from gatepatch.verdict import Verdict

_OTHER = re.compile(
    r"(?:envs|os\.environ)\W|os\.getenv\(|.*(?:\bgcnArchName\b|\bmodel\.arch\b|\b[Mm]odel\w*\.is_arch_)"
)
"""Texts of a user's setting, of AMD's name of an architecture, and of a model's architecture."""

_TARGET = re.compile(r"(?:sm|compute)_?\d\d")


_MANY = 8
"""How many functions are looked through."""

_FORM = frozenset({"isalpha", "isdigit", "isalnum"})
"""Methods that tell how a text is written."""


def asks_elsewhere(top: Expression, verdict: Verdict) -> bool:
    """Whether a condition that is not told depends on something else than the device.

    Args:
        top: The condition.
        verdict: Its truth, unknown in part.
    """
    node, functions = _without_not(top.node), top.functions
    if _is_of_fields(node):
        return True  # two records that are to be of one kind
    match node:
        case ast.BoolOp(op=ast.Or(), values=[*_, ast.Constant(value=default)]) if not top.tested:
            return not isinstance(default, bool)  # what stands for it where there is none
        case ast.Call(func=ast.Attribute(attr=name), args=[]) if name in _FORM:
            return True
        case ast.Call(func=ast.Attribute(attr="exists" | "is_file"), args=[]):
            return not verdict.is_gate  # whether it was built so far
        case ast.Call(func=ast.Attribute(attr="startswith"), args=[ast.Name(id=name)]):
            return bool(functions) and _is_prefix(name, functions[-1])
        case ast.Name(id=name) if functions and _is_whole(name, functions[-1]):
            return True  # whether there is any at all
        case ast.Compare(left=ast.Name(id=name)) if not functions and name in top.bound:
            return True  # a table made of others, for every architecture in them
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[store]):
            if functions and _is_kept(key, store, functions[-1]):
                return True
        case ast.Compare(
            left=ast.Attribute(value=ast.Name(id=one)),
            comparators=[ast.Attribute(value=ast.Name(id=other))],
        ) if one == other and one not in ("self", "cls"):
            return not verdict.is_gate  # two fields of one record
        case ast.Compare(
            left=ast.Name(id=key), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Name(id=last)]
        ):
            if functions and _is_turn(key, last, functions[-1]):
                return True
    return not verdict.is_gate and all(map(_is_other, verdict.unknown))


def _without_not(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    return node


def _is_of_fields(node: ast.expr) -> bool:
    """Whether fields are compared with the fields of the same names of another: ``a.arch != b.arch``."""
    match node:
        case ast.BoolOp(values=values):
            return all(map(_is_of_fields, values))
        case ast.Compare(
            left=ast.Attribute(attr=one),
            ops=[ast.Eq() | ast.NotEq()],
            comparators=[ast.Attribute(attr=other)],
        ):
            return one == other
    return False


def is_named_alone(top: Expression, frame: Frame, package: Package, aliases: Set[str]) -> bool:
    """Whether a condition is a call of a function that is at hand, and that only its name says is of an architecture.

    Args:
        top: The condition.
        frame: Where it stands.
        package: Where definitions are read.
        aliases: Names that stand for a test.
    """
    match _without_not(top.node):
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            pass
        case _:
            return False
    given = [*args, *(keyword.value for keyword in keywords)]
    if names.predicate(name) is not None or any(speaks(value, aliases) for value in given):
        return False
    match frame.locals.get(name):
        case None:
            found = package.lookup(frame.module, name)
        case (Imported() as imported,):
            found = package.follow(imported)
        case _:
            return False
    return found is not None and _tests_none(found, package)


def _tests_none(first: Found, package: Package) -> bool:
    """Whether no name in a function, nor in those that it calls, is that of a test of the architecture."""
    seen: set[ast.AST] = set()
    following = [first]
    while following:
        found = following.pop()
        match found.bindings:
            case (Defined(node=ast.FunctionDef() as node),) if len(seen) < _MANY:
                pass
            case _:
                return False
        if node in seen:
            continue
        seen.add(node)
        for name in {*identifiers(ast.Module(body=node.body, type_ignores=[]))}:
            inner = None if name.startswith(".") else package.lookup(found.module, name)
            if inner is not None and isinstance(inner.bindings[0], Defined):
                following.append(inner)
            elif hides(name) or (inner is not None and _leads_on(inner, package)):
                return False
    return True


def _leads_on(found: Found, package: Package) -> bool:
    """Whether what a module's name is bound to may test the architecture."""
    return any(package.binding_smells(found.module, binding) for binding in found.bindings)


def _is_other(unknown: str) -> bool:
    text = unknown.partition(": ")[0]
    return _OTHER.match(text) is not None and not _TARGET.search(text)


def _is_kept(key: ast.expr, store: ast.expr, function: FunctionNode) -> bool:
    """Whether what is looked for is put there where it is missing, as into a cache."""
    asked = (ast.dump(store), ast.dump(key))
    return any((ast.dump(s.value), ast.dump(s.slice)) == asked for s in _stored(function))


def _stored(function: FunctionNode) -> Iterator[ast.Subscript]:
    for part in statements_in(function):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Subscript):
                    yield target


def _is_turn(key: str, last: str, function: FunctionNode) -> bool:
    """Whether a loop's variable is compared with the last one, to leave out a comma."""
    turns = ends = False
    for part in statements_in(function):
        match part:
            case ast.For(target=ast.Name(id=name)) if name == key:
                turns = True
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Subscript(
                    slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))
                ),
            ) if name == last:
                ends = True
    return turns and ends


def _is_whole(name: str, function: FunctionNode) -> bool:
    """Whether a name is a list of something of each, none left out."""
    values = [
        part.value
        for part in statements_in(function)
        if isinstance(part, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in part.targets)
    ]
    return len(values) == 1 and (
        isinstance(values[0], ast.ListComp) and not any(one.ifs for one in values[0].generators)
    )


def _is_prefix(name: str, function: FunctionNode) -> bool:
    """Whether a name is one of some words without a number, such as what is taken off a target."""
    for part in statements_in(function):
        match part:
            case ast.For(target=ast.Name(id=own), iter=ast.Tuple(elts=words)) if own == name:
                return not any(re.search(r"\d", ast.unparse(word)) for word in words)
    return False
