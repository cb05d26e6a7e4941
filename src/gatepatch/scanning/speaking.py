"""Whether a Python condition speaks of the architecture itself."""

from __future__ import annotations

import ast
import re

from gatepatch.gates.python_scope import dotted_name, hides
from gatepatch.scanning import names

_WRAPPERS = frozenset({"int", "tuple", "bool", "any", "all", "const_expr", "str", "list", "set"})
"""Functions whose value speaks of what they are given."""

_NUMBERED = re.compile(r"(?i)sm_?\d{2,3}|blackwell|hopper|ampere|turing|volta")
_ASKING = re.compile(
    r"(?i)_*(?:is|has|uses?|on|needs?|requires?|supports?|enabled?|should|can|allow)_|"
    r"(?:supported|available|capable|enabled|device)$|^_*sm_?\d{2,3}[af]?$"
)
_FACTS = frozenset({"multi_processor_count", "total_memory", "name", "uuid"})
"""What device properties say besides the capability."""


def speaks(node: ast.expr, aliases: frozenset[str]) -> bool:
    """Whether a condition speaks of the architecture itself, not only what it hands on."""
    match node:
        case ast.Name(id=name):
            return name in aliases or _says(name, name)
        case ast.Attribute(attr=name) if name in _FACTS:
            return False
        case ast.Attribute(attr=name, value=value):
            return _says(name, _dotted(node)) or speaks(value, aliases)
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


def _says(name: str, whole: str) -> bool:
    """Whether a name may stand for the architecture: ``sm100_utils`` and ``HopperKernel`` do not."""
    if not hides(name, of=whole):
        return False
    if _NUMBERED.search(name) and not names.is_number(name):
        return names.predicate(name) is not None or _ASKING.search(name) is not None
    return True


def _dotted(node: ast.expr) -> str:
    found = dotted_name(node)
    return ".".join(found) if found else ""
