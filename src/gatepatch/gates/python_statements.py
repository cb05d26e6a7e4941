"""Statements that an opened gate needs: imports, and code beside an anchor."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gatepatch.boolean import to_text
from gatepatch.edits import ByteEdit, line_of
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.python_prover import Prover, State
from gatepatch.gates.python_scope import Binding, FunctionNode, Imported, Module, bind
from gatepatch.gates.python_source import Source, is_within, same
from gatepatch.gates.result import Change
from gatepatch.spec import Import, Insert


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
    last = _last_import(source.tree.body)
    if last is None:
        raise RefusedError(
            Problem(
                message="has no import at its top level to stand beside",
                where=f"{source.path} ({edit.where})",
                hint="use insert",
            )
        )
    _, end = source.line_span(last.lineno, last.end_lineno or last.lineno)
    ends = source.data[end - 1 : end] in (b"\n", b"\r")
    text = wanted.encode() + source.newline if ends else source.newline + wanted.encode()
    return _change(source, edit.where, last, wanted, (ByteEdit(end, b"", text),))


def _last_import(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The last import before the first function or class: what follows those comes too late."""
    last = None
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and last:
            break
        if isinstance(node, ast.Import | ast.ImportFrom):
            last = node
    return last


def _with_name(statement: str, name: str) -> str:
    """Add a name to a ``from`` import, in its order and its layout."""
    import libcst as cst

    newline = "\r\n" if "\r\n" in statement else "\n"
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
    return cst.Module([changed], default_newline=newline).code.rstrip("\r\n")


def _natural(text: str) -> list[tuple[int, int | str]]:
    """Order with whole numbers by their value: sm90 before sm100."""
    parts = re.split(r"(\d+)", text)
    return [(0, int(p)) if p.isdigit() else (1, p) for p in parts if p]


