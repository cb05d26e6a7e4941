"""The engine for C and CUDA files: gates in the conditions of ``#if``, ``#ifdef`` and the like."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gatepatch.arch import TABLE
from gatepatch.edits import ByteEdit, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.cuda_candidates import Edits, candidates, swaps
from gatepatch.gates.cuda_gates import Gate, gates_in
from gatepatch.gates.cuda_prover import Outcome, Prover
from gatepatch.gates.cuda_site import Match, Pattern, Site, find, site, whole
from gatepatch.gates.directives import Branch
from gatepatch.gates.preprocessor import ConditionError, parse, to_source
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.gates.text import plan_text
from gatepatch.spec import Edit, GateEdit, Import, Insert, Replace, Text
from gatepatch.verdict import Verdict

__all__ = ["Gate", "gates_in", "plan"]

_SHOWN = 10
_ConditionEdit: TypeAlias = "GateEdit | Replace"


def plan(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    """Plan the edits of a C or CUDA file, each proved over all passes of the compiler.

    Raises:
        RefusedError: Something does not match, or cannot be proved; with all its problems.
    """
    planner = _Planner(source, context)
    for edit in edits:
        planner.add(edit)
    return planner.finish()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """A place that an edit matched in a condition, and whether it is in place already."""

    site: Site
    match: Match
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What to do at a place that matched."""

    edit: _ConditionEdit
    branch: Branch
    edits: Edits
    expected: Verdict
    unproved: str


