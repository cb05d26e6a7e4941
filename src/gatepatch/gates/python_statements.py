"""Statements that an opened gate needs: imports, and code beside an anchor."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence

from gatepatch.boolean import to_text
from gatepatch.edits import ByteEdit, line_of
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.python_scope import Imported, Module, bind
from gatepatch.gates.python_source import Source, is_within, same
from gatepatch.gates.result import Change
from gatepatch.spec import Import, Insert
from gatepatch.verdict import Goal, Verdict

Guard = Callable[[Sequence[tuple[ast.expr, bool]], str], tuple[Verdict, Goal]]
"""The verdict of several conditions together, and what the set is to bring about."""


def plan_import(source: Source, module: Module, edit: Import) -> Change:
    """Import a name at the top of a module, beside what is imported from there already.

    Raises:
        RefusedError: The module binds the name to something else.
    """
    known = module.bindings.get(edit.name, [])
    if known and known != [Imported(edit.module, edit.name)]:
        raise RefusedError(
            Problem(
                message=f"binds {edit.name!r} to something else already",
                where=f"{source.path} ({edit.where})",
            )
        )
    wanted = f"from {edit.module} import {edit.name}"
    imports = [n for n in source.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    same_module = [
        n
        for n in imports
        if isinstance(n, ast.ImportFrom)
        and n.module == edit.module
        and n.level == 0
        and n.names[0].name != "*"
    ]
    if known:
        return _change(
            source, edit.where, same_module[0] if same_module else source.tree.body[0], wanted, ()
        )
    if same_module:
        node = same_module[0]
        start, end = source.span(node)
        old = source.data[start:end]
        new = _with_name(old.decode(), edit.name).encode()
        return _change(source, edit.where, node, wanted, (_smallest(start, old, new),))
    last = imports[-1] if imports else None
    if last is None:
        raise RefusedError(
            Problem(
                message="has no import at its top level to stand beside",
                where=f"{source.path} ({edit.where})",
                hint="use insert",
            )
        )
    _, end = source.line_span(last.lineno, last.end_lineno or last.lineno)
    return _change(
        source, edit.where, last, wanted, (ByteEdit(end, b"", wanted.encode() + source.newline),)
    )


def _with_name(statement: str, name: str) -> str:
    """Add a name to a ``from`` import, in its order and its layout."""
    import libcst as cst

    line = cst.parse_module(statement).body[0]
    node = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    assert isinstance(node, cst.ImportFrom)
    assert not isinstance(node.names, cst.ImportStar)
    names = list(node.names)
    texts = [str(alias.evaluated_name) for alias in names]
    position = len(names)
    if texts == sorted(texts, key=_natural):
        position = sum(_natural(text) < _natural(name) for text in texts)
    elif texts == sorted(texts):
        position = sum(text < name for text in texts)
    comma = names[0].comma
    if not isinstance(comma, cst.Comma):
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    new = cst.ImportAlias(name=cst.Name(name), comma=comma)
    if position == len(names):
        new = new.with_changes(comma=names[-1].comma)
        names[-1] = names[-1].with_changes(comma=comma)
    names.insert(position, new)
    changed = line.with_deep_changes(node, names=names)
    assert isinstance(changed, cst.SimpleStatementLine)
    return cst.Module([changed]).code.rstrip("\n")


def _natural(text: str) -> list[tuple[int, int | str]]:
    """Order with whole numbers by their value: sm90 before sm100."""
    parts = re.split(r"(\d+)", text)
    return [(0, int(p)) if p.isdigit() else (1, p) for p in parts if p]


def plan_insert(source: Source, edit: Insert, guard: Guard) -> Change:
    """Insert statements beside an anchor.

    Raises:
        RefusedError: There is not exactly one anchor, or the code is under no guard that shuts
            it for every architecture that the set does not name.
    """
    anchors = [
        (body, index, tests, within)
        for body, tests, within in _bodies(source.tree.body, (), "")
        if is_within(within, edit.within)
        for index, statement in enumerate(body)
        if _is_anchor(statement, edit.anchor)
    ]
    where = f"{source.path} ({edit.where})"
    if len(anchors) != 1:
        lines = ", ".join(f"line {body[i].lineno}" for body, i, _, _ in anchors[:10])
        raise RefusedError(
            Problem(
                message=f"expected 1 statement that is or binds `{edit.anchor}`, "
                f"found {len(anchors)}{': ' + lines if lines else ''}",
                where=where,
                hint="name another neighbour, or say within which function it stands",
            )
        )
    body, index, tests, within = anchors[0]
    new = ast.parse(edit.code).body
    anchor = body[index]
    if _stands(body, index, new, edit.side):
        return _change(source, edit.where, anchor, edit.code.strip(), (), within)
    if not edit.unproved:
        _prove(source, edit, new, tests, within, guard, where)
    first = anchor.lineno
    decorators = getattr(anchor, "decorator_list", [])
    if decorators:
        first = min(d.lineno for d in decorators)
    start, end = source.line_span(first, anchor.end_lineno or anchor.lineno)
    line = source.data[start:end]
    indent = line[: len(line) - len(line.lstrip(b" \t"))].decode()
    code = textwrap.indent(edit.code.strip("\n"), indent).encode().replace(b"\n", source.newline)
    at = start if edit.side == "before" else end
    ending = b"" if at == 0 or source.data[at - 1 : at] in (b"\n", b"\r") else source.newline
    return _change(
        source,
        edit.where,
        anchor,
        edit.code.strip(),
        (ByteEdit(at, b"", ending + code + source.newline),),
        within,
        unproved=edit.unproved,
    )


_Tests = tuple[tuple[ast.expr, bool], ...]


def _bodies(
    body: Sequence[ast.stmt], tests: _Tests, within: str
) -> Iterator[tuple[Sequence[ast.stmt], _Tests, str]]:
    yield body, tests, within
    for node in body:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                place = f"{within}.{name}" if within else name
                yield from _bodies(node.body, (), place)
            case ast.If(test=test):
                yield from _bodies(node.body, (*tests, (test, True)), within)
                yield from _bodies(node.orelse, (*tests, (test, False)), within)
            case _:
                for field in ("body", "orelse", "finalbody"):
                    inner = getattr(node, field, None)
                    if inner:
                        yield from _bodies(inner, tests, within)
                for handler in getattr(node, "handlers", []):
                    yield from _bodies(handler.body, tests, within)


def _is_anchor(statement: ast.stmt, anchor: str) -> bool:
    if anchor.isidentifier():
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            return False
        names: dict[str, list[object]] = {}
        bind(Module("", ast.Module([], [])), statement, names)  # type: ignore[arg-type]
        return anchor in names
    try:
        wanted = ast.parse(textwrap.dedent(anchor)).body
    except SyntaxError:
        return False
    return len(wanted) == 1 and same(wanted[0], statement)


def _stands(body: Sequence[ast.stmt], index: int, new: Sequence[ast.stmt], side: str) -> bool:
    start = index + 1 if side == "after" else index - len(new)
    there = body[max(start, 0) : start + len(new)]
    return len(there) == len(new) and all(same(a, b) for a, b in zip(there, new, strict=True))


def _prove(
    source: Source,
    edit: Insert,
    new: Sequence[ast.stmt],
    tests: _Tests,
    within: str,
    guard: Guard,
    where: str,
) -> None:
    if not within and _only_binds_new(source, new):
        return
    for statement in new:
        if not isinstance(statement, ast.If) or statement.orelse:
            raise RefusedError(
                Problem(
                    message=f"inserted code runs on every architecture: {ast.unparse(statement)}",
                    where=where,
                    hint="put it under an if that tests the architecture, or say in unproved: why "
                    "it may stand",
                )
            )
        found, goal = guard([*tests, (statement.test, True)], "")
        wrong = [
            f"{point}: {to_text(function)}"
            for point, function in found.table.items()
            if function is not False and point not in goal.archs
        ]
        if found.unknown or wrong:
            reason = "; ".join(found.unknown or wrong[:4])
            raise RefusedError(
                Problem(
                    message=f"the guard of inserted code does not shut it for every architecture "
                    f"that the set does not name: {ast.unparse(statement.test)}: {reason}",
                    where=where,
                )
            )


def _only_binds_new(source: Source, new: Sequence[ast.stmt]) -> bool:
    """Whether code at the top level does nothing but bind names that were free."""
    module = Module(source.path, source.tree)
    for statement in source.tree.body:
        bind(module, statement, module.bindings)
    for statement in new:
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.FunctionDef):
            return False
        names: dict[str, list[object]] = {}
        bind(module, statement, names)  # type: ignore[arg-type]
        if not names or any(name in module.bindings for name in names):
            return False
    return True


def _change(
    source: Source,
    where: str,
    node: ast.stmt,
    after: str,
    edits: tuple[ByteEdit, ...],
    within: str = "",
    *,
    unproved: str = "",
) -> Change:
    start, _ = source.span(node)
    line = line_of(source.data, start)
    return Change(
        where=where,
        line=line,
        end_line=node.end_lineno or line,
        within=within,
        before="" if edits else after,
        after=after,
        edits=edits,
        unproved=unproved,
    )


def _smallest(start: int, old: bytes, new: bytes) -> ByteEdit:
    """The edit between two texts without what they begin and end with in common."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return ByteEdit(start + head, old[head : len(old) - tail], new[head : len(new) - tail])
