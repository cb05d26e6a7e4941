"""Compare two states of a Python file by their syntax."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gatepatch.gates.python_source import Source, same


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Names that a ``from`` import at the top level brings besides."""

    module: str
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """Statements that were put in.

    Args:
        new: They.
        previous: The statement in front of them, as it stood; None at the start of a block.
        following: The one behind them.
        within: Qualified name of the function or class around them.
    """

    new: tuple[ast.stmt, ...]
    previous: ast.stmt | None
    following: ast.stmt | None
    within: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """An expression that was changed.

    Args:
        levels: The expression before and after, at each depth at which nothing else differs;
            the outermost first.
        keyword: Name of the keyword argument whose value the innermost is; empty if it is none.
        within: Qualified name of the function or class around it.
    """

    levels: tuple[tuple[ast.expr, ast.expr], ...]
    keyword: str
    within: str


Difference: TypeAlias = "Imported | Inserted | Changed"


def differences(old: Source, new: Source) -> Iterator[Difference]:
    """What differs, as far as structure tells it; the rest is left to text."""
    yield from _Comparison(old, new).body(old.tree.body, new.tree.body, "")


class _Comparison:
    def __init__(self, old: Source, new: Source):
        self.old = old
        self.new = new

    def body(
        self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], within: str
    ) -> Iterator[Difference]:
        """Compare two blocks, statement by statement."""
        texts = [_text(self.old, s) for s in old], [_text(self.new, s) for s in new]
        matcher = difflib.SequenceMatcher(None, *texts, autojunk=False)
        for tag, i, j, k, m in matcher.get_opcodes():
            if tag == "insert":
                yield from self.inserted(old, i, new[k:m], within)
            elif tag == "replace":
                yield from self.replaced(old, i, j, new[k:m], within)

    def replaced(
        self, old: Sequence[ast.stmt], start: int, end: int, new: Sequence[ast.stmt], within: str
    ) -> Iterator[Difference]:
        """Pair what is of a kind; what is left over behind was put in."""
        position = start
        fresh: list[ast.stmt] = []
        for statement in new:
            partner = next((i for i in range(position, end) if _alike(old[i], statement)), None)
            if partner is None:
                fresh.append(statement)
                continue
            yield from self.inserted(old, position, fresh, within)
            fresh = []
            yield from self.statement(old[partner], statement, within)
            position = partner + 1
        yield from self.inserted(old, position, fresh, within)

    def inserted(
        self, old: Sequence[ast.stmt], index: int, new: Sequence[ast.stmt], within: str
    ) -> Iterator[Difference]:
        rest = list(new)
        while not within and rest and isinstance(first := rest[0], ast.ImportFrom):
            if first.module and not first.level and not any(a.asname for a in first.names):
                names = tuple(alias.name for alias in first.names)
                yield Imported(module=first.module, names=names, line=first.lineno)
                rest.pop(0)
            else:
                break
        if rest:
            yield Inserted(
                new=tuple(rest),
                previous=old[index - 1] if index else None,
                following=old[index] if index < len(old) else None,
                within=within,
            )

    def statement(self, old: ast.stmt, new: ast.stmt, within: str) -> Iterator[Difference]:
        """Compare two statements of a kind."""
        if isinstance(old, ast.ImportFrom) and isinstance(new, ast.ImportFrom):
            added = {a.name for a in new.names if not a.asname} - {a.name for a in old.names}
            if not within and old.module and not old.level and added:
                names = tuple(sorted(added))
                yield Imported(module=old.module, names=names, line=old.lineno)
            return
        inner = within
        if isinstance(old, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{within}.{old.name}" if within else old.name
        for field in old._fields:
            place = inner if field == "body" else within
            yield from self.field(getattr(old, field, None), getattr(new, field, None), place)

    def field(self, old: object, new: object, within: str) -> Iterator[Difference]:
        """Compare one field of two nodes."""
        if isinstance(old, list) and isinstance(new, list):
            if all(isinstance(node, ast.stmt) for node in (*old, *new)):
                yield from self.body(old, new, within)
            elif len(old) == len(new):
                for first, second in zip(old, new, strict=True):
                    yield from self.field(first, second, within)
        elif isinstance(old, ast.expr) and isinstance(new, ast.expr):
            yield from self.expression(old, new, (), "", within)
        elif isinstance(old, ast.AST) and type(old) is type(new):
            for name in old._fields:
                yield from self.field(getattr(old, name, None), getattr(new, name, None), within)

    def expression(
        self,
        old: ast.expr,
        new: ast.expr,
        around: tuple[tuple[ast.expr, ast.expr], ...],
        keyword: str,
        within: str,
    ) -> Iterator[Difference]:
        """Follow a difference down to where it lies."""
        if same(old, new):
            return
        levels = (*around, (old, new))
        parts = _parts(old, new)
        if not parts:
            yield Changed(levels=levels, keyword=keyword, within=within)
        for first, second, name in parts:
            # With several parts that differ, no expression around them differs in one alone.
            outer = levels if len(parts) == 1 else ()
            yield from self.expression(first, second, outer, name, within)


def _parts(old: ast.expr, new: ast.expr) -> list[tuple[ast.expr, ast.expr, str]]:
    """The direct parts that differ; none if the two differ in more than such parts."""
    if type(old) is not type(new) or isinstance(old, ast.Lambda | ast.JoinedStr):
        return []
    found: list[tuple[ast.expr, ast.expr, str]] = []
    for name in old._fields:
        first, second = getattr(old, name, None), getattr(new, name, None)
        pairs: list[tuple[object, object]] = [(first, second)]
        if isinstance(first, list) and isinstance(second, list):
            if len(first) != len(second):
                return []
            pairs = list(zip(first, second, strict=True))
        for whole, new_whole in pairs:
            one, two, label = whole, new_whole, ""
            if isinstance(whole, ast.keyword) and isinstance(new_whole, ast.keyword):
                if whole.arg != new_whole.arg:
                    return []
                one, two, label = whole.value, new_whole.value, whole.arg or ""
            if isinstance(one, ast.expr) and isinstance(two, ast.expr):
                if not same(one, two):
                    found.append((one, two, label))
            elif isinstance(one, ast.AST) and isinstance(two, ast.AST):
                if not same(one, two):
                    return []
            elif one != two:
                return []
    return found


def _alike(old: ast.stmt, new: ast.stmt) -> bool:
    """Whether one statement may be what became of the other."""
    if type(old) is not type(new):
        return False
    match old, new:
        case (ast.ImportFrom(), ast.ImportFrom()):
            return (old.module, old.level) == (new.module, new.level)
        case (
            (ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()),
            (ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()),
        ):
            return old.name == new.name
        case (ast.Assign(), ast.Assign()):
            return list(map(ast.dump, old.targets)) == list(map(ast.dump, new.targets))
    return True


def _text(source: Source, statement: ast.stmt) -> bytes:
    start, end = source.span(statement)
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    start = min([start, *(source.span(node)[0] for node in decorators)])
    return source.data[start:end]