_Tests = tuple[tuple[ast.expr, bool], ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """What of an insertion is still to be proved: that its guards shut it for all others.

    Args:
        new: The inserted statements.
        tests: The conditions of the ``if`` statements around them, each with the value taken.
        functions: The functions around them.
    """

    new: tuple[ast.stmt, ...]
    tests: _Tests
    functions: tuple[FunctionNode, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """A sequence of statements, and where it stands."""

    body: Sequence[ast.stmt]
    tests: _Tests = ()
    functions: tuple[FunctionNode, ...] = ()
    within: str = ""


def plan_insert(source: Source, state: State, edit: Insert) -> tuple[Change, Pending | None]:
    """Insert statements beside an anchor.

    Returns:
        What it does, and what is still to be proved of it.

    Raises:
        RefusedError: There is not exactly one anchor.
    """
    anchors = [
        (block, index)
        for block in _blocks(_Block(source.tree.body))
        if is_within(block.within, edit.within)
        for index, statement in enumerate(block.body)
        if _is_anchor(statement, edit.anchor)
    ]
    new = tuple(ast.parse(edit.code).body)
    there = [
        (block, index) for block, index in anchors if _stands(block.body, index, new, edit.side)
    ]
    if len(there) == 1:
        block, index = there[0]
        inserted = {
            id(n) for s in _neighbours(block.body, index, new, edit.side) for n in ast.walk(s)
        }
        # Inserted code may bind the anchor's own name.
        anchors = [(b, i) for b, i in anchors if id(b.body[i]) not in inserted]
    if len(anchors) != 1:
        lines = ", ".join(f"line {block.body[i].lineno}" for block, i in anchors[:10])
        raise RefusedError(
            Problem(
                message=f"expected 1 statement that is or binds `{edit.anchor}`, "
                f"found {len(anchors)}{': ' + lines if lines else ''}",
                where=f"{source.path} ({edit.where})",
                hint="name another neighbour, or say within which function it stands",
            )
        )
    block, index = anchors[0]
    anchor = block.body[index]
    code = edit.code.strip()
    if _stands(block.body, index, new, edit.side):
        return _change(source, edit.where, anchor, code, (), block.within), None
    edits = (_insertion(source, anchor, edit),)
    change = _change(source, edit.where, anchor, code, edits, block.within, unproved=edit.unproved)
    harmless = not block.functions and not block.within and _only_binds_new(state, new)
    if edit.unproved or harmless:
        return change, None
    return change, Pending(new, block.tests, block.functions)


def _insertion(source: Source, anchor: ast.stmt, edit: Insert) -> ByteEdit:
    decorators: list[ast.expr] = getattr(anchor, "decorator_list", [])
    first = min([anchor.lineno, *(d.lineno for d in decorators)])
    start, end = source.line_span(first, anchor.end_lineno or anchor.lineno)
    line = source.data[start:end]
    indent = line[: len(line) - len(line.lstrip(b" \t"))].decode()
    code = textwrap.indent(edit.code.strip("\n"), indent).encode().replace(b"\n", source.newline)
    if edit.side == "before":
        return ByteEdit(start, b"", code + source.newline)
    if source.data[end - 1 : end] in (b"\n", b"\r"):
        return ByteEdit(end, b"", code + source.newline)
    return ByteEdit(end, b"", source.newline + code)


def _blocks(block: _Block) -> Iterator[_Block]:
    yield block
    for node in block.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions = (*block.functions, node)
                yield from _blocks(_Block(node.body, (), functions, _join(block, node.name)))
            case ast.ClassDef():
                place = _join(block, node.name)
                yield from _blocks(_Block(node.body, (), block.functions, place))
            case ast.If(test=test):
                for body, taken in ((node.body, True), (node.orelse, False)):
                    tests = (*block.tests, (test, taken))
                    yield from _blocks(_Block(body, tests, block.functions, block.within))
            case _:
                for inner in _bodies(node):
                    yield from _blocks(_Block(inner, block.tests, block.functions, block.within))


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        if inner := getattr(node, field, None):
            yield inner
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _join(block: _Block, name: str) -> str:
    return f"{block.within}.{name}" if block.within else name


def _is_anchor(statement: ast.stmt, anchor: str) -> bool:
    if anchor.isidentifier():
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            return False
        return anchor in _names(statement)
    try:
        wanted = ast.parse(textwrap.dedent(anchor)).body
    except SyntaxError:
        return False
    return len(wanted) == 1 and same(wanted[0], statement)


def _stands(body: Sequence[ast.stmt], index: int, new: Sequence[ast.stmt], side: str) -> bool:
    there = _neighbours(body, index, new, side)
    return len(there) == len(new) and all(same(a, b) for a, b in zip(there, new, strict=True))


def _neighbours(
    body: Sequence[ast.stmt], index: int, new: Sequence[ast.stmt], side: str
) -> Sequence[ast.stmt]:
    start = index + 1 if side == "after" else index - len(new)
    return body[max(start, 0) : start + len(new)]


def prove_inserted(prover: Prover, edit: Insert, pending: Pending) -> None:
    """Prove that inserted code runs on no architecture that the set does not name.

    Raises:
        RefusedError: It may.
    """
    where = f"{prover.source.path} ({edit.where})"
    named = prover.context.goal.archs
    frame = prover.frame_after(pending.functions)
    for statement in pending.new:
        if not isinstance(statement, ast.If) or statement.orelse:
            raise RefusedError(
                Problem(
                    message=f"inserted code runs on every architecture: {ast.unparse(statement)}",
                    where=where,
                    hint="put it under an if that tests the architecture, or say in unproved: why "
                    "it may stand",
                )
            )
        tests = [
            test if taken else ast.UnaryOp(op=ast.Not(), operand=test)
            for test, taken in (*pending.tests, (statement.test, True))
        ]
        found = prover.after.meaning.verdict(ast.BoolOp(op=ast.And(), values=tests), frame)
        wrong = [
            f"{point}: {to_text(function)}"
            for point, function in found.table.items()
            if function is not False and point not in named
        ]
        # What is False whatever the unknown atoms are needs nothing to be known of them.
        if wrong:
            reason = "; ".join(found.unknown or wrong[:4])
            raise RefusedError(
                Problem(
                    message=f"the guard of inserted code does not shut it for every architecture "
                    f"that the set does not name: {ast.unparse(statement.test)}: {reason}",
                    where=where,
                )
            )


def _only_binds_new(state: State, new: Sequence[ast.stmt]) -> bool:
    """Whether code at the top level does nothing but bind names that were free."""
    for statement in new:
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.FunctionDef):
            return False
        targets = getattr(statement, "targets", [getattr(statement, "target", ast.Name(id=""))])
        if not all(isinstance(target, ast.Name) for target in targets):
            return False
        for name in _names(statement):
            if hasattr(builtins, name) or state.package.lookup(state.module, name) is not None:
                return False
            if name in state.module.bindings:
                return False
    return True


def _names(statement: ast.stmt) -> dict[str, list[Binding]]:
    names: dict[str, list[Binding]] = {}
    bind(Module("", ast.Module([], [])), statement, names)
    return names


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
