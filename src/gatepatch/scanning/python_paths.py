"""Whether there is something that a condition speaks of: tests for that which are settled before it.

What else was tested before is no concern of a condition: each is told by itself, as in a chain of ``elif``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gatepatch.boolean import Bool, and_, not_
from gatepatch.gates.python_scope import FunctionNode, Package, names_in
from gatepatch.scanning.python_flow import assigned
from gatepatch.scanning.python_refusals import refuses
from gatepatch.verdict import Point, Verdict

_COMMON = frozenset({"self", "cls", "torch", "int", "len", "tuple", "isinstance", "bool", "str"})
"""Names that two conditions may share without being of one thing."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A test that is known where a place is reached.

    Args:
        test: The test.
        holds: Whether it is true there.
        refused: Whether the caller was turned away where it is not as it is there.
    """

    test: ast.expr
    holds: bool
    refused: bool


def passed(node: ast.expr, functions: Sequence[FunctionNode], package: Package) -> list[Passed]:
    """The tests that are known where a condition stands, of those that share a name with it."""
    names = package.once(names_in, node) - _COMMON
    if not functions or not names:
        return []
    found = _along(functions[-1].body, node, functions, package)
    return [one for one in found if not names.isdisjoint(package.once(names_in, one.test))]


def _along(
    body: Sequence[ast.stmt], node: ast.expr, functions: Sequence[FunctionNode], package: Package
) -> Iterator[Passed]:
    """The tests on the way to a condition, through one block and those inside."""
    before: list[ast.stmt] = []
    for statement in body:
        if node.lineno > (statement.end_lineno or statement.lineno):
            before.append(statement)
            continue
        break
    else:
        return
    for index, one in enumerate(before):
        match one:
            case ast.If(test=test, body=inner, orelse=[]) if isinstance(
                inner[-1], ast.Raise | ast.Return | ast.Continue | ast.Break
            ):
                for part in _parts(test, ast.Or):
                    if _asks_whether(part) and _is_kept(part, before[index + 1 :], package):
                        yield Passed(part, False, refuses(inner, functions))
    for block in ("body", "orelse"):
        inner = getattr(statement, block, [])
        if inner and inner[0].lineno <= node.lineno <= _end(inner):
            if isinstance(statement, ast.If):
                for part in _parts(statement.test, ast.And if block == "body" else ast.Or):
                    if _asks_whether(part):
                        yield Passed(part, block == "body", False)
            yield from _along(inner, node, functions, package)


def _parts(test: ast.expr, joined: type[ast.boolop]) -> Sequence[ast.expr]:
    """The operands of a test that is ``and`` or ``or``, of which each is known where the whole is."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, joined):
        return test.values
    return [test]


def _asks_whether(test: ast.expr) -> bool:
    """Whether a test asks only if there is something."""
    match test:
        case ast.Name():
            return True
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asks_whether(operand)
        case ast.BoolOp(values=values):
            return all(map(_asks_whether, values))
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def _end(body: Sequence[ast.stmt]) -> int:
    return body[-1].end_lineno or body[-1].lineno


def _is_kept(test: ast.expr, after: Sequence[ast.stmt], package: Package) -> bool:
    """Whether what a test speaks of is not bound anew after it."""
    names = package.once(names_in, test)
    return all(names.isdisjoint(package.once(assigned, one)) for one in after)


def narrowed(
    verdict: Verdict, known: Sequence[tuple[Passed, Verdict]], *, rejects: bool
) -> Verdict:
    """A verdict with what is known where the condition stands.

    Args:
        verdict: The condition's truth.
        known: The tests that are known there, and their truth.
        rejects: Whether what it guards turns the caller away.
    """
    return Verdict(
        {
            point: _narrowed(function, point, known, rejects=rejects)
            for point, function in verdict.table.items()
        }
    )


def _narrowed(
    function: Bool, point: Point, known: Sequence[tuple[Passed, Verdict]], *, rejects: bool
) -> Bool:
    if isinstance(function, bool):
        return function
    given: Bool = True
    for one, told in known:
        here = told.table[point]
        here = here if one.holds else not_(here)
        if here is False:
            if one.refused:
                return rejects
            continue
        given = and_(given, here)
    if given is False:
        return function
    if and_(given, function) is False:
        return False
    if and_(given, not_(function)) is False:
        return True
    return function
