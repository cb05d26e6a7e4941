"""A plan: what a set would do, as a value. (A module `plan` would hide `gatepatch.plan`.)"""

from __future__ import annotations

from gatepatch.classify import Classified
from gatepatch.edits import ByteEdit, splice
from gatepatch.gates.result import Context
from gatepatch.records import dataclass
from gatepatch.results import Place
from gatepatch.spec import Edit, PatchSet, TargetSpec
from gatepatch.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One file of a set.

    Args:
        path: Relative to the target's root.
        name: As the set has it.
        classified: What stands there now.
        pristine: The bytes that the edits refer to.
        edits: Empty where the gates admit the architectures as they stand.
        context: What the engine was given beside the bytes.
        spec: The set's edits.
    """

    target: Target
    path: str
    name: str
    classified: Classified
    pristine: bytes
    context: Context
    edits: tuple[ByteEdit, ...]
    places: tuple[Place, ...]
    pinned: bool
    spec: tuple[Edit, ...]

    @property
    def after(self) -> bytes:
        """The bytes that this set alone makes."""
        return splice(self.pristine, self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """One distribution of a set.

    Args:
        target: None for an optional distribution that is not installed.
        spec: The set's block for the release; None for such a distribution.
        native: Whether nothing has to be edited.
    """

    distribution: str
    target: Target | None
    spec: TargetSpec | None
    files: tuple[PlannedFile, ...] = ()

    @property
    def native(self) -> bool:
        """Whether the release admits the architectures as it is."""
        return self.target is not None and not any(file.edits for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlan:
    """Everything that a set would do."""

    patch_set: PatchSet
    targets: tuple[PlannedTarget, ...]

    @property
    def files(self) -> tuple[PlannedFile, ...]:
        """The files of all targets."""
        return tuple(file for target in self.targets for file in target.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """One file of a set, as it stands."""

    target: Target
    spec: TargetSpec
    path: str
    name: str
    classified: Classified
