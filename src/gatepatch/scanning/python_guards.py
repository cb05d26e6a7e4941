"""What stands under a Python gate."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from gatepatch.gates.python_source import Expression
from gatepatch.scanning.python_refusals import fills_in, refuses
from gatepatch.scanning.records import Effect, Guards

_BUILT = re.compile(
    r"(?i)cubin|prebuilt|precompiled|artifact|compiled_arch|kernel_(?:map|table|list)"
)
_MANY = 4


class Statements:
    """The statements of a file, found by the lines that they are on.

    Args:
        tree: Its syntax.
    """

    def __init__(self, tree: ast.Module):
        self._tree = tree

    def around(self, node: ast.expr) -> ast.stmt | None:
        """The innermost statement around an expression."""
        return _innermost(self._tree.body, node.lineno, node.end_lineno or node.lineno)

    def decorates(self, node: ast.expr) -> bool:
        """Whether an expression is a decorator."""
        return any(part is node for part in getattr(self.around(node), "decorator_list", ()))

    def rejects(self, top: Expression) -> bool:
        """Whether what a condition guards turns the caller away where it holds."""
        statement = self.around(top.node) if top.tested else None
        if not isinstance(statement, ast.If) or statement.test is not top.node:
            return False
        return refuses(statement.body, top.functions)

    def fills(self, top: Expression) -> bool:
        """Whether a condition only asks if something was kept before, which it fills in if not."""
        statement = self.around(top.node) if top.tested else None
        if not isinstance(statement, ast.If) or statement.test is not top.node:
            return False
        return fills_in(statement)

    def guards(self, top: Expression) -> Guards:
        """What stands under a condition."""
        statement = self.around(top.node)
        match statement:
            case ast.If(test=test, body=body, orelse=orelse) if _holds(test, top.node):
                return Guards(
                    effect=_effect(body),
                    lines=_height(body),
                    calls=_calls(body),
                    otherwise=_otherwise(orelse),
                )
            case ast.While(test=test, body=body) if _holds(test, top.node):
                return Guards(effect="code", lines=_height(body), calls=_calls(body))
            case ast.Assert():
                return Guards(effect="raises", lines=1, otherwise="")
        chosen = _chosen(statement, top.node)
        if chosen is not None:
            lines = (chosen.end_lineno or chosen.lineno) - chosen.lineno + 1
            return Guards(effect="default", lines=lines, otherwise="another value")
        return Guards(effect="value", lines=0)

    def compiled(self, top: Expression) -> str:
        """Why nothing is compiled behind a condition where it is shut; empty if nothing says so."""
        statement = self.around(top.node)
        body = statement.body if isinstance(statement, ast.If) else []
        orelse = statement.orelse if isinstance(statement, ast.If) else []
        for part in (top.node, *body, *orelse):
            for node in ast.walk(part):
                name = getattr(node, "id", None) or getattr(node, "attr", None)
                name = name or (node.value if isinstance(node, ast.Constant) else None)
                if isinstance(name, str) and len(name) < 200 and (found := _BUILT.search(name)):
                    return f"it speaks of what is built ahead of time: {found[0].lower()}"
        return ""


def _innermost(body: Sequence[ast.AST], first: int, last: int) -> ast.stmt | None:
    after = bisect_right(body, first, key=_first_line)
    for node in body[max(0, after - 1) : after]:
        if not _first_line(node) <= first <= last <= _last_line(node):
            continue
        for inner in _blocks(node):
            found = _innermost(inner, first, last)
            if found is not None:
                return found
        return node if isinstance(node, ast.stmt) else None
    return None


def _first_line(node: ast.AST) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    line: int = getattr(node, "lineno", 0)
    decorators: list[ast.expr] | None = getattr(node, "decorator_list", None)
    return min([line, *(d.lineno for d in decorators)]) if decorators else line


def _last_line(node: ast.AST) -> int:
    if isinstance(node, ast.match_case):
        return _last_line(node.body[-1])
    return int(getattr(node, "end_lineno", 0) or 0)


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.AST]]:
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, field, None)
        if isinstance(inner, list):
            yield inner


def _holds(outer: ast.expr, node: ast.expr) -> bool:
    return any(part is node for part in ast.walk(outer))


def _chosen(statement: ast.stmt | None, node: ast.expr) -> ast.expr | None:
    """What a ``?:`` in a statement picks where the condition holds."""
    for part in ast.walk(statement) if statement is not None else ():
        if isinstance(part, ast.IfExp) and _holds(part.test, node):
            return part.body
    return None


def _effect(body: Sequence[ast.stmt]) -> Effect:
    kinds = [type(statement) for statement in body]
    if ast.Raise in kinds:
        return "raises"
    if ast.Return in kinds:
        return "returns"
    if all(issubclass(kind, ast.Assign | ast.AnnAssign | ast.AugAssign) for kind in kinds):
        return "default"
    return "code"


def _otherwise(orelse: Sequence[ast.stmt]) -> str:
    match orelse:
        case []:
            return ""
        case [ast.If()]:
            return "another test"
    words = {"raises": "an error", "returns": "a return", "default": "another value"}
    return words.get(_effect(orelse), "other code")


def _height(body: Sequence[ast.stmt]) -> int:
    return (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1


def _calls(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    """The functions that some statements call themselves, the first ones."""
    found: dict[str, None] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                found[name] = None
                if len(found) == _MANY:
                    return tuple(found)
    return tuple(found)
