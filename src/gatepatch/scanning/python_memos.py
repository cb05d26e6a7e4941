"""Names of a module that are None until a function works them out, for all later calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gatepatch.gates.python_scope import FunctionNode, names_in, statements_in
from gatepatch.scanning.python_flow import assigned, parameters


def memos(tree: ast.Module) -> Mapping[str, ast.expr]:
    """What such names are worked out as: ``global FAST; if FAST is None: FAST = ...``."""
    return dict(
        found
        for function in statements_in(tree)
        if isinstance(function, ast.FunctionDef)
        for found in _kept_by(function)
    )


def _kept_by(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    statements = [*statements_in(function)]
    kept = {name for one in statements if isinstance(one, ast.Global) for name in one.names}
    if not kept:
        return
    own = parameters(function).union(*map(assigned, function.body))
    for one in statements:
        match one:
            case ast.If(
                test=ast.Compare(
                    left=ast.Name(id=name),
                    ops=[ast.Is()],
                    comparators=[ast.Constant(value=None)],
                ),
                body=[ast.Assign(targets=[ast.Name(id=bound)], value=value)],
                orelse=[],
            ) if name == bound and name in kept and names_in(value).isdisjoint(own):
                if _times(name, function) == 1:
                    yield name, value


def _times(name: str, function: FunctionNode) -> int:
    """How often a function binds a name."""
    return sum(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        for part in ast.walk(function)
    )
