"""Conditions that hand the architecture to a function: what that says of it, where it is told."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gatepatch.boolean import atom, atoms
from gatepatch.gates.python_scope import Assigned, name_of
from gatepatch.gates.python_source import Expression
from gatepatch.gates.python_values import Frame, Raises, text_of
from gatepatch.scanning.python_givens import LONG
from gatepatch.scanning.python_verdicts import ScanMeaning
from gatepatch.scanning.speaking import ASKS, answered, asks_of_one, speaks
from gatepatch.verdict import Verdict


def asks(top: Expression, aliases: frozenset[str]) -> bool:
    """Whether a condition asks a function about an architecture: not what it gives, or else another value."""
    if isinstance(top.node, ast.BoolOp) and isinstance(top.node.op, ast.Or) and not top.tested:
        return False
    return asks_of_one(top.node, aliases | {ASKS})


def verdict_of(
    top: Expression, frame: Frame, meaning: ScanMeaning, aliases: frozenset[str]
) -> Verdict | None:
    """The truth of a condition; None where what a function says is not told, or always the same.

    Where that is yes or no for some architectures, and not told for others, it depends there.
    """
    alone = not speaks(top.node, aliases)
    meaning.read_file(aliases | {ASKS} if alone else aliases)
    verdict = meaning.verdict(top.node, frame, rejects=top.rejects, once=alone)
    if not alone:
        return _looked_into(top, frame, meaning, aliases | {ASKS}, verdict)
    if not verdict.unknown:
        asked = _asked(top.node, frame, aliases | {ASKS}) if verdict.is_gate else set()
        if not verdict.is_gate or not _is_in_vain(verdict, asked):
            return verdict if verdict.is_gate else None
        verdict = meaning.further(top.node, frame, rejects=top.rejects)
        told = verdict.is_gate and not verdict.unknown and not _is_in_vain(verdict, asked)
        return verdict if told else None
    functions = {*verdict.table.values()}
    unknown = {one for one in functions if any(part.unknown for part in atoms(one))}
    known = functions - unknown
    if not known or not all(isinstance(one, bool) for one in known):
        return None
    free = atom(ast.unparse(top.node)[:LONG])
    return Verdict({point: free if one in unknown else one for point, one in verdict.table.items()})


def _looked_into(
    top: Expression, frame: Frame, meaning: ScanMeaning, aliases: frozenset[str], verdict: Verdict
) -> Verdict:
    """A verdict with what the functions say that its condition asks about an architecture, where that is told."""
    if verdict.unknown or not verdict.is_gate:
        return verdict
    calls = [f"{name}(" for name in _asked(top.node, frame, aliases)]
    disputed = [
        point
        for point, function in verdict.table.items()
        if any(call in part.text for part in atoms(function) for call in calls)
    ]
    if not disputed:
        return verdict
    meaning.read_file(aliases)
    if not meaning.tells(disputed[0], top.node, frame, calls):
        return verdict
    found = meaning.further(top.node, frame, rejects=top.rejects, whole=False)
    told = {
        point: verdict.table[point] if any(part.unknown for part in atoms(one)) else one
        for point, one in found.table.items()
    }
    return Verdict(told)


def _names_any(verdict: Verdict, texts: Sequence[str]) -> bool:
    """Whether one of some texts is in what a verdict depends on."""
    functions = {*verdict.table.values()}
    return any(text in part.text for each in functions for part in atoms(each) for text in texts)


def _asked(node: ast.expr, frame: Frame, aliases: frozenset[str]) -> set[str]:
    """The functions that a condition hands an architecture to, itself or by a name for what they say."""
    found: set[str] = set()
    for part in ast.walk(node):
        if not isinstance(part, ast.expr) or not answered(part, aliases):
            continue
        if isinstance(part, ast.Call):
            found.add(name_of(part.func))
        elif isinstance(part, ast.Name):
            bindings = frame.locals.get(part.id, ())
            values = [one.value for one in bindings if isinstance(one, Assigned)]
            found |= {name_of(value.func) for value in values if isinstance(value, ast.Call)}
    return found


def _is_in_vain(verdict: Verdict, asked: set[str]) -> bool:
    """Whether a condition is told of no architecture, and a function that it asks was not followed.

    A call of it is still to be seen, or what it raises.
    """
    if any(isinstance(one, bool) for one in verdict.table.values()):
        return False
    return _names_any(verdict, [*(f"{name}(" for name in asked), text_of(Raises())])
