"""The engine for C and CUDA files: gates in the conditions of ``#if``, ``#ifdef`` and the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gatepatch.arch import TABLE
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.cuda_candidates import Edits, candidates, swaps
from gatepatch.gates.cuda_finder import ConditionEdit, Finder, Found, shut
from gatepatch.gates.cuda_gates import Gate, gates_in
from gatepatch.gates.cuda_prover import Outcome, Prover
from gatepatch.gates.cuda_site import Site
from gatepatch.gates.directives import Branch
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.gates.text import plan_text
from gatepatch.spec import Edit, GateEdit, Import, Insert, Replace, Text
from gatepatch.verdict import Verdict

__all__ = ["Gate", "gates_in", "plan"]


def plan(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    """Plan the edits of a C or CUDA file, each proved over all passes of the compiler.

    Raises:
        RefusedError: Something does not match, or cannot be proved; with all its problems.
    """
    planner = _Planner(source, context)
    for edit in edits:
        planner.add(edit)
    return planner.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What to do at a place that matched."""

    edit: ConditionEdit
    branch: Branch
    edits: Edits
    expected: Verdict
    unproved: str


class _Planner:
    def __init__(self, source: bytes, context: Context):
        self.source = source
        self.context = context
        self.prover = Prover(source, context.goal)
        self.finder = Finder(self.prover, context.path)
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
                    raise self.finder.refusal(edit, f"{kind} is for Python files", "use text")
                case GateEdit() | Replace():
                    self.check(edit)
                    for place, here in self.finder.find(edit).items():
                        self.settle(edit, place, here)
        except RefusedError as error:
            self.problems += error.problems

    def check(self, edit: ConditionEdit) -> None:
        goal = self.context.goal
        named = sorted(goal.archs | ({goal.like} if goal.like else set()))
        if odd := [str(arch) for arch in named if arch not in TABLE]:
            known = ", ".join(map(str, TABLE))
            raise self.finder.refusal(
                edit, f"nothing can be proved for {', '.join(odd)}, only for {known}"
            )
        if edit.within is not None:
            raise self.finder.refusal(
                edit, "within is for Python files", "the condition is enough here"
            )
        if isinstance(edit, GateEdit) and edit.keyword is not None:
            raise self.finder.refusal(edit, "keyword is for Python files", "name the condition")
        if isinstance(edit, GateEdit) and edit.condition is None:
            raise self.finder.refusal(
                edit, "expected a condition", "name the gate by its condition"
            )

    def settle(self, edit: ConditionEdit, place: Site, here: Sequence[Found]) -> None:
        """Choose the first edits of one directive that are proved."""
        branch = place.branch
        before = self.prover.verdict(branch)
        if before.unknown and not edit.unproved:
            message = f"cannot be judged: {'; '.join(before.unknown)}"
            hint = f"{self.finder.show(branch)}\n  give the reason why it is right as `unproved:`"
            raise self.finder.refusal(edit, message, hint, branch)
        expected = self.prover.wanted(branch, before, shut(edit))
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
        self, edit: ConditionEdit, place: Site, here: Sequence[Found]
    ) -> Iterator[tuple[Edits, ...]]:
        """Yield edits of the file for each place in a directive: the same edit in all of them."""
        each: list[Iterator[Edits]] = []
        for one in here:
            if one.done:
                continue
            if isinstance(edit, Replace):
                swap = swaps(place.buffer, one.match, edit.by)
                each.append(iter([swap] if swap else []))
            else:
                goal = self.context.goal
                each.append(candidates(place.buffer, one.match, goal, edit.operand))
        for chosen in zip(*each, strict=False):
            rest = iter(chosen)
            yield tuple(() if one.done else place.to_file(self.source, next(rest)) for one in here)

    def take(
        self,
        edit: ConditionEdit,
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
        edit: ConditionEdit,
        branch: Branch,
        nearest: tuple[tuple[str, ...], Edits] | None,
    ) -> RefusedError:
        """Say why no edit of a directive is proved."""
        goal = self.context.goal
        names = ", ".join(map(str, sorted(goal.archs)))
        aim = f"open for {names} like {goal.like}" if goal.like else f"closed for {names}"
        message = f"nothing makes the condition {aim} and the same for all others"
        if nearest is None:
            return self.finder.refusal(edit, message, self.finder.show(branch), branch)
        complaints, edits = nearest
        more = f"; and {len(complaints) - 4} more" if len(complaints) > 4 else ""
        hint = f"{self.finder.show(branch)}\n  tried {self.finder.show(branch, edits)}"
        return self.finder.refusal(
            edit, f"{message}: {'; '.join(complaints[:4])}{more}", hint, branch
        )

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
            self.problems += self.finder.refusal(place.edit, message, branch=place.branch).problems
        elif other := outcome.obstacle(place.branch):
            names = ", ".join(map(str, sorted(self.context.goal.archs)))
            message = f"opening this has no effect: what it guards is kept from {names} elsewhere"
            hint = self.finder.show(other)
            self.problems += self.finder.refusal(place.edit, message, hint, place.branch).problems
