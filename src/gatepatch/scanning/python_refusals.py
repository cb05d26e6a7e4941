"""Whether what stands under a Python condition turns the caller away."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from gatepatch.gates.python_scope import FunctionNode, name_of

_SKIPS = frozenset({"skip", "skipTest", "exit", "_exit", "abort"})
"""Functions that do not come back."""

_SAYS = re.compile(r"(?i).*(?:log|warn|print|note|debug|info|error).*")
"""Functions that only tell of it."""

_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Break, ast.Continue)


def refuses(body: Sequence[ast.stmt], functions: Sequence[FunctionNode]) -> bool:
    """Whether a block only turns the caller away.

    It ends in an exception, whatever it works out for the message, or in None or False, with a
    reason beside it or without. A ``return`` before a check that raises lets the caller through.

    Args:
        body: The block.
        functions: The functions around it, the outermost first.
    """
    *before, last = body
    match last:
        case ast.Raise():
            return not _may_leave(before)
        case ast.Expr(value=ast.Call(func=func)) if name_of(func) in _SKIPS:
            return not _may_leave(before)
        case ast.Return(value=None):
            does = any(not _tells(statement) for statement in before)
            return not does and not (functions and _raises(functions[-1]))
        case (
            ast.Return(value=ast.Constant(value=False | None))
            | ast.Return(value=ast.Tuple(elts=[ast.Constant(value=False | None), *_]))
        ):
            return all(_tells(statement) or _prepares(statement) for statement in before)
    return False


def fills_in(statement: ast.If) -> bool:
    """Whether a statement fills in what was not kept: ``if x is None: x = KEPT[key] = make()``."""
    match statement:
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]
            ),
            body=body,
            orelse=[],
        ):
            targets = [
                target for one in body if isinstance(one, ast.Assign) for target in one.targets
            ]
            named = any(isinstance(one, ast.Name) and one.id == name for one in targets)
            kept = any(isinstance(one, ast.Subscript) for one in targets)
            return named and kept and not _may_leave(body)
    return False


def _may_leave(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, _LEAVES) for statement in body for node in ast.walk(statement))


def _raises(function: FunctionNode) -> bool:
    """Whether a function ends in an exception, under a condition or without."""
    match function.body[-1]:
        case ast.Raise() | ast.If(body=[*_, ast.Raise()], orelse=[]):
            return True
    return False


def _tells(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return _SAYS.fullmatch(ast.unparse(func)) is not None
    return False


def _prepares(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
            return True
    return False
