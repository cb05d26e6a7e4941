"""Names that a module imports when they are first asked for: a ``__getattr__`` beside a table of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gatepatch.gates.python_scope import Found, Module, Package


def lazy_names(tree: ast.Module) -> Mapping[str, str]:
    """The modules that such names come from: ``{"is_served": ".kernels"}``.

    Empty where it does not import names so, or where two of its tables differ.
    """
    found: dict[str, str] = {}
    if not any(isinstance(one, ast.FunctionDef) and one.name == "__getattr__" for one in tree.body):
        return found
    for name, origin in _entries(tree):
        if found.setdefault(name, origin) != origin:
            return {}
    return found


def _entries(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in tree.body:
        match statement:
            case ast.Assign(value=ast.Dict() as table) | ast.AnnAssign(value=ast.Dict() as table):
                pass
            case _:
                continue
        for key, value in zip(table.keys, table.values, strict=True):
            match key, value:
                case ast.Constant(value=str(name)), ast.Constant(value=str(origin)):
                    yield name, origin


def lazily(package: Package, module: Module, name: str, depth: int) -> Found | None:
    """Where a name is bound that a module imports when it is first asked for; None for another.

    Args:
        package: Where definitions are read.
        module: The module.
        name: The name, which it does not bind.
        depth: How many imports are followed further.
    """
    if "__getattr__" not in module.bindings:
        return None
    origin = package.once(lazy_names, module.tree).get(name)
    if not origin:
        return None
    inside = package.by_name(f"{module.name}.{origin.removeprefix('.')}")
    target = inside or (None if origin.startswith(".") else package.by_name(origin))
    return package.lookup(target, name, depth - 1) if target is not None else None
