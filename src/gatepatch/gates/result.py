"""What a gate engine is given and what it returns, whatever the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gatepatch.arch import Arch
from gatepatch.edits import ByteEdit
from gatepatch.records import dataclass, field
from gatepatch.spec import Edit, Goal

if TYPE_CHECKING:  # what follows a pin comes to no verdict
    from gatepatch.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a file stands, and what its edits are to bring about.

    Args:
        path: The file's path, relative to where the distribution is imported from, with ``/``.
        goal: What every gate edit is to bring about.
        read: Returns the bytes of another file of the distribution by such a path, as it
            stands before the set; None if there is none.
        read_after: The same, with the set's edits of the files planned so far.
        predicates: Dotted name to the architectures for which that predicate holds.
    """

    path: str
    goal: Goal
    read: Callable[[str], bytes | None]
    read_after: Callable[[str], bytes | None]
    predicates: Mapping[str, frozenset[Arch]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One place that an edit matched.

    Args:
        where: The edit's place in its set.
        line: First line of the place in the file as given, from 1.
        end_line: Last line of the place.
        within: Qualified name of the enclosing function, if any.
        before: The source there.
        after: The source that the edit puts there; equal to ``before`` if it is in place already.
        edits: What to splice; empty if it is in place already.
        verdict_before: The whole condition's verdict; None for an edit that is no gate.
        verdict_after: The same after all edits of the file.
        unproved: The set's reason for an edit that could not be proved; empty if it is proved.
    """

    where: str
    line: int
    end_line: int
    within: str = ""
    before: str
    after: str
    edits: tuple[ByteEdit, ...]
    verdict_before: Verdict | None = None
    verdict_after: Verdict | None = None
    unproved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdits:
    """Everything that a set's edits do to one file; no splices if all is in place already."""

    changes: tuple[Change, ...]

    @property
    def edits(self) -> tuple[ByteEdit, ...]:
        """All byte edits of the file, in order, equal ones once."""
        return tuple(sorted({edit for change in self.changes for edit in change.edits}))


class Engine(Protocol):
    """Plan a file's edits.

    Raises:
        RefusedError: Something does not match, cannot be proved, or cannot be kept byte for
            byte; with all its problems, and ``where`` as ``path:line (place in the set)``.
    """

    def __call__(self, source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits: ...
