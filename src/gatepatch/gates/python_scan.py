"""List the gates of a Python file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gatepatch.arch import Arch
from gatepatch.edits import line_of
from gatepatch.gates.python_gates import membership, unit_of
from gatepatch.gates.python_prover import State
from gatepatch.gates.python_scope import hides
from gatepatch.gates.python_source import Expression, Source
from gatepatch.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition that tests the architecture, or that may, or a list of architectures.

    Args:
        kind: ``condition``, or ``list`` for one that is handed to a call.
        line: Its first line, from 1.
        end_line: Its last.
        start: Its first byte in the file.
        end: The byte behind its last.
        within: Qualified name of the function or class around it.
        text: The source as it stands.
        rejects: Whether what it guards turns the caller away when it holds.
        verdict: Its value on each architecture.
    """

    kind: Literal["condition", "list"]
    line: int
    end_line: int
    start: int
    end: int
    within: str
    text: str
    rejects: bool
    verdict: Verdict


def gates_in(
    source: bytes,
    path: str,
    read: Callable[[str], bytes | None],
    predicates: Mapping[str, frozenset[Arch]] | None = None,
) -> tuple[Gate, ...]:
    """List the gates of a Python file, in order.

    Args:
        source: The file.
        path: Where it stands, from where the distribution is imported.
        read: Returns the bytes of another file of the distribution; None if there is none.
        predicates: Dotted name to the architectures for which that predicate holds.

    Raises:
        RefusedError: The file is not UTF-8, or does not parse.
    """
    parsed = Source(path, source)
    state = State(path, parsed.tree, read, predicates or {})
    found = [*_conditions(parsed, state), *_lists(parsed)]
    return tuple(sorted(found, key=lambda gate: (gate.start, -gate.end)))


def _conditions(source: Source, state: State) -> Iterator[Gate]:
    called = {id(call.func) for call, _ in source.calls()}
    end = 0
    for top in source.tops:
        start, stop = source.span(top.node)
        if start < end or id(top.node) in called or not _may_be_gate(top):
            continue  # or inside a gate that is listed already
        frame = state.frame(top.functions, top.bound)
        if not state.meaning.asks(top.node, frame):
            continue
        verdict = state.meaning.verdict(top.node, frame)
        plain = isinstance(top.node, ast.Name | ast.Attribute | ast.Call) and not top.tested
        if plain and verdict.unknown:
            continue
        if (verdict.is_gate or verdict.unknown) and state.meaning.is_truth(top.node, frame):
            yield _gate(source, top, verdict)
            end = stop


def _may_be_gate(top: Expression) -> bool:
    """Whether an expression is a condition by its form, or tested as one, or a predicate."""
    match top.node:
        case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return top.tested or bool(hides(name))
        case ast.Call(func=func):
            return top.tested or bool(hides(ast.unparse(func).rpartition(".")[2]))
    return False


def _gate(source: Source, top: Expression, verdict: Verdict) -> Gate:
    start, end = source.span(top.node)
    return Gate(
        kind="condition",
        line=line_of(source.data, start),
        end_line=line_of(source.data, end - 1),
        start=start,
        end=end,
        within=top.within,
        text=source.text(top.node),
        rejects=top.rejects,
        verdict=verdict,
    )


def _lists(source: Source) -> Iterator[Gate]:
    for call, within in source.calls():
        name = ast.unparse(call.func).rpartition(".")[2]
        parts = [(name, arg) for arg in call.args]
        parts += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
        for label, node in parts:
            if not isinstance(node, ast.Tuple | ast.List | ast.Set) or not _names(label):
                continue
            if (unit := unit_of(node)) is not None:
                start, end = source.span(node)
                yield Gate(
                    kind="list",
                    line=line_of(source.data, start),
                    end_line=line_of(source.data, end - 1),
                    start=start,
                    end=end,
                    within=within,
                    text=source.text(node),
                    rejects=False,
                    verdict=membership(node, unit),
                )


def _names(label: str) -> bool:
    """Whether a name says that what it is given is architectures."""
    return bool(hides(label)) or "major" in label
