"""Edits that might open or close a gate, simplest first; the engine proves each before its use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from gatepatch.arch import TABLE, Arch, CudaPass, Suffix
from gatepatch.edits import ByteEdit, splice
from gatepatch.gates.cuda_macros import ARCH, FAMILY, SPECIFIC, is_target_macro, target_macro
from gatepatch.gates.cuda_site import Match, is_balanced
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_eval import Known, integer
from gatepatch.gates.preprocessor_tokens import splice_lines
from gatepatch.gates.preprocessor_tree import (
    Binary,
    Chain,
    Conditional,
    Expr,
    Group,
    Number,
    macros,
    operands,
    shape,
    strip,
    walk,
)
from gatepatch.spec import Goal

Edits: TypeAlias = "tuple[ByteEdit, ...]"
Operator: TypeAlias = 'Literal["&&", "||"]'

_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DIGITS = re.compile(r"0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*")


def candidates(
    buffer: bytes, match: Match, goal: Goal, operand: str | None = None
) -> Iterator[Edits]:
    """Yield edits of a condition's buffer that might bring the goal about where a pattern matched.

    Args:
        operand: The operand to add, where the set's author gives it; nothing else is tried then.
    """
    if operand is not None:
        operator: Operator = "||" if goal.action == "open" else "&&"
        term = as_operand(operand, operator)
        yield from _added(buffer, match, operator, term, derived=False)
        return
    for node in match.nodes:
        yield from _bounds(buffer, node, goal)
    yield from _terms(buffer, match, goal)


def as_operand(text: str, operator: str) -> str:
    """Put an expression in parentheses if a chain of this operator would tear it apart."""
    node = parse(text.encode())
    if isinstance(node, Conditional) or (isinstance(node, Chain) and node.operator != operator):
        return f"({text})"
    return text


def _bounds(buffer: bytes, node: Expr, goal: Goal) -> Iterator[Edits]:
    """Move each bound inside a node so that it takes the architectures in, or leaves them out."""
    for comparison in walk(node):
        if not isinstance(comparison, Binary) or comparison.operator not in _REVERSED:
            continue
        side, limit, operator = comparison.left, comparison.right, comparison.operator
        if isinstance(strip(side), Number):
            side, limit, operator = limit, side, _REVERSED[operator]
        number = strip(limit)
        names = macros(side)
        if not isinstance(number, Number) or not names or not all(map(is_target_macro, names)):
            continue
        old = buffer[number.start : number.end]
        # A guard that rejects opens where one that admits closes, so both ways are tried.
        outward = (operator in ("<", "<=")) == (goal.action == "open")
        for beyond in (outward, not outward):
            bound = _bound(side, operator, number.value, goal, beyond=beyond)
            if bound is not None and bound != number.value:
                new = _DIGITS.sub(str(bound), splice_lines(old).text, count=1)
                yield (ByteEdit(number.start, old, new.encode()),)


def _bound(side: Expr, operator: str, present: int, goal: Goal, *, beyond: bool) -> int | None:
    """Work out the bound at which the architectures change sides: behind them, or before."""
    lowest, highest = min(goal.archs), max(goal.archs)
    arch = _next(highest) if beyond else lowest
    edge = None if arch is None else _at(side, arch)
    if edge is None or operator in ("<", ">="):
        return edge
    if beyond and present % 10 != 9:
        return _at(side, highest)
    return edge - 1


def _next(arch: Arch) -> Arch | None:
    return next((other for other in TABLE if other > arch), None)


def _at(side: Expr, arch: Arch) -> int | None:
    """The value of an expression of target macros where all of them are defined."""
    compilation = CudaPass(arch, Suffix.ARCHITECTURE)
    return integer(side, lambda name: Known(target_macro(name, compilation)))


def _terms(buffer: bytes, match: Match, goal: Goal) -> Iterator[Edits]:
    """Add a test of the architectures, by ``||`` or by ``&&``, to one operand or to all."""
    names = [name for node in match.nodes for name in macros(node)]
    order: tuple[Operator, ...] = ("||", "&&") if goal.action == "open" else ("&&", "||")
    for operator in order:
        for kind in _kinds(names):
            term = _admits(kind, goal.archs) if operator == "||" else _leaves_out(kind, goal.archs)
            yield from _added(buffer, match, operator, term)


def _kinds(names: Sequence[str]) -> tuple[str, ...]:
    """Order the kinds of target macro: those that the gate itself tests come first."""
    own = [
        name if name in (SPECIFIC, FAMILY) else "feature"
        for name in names
        if name != ARCH and is_target_macro(name)
    ]
    return tuple(dict.fromkeys([*own, ARCH, "feature", SPECIFIC, FAMILY]))


def _feature(arch: Arch) -> str:
    return f"defined(__CUDA_ARCH_FEAT_SM{arch.sm}_ALL)"


def _admits(kind: str, archs: frozenset[Arch]) -> str:
    if kind == "feature":
        return " || ".join(_feature(arch) for arch in sorted(archs))
    return " || ".join(
        f"{kind} == {low}" if high is None else f"({kind} >= {low} && {kind} < {high})"
        for low, high in _ranges(archs)
    )


def _leaves_out(kind: str, archs: frozenset[Arch]) -> str:
    if kind == "feature":
        return " && ".join(f"!{_feature(arch)}" for arch in sorted(archs))
    return " && ".join(
        f"{kind} != {low}" if high is None else f"!({kind} >= {low} && {kind} < {high})"
        for low, high in _ranges(archs)
    )


def _ranges(archs: frozenset[Arch]) -> Iterator[tuple[int, int | None]]:
    """Yield the first and the bound behind the last of each row of neighbours in the table."""
    rest = sorted(archs)
    while rest:
        row = [rest.pop(0)]
        while rest and _next(row[-1]) == rest[0]:
            row.append(rest.pop(0))
        following = _next(row[-1])
        if len(row) > 1 and following is not None:
            yield row[0].cuda_arch, following.cuda_arch
        else:
            yield from ((arch.cuda_arch, None) for arch in row)


def _added(
    buffer: bytes, match: Match, operator: Operator, term: str, *, derived: bool = True
) -> Iterator[Edits]:
    """Add a term to all that matched, and to each operand of it.

    A derived one goes to a single operand first: ``defined(X) && (A || B)`` reads better than
    ``((defined(X) && A) || B)``.
    """
    if len(match.nodes) == 1:
        yield _join(match.nodes[0], match.around, operator, term)
        return
    together = (
        [_join_run(match, operator, term)] if is_balanced(buffer[match.start : match.end]) else []
    )
    singly = [_join(node, match.operator, operator, term) for node in match.nodes]
    narrow = derived and (operator, match.operator) == ("||", "&&")
    yield from singly + together if narrow else together + singly


def _join(node: Expr, around: str, operator: Operator, term: str) -> Edits:
    while isinstance(node, Group):
        node, around = node.inner, ""
    mixed = isinstance(node, Conditional) or (isinstance(node, Chain) and node.operator != operator)
    return _wrap(node.start, node.end, mixed, around, operator, term)


def _join_run(match: Match, operator: Operator, term: str) -> Edits:
    mixed = match.operator != operator
    return _wrap(match.start, match.end, mixed, match.around, operator, term)


def _wrap(start: int, end: int, mixed: bool, around: str, operator: Operator, term: str) -> Edits:
    outer = around not in ("", operator)
    before = "(" * (outer + mixed)
    after = f"{')' * mixed} {operator} {term}{')' * outer}"
    opening = (ByteEdit(start, b"", before.encode()),) if before else ()
    return (*opening, ByteEdit(end, b"", after.encode()))


def swaps(buffer: bytes, match: Match, text: str) -> Edits:
    """Put an expression in a match's place, operand by operand where there are as many.

    Empty where it cannot be done: the match begins inside parentheses and ends outside.
    """
    new = parse(text)
    parts = operands(new)
    chain = strip(new)
    same = isinstance(chain, Chain) and chain.operator == match.operator
    if same and len(parts) == len(match.nodes):
        return tuple(
            _swap(buffer, strip(node).start, strip(node).end, _source(text, strip(part)))
            for node, part in zip(match.nodes, parts, strict=True)
            if shape(node) != shape(part)
        )
    if len(match.nodes) == 1:
        node = strip(match.nodes[0])
        return (_swap(buffer, node.start, node.end, text),)
    if is_balanced(buffer[match.start : match.end]):
        return (_swap(buffer, match.start, match.end, text),)
    return ()


def _source(text: str, node: Expr) -> str:
    return text.encode()[node.start : node.end].decode()


def _swap(buffer: bytes, start: int, end: int, text: str) -> ByteEdit:
    """Replace an expression, in parentheses where it would be torn apart without."""
    old = buffer[start:end]
    bare, grouped = (ByteEdit(start, old, new.encode()) for new in (text, f"({text})"))
    meant = shape(parse(splice(buffer, [grouped])))
    try:
        kept = shape(parse(splice(buffer, [bare]))) == meant
    except ConditionError:
        kept = False
    return bare if kept else grouped
