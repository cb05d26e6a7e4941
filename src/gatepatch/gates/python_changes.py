"""Which collections a module changes after they are made: their first value is no constant.

What another module changes, or code that was handed the collection, is not looked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_CHANGING = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "remove", "discard", "pop"}
    | {"popitem", "clear", "sort", "reverse", "difference_update", "intersection_update"}
    | {"symmetric_difference_update", "__setitem__", "__delitem__", "move_to_end"}
)
"""Methods of lists, sets and dictionaries that change them."""


def changed_in(tree: ast.AST) -> frozenset[str]:
    """The names whose collections some code changes, in place or by what stands in them."""
    return frozenset(_changed(tree))


def _changed(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=base, ctx=ast.Store() | ast.Del()):
                yield from _owner(base)
            case ast.Call(func=ast.Attribute(value=base, attr=name)) if name in _CHANGING:
                yield from _owner(base)


def _owner(node: ast.expr) -> Iterator[str]:
    """The name of the collection that something is, or was taken out of."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=base) | ast.Call(func=ast.Attribute(value=base, attr="get")):
            yield from _owner(base)
