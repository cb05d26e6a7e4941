"""The Python engine: find gates by structure, work edits out, prove them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gatepatch.arch import TABLE
from gatepatch.edits import ByteEdit, line_of, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates import explain, python_statements
from gatepatch.gates.python_candidates import UNITS, Literal, candidates, constant, literal_edits
from gatepatch.gates.python_meaning import Frame, replaced, verdict
from gatepatch.gates.python_scope import FunctionNode, Module, Package, local_bindings
from gatepatch.gates.python_source import Expression, Match, Source, flattened
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.gates.text import plan_text
from gatepatch.spec import Edit, GateEdit, Import, Insert, Replace, Text
from gatepatch.verdict import Goal, Verdict, differences, wanted


def plan(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    """Plan the edits of a Python file.

    Raises:
        RefusedError: With every edit that does not match, cannot be proved, or cannot be kept.
    """
    found = _File(source, context).plan(edits)
    after = splice(source, found.edits)
    if found.edits:
        _check(after, edits, replace(context, read=context.read_after))
    return found


def _check(after: bytes, edits: Sequence[Edit], context: Context) -> None:
    """The result parses, for whatever Python it is, and planning it again changes nothing."""
    import libcst

    try:
        libcst.parse_module(after)
    except libcst.ParserSyntaxError as error:
        raise RefusedError(
            Problem(message=f"would not parse any more: {error.message}", where=context.path)
        ) from None
    again = _File(after, context).plan(edits)
    if again.edits:
        raise RefusedError(
            Problem(
                message="planning the result again would change it again: "
                + "; ".join(f"line {c.line}: {c.before}" for c in again.changes if c.edits),
                where=context.path,
                hint="name the places more exactly, with within or a longer condition",
            )
        )


class _File:
    """One file while its edits are planned."""

    def __init__(self, data: bytes, context: Context):
        self.context = context
        self.source = Source(context.path, data)
        self.package = Package(context.read)
        module = self.package.module(context.path, data)
        assert module is not None
        self.module: Module = module
        self.after_package = self.package
        self.after_module = self.module

    def plan(self, edits: Sequence[Edit]) -> FileEdits:
        problems: list[Problem] = []
        changes: list[Change] = []
        # What opened gates need comes first: their proofs read it.
        ordered = [e for e in edits if not isinstance(e, GateEdit | Replace)]
        self._collect(ordered, changes, problems)
        self._read_after(changes)
        self._collect([e for e in edits if isinstance(e, GateEdit | Replace)], changes, problems)
        if problems:
            raise RefusedError(problems)
        places = {edit.where: index for index, edit in enumerate(edits)}
        return FileEdits(changes=tuple(sorted(changes, key=lambda c: (places[c.where], c.line))))

    def _collect(
        self, edits: Iterable[Edit], changes: list[Change], problems: list[Problem]
    ) -> None:
        for edit in edits:
            try:
                changes += self._one(edit)
            except RefusedError as error:
                problems += error.problems

    def _one(self, edit: Edit) -> Iterable[Change]:
        match edit:
            case GateEdit(keyword=str()):
                return self._keyword(edit)
            case GateEdit():
                return self._gate(edit)
            case Replace():
                return self._replace(edit)
            case Import():
                return [python_statements.plan_import(self.source, self.module, edit)]
            case Insert():
                return [python_statements.plan_insert(self.source, edit, self._guard)]
            case Text():
                return plan_text(self.source.data, edit, self.context.path)

    def _read_after(self, changes: Sequence[Change]) -> None:
        """Read the package as it is with what the gate edits need."""
        edits = {edit for change in changes for edit in change.edits}
        self.after_package = Package(self.context.read_after)
        module = self.after_package.module(self.context.path, splice(self.source.data, edits))
        if module is None:
            raise RefusedError(
                Problem(message="would not parse with the inserted code", where=self.context.path)
            )
        self.after_module = module

    def _gate(self, edit: GateEdit) -> list[Change]:
        assert edit.condition is not None
        goal = replace(self.context.goal, action=edit.action)
        found = self.source.matches(edit.condition, edit.within)
        for match in self._results(edit, goal):
            if not any(_overlap(self.source, match, other) for other in found):
                found.append(match)
        self._count(edit, [self.source.span(m.nodes[0])[0] for m in found], edit.condition)
        tops: dict[int, list[Match]] = {}
        for match in found:
            tops.setdefault(id(match.top.node), []).append(match)
        return [change for group in tops.values() for change in self._open(edit, goal, group)]

    def _results(self, edit: GateEdit, goal: Goal) -> list[Match]:
        """Places that already read as the edit would make the condition read."""
        assert edit.condition is not None
        text = edit.condition
        pattern = Source("", f"({text})\n".encode())
        top = pattern.tops[0]
        nodes = tuple(flattened(top.node)) if isinstance(top.node, ast.BoolOp) else (top.node,)
        parent = top.node if isinstance(top.node, ast.BoolOp) else None
        found = []
        for candidate in candidates(pattern, Match(nodes, parent, top), edit, goal):
            result = splice(pattern.data, candidate).decode().strip()
            found += [
                match
                for match in self.source.matches(result, edit.within)
                if self._stands(edit, goal, match)
            ]
        return found

    def _stands(self, edit: GateEdit, goal: Goal, match: Match) -> bool:
        before = self._verdict(match.top)
        return before == wanted(before, goal, shut=self._shut(edit, match.top))

    def _open(self, edit: GateEdit, goal: Goal, group: Sequence[Match]) -> list[Change]:
        """Change all matches in one Boolean expression, by the first way that is proved."""
        top = group[0].top
        before = self._verdict(top)
        target = self._target(edit, goal, group, before)
        if target == before and not before.unknown:
            return [self._change(edit, match, (), before, before) for match in group]
        problems: list[str] = []
        ways = [list(candidates(self.source, match, edit, goal)) for match in group]
        for way in zip(*ways, strict=False):
            after = self._verdict_after(top, [e for part in way for e in part])
            if after is None:
                continue
            unknown = before.unknown or after.unknown
            wrong = differences(target, after)
            if not wrong and (not unknown or edit.unproved):
                return [
                    self._change(edit, match, part, before, after)
                    for match, part in zip(group, way, strict=True)
                ]
            if edit.unproved and unknown:
                return [
                    self._change(edit, match, part, before, after)
                    for match, part in zip(group, way, strict=True)
                ]
            if wrong or unknown:
                problems.append(explain.why(goal, before, after, wrong, unknown))
        raise self._refused(edit, group[0], problems, before)

    def _target(
        self, edit: GateEdit, goal: Goal, group: Sequence[Match], before: Verdict
    ) -> Verdict:
        """The verdict that the whole expression must have afterwards.

        To open a gate is to give the operands that match the verdict of ``like``. What else the
        expression tests stays as it is, even where that is the architecture; but if that alone
        still leaves an architecture out, the edit would be for nothing.
        """
        top = group[0].top
        shut = self._shut(edit, top)
        strict = wanted(before, goal, shut=shut)
        if goal.action == "close" or len(group) > 1 or goal.like is None:
            return strict
        frame = _frame(self.module, top.functions)
        found = replaced(
            top.node,
            group[0].nodes,
            goal.archs,
            goal.like,
            frame,
            self.package,
            self.context.predicates,
        )
        blocked = [a for a in sorted(goal.archs) if found.table[a] is shut]
        if blocked and any(strict.table[a] is not shut for a in blocked):
            raise RefusedError(
                Problem(
                    message=f"would still leave {', '.join(map(str, blocked))} out: another part "
                    f"of the condition does: {' '.join(self.source.text(top.node).split())[:200]}",
                    where=self._where(edit, self.source.span(group[0].nodes[0])[0]),
                    hint="open that part too: name a longer condition",
                )
            )
        return found

    def _shut(self, edit: GateEdit, top: Expression) -> bool:
        return top.rejects if edit.shut is None else edit.shut

    def _change(
        self,
        edit: GateEdit,
        match: Match,
        edits: tuple[ByteEdit, ...],
        before: Verdict,
        after: Verdict,
    ) -> Change:
        start, end = self.source.span(match.top.node)
        return self._placed(edit, start, end, match.top.within, edits, before, after)

    def _placed(
        self,
        edit: GateEdit | Replace,
        start: int,
        end: int,
        within: str,
        edits: tuple[ByteEdit, ...],
        before: Verdict | None,
        after: Verdict | None,
    ) -> Change:
        text = self.source.data[start:end]
        shifted = [replace(e, offset=e.offset - start) for e in edits]
        unproved = (
            edit.unproved if before is None or before.unknown or (after and after.unknown) else ""
        )
        return Change(
            where=edit.where,
            line=line_of(self.source.data, start),
            end_line=line_of(self.source.data, end - 1),
            within=within,
            before=text.decode(),
            after=splice(text, shifted).decode(),
            edits=edits,
            verdict_before=before,
            verdict_after=after,
            unproved=unproved,
        )

    def _keyword(self, edit: GateEdit) -> list[Change]:
        assert edit.keyword is not None
        goal = replace(self.context.goal, action=edit.action)
        found = [
            (node, within)
            for node, within in self.source.keywords(edit.keyword, edit.within)
            if isinstance(node, ast.Tuple | ast.List | ast.Set)
        ]
        self._count(edit, [self.source.span(n)[0] for n, _ in found], f"{edit.keyword}=[…]")
        return [self._keyword_change(edit, goal, node, within) for node, within in found]

    def _keyword_change(self, edit: GateEdit, goal: Goal, node: Literal, within: str) -> Change:
        start, end = self.source.span(node)
        before = _membership(node)
        if before is None:
            raise RefusedError(
                Problem(
                    message=f"is no list of architectures: {self.source.text(node)}",
                    where=self._where(edit, start),
                )
            )
        target = wanted(before, goal)
        if target == before:
            return self._placed(edit, start, end, within, (), before, before)
        problems = []
        for way in literal_edits(self.source, node, goal):
            text = splice(
                self.source.data[start:end], [replace(e, offset=e.offset - start) for e in way]
            ).decode()
            result = ast.parse(text, mode="eval").body
            after = (
                _membership(result) if isinstance(result, ast.Tuple | ast.List | ast.Set) else None
            )
            if after is not None:
                wrong = differences(target, after)
                if not wrong:
                    return self._placed(edit, start, end, within, way, before, after)
                problems.append(explain.why(goal, before, after, wrong, ()))
        raise RefusedError(
            Problem(
                message=f"cannot be proved: {self.source.text(node)}: "
                + ("; ".join(dict.fromkeys(problems)) or "no way to change it is known"),
                where=self._where(edit, start),
            )
        )

    def _replace(self, edit: Replace) -> list[Change]:
        found = self.source.matches(edit.expression, edit.within)
        by = ast.parse(f"({edit.by})", mode="eval").body
        done = self.source.matches(edit.by, edit.within)
        fresh = [m for m in found if not any(_inside(self.source, m, d) for d in done)]
        starts = [self.source.span(m.nodes[0])[0] for m in (*fresh, *done)]
        self._count(edit, starts, edit.expression)
        changes = [self._replaced(edit, match, by) for match in fresh]
        for match in done:
            start, end = self.source.span(match.top.node)
            known = self._verdict(match.top)
            changes.append(self._placed(edit, start, end, match.top.within, (), known, known))
        return changes

    def _replaced(self, edit: Replace, match: Match, by: ast.expr) -> Change:
        start, end = self.source.outer(match.nodes[0])[0], self.source.outer(match.nodes[-1])[1]
        if match.nodes[0] is match.top.node:
            start, end = self.source.span(match.nodes[0])
        inside = match.parent is not None and isinstance(by, ast.BoolOp | ast.IfExp | ast.Lambda)
        if isinstance(match.parent, ast.BoolOp) and isinstance(by, ast.BoolOp):
            inside = not isinstance(by.op, type(match.parent.op))
            whole = len(flattened(match.parent)) == len(match.nodes)
            # The whole chain is replaced as it stands: nothing outside it can bind differently.
            inside = inside and not (whole and match.parent is match.top.node)
        text = f"({edit.by})" if inside else edit.by
        way = (ByteEdit(start, self.source.data[start:end], text.encode()),)
        before, after = self._verdict(match.top), self._verdict_after(match.top, way)
        top_start, top_end = self.source.span(match.top.node)
        if not edit.unproved:
            goal = self.context.goal
            if after is None or not (before.is_gate or after.is_gate):
                raise RefusedError(
                    Problem(
                        message="the replaced expression is no gate, so nothing can be proved",
                        where=self._where(edit, start),
                        hint="say in unproved why it may stand",
                    )
                )
            unknown = before.unknown or after.unknown
            wrong = differences(wanted(before, goal), after)
            if wrong or unknown:
                reason = explain.why(goal, before, after, wrong, unknown)
                raise self._refused(edit, match, [reason], before)
        return self._placed(edit, top_start, top_end, match.top.within, way, before, after)

    def _guard(
        self, tests: Sequence[tuple[ast.expr, bool]], module_code: str
    ) -> tuple[Verdict, Goal]:
        """The verdict of several conditions together, in the package with the set's imports."""
        known = tests or [(ast.Constant(value=True), True)]
        parts = [
            test if taken else ast.UnaryOp(op=ast.Not(), operand=test) for test, taken in known
        ]
        node = ast.BoolOp(op=ast.And(), values=parts) if len(parts) > 1 else parts[0]
        package = Package(self.context.read_after)
        data = self.source.data + b"\n" + module_code.encode()
        module = package.module(self.context.path, data) or self.module
        found = verdict(node, Frame(module), package, self.context.predicates)
        return found, self.context.goal

    def _verdict(self, top: Expression) -> Verdict:
        frame = _frame(self.module, top.functions)
        return verdict(top.node, frame, self.package, self.context.predicates)

    def _verdict_after(self, top: Expression, edits: Sequence[ByteEdit]) -> Verdict | None:
        start, end = self.source.span(top.node)
        # A pair of parentheses may be put around the whole expression.
        text = splice(
            self.source.data[start:end], [replace(e, offset=e.offset - start) for e in edits]
        ).decode()
        try:
            node = ast.parse(f"({text}\n)", mode="eval").body
        except SyntaxError:
            return None
        frame = _frame(self.after_module, top.functions)
        return verdict(node, frame, self.after_package, self.context.predicates)

    def _count(self, edit: GateEdit | Replace, starts: Sequence[int], what: str) -> None:
        if edit.count == len(starts) or (edit.count is None and starts):
            return
        lines = [line_of(self.source.data, start) for start in sorted(starts)]
        wanted_count = "at least 1" if edit.count is None else str(edit.count)
        found = (
            "on lines " + ", ".join(map(str, lines[:10])) if lines else self._nearest(edit, what)
        )
        within = f" within {edit.within}" if edit.within else ""
        raise RefusedError(
            Problem(
                message=f"expected {wanted_count} of `{what}`{within}, found {len(lines)}: {found}",
                where=f"{self.context.path} ({edit.where})",
            )
        )

    def _nearest(self, edit: GateEdit | Replace, what: str) -> str:
        texts = {
            " ".join(self.source.text(top.node).split()): top.node
            for top in self.source.tops
            if isinstance(top.node, ast.BoolOp | ast.Compare | ast.Call | ast.Name | ast.UnaryOp)
        }
        near = difflib.get_close_matches(what, texts, n=3, cutoff=0.4)
        listed = "; ".join(f"line {texts[text].lineno}: {text[:160]}" for text in near)
        return f"the nearest: {listed}" if near else "and nothing like it"

    def _refused(
        self,
        edit: GateEdit | Replace,
        match: Match,
        problems: Sequence[str],
        before: Verdict,
    ) -> RefusedError:
        reasons = "; ".join(dict.fromkeys(problems))
        if not reasons:
            reasons = "no operand can be derived from it"
            if before.unknown:
                reasons = "; ".join(before.unknown)
        hint = None
        if isinstance(edit, GateEdit) and edit.operand is None and not problems:
            hint = "name the operand in with:"
        if before.unknown:
            hint = "give the meaning in predicates:, or say in unproved: why it may stand"
        start = self.source.span(match.nodes[0])[0]
        text = " ".join(self.source.text(match.top.node).split())
        return RefusedError(
            Problem(
                message=f"cannot be proved: {text[:200]}: {reasons}",
                where=self._where(edit, start),
                hint=hint,
            )
        )

    def _where(self, edit: Edit, start: int) -> str:
        return f"{self.context.path}:{line_of(self.source.data, start)} ({edit.where})"


