"""The edits that may say what was changed in a C or CUDA file's conditions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace

from gatepatch.authoring.units import Judged, Place, Unit
from gatepatch.authoring.writer import UNPROVED
from gatepatch.gates.cuda_macros import is_target_macro
from gatepatch.gates.cuda_prover import Prover
from gatepatch.gates.directives import Branch
from gatepatch.gates.preprocessor import ConditionError
from gatepatch.gates.preprocessor_tree import (
    Chain,
    Conditional,
    Expr,
    macros,
    operands,
    shape,
    strip,
    to_source,
)
from gatepatch.spec import Edit, GateEdit, Goal, Replace

_NO_GOAL = Goal(action="close", archs=frozenset())


def cuda_units(before: bytes, after: bytes) -> list[Unit]:
    """What was changed in conditions, equal changes together.

    Gate edits say ``open``, whatever the goal turns out to be.
    """
    old, new = Prover(before, _NO_GOAL), Prover(after, _NO_GOAL)
    groups: dict[tuple[str, str], list[tuple[Branch, Branch]]] = {}
    for one, two in _pairs(old, new):
        first, second = _expression(one), _expression(two)
        if first is not None and second is not None and shape(first) != shape(second):
            groups.setdefault((source_of(first), source_of(second)), []).append((one, two))
    return [_unit(old, new, pairs) for pairs in groups.values()]


def source_of(node: Expr) -> str:
    """Write a condition with no more parentheses than a reader needs."""
    inner = strip(node)
    if not isinstance(inner, Chain):
        return to_source(inner)
    parts = [
        f"({source_of(part)})" if isinstance(strip(part), Chain | Conditional) else source_of(part)
        for part in operands(inner)
    ]
    return f" {inner.operator} ".join(parts)


def _pairs(old: Prover, new: Prover) -> Iterator[tuple[Branch, Branch]]:
    """The conditions before and after that are each other's."""
    sides = list(old.scan.branches.values()), list(new.scan.branches.values())
    old_texts = [old.source[slice(*branch.span)] for branch in sides[0]]
    new_texts = [new.source[slice(*branch.span)] for branch in sides[1]]
    matcher = difflib.SequenceMatcher(None, old_texts, new_texts, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "replace" and j - i == m - k:
            yield from zip(sides[0][i:j], sides[1][k:m], strict=True)


def _expression(branch: Branch) -> Expr | None:
    found = branch.condition
    return None if isinstance(found, ConditionError) else found


def _unit(old: Prover, new: Prover, pairs: list[tuple[Branch, Branch]]) -> Unit:
    one, two = pairs[0]
    first, second = _expression(one), _expression(two)
    assert first is not None
    assert second is not None
    options: list[Edit] = []
    for condition in _windows(first, second):
        options.append(_gate(condition, len(pairs)))
    for condition, operand in _additions(first, second):
        options.append(_gate(condition, len(pairs), operand))
    swaps = [
        Replace(where="", expression=text, by=by, count=len(pairs))
        for text, by in _swaps(first, second, new.source)
    ]
    options += swaps
    options += [
        replace(o, unproved=UNPROVED) for o in options if isinstance(o, GateEdit) and o.operand
    ]
    if any(is_target_macro(name) for name in macros(first)):
        options += [replace(swap, unproved=UNPROVED) for swap in swaps]
    return Unit(
        line=one.directive.line,
        text=" ".join(old.source[slice(*one.span)].decode("utf-8", "backslashreplace").split()),
        places=tuple(_place(a, b) for a, b in pairs),
        options=tuple(dict.fromkeys(options)),
        judged=Judged(
            before=old.verdict(one),
            after=new.verdict(two),
            shut=old.scan.rejects(old.source, one),
        ),
    )


def _gate(condition: str, count: int, operand: str | None = None) -> GateEdit:
    return GateEdit(where="", action="open", condition=condition, operand=operand, count=count)


def _place(old: Branch, new: Branch) -> Place:
    return Place(
        start=old.directive.start,
        end=old.directive.end,
        new_start=new.directive.start,
        new_end=new.directive.end,
    )


def _differing(old: Expr, new: Expr) -> tuple[int, int] | None:
    """Which operands of a chain differ, from the first to behind the last, where none was added."""
    first, second = operands(old), operands(new)
    if not _same_chain(old, new) or len(first) != len(second):
        return None
    differ = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if shape(a) != shape(b)]
    return differ[0], differ[-1] + 1


def _same_chain(old: Expr, new: Expr) -> bool:
    first, second = strip(old), strip(new)
    return (
        isinstance(first, Chain) and isinstance(second, Chain) and first.operator == second.operator
    )


def _windows(old: Expr, new: Expr) -> Iterator[str]:
    """Conditions to name: the bounds that stand together, what differs, and the whole."""
    parts = operands(old)
    if (span := _differing(old, new)) is not None:
        start, end = span
        low, high = start, end
        while low > 0 and _is_bound(parts[low - 1]):
            low -= 1
        while high < len(parts) and _is_bound(parts[high]):
            high += 1
        yield _joined(old, low, high)
        yield _joined(old, start, end)
        if end - start == 1:  # what differs may lie deeper
            inner, new_inner = strip(parts[start]), strip(operands(new)[start])
            if isinstance(inner, Chain):
                yield from _windows(inner, new_inner)
    yield source_of(old)
    for index in range(len(parts)):
        yield _joined(old, index, index + 1)


def _is_bound(node: Expr) -> bool:
    inner = strip(node)
    names = macros(inner)
    return (
        not isinstance(inner, Chain)
        and bool(names)
        and all(map(is_target_macro, names))
        and (source_of(inner) != f"defined({names[0]})")
    )


def _joined(chain: Expr, start: int, end: int) -> str:
    parts = operands(chain)[start:end]
    if len(parts) == 1:
        return source_of(parts[0])
    inner = strip(chain)
    assert isinstance(inner, Chain)
    return source_of(Chain(inner.operator, parts))


def _additions(old: Expr, new: Expr) -> Iterator[tuple[str, str]]:
    """Conditions to name, each with the operand that was added behind it."""
    if (span := _differing(old, new)) is not None and span[1] - span[0] == 1:
        yield from _additions(operands(old)[span[0]], operands(new)[span[0]])
        return
    parts = operands(old) if _same_chain(old, new) else (strip(old),)
    new_parts = operands(new)
    if not isinstance(strip(new), Chain):
        return
    for index in range(len(parts), 0, -1):
        extra = new_parts[index : len(new_parts) - len(parts) + index]
        rest = [*new_parts[:index], *new_parts[index + len(extra) :]]
        if extra and list(map(shape, rest)) == list(map(shape, parts)):
            chain = strip(new)
            assert isinstance(chain, Chain)
            operand = source_of(extra[0] if len(extra) == 1 else Chain(chain.operator, extra))
            for start in range(index):
                whole = Chain(chain.operator, tuple(parts[start:index]))
                yield source_of(parts[start] if index - start == 1 else whole), operand


def _swaps(old: Expr, new: Expr, source: bytes) -> Iterator[tuple[str, str]]:
    """Expressions to replace, and by what: as one writes it, and as it stands in the file."""
    if (span := _differing(old, new)) is not None:
        yield _joined(old, *span), _joined(new, *span)
    yield source_of(old), source_of(new)
    inner = strip(new)
    text = source[inner.start : inner.end].decode("utf-8", "backslashreplace")
    if "\n" not in text:
        yield source_of(old), text
