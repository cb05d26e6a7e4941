"""Tuples of which a part is the architecture: ``(arch, block) in ROUTES``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gatepatch.boolean import atom
from gatepatch.gates.python_values import Const, Held, Opaque, Value, from_bool, text_of

if TYPE_CHECKING:
    from gatepatch.scanning.python_named import Named

_LONG = 400
"""How much is shown of a tuple that is not wholly known."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The keys that a tuple may be.

    Args:
        keys: Those that agree with its parts that are known.
        free: Whether there are parts that are not.
    """

    keys: list[Any]
    free: bool


def rows(evaluator: Named, key: Value, table: Value) -> Rows | None:
    """The keys of a table that a tuple may be; None where it may hide a test that is not told."""
    held = key.held if isinstance(key, Opaque) else None
    if held is None or not held.items or held.is_mapping:
        return None
    if not isinstance(table, Const) or not isinstance(table.value, tuple | frozenset | dict):
        return None
    count = len(held.items)
    keys = [row for row in table.value if isinstance(row, tuple) and len(row) == count]
    free = False
    for index, part in held.items.items():
        column = Const(tuple(row[index] for row in keys))
        known = evaluator.beside(part, column, ast.In())
        if isinstance(known, Const):
            keys = [row for row in keys if row[index] == known.value]
        elif keys and (not isinstance(part, Opaque) or part.unknown):
            return None
        else:
            free = True
    return Rows(sorted(keys, key=repr), free)


def entry_of(table: Const, key: Value, known: Rows, default: Value) -> Value:
    """What a table gives for a tuple, as far as its known parts tell."""
    if not known.keys:
        return Const(default.value, device=True) if isinstance(default, Const) else default
    if not known.free:
        return Const(table.value[known.keys[0]], device=True)
    entries = [table.value[row] for row in known.keys]
    shown = ", ".join(f"{row!r}: {one!r}" for row, one in zip(known.keys, entries, strict=True))
    options = [*entries, default.value] if isinstance(default, Const) else []
    text = f"{{{shown}}}"[:_LONG]
    return Opaque(f"{text}.get({text_of(key)})", held=Held(among=tuple(options)))


def same_parts(evaluator: Named, op: ast.cmpop, left: Value, right: Value) -> Value | None:
    """Whether a tuple is one that is known, part by part; None for anything else."""
    for one, other in ((left, right), (right, left)):
        match one, other:
            case Opaque(held=Held(items=items, is_mapping=False)), Const(
                value=tuple() as known, device=own
            ) if items and len(items) == len(known):
                found = rows(evaluator, one, Const((known,)))
                mine = own and known == (evaluator.arch.major, evaluator.arch.minor)
                if found is None or (mine and found.free):
                    return None
                positive = isinstance(op, ast.Eq)
                if not found.keys or not found.free:
                    return evaluator.device(bool(found.keys) is positive)
                word = "==" if positive else "!="
                return from_bool(atom(f"{text_of(one)} {word} {known!r}"[:_LONG]))
    return None


def membership(evaluator: Named, op: ast.cmpop, left: Value, right: Value) -> Value | None:
    """Whether a tuple is in a set, as far as its known parts tell; None where they do not."""
    found = rows(evaluator, left, right)
    if found is None:
        return None
    positive = isinstance(op, ast.In)
    if not found.keys or not found.free:
        return evaluator.device(bool(found.keys) is positive)
    evaluator.asked = True
    word = "in" if positive else "not in"
    keys = ", ".join(map(repr, found.keys))
    return from_bool(atom(f"{text_of(left)} {word} {{{keys}}}"[:_LONG]), device=True)
