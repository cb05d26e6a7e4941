"""What a Python function looks up by the architecture, and gives nothing for where there is no entry."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gatepatch.gates.python_prover import State
from gatepatch.gates.python_scope import name_of
from gatepatch.gates.python_source import Expression, Source
from gatepatch.scanning.found import Found
from gatepatch.scanning.python_guards import Statements
from gatepatch.scanning.python_verdicts import ScanMeaning
from gatepatch.scanning.records import Guards
from gatepatch.scanning.speaking import speaks


def look_ups(
    source: Source,
    tops: Sequence[Expression],
    state: State,
    statements: Statements,
    aliases: frozenset[str],
) -> Iterator[Found]:
    """Yield the look-ups by the architecture of which a function gives back what is found, or nothing.

    That is ``return TABLE.get(capability)``, and ``TABLE[capability]`` where a missing entry is caught. The
    table must be known: each look-up is asked whether there is an entry.
    """
    meaning = state.meaning
    assert isinstance(meaning, ScanMeaning)
    for top in tops:
        match top.node:
            case ast.Call(
                func=ast.Attribute(value=table, attr="get"), args=[key, *rest], keywords=[]
            ) if top.functions and all(map(_is_nothing, rest)):
                speaking = speaks(key, aliases) or speaks(table, aliases)
            case ast.Subscript(
                value=ast.Name() | ast.Attribute() as table,
                slice=ast.Name() | ast.Attribute() | ast.Tuple() | ast.Call() as key,
            ) if top.functions:
                speaking = speaks(key, aliases)
            case _:
                continue
        if not speaking:
            continue
        if not _gives(statements.around(top.node), top):
            continue
        asked = ast.copy_location(
            ast.Compare(left=key, ops=[ast.In()], comparators=[table]), top.node
        )
        meaning.read_file(aliases)
        verdict = meaning.verdict(asked, state.frame(top.functions, top.bound), once=True)
        if not verdict.is_gate or verdict.unknown:
            continue
        yield Found(
            line=top.node.lineno,
            end_line=top.node.end_lineno or top.node.lineno,
            within=top.within,
            language="python",
            kind="membership",
            text=source.text(top.node),
            rejects=False,
            verdict=verdict,
            guards=Guards(effect="value", lines=0),
            by_name=meaning.by_name,
        )


def _gives(statement: ast.stmt | None, top: Expression) -> bool:
    """Whether a look-up is all that a statement gives back; one that may fail, only where that is caught."""
    match statement:
        case ast.Return(value=value) if value is top.node:
            return isinstance(top.node, ast.Call) or _is_caught(statement, top)
        case ast.Assign(value=value) if value is top.node:
            return isinstance(top.node, ast.Subscript) and _is_caught(statement, top)
    return False


def _is_caught(statement: ast.stmt, top: Expression) -> bool:
    """Whether a statement of a function is tried, and what is raised where a key is missing caught."""
    return any(
        isinstance(part, ast.Try)
        and statement in part.body
        and any(
            handler.type is not None and name_of(handler.type) in ("KeyError", "LookupError")
            for handler in part.handlers
        )
        for part in ast.walk(top.functions[-1])
    )


def _is_nothing(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None | False) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset"), args=[]):
            return True
    return False
