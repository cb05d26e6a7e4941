"""What was changed in a file, piece by piece, with the edits that may say it."""

from __future__ import annotations

from dataclasses import dataclass

from gatepatch.edits import ByteEdit, splice
from gatepatch.spec import Edit
from gatepatch.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdicts of a changed gate.

    Args:
        before: As it stood.
        after: As it stands now.
        shut: The value that leaves an architecture out.
    """

    before: Verdict
    after: Verdict
    shut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a piece stood before, and where it stands after, as byte offsets."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One change, or equal ones in several places.

    Args:
        line: The first place's line before, from 1.
        text: What was changed, for messages.
        places: Where; none for statements that were put in.
        options: The edits that may say it, the best first, with the count of its places.
        judged: The verdicts, where it is a gate.
    """

    line: int
    text: str
    places: tuple[Place, ...]
    options: tuple[Edit, ...]
    judged: Judged | None = None

    def is_told_by(self, before: bytes, after: bytes, edits: frozenset[ByteEdit]) -> bool:
        """Whether byte edits make of each of its places what stands there after."""
        rest = set(edits)
        for place in self.places:
            inside = [e for e in edits if place.start <= e.offset and e.end <= place.end]
            moved = [ByteEdit(e.offset - place.start, e.old, e.new) for e in inside]
            made = splice(before[place.start : place.end], moved)
            if made != after[place.new_start : place.new_end]:
                return False
            rest -= set(inside)
        return not rest or not self.places
