"""Look at the files of a set, without planning it: what they are, and what their gates say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gatepatch.edits import sha256, unsplice
from gatepatch.errors import TargetError
from gatepatch.gates.result import Context
from gatepatch.planned import Inspected
from gatepatch.planner import inspect_set
from gatepatch.results import Outcome
from gatepatch.spec import PatchSet
from gatepatch.state import AppliedSet
from gatepatch.target import Target
from gatepatch.verifying.judging import Judged, Question, judge
from gatepatch.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A file of a set, as it stands.

    Args:
        item: The file, and what its bytes say it is.
        judged: What its gates say.
        current: The bytes on disk; None if there are none.
        pristine: The bytes without the set; None where they are not to be had.
        outcome: ``applied``, ``native``, ``pristine`` and so on.
        shared: The other sets that are applied to it.
    """

    item: Inspected
    judged: Judged
    current: bytes | None
    pristine: bytes | None
    outcome: Outcome
    shared: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of the bytes on disk; empty if there are none."""
        return sha256(self.current) if self.current is not None else ""


def look_at_set(workspace: Workspace, patch_set: PatchSet) -> tuple[Looked, ...]:
    """Look at every file of a set, in what is installed of its distributions.

    Raises:
        TargetError: A distribution's metadata is damaged.
    """
    return _Look(workspace, patch_set).all()


class _Look:
    """Looks at the files of one set, each read once."""

    def __init__(self, workspace: Workspace, patch_set: PatchSet):
        self.workspace = workspace
        self.patch_set = patch_set
        self.items = inspect_set(workspace, patch_set)
        self.pristine = {
            (item.target.distribution, item.name): self._pristine(item) for item in self.items
        }

    def all(self) -> tuple[Looked, ...]:
        """Look at every file."""
        return tuple(map(self._one, self.items))

    def _one(self, item: Inspected) -> Looked:
        sets = self._sets(item)
        shared = tuple(name for name in sets if name != self.patch_set.name)
        current = self._current(item.target, item.name)
        pristine = self.pristine[item.target.distribution, item.name]
        if current is None:
            judged = Judged(expected="", places=())
        else:
            judged = judge(self._question(item, current, pristine, sets))
        if shared and self.patch_set.name in sets and judged.problem is not None:
            judged = replace(judged, problem=None)  # their union was proved when it was applied
        return Looked(
            item=item,
            judged=replace(judged, expected="") if shared else judged,
            current=current,
            pristine=pristine,
            outcome=_outcome(item, judged, self.patch_set.name in sets),
            shared=shared,
        )

    def _sets(self, item: Inspected) -> Mapping[str, AppliedSet]:
        """The sets that state knows to have changed a file."""
        state = self.workspace.state(item.target.root)
        return {name: value for name, value in state.sets.items() if item.path in value.files}

    def _question(
        self,
        item: Inspected,
        current: bytes,
        pristine: bytes | None,
        sets: Mapping[str, AppliedSet],
    ) -> Question:
        target = item.target

        def read(path: str) -> bytes | None:
            return self._current(target, path)

        def read_pristine(path: str) -> bytes | None:
            known = self.pristine.get((target.distribution, path))
            return known if known is not None else read(path)

        file = next(file for file in item.spec.files if file.path == item.name)
        return Question(
            edits=file.edits,
            current=current,
            pristine=pristine,
            context=Context(
                path=item.name,
                goal=self.patch_set.goal,
                read=read,
                read_after=read,
                predicates=self.patch_set.predicates,
            ),
            read_pristine=read_pristine,
            others=frozenset(
                arch
                for name, value in sets.items()
                if name != self.patch_set.name
                for arch in value.goal.archs
            ),
        )

    def _current(self, target: Target, name: str) -> bytes | None:
        try:
            return target.locate(name).read_bytes()
        except (OSError, TargetError):
            return None

    def _pristine(self, item: Inspected) -> bytes | None:
        """The pristine bytes: the store's, or the present ones with the edits taken back."""
        if item.classified.pristine is not None or item.classified.kind != "applied":
            return item.classified.pristine
        sets = list(self._sets(item).values())
        current = self._current(item.target, item.name)
        if len(sets) != 1 or current is None:
            return None
        file = sets[0].files[item.path]
        try:
            pristine = unsplice(current, file.edits)
        except ValueError:
            return None
        return pristine if sha256(pristine) == file.pristine else None


def _outcome(item: Inspected, judged: Judged, known: bool) -> Outcome:
    kind = item.classified.kind
    if kind not in ("applied", "pristine"):
        return kind
    left = judged.problem is not None or any(place.left for place in judged.places)
    if kind == "applied" and (known or item.classified.rebuilt):
        return "applied"
    return "pristine" if left else "native"
