"""Choose the edits that make one file's bytes after of its bytes before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gatepatch.authoring.cuda_units import cuda_units
from gatepatch.authoring.hunks import Hunk, explained, hunks
from gatepatch.authoring.python_units import python_units
from gatepatch.authoring.texts import CrowdedError, text_edits
from gatepatch.authoring.units import Unit
from gatepatch.edits import ByteEdit, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.engines import run_engine
from gatepatch.gates.result import Context
from gatepatch.loader import CUDA_SUFFIXES, PYTHON_SUFFIXES
from gatepatch.spec import Edit, GateEdit, Replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A file that was edited.

    Args:
        path: Relative to where the distribution is imported from.
        before: Its pristine bytes.
        after: Its bytes after the edits.
        units: What was changed, as far as structure tells it.
    """

    path: str
    before: bytes
    after: bytes
    units: tuple[Unit, ...]


def draft(path: str, before: bytes, after: bytes, context: Context) -> Draft:
    """Compare the two states of a file; the context's goal does not count yet."""
    units: list[Unit] = []
    try:
        if path.endswith(PYTHON_SUFFIXES):
            units = python_units(before, after, context)
        elif path.endswith(CUDA_SUFFIXES):
            units = cuda_units(before, after)
    except RefusedError:
        pass  # what does not parse is left to text
    return Draft(path=path, before=before, after=after, units=tuple(units))


def edits_of(value: Draft, context: Context) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
    """The edits of a file: structural where they give the very same bytes, text for the rest.

    Args:
        value: The file.
        context: With the goal.

    Returns:
        The edits, and why the gates among them that are not proved are not.

    Raises:
        RefusedError: No edits give these bytes.
    """
    chooser = _Chooser(value, context)
    try:
        return chooser.choose(), tuple(chooser.notes)
    except RefusedError:
        alone = _Chooser(replace(value, units=()), context)
        return alone.choose(), tuple(chooser.notes)


class _Chooser:
    """The steps of ``edits_of``."""

    def __init__(self, value: Draft, context: Context):
        self.value = value
        self.context = context
        self.hunks = hunks(value.before, value.after)
        self.notes: list[str] = []
        self.asked: dict[tuple[Edit, ...], frozenset[ByteEdit] | RefusedError] = {}

    def choose(self) -> tuple[Edit, ...]:
        chosen: list[Edit] = []
        for unit in self.value.units:
            chosen += self.option(unit, chosen)
        while True:
            edits = self.planned(chosen) or frozenset()
            left = self.left(edits)
            wrong = [e for e in edits if any(hunk.touches(e) for hunk in left)]
            if not wrong:
                try:
                    texts = text_edits(
                        self.value.path, self.value.before, self.value.after, left, edits
                    )
                    break
                except CrowdedError as error:
                    wrong = list(error.edits)
            chosen = self.without(chosen, wrong)
        whole = (*chosen, *texts)
        if not self.makes(self.edits(whole)):
            raise RefusedError(
                Problem(
                    message="no edits give these bytes",
                    where=self.value.path,
                    hint="report it, with the edits",
                )
            )
        return whole

    def option(self, unit: Unit, chosen: Sequence[Edit]) -> list[Edit]:
        """The first option that says a change; nothing if none does."""
        known = self.planned(chosen) or frozenset()
        for option in unit.options:
            edit = option
            if isinstance(option, GateEdit):
                edit = replace(option, action=self.context.goal.action)
            edits = self.planned([*chosen, edit])
            if edits is None or edits == known:
                continue
            if unit.is_told_by(self.value.before, self.value.after, edits - known):
                self.explain(unit, edit, chosen)
                return [edit]
        self.explain(unit, None, chosen)
        return []

    def explain(self, unit: Unit, edit: Edit | None, chosen: Sequence[Edit]) -> None:
        """Note why a gate is not proved."""
        if unit.judged is None or (edit is not None and not getattr(edit, "unproved", "")):
            return
        for option in unit.options:
            if isinstance(option, Replace) and not option.unproved:
                try:
                    self.edits([*chosen, option])
                except RefusedError as error:
                    reason = error.problems[0].message
                    self.notes.append(f"{self.value.path}, line {unit.line}: {reason}")
                    return

    def planned(self, edits: Sequence[Edit]) -> frozenset[ByteEdit] | None:
        """What the engine makes of edits; None if it refuses them."""
        try:
            return self.edits(edits)
        except RefusedError:
            return None

    def edits(self, edits: Sequence[Edit]) -> frozenset[ByteEdit]:
        """What the engine makes of edits, asked once: it takes half a second for a large file.

        Raises:
            RefusedError: It refuses them.
        """
        key = tuple(edits)
        if key not in self.asked:
            try:
                self.asked[key] = self.ask(key)
            except RefusedError as error:
                self.asked[key] = error
        found = self.asked[key]
        if isinstance(found, RefusedError):
            raise found
        return found

    def ask(self, edits: Sequence[Edit]) -> frozenset[ByteEdit]:
        """Run the engine."""
        if not edits:
            return frozenset()
        placed = [replace(edit, where=f"edits[{i}]") for i, edit in enumerate(edits)]
        return frozenset(run_engine(self.value.before, placed, self.context).edits)

    def makes(self, edits: frozenset[ByteEdit]) -> bool:
        return splice(self.value.before, edits) == self.value.after

    def left(self, edits: frozenset[ByteEdit]) -> list[Hunk]:
        """The hunks that edits do not explain."""
        if self.makes(edits):
            return []
        before, after = self.value.before, self.value.after
        return [hunk for hunk in self.hunks if not explained(before, after, hunk, edits)]

    def without(self, chosen: Sequence[Edit], wrong: Sequence[ByteEdit]) -> list[Edit]:
        """What is chosen but for the edits that make some byte edits."""
        kept: list[Edit] = []
        for edit in chosen:
            alone = self.planned([*kept, edit]) or frozenset()
            if not alone & set(wrong):
                kept.append(edit)
        return kept if len(kept) < len(chosen) else []
