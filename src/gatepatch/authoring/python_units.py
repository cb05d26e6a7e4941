"""The edits that may say what was changed in a Python file."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gatepatch.authoring.python_diff import Changed, Imported, Inserted, differences
from gatepatch.authoring.units import Judged, Place, Unit
from gatepatch.authoring.writer import UNPROVED
from gatepatch.edits import line_of
from gatepatch.gates.python_gates import membership, unit_of
from gatepatch.gates.python_prover import State
from gatepatch.gates.python_source import Expression, Source, flattened, same
from gatepatch.gates.result import Context
from gatepatch.spec import Edit, GateEdit, Import, Insert, Replace


def python_units(before: bytes, after: bytes, context: Context) -> list[Unit]:
    """What was changed, imports and insertions first: what they bring, the gates need.

    Gate edits say ``open``, whatever the goal turns out to be.

    Raises:
        RefusedError: The file is not UTF-8, or does not parse, before or after.
    """
    reader = _Reader(before, after, context)
    found = [unit for d in differences(reader.old, reader.new) for unit in reader.units(d)]
    return sorted(found, key=lambda unit: bool(unit.places))


class _Reader:
    """Both states of a file, and the packages around them."""

    def __init__(self, before: bytes, after: bytes, context: Context):
        path = context.path
        self.context = context
        self.old, self.new = Source(path, before), Source(path, after)
        self.before = State(path, self.old.tree, context.read, context.predicates)
        self.after = State(path, self.new.tree, context.read_after, context.predicates)
        self.tops = {id(top.node) for top in self.old.tops}

    def units(self, found: Imported | Inserted | Changed) -> Iterator[Unit]:
        match found:
            case Imported():
                for name in found.names:
                    yield Unit(
                        line=found.line,
                        text=f"from {found.module} import {name}",
                        places=(),
                        options=(Import(where="", module=found.module, name=name),),
                    )
            case Inserted():
                yield self.inserted(found)
            case Changed():
                yield self.changed(found)

    def inserted(self, found: Inserted) -> Unit:
        first, last = found.new[0], found.new[-1]
        decorators: list[ast.expr] = getattr(first, "decorator_list", [])
        line = min([first.lineno, *(node.lineno for node in decorators)])
        start, end = self.new.line_span(line, last.end_lineno or last.lineno)
        code = textwrap.dedent(self.new.data[start:end].replace(b"\r\n", b"\n").decode()).strip(
            "\n"
        )
        code = code if "\n" not in code else f"{code}\n"
        sides: list[tuple[Literal["before", "after"], ast.stmt | None]] = [
            ("after", found.previous),
            ("before", found.following),
        ]
        options = [
            Insert(
                where="",
                within=found.within or None,
                anchor=anchor,
                side=side,
                code=code,
                unproved=reason,
            )
            for reason in ("", UNPROVED)
            for side, neighbour in sides
            for anchor in self.anchors(neighbour)
        ]
        return Unit(line=line, text=code.split("\n")[0], places=(), options=tuple(options))

    def anchors(self, neighbour: ast.stmt | None) -> Iterator[str]:
        """How a statement may be named: by what it binds, or by its source."""
        match neighbour:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case None | ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                return
        text = self.old.text(neighbour)
        if "\n" not in text:
            yield text

    def changed(self, found: Changed) -> Unit:
        within = found.within or None
        options: list[Edit] = []
        inner, new_inner = found.levels[-1]
        if found.keyword and isinstance(inner, ast.List | ast.Tuple | ast.Set):
            options.append(GateEdit(where="", action="open", within=within, keyword=found.keyword))
        gates = [(a, b) for a, b in found.levels if id(a) in self.tops or _is_boolean(a)]
        for old, new in reversed(gates):
            options += self.gate(old, new, within)
        replaced = [
            Replace(where="", within=within, expression=self.pattern(a), by=self.new.text(b))
            for a, b in reversed(found.levels)
        ]
        options += replaced
        top = _around(self.old, inner)
        asks = top is not None and self.before.meaning.asks(
            top.node, self.before.frame(top.functions, top.bound)
        )
        if asks:
            gate_edits = [o for o in options if isinstance(o, GateEdit)]
            options += [_unproved(option) for option in gate_edits if option.operand]
            options += [_unproved(option) for option in replaced]
        start, _ = self.old.span(inner)
        return Unit(
            line=line_of(self.old.data, start),
            text=" ".join(self.old.text(found.levels[0][0]).split()),
            places=(self.place(inner, new_inner),),
            options=tuple(dict.fromkeys(options)),
            judged=self.judged(found),
        )

    def place(self, old: ast.expr, new: ast.expr) -> Place:
        start, end = self.old.outer(old)
        new_start, new_end = self.new.outer(new)
        return Place(start=start, end=end, new_start=new_start, new_end=new_end)

    def gate(self, old: ast.expr, new: ast.expr, within: str | None) -> Iterator[Edit]:
        """Edits of a condition: as the engine works them out, and with what was added."""
        parts = flattened(old) if isinstance(old, ast.BoolOp) else [old]
        windows = [parts]
        added: list[tuple[list[ast.expr], str]] = []
        if isinstance(new, ast.BoolOp):
            new_parts = flattened(new)
            if isinstance(old, ast.BoolOp) and type(old.op) is not type(new.op):
                parts = [old]
            for index in range(len(parts), 0, -1):
                extra = new_parts[index : len(new_parts) - len(parts) + index]
                rest = [*new_parts[:index], *new_parts[index + len(extra) :]]
                if extra and len(rest) == len(parts) and all(map(same, rest, parts)):
                    operand = self.operand(new, extra)
                    added += [(parts[first:index], operand) for first in range(index)]
                    windows += [parts[first:index] for first in range(index)]
        for window in windows:
            yield _gate(within, self.condition(old, window))
        for window, operand in added:
            yield _gate(within, self.condition(old, window), operand)

    def operand(self, chain: ast.BoolOp, extra: Sequence[ast.expr]) -> str:
        """What was added, as ``with`` has it: without the ``not`` that the engine puts there."""
        node = extra[0]
        if len(extra) > 1:
            return ast.unparse(ast.BoolOp(op=chain.op, values=list(extra)))
        if isinstance(chain.op, ast.And):
            match node:
                case ast.UnaryOp(op=ast.Not(), operand=inner):
                    node = inner
                case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
                    node = ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])
                case ast.Compare(left=left, ops=[ast.NotIn()], comparators=[right]):
                    node = ast.Compare(left=left, ops=[ast.In()], comparators=[right])
        return ast.unparse(node)

    def condition(self, old: ast.expr, window: Sequence[ast.expr]) -> str:
        if len(window) == 1:
            return self.pattern(window[0])
        assert isinstance(old, ast.BoolOp)
        if len(window) == len(flattened(old)):
            return self.pattern(old)
        return ast.unparse(ast.BoolOp(op=old.op, values=list(window)))

    def pattern(self, node: ast.expr) -> str:
        """An expression's source on one line."""
        text = self.old.text(node)
        return text if "\n" not in text and text.strip() == text else ast.unparse(node)

    def judged(self, found: Changed) -> Judged | None:
        inner, new_inner = found.levels[-1]
        literal = ast.List | ast.Tuple | ast.Set
        if found.keyword and isinstance(inner, literal) and isinstance(new_inner, literal):
            unit = unit_of(inner)
            if unit is not None:
                before, after = membership(inner, unit), membership(new_inner, unit)
                return Judged(before=before, after=after, shut=False)
        judged = [gate for a, b in found.levels if (gate := self.gate_of(a, b)) is not None]
        # What is largest comes first: what stands around a part may keep it shut.
        known = (gate for gate in judged if not (gate.before.unknown or gate.after.unknown))
        return next(known, judged[0] if judged else None)

    def gate_of(self, old: ast.expr, new: ast.expr) -> Judged | None:
        """The verdicts of one expression; None if it is no condition that asks the device."""
        one, two = _around(self.old, old), _around(self.new, new)
        if not _is_boolean(old) or one is None or two is None:
            return None
        frame = self.before.frame(one.functions, one.bound)
        new_frame = self.after.frame(two.functions, two.bound)
        if not (self.before.meaning.asks(old, frame) or self.after.meaning.asks(new, new_frame)):
            return None
        return Judged(
            before=self.before.meaning.verdict(old, frame),
            after=self.after.meaning.verdict(new, new_frame),
            shut=one.rejects,
        )


def _around(source: Source, node: ast.expr) -> Expression | None:
    """The smallest whole expression that a node stands in, or is."""
    start, end = source.span(node)
    best: tuple[int, Expression] | None = None
    for top in source.tops:
        first, last = source.span(top.node)
        if first <= start and end <= last and (best is None or last - first <= best[0]):
            best = (last - first, top)
    return best[1] if best else None


def _is_boolean(node: ast.expr) -> bool:
    return isinstance(
        node, ast.BoolOp | ast.UnaryOp | ast.Compare | ast.Call | ast.Name | ast.Attribute
    )


def _gate(within: str | None, condition: str, operand: str | None = None) -> GateEdit:
    return GateEdit(where="", action="open", within=within, condition=condition, operand=operand)


def _unproved(edit: GateEdit | Replace) -> Edit:
    return replace(edit, unproved=UNPROVED)
