"""The gates in a Python file: conditions, and architectures that are listed."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from gatepatch.gates.python_prover import State
from gatepatch.gates.python_scope import hides, name_of
from gatepatch.gates.python_source import Expression, Source
from gatepatch.scanning import names
from gatepatch.scanning.borrowed import Given, imported, lent
from gatepatch.scanning.found import Found
from gatepatch.scanning.prefilter import alias_lines, naming, python_lines
from gatepatch.scanning.python_asked import asks, verdict_of
from gatepatch.scanning.python_elsewhere import asks_elsewhere, is_named_alone
from gatepatch.scanning.python_guards import Statements
from gatepatch.scanning.python_lookups import look_ups
from gatepatch.scanning.python_meaning import Modules
from gatepatch.scanning.python_paths import passed
from gatepatch.scanning.python_tables import listed
from gatepatch.scanning.python_verdicts import ScanMeaning
from gatepatch.scanning.records import Kind
from gatepatch.scanning.speaking import says_so, speaks
from gatepatch.verdict import Verdict

Gates: TypeAlias = "tuple[list[Found], list[str]]"

_KEPT = 800_000
"""How many bytes of source are kept as syntax."""

_NAMED = re.compile(r"(?:sm|compute|sm_)_?\d{2,3}[af]?")


class PythonScanner:
    """Finds the gates of one distribution's Python files.

    Args:
        read: Returns the bytes of another file of the distribution; None if there is none.
    """

    def __init__(self, read: Callable[[str], bytes | None]):
        self._read = read
        self._bytes = 0
        self._meaning = self._fresh()

    def _fresh(self) -> ScanMeaning:
        self._bytes = 0
        return ScanMeaning(Modules(self._counted))

    def _counted(self, path: str) -> bytes | None:
        data = self._read(path)
        self._bytes += len(data or b"")
        return data

    def scan(self, path: str, data: bytes, given: Given | None = None) -> Gates:
        """The gates of a file, in order, and its predicates that other files may ask.

        Args:
            path: The file.
            data: Its text.
            given: Predicates of other files; only what hangs on those is looked for.

        Raises:
            RefusedError: It does not parse, or is not UTF-8.
        """
        lines = python_lines(data)
        if not lines and not given:
            return [], []
        # What other files say is kept for the next one, and syntax takes some fifty times its text.
        self._bytes += len(data)
        if self._bytes > _KEPT:
            self._meaning = self._fresh()
        source = Source(path, data)
        lines, aliases = alias_lines(data, source.tree, lines)
        state = State(path, source.tree, self._read, {}, self._meaning, data)
        if given:
            asked = imported(state.package, state.module, data, given)
            if not asked:
                return [], []
            asking = naming(data, sorted(asked))
            every, aliases = alias_lines(data, source.tree, [*lines, *asking], aliases | asked)
            lines = sorted({*asking, *every}.difference({*lines}.difference(asking)))
        tops = [part for top in source.tops_on(lines) for part in (top, *_chosen_in_text(top))]
        statements = Statements(source.tree)
        found = [
            *_conditions(source, tops, state, statements, aliases),
            *listed(source, tops, state.module, statements),
            *look_ups(source, tops, state, statements, aliases),
        ]
        if given:
            # What was not known before, and is not known now, is for the round that saw all lines.
            found = [one for one in found if not one.unknown]
        found.sort(key=lambda one: (one.line, one.end_line))
        return found, lent(found, aliases, state.module)


def _conditions(
    source: Source,
    tops: Sequence[Expression],
    state: State,
    statements: Statements,
    aliases: frozenset[str],
) -> Iterator[Found]:
    meaning = state.meaning
    assert isinstance(meaning, ScanMeaning)
    end = 0
    candidates = [
        (*source.span(top.node), top)
        for top in tops
        if _is_condition(top, aliases) and (speaks(top.node, aliases) or asks(top, aliases))
    ]
    for start, stop, top in sorted(candidates, key=lambda found: (found[0], -found[1])):
        if start < end:
            continue  # inside a gate that is listed already
        if statements.fills(top):
            continue
        top = replace(top, rejects=statements.rejects(top))
        frame = state.frame(top.functions, top.bound)
        verdict = verdict_of(top, frame, meaning, aliases)
        if verdict is None:
            continue
        by_name = meaning.by_name
        gate = verdict.is_gate or verdict.unknown
        if verdict.unknown and (
            _is_told_by_body(top)
            or asks_elsewhere(top, verdict)
            or is_named_alone(top, frame, meaning.package, aliases)
        ):
            continue
        if gate or meaning.is_for_another(verdict, top.node, frame):
            known = passed(top.node, top.functions, meaning.package)
            verdict = meaning.narrowed(verdict, known, frame, rejects=top.rejects)
            yield _found(source, top, verdict, statements, by_name=by_name)
            end = stop


def _chosen_in_text(top: Expression) -> Iterator[Expression]:
    """The conditions that pick a part of an f-string, at its place: inside, places are wrong before Python 3.12."""
    if not isinstance(top.node, ast.JoinedStr):
        return
    for part in top.node.values:
        match part:
            case ast.FormattedValue(value=ast.IfExp(test=test)):
                test = copy.deepcopy(test)
                for node in ast.walk(test):
                    ast.copy_location(node, top.node)
                yield replace(top, node=test, tested=True)


def _is_condition(top: Expression, aliases: frozenset[str]) -> bool:
    """Whether an expression is a condition by its form, or tested as one, or a predicate."""
    match top.node:
        case ast.BoolOp(op=ast.Or(), values=values) if not top.tested and all(
            names.is_number(name_of(value)) for value in values
        ):
            return False  # one architecture, or another
        case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name() | ast.Attribute() | ast.BinOp(op=ast.BitAnd()):
            return top.tested
        case ast.Call():
            return top.tested or _is_predicate(top.node, aliases)
    return False


def _is_predicate(call: ast.Call, aliases: frozenset[str]) -> bool:
    """Whether a call is of a predicate, as far as its name or the file says."""
    name = name_of(call.func)
    if says_so(name):
        return True
    match call.func:
        case ast.Name():
            return f"={name}" in aliases
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return f"=.{name}" in aliases
        case ast.Attribute(value=ast.Name(id=base)):
            return f"={base}.{name}" in aliases
    return False


def _is_told_by_body(top: Expression) -> bool:
    """Whether an expression is a predicate for what it is defined as alone: not by its name or place."""
    match top.node:
        case ast.Call(func=func):
            return not top.tested and names.predicate(name_of(func)) is None
    return False


def _found(
    source: Source, top: Expression, verdict: Verdict, statements: Statements, *, by_name: bool
) -> Found:
    node = top.node
    return Found(
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        within=top.within,
        language="python",
        kind=_kind(node),
        text=source.text(node),
        rejects=top.rejects,
        verdict=verdict,
        guards=statements.guards(top),
        compiled=statements.compiled(top),
        by_name=by_name,
        unknown=verdict.unknown,
    )


def _kind(node: ast.expr) -> Kind:
    """What kind of condition it is, by the first comparison in it that may be of architectures."""
    for part in ast.walk(node):
        if not isinstance(part, ast.Compare):
            continue
        sides = [part.left, *part.comparators]
        if all(isinstance(o, ast.Constant) and o.value is None for o in part.comparators):
            continue
        inner = [item for side in sides for item in ast.walk(side)]
        if any(isinstance(i, ast.Attribute) and _NAMED.fullmatch(i.attr) for i in inner):
            return "enum"
        texts = [i.value for i in inner if isinstance(i, ast.Constant) and isinstance(i.value, str)]
        if any(_NAMED.search(text) for text in texts):
            return "string"
        smells = any(
            isinstance(i, ast.Name | ast.Attribute)
            and hides(i.id if isinstance(i, ast.Name) else i.attr)
            for i in inner
        )
        numbers = any(isinstance(i, ast.Constant) and isinstance(i.value, int) for i in inner)
        if not (smells or numbers):
            continue
        if any(isinstance(op, ast.In | ast.NotIn) for op in part.ops):
            return "membership"
        if numbers or smells:
            return "comparison"
    return "predicate"
