"""What the library returns: typed results in the words of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from gatepatch.records import dataclass

if TYPE_CHECKING:  # a result is made of whatever was loaded to come to it
    from gatepatch.gates.result import Change
    from gatepatch.probing.device_probe import Device
    from gatepatch.spec import Advisory

Outcome: TypeAlias = Literal[
    "applied",
    "already-applied",
    "would-apply",
    "native",
    "reverted",
    "pristine",
    "upgraded",
    "foreign",
    "missing",
    "skipped",
    "refused",
    "interrupted",
]

WitnessKind: TypeAlias = Literal["record", "git", "pin", "state", "accepted", "none"]
"""What vouches for the pristine bytes: RECORD, a git blob, a pin, gatepatch's own state, the
user's word, or nothing (``unwitnessed``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One place that an edit changes, and its proof, in words.

    Args:
        where: The edit's place in its set.
        line: First line in the pristine file, from 1.
        end_line: Last line in the pristine file.
        within: Qualified name of the enclosing function, if any.
        before: The source there.
        after: The source that stands there afterwards.
        verdict_before: ``yes``, ``no`` or ``depends`` (on what else the condition tests), to the
            architectures where it is so.
        verdict_after: The same afterwards.
        unproved: The set's reason for an edit without a proof; empty if it is proved.
    """

    where: str
    line: int
    end_line: int
    within: str
    before: str
    after: str
    verdict_before: Mapping[str, str]
    verdict_after: Mapping[str, str]
    unproved: str

    @classmethod
    def of(cls, change: Change) -> Place:
        """Put an engine's finding into words."""
        from gatepatch.verdict import words_of

        verdicts = [v for v in (change.verdict_before, change.verdict_after) if v is not None]
        words = words_of(*verdicts) if len(verdicts) == 2 else ({}, {})
        return cls(
            where=change.where,
            line=change.line,
            end_line=change.end_line,
            within=change.within,
            before=change.before,
            after=change.after,
            verdict_before=words[0],
            verdict_after=words[1],
            unproved=change.unproved,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What became, or would become, of one file.

    Args:
        root: The folder that ``path`` is relative to.
        path: With ``/``.
        detail: For ``foreign``: what was compared with what.
        diff: Unified diff of what is changed now; empty if nothing is.
    """

    distribution: str
    version: str
    root: str
    path: str
    outcome: Outcome
    pinned: bool = False
    witness: WitnessKind = "none"
    detail: str = ""
    places: tuple[Place, ...] = ()
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What became of one patch set.

    Args:
        notes: What the set says of the releases found.
        advisories: What the set says of the outcome, for the versions found.
        files: Every file of the set that is of concern to the command.
    """

    name: str
    outcome: Outcome
    summary: str = ""
    files: tuple[FileResult, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def pinned(self) -> bool:
        """Whether every file that is changed follows a pin."""
        return bool(self.files) and all(f.pinned for f in self.files if f.places or f.diff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command did.

    Args:
        outcome: The one word for it.
        devices: The devices that the probe found, if it was asked.
        assumed: The architectures that stood in for the probe.
        jit_removed: Folders of JIT binaries that were removed, because they derived from what
            was edited.
        pending: One line on an interrupted change, if one is pending.
        signal: Number of a signal that came after the commit point.
    """

    command: str
    outcome: Outcome
    sets: tuple[SetResult, ...] = ()
    devices: tuple[Device, ...] = ()
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    jit_removed: tuple[str, ...] = ()
    pending: str | None = None
    signal: int | None = None


ORDER: tuple[Outcome, ...] = (
    "interrupted",
    "refused",
    "foreign",
    "missing",
    "upgraded",
    "would-apply",
    "reverted",
    "applied",
    "already-applied",
    "pristine",
    "native",
    "skipped",
)
"""From what a person must see first to what is least: one word for several is the first of them."""


def together(outcomes: list[Outcome]) -> Outcome:
    """One word for several; ``skipped`` for none."""
    return min(outcomes, key=ORDER.index, default="skipped")