class _Planner:
    def __init__(self, source: bytes, context: Context):
        self.source = source
        self.context = context
        self.prover = Prover(source, context.goal)
        branches = self.prover.scan.branches.values()
        self.sites = [found for branch in branches if (found := site(source, branch))]
        self.pending: dict[Branch, Edits] = {}
        self.places: list[_Place] = []
        self.texts: list[Change] = []
        self.problems: list[Problem] = []

    def add(self, edit: Edit) -> None:
        """Plan one edit; what is wrong with it is kept until ``finish``."""
        try:
            match edit:
                case Text():
                    self.texts += plan_text(self.source, edit, self.context.path)
                case Import() | Insert():
                    kind = type(edit).__name__.lower()
                    raise self.refusal(edit, f"{kind} is for Python files", "use text")
                case GateEdit() | Replace():
                    self.check(edit)
                    found = self.gates(edit) if isinstance(edit, GateEdit) else self.swaps(edit)
                    self.count(edit, found)
                    for place in self.sites:
                        if here := [one for one in found if one.site is place]:
                            self.settle(edit, place, here)
        except RefusedError as error:
            self.problems += error.problems

    def check(self, edit: _ConditionEdit) -> None:
        goal = self.context.goal
        named = sorted(goal.archs | ({goal.like} if goal.like else set()))
        if odd := [str(arch) for arch in named if arch not in TABLE]:
            known = ", ".join(map(str, TABLE))
            raise self.refusal(
                edit, f"nothing can be proved for {', '.join(odd)}, only for {known}"
            )
        if edit.within is not None:
            raise self.refusal(edit, "within is for Python files", "the condition is enough here")
        if isinstance(edit, GateEdit) and edit.keyword is not None:
            raise self.refusal(edit, "keyword is for Python files", "name the condition")
        if isinstance(edit, GateEdit) and edit.condition is None:
            raise self.refusal(edit, "expected a condition", "name the gate by its condition")

    def refusal(
        self, edit: Edit, message: str, hint: str | None = None, branch: Branch | None = None
    ) -> RefusedError:
        """Make the error that says where an edit is refused and why."""
        place = f"{self.context.path}:{branch.directive.line}" if branch else self.context.path
        return RefusedError(Problem(message=message, where=f"{place} ({edit.where})", hint=hint))

    # What matches.

    def gates(self, edit: GateEdit) -> list[_Found]:
        """Find the places of a gate edit: as they were, and as the edit leaves them."""
        pattern = self.pattern(edit, _sought(edit))
        if edit.operand is not None:
            self.pattern(edit, edit.operand)
        results = tuple(self.results(edit))
        found: list[_Found] = []
        for place in self.sites:
            matches = (find(place.expression, result) for result in results)
            ours = (m for m in matches if self.comes_from(edit, place, m))
            done = max(ours, key=lambda m: sum(one.end - one.start for one in m), default=())
            # What was added may look like the pattern, as `A < 750 && !(B && A < 750)` does.
            todo = _apart(find(place.expression, pattern), done)
            found += [_Found(site=place, match=match, done=True) for match in done]
            found += [_Found(site=place, match=match, done=False) for match in todo]
        return found

    def swaps(self, edit: Replace) -> list[_Found]:
        """Find the places of a replacement: what is to be replaced, and what has been."""
        pattern, result = self.pattern(edit, edit.expression), self.pattern(edit, edit.by)
        found: list[_Found] = []
        for place in self.sites:
            todo = find(place.expression, pattern)
            done = tuple(
                match
                for match in find(place.expression, result)
                if not any(other.contains(match) for other in todo)
                and self.comes_from(edit, place, (match,))
            )
            found += [_Found(site=place, match=match, done=True) for match in done]
            found += [_Found(site=place, match=m, done=False) for m in _apart(todo, done)]
        return found

    def pattern(self, edit: Edit, text: str) -> Pattern:
        try:
            return Pattern.of(parse(text))
        except ConditionError as error:
            caret = f"{text}\n  {' ' * error.offset}^"
            message = f"this is no preprocessor condition: {error}"
            raise self.refusal(edit, message, caret) from None

    def results(self, edit: GateEdit) -> Iterator[Pattern]:
        """Yield what the edit may make of its pattern."""
        text = _sought(edit).encode()
        everything = whole(parse(text))
        seen: set[Pattern] = set()
        for edits in candidates(text, everything, self.context.goal, edit.operand):
            result = Pattern.of(parse(splice(text, edits)))
            if result not in seen:
                seen.add(result)
                yield result

    def comes_from(self, edit: _ConditionEdit, place: Site, done: Sequence[Match]) -> bool:
        """Whether the edit makes this condition of the one with its pattern put back."""
        if done and edit.unproved and (isinstance(edit, Replace) or edit.operand is not None):
            return True
        back = [swap for match in done for swap in swaps(place.buffer, match, _sought(edit))]
        branch = place.branch
        if not back:
            return False
        before = self.prover.verdict(branch, place.to_file(self.source, tuple(back)))
        if before.unknown and not edit.unproved:
            return False
        expected = self.prover.wanted(branch, before, _shut(edit))
        return not self.prover.complaints(expected, self.prover.verdict(branch))

    def count(self, edit: _ConditionEdit, found: Sequence[_Found]) -> None:
        """Refuse an edit that does not match as often as it must."""
        if len(found) == edit.count or (edit.count is None and found):
            return
        expected = (
            "at least 1 place"
            if edit.count is None
            else f"{edit.count} place{'' if edit.count == 1 else 's'}"
        )
        message = f"expected {expected} with `{_sought(edit)}`, found {len(found)}"
        ordered = sorted(found, key=lambda one: one.site.branch.directive.start)
        lines = [self.show(one.site.branch) for one in ordered[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"and {len(found) - _SHOWN} more")
        hint = "found:\n  " if lines else "nearest:\n  "
        lines = lines or [self.show(branch) for branch in self.nearest(_sought(edit))]
        raise self.refusal(edit, message, hint + "\n  ".join(lines) if lines else None)

    def nearest(self, text: str) -> list[Branch]:
        by_text: dict[str, Branch] = {}
        for place in self.sites:
            by_text.setdefault(to_source(place.expression), place.branch)
        near = difflib.get_close_matches(to_source(parse(text)), by_text, n=3, cutoff=0.4)
        return [by_text[one] for one in near]

    def show(self, branch: Branch, edits: Iterable[ByteEdit] = ()) -> str:
        text = self.prover.after(branch, edits).decode("utf-8", "backslashreplace")
        return f"line {branch.directive.line}: {' '.join(text.split())}"

    # What to do there.

    def settle(self, edit: _ConditionEdit, place: Site, here: Sequence[_Found]) -> None:
        """Choose the first edits of one directive that are proved."""
        branch = place.branch
        before = self.prover.verdict(branch)
        if before.unknown and not edit.unproved:
            message = f"cannot be judged: {'; '.join(before.unknown)}"
            hint = f"{self.show(branch)}\n  give the reason why it is right as `unproved:`"
            raise self.refusal(edit, message, hint, branch)
        expected = self.prover.wanted(branch, before, _shut(edit))
        pending = self.pending.get(branch, ())
        nothing: tuple[Edits, ...] = ((),) * len(here)
        present = not self.prover.complaints(expected, self.prover.verdict(branch, pending))
        if all(one.done for one in here) or (present and isinstance(edit, GateEdit)):
            self.take(edit, branch, nothing, expected, proved=present and not before.unknown)
            return
        nearest: tuple[tuple[str, ...], Edits] | None = None
        first: tuple[Edits, ...] | None = None
        for option in self.options(edit, place, here):
            together = (*pending, *(change for changes in option for change in changes))
            try:
                after = self.prover.verdict(branch, together)
            except ValueError:  # it overlaps an edit made before
                continue
            complaints = self.prover.complaints(expected, after)
            if not complaints:
                self.take(edit, branch, option, expected, proved=not before.unknown)
                return
            first = first or option
            if nearest is None or len(complaints) < len(nearest[0]):
                nearest = (complaints, together)
        authored = isinstance(edit, Replace) or edit.operand is not None
        if first is not None and edit.unproved and authored:
            self.take(edit, branch, first, expected, proved=False)
            return
        raise self.unproved(edit, branch, nearest)

    def options(
        self, edit: _ConditionEdit, place: Site, here: Sequence[_Found]
    ) -> Iterator[tuple[Edits, ...]]:
        """Yield edits of the file for each place in a directive: the same edit in all of them."""
        each: list[Iterator[Edits]] = []
        for one in here:
            if one.done:
                continue
            if isinstance(edit, Replace):
                each.append(iter([swaps(place.buffer, one.match, edit.by)]))
            else:
                goal = self.context.goal
                each.append(candidates(place.buffer, one.match, goal, edit.operand))
        for chosen in zip(*each, strict=False):
            rest = iter(chosen)
            yield tuple(() if one.done else place.to_file(self.source, next(rest)) for one in here)

    def take(
        self,
        edit: _ConditionEdit,
        branch: Branch,
        option: Sequence[Edits],
        expected: Verdict,
        *,
        proved: bool,
    ) -> None:
        for edits in option:
            self.pending[branch] = (*self.pending.get(branch, ()), *edits)
            self.places.append(
                _Place(
                    edit=edit,
                    branch=branch,
                    edits=edits,
                    expected=expected,
                    unproved="" if proved else edit.unproved,
                )
            )

    def unproved(
        self,
        edit: _ConditionEdit,
        branch: Branch,
        nearest: tuple[tuple[str, ...], Edits] | None,
    ) -> RefusedError:
        """Say why no edit of a directive is proved."""
        goal = self.context.goal
        names = ", ".join(map(str, sorted(goal.archs)))
        aim = f"open for {names} like {goal.like}" if goal.like else f"closed for {names}"
        message = f"nothing makes the condition {aim} and the same for all others"
        if nearest is None:
            return self.refusal(edit, message, self.show(branch), branch)
        complaints, edits = nearest
        more = f"; and {len(complaints) - 4} more" if len(complaints) > 4 else ""
        hint = f"{self.show(branch)}\n  tried {self.show(branch, edits)}"
        return self.refusal(edit, f"{message}: {'; '.join(complaints[:4])}{more}", hint, branch)

    # All edits together.

    def finish(self) -> FileEdits:
        """Prove the file as all edits leave it.

        Raises:
            RefusedError: Something was wrong with an edit, or is with all of them together.
        """
        if self.problems:
            raise RefusedError(self.problems)
        edits = {change for place in self.places for change in place.edits}
        edits |= {change for text in self.texts for change in text.edits}
        try:
            outcome = Outcome(self.prover, sorted(edits))
        except ValueError as error:
            raise RefusedError(
                Problem(message=f"the edits overlap: {error}", where=self.context.path)
            ) from None
        changes = [self.change(place, outcome) for place in self.places]
        if self.problems:
            raise RefusedError(self.problems)
        return FileEdits(changes=tuple(sorted([*changes, *self.texts], key=lambda c: c.line)))

    def change(self, place: _Place, outcome: Outcome) -> Change:
        directive = place.branch.directive
        after = outcome.verdict(place.branch)
        if not place.unproved:
            self.confirm(place, outcome, after)
        own = self.pending.get(place.branch, ())
        return Change(
            where=place.edit.where,
            line=directive.line,
            end_line=directive.end_line,
            before=self.prover.after(place.branch, ()).decode("utf-8", "backslashreplace"),
            after=self.prover.after(place.branch, own).decode("utf-8", "backslashreplace"),
            edits=place.edits,
            verdict_before=self.prover.verdict(place.branch),
            verdict_after=after,
            unproved=place.unproved,
        )

    def confirm(self, place: _Place, outcome: Outcome, after: Verdict | None) -> None:
        if after is None or self.prover.complaints(place.expected, after):
            message = "another edit of the file undoes this one"
            self.problems += self.refusal(place.edit, message, branch=place.branch).problems
        elif other := outcome.obstacle(place.branch):
            names = ", ".join(map(str, sorted(self.context.goal.archs)))
            message = f"opening this has no effect: what it guards is kept from {names} elsewhere"
            hint = self.show(other)
            self.problems += self.refusal(place.edit, message, hint, place.branch).problems


def _sought(edit: _ConditionEdit) -> str:
    return edit.expression if isinstance(edit, Replace) else edit.condition or ""


def _shut(edit: _ConditionEdit) -> bool | None:
    return edit.shut if isinstance(edit, GateEdit) else None


def _apart(matches: Iterable[Match], others: Sequence[Match]) -> tuple[Match, ...]:
    return tuple(match for match in matches if not any(map(match.overlaps, others)))