def _frame(module: Module, functions: Sequence[FunctionNode]) -> Frame:
    bindings = {}
    for function in functions:
        bindings.update({n: tuple(b) for n, b in local_bindings(module, function).items()})
    return Frame(module, {}, bindings)


def _membership(node: Literal) -> Verdict | None:
    """The verdict of a list of architectures: which of them are in it."""
    values = [constant(element) for element in node.elts]
    for unit in UNITS:
        if values and all(type(value) is type(unit(TABLE[0])) for value in values):
            # Two units are whole numbers: no major reaches 70, and no sm number is below it.
            if isinstance(values[0], int) and _scale(values) != _scale([unit(TABLE[0])]):
                continue
            return Verdict({arch: unit(arch) in values for arch in TABLE})
    return None


def _scale(values: Sequence[object]) -> int:
    largest = max(value for value in values if isinstance(value, int))
    return 0 if largest < 30 else 1 if largest < 300 else 2


def _overlap(source: Source, first: Match, second: Match) -> bool:
    return (
        source.span(first.nodes[0])[0] < source.span(second.nodes[-1])[1]
        and source.span(second.nodes[0])[0] < source.span(first.nodes[-1])[1]
    )


def _inside(source: Source, inner: Match, outer: Match) -> bool:
    start, end = source.span(outer.nodes[0])[0], source.span(outer.nodes[-1])[1]
    return start <= source.span(inner.nodes[0])[0] and source.span(inner.nodes[-1])[1] <= end
