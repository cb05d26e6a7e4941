"""Find where the edits of a set match in the conditions of a C or CUDA file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gatepatch.edits import ByteEdit, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.cuda_candidates import candidates, swaps
from gatepatch.gates.cuda_prover import Prover
from gatepatch.gates.cuda_site import Match, Pattern, Site, find, site, whole
from gatepatch.gates.directives import Branch
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_tree import to_source
from gatepatch.spec import Edit, GateEdit, Replace

ConditionEdit: TypeAlias = "GateEdit | Replace"

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """A place that an edit matched in a condition, and whether it is in place already."""

    site: Site
    match: Match
    done: bool


class Finder:
    """Where edits match in one file.

    Args:
        prover: The file, and the goal of the edits.
        path: The file's path, for messages.
    """

    def __init__(self, prover: Prover, path: str):
        self.prover = prover
        self.path = path
        branches = prover.scan.branches.values()
        self.sites = [found for branch in branches if (found := site(prover.source, branch))]

    def find(self, edit: ConditionEdit) -> dict[Site, list[Found]]:
        """Find all places of an edit, by the condition that they stand in.

        Raises:
            RefusedError: They are not as many as they must be.
        """
        found = self.gates(edit) if isinstance(edit, GateEdit) else self.swaps(edit)
        self.count(edit, found)
        by_site: dict[Site, list[Found]] = {}
        for one in found:
            by_site.setdefault(one.site, []).append(one)
        return by_site

    def gates(self, edit: GateEdit) -> list[Found]:
        """Find the places of a gate edit: as they were, and as the edit leaves them."""
        pattern = self.pattern(edit, sought(edit))
        if edit.operand is not None:
            self.pattern(edit, edit.operand)
        results = tuple(self.results(edit))
        found: list[Found] = []
        for place in self.sites:
            matches = (find(place.expression, result) for result in results)
            ours = (m for m in matches if self.comes_from(edit, place, m))
            done = max(ours, key=lambda m: sum(one.end - one.start for one in m), default=())
            # What was added may look like the pattern, as `A < 750 && !(B && A < 750)` does.
            todo = _apart(find(place.expression, pattern), done)
            found += [Found(site=place, match=match, done=True) for match in done]
            found += [Found(site=place, match=match, done=False) for match in todo]
        return found

    def swaps(self, edit: Replace) -> list[Found]:
        """Find the places of a replacement: what is to be replaced, and what has been."""
        pattern, result = self.pattern(edit, edit.expression), self.pattern(edit, edit.by)
        found: list[Found] = []
        for place in self.sites:
            todo = find(place.expression, pattern)
            done = tuple(
                match
                for match in find(place.expression, result)
                if not any(other.contains(match) for other in todo)
                and self.comes_from(edit, place, (match,))
            )
            found += [Found(site=place, match=match, done=True) for match in done]
            found += [Found(site=place, match=m, done=False) for m in _apart(todo, done)]
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
        text = sought(edit).encode()
        everything = whole(parse(text))
        seen: set[Pattern] = set()
        for edits in candidates(text, everything, self.prover.goal, edit.operand):
            result = Pattern.of(parse(splice(text, edits)))
            if result not in seen:
                seen.add(result)
                yield result

    def comes_from(self, edit: ConditionEdit, place: Site, done: Sequence[Match]) -> bool:
        """Whether the edit makes this condition of the one with its pattern put back."""
        if done and edit.unproved and (isinstance(edit, Replace) or edit.operand is not None):
            return True
        back = [swap for match in done for swap in swaps(place.buffer, match, sought(edit))]
        branch = place.branch
        if not back:
            return False
        before = self.prover.verdict(branch, place.to_file(self.prover.source, tuple(back)))
        if before.unknown and not edit.unproved:
            return False
        expected = self.prover.wanted(branch, before, shut(edit))
        return not self.prover.complaints(expected, self.prover.verdict(branch))

    def count(self, edit: ConditionEdit, found: Sequence[Found]) -> None:
        """Refuse an edit that does not match as often as it must."""
        if len(found) == edit.count or (edit.count is None and found):
            return
        expected = (
            "at least 1 place"
            if edit.count is None
            else f"{edit.count} place{'' if edit.count == 1 else 's'}"
        )
        message = f"expected {expected} with `{sought(edit)}`, found {len(found)}"
        ordered = sorted(found, key=lambda one: one.site.branch.directive.start)
        lines = [self.show(one.site.branch) for one in ordered[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"and {len(found) - _SHOWN} more")
        hint = "found:\n  " if lines else "nearest:\n  "
        lines = lines or [self.show(branch) for branch in self.nearest(sought(edit))]
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

    def refusal(
        self, edit: Edit, message: str, hint: str | None = None, branch: Branch | None = None
    ) -> RefusedError:
        """Make the error that says where an edit is refused and why."""
        place = f"{self.path}:{branch.directive.line}" if branch else self.path
        return RefusedError(Problem(message=message, where=f"{place} ({edit.where})", hint=hint))


def sought(edit: ConditionEdit) -> str:
    """Return the source of what an edit looks for."""
    return edit.expression if isinstance(edit, Replace) else edit.condition or ""


def shut(edit: ConditionEdit) -> bool | None:
    """Return the value that leaves an architecture out, if the edit says so."""
    return edit.shut if isinstance(edit, GateEdit) else None


def _apart(matches: Iterable[Match], others: Sequence[Match]) -> tuple[Match, ...]:
    return tuple(match for match in matches if not any(map(match.overlaps, others)))
