"""Whether a Python condition speaks of the architecture itself."""

from __future__ import annotations

import ast

from gatepatch.gates.python_scope import dotted_name, hides

_WRAPPERS = frozenset({"int", "tuple", "bool", "any", "all", "const_expr", "str", "list", "set"})
"""Functions whose value speaks of what they are given."""


def speaks(node: ast.expr, aliases: frozenset[str]) -> bool:
    """Whether a condition speaks of the architecture itself, not only what it hands on."""
    match node:
        case ast.Name(id=name):
            return name in aliases or bool(hides(name))
        case ast.Attribute(attr=name, value=value):
            return bool(hides(name, of=_dotted(node))) or speaks(value, aliases)
        case ast.Call(func=func, args=args):
            if speaks(func, aliases):
                return True
            name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
            return name in _WRAPPERS and any(speaks(arg, aliases) for arg in args)
        case ast.Compare(left=left, comparators=others):
            if all(isinstance(o, ast.Constant) and o.value is None for o in others):
                return False
            return speaks(left, aliases) or any(speaks(other, aliases) for other in others)
        case ast.Subscript(value=value):
            return speaks(value, aliases)
        case ast.Constant() | ast.Dict() | ast.Lambda() | ast.JoinedStr():
            return False
    return any(
        speaks(child, aliases)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.expr)
    )


def _dotted(node: ast.expr) -> str:
    names = dotted_name(node)
    return ".".join(names) if names else ""
