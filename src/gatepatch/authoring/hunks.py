"""Which lines of a file differ, with byte offsets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from gatepatch.edits import ByteEdit, splice


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Adjacent lines that differ.

    Args:
        start: Offset of the first line before; ``end`` is the offset behind the last.
        new_start: Offset of the first line after; ``new_end`` is the offset behind the last.
    """

    start: int
    end: int
    new_start: int
    new_end: int

    def touches(self, edit: ByteEdit) -> bool:
        """Whether an edit of the file before lies in it, or at its edge."""
        return self.start <= edit.end and edit.offset <= self.end


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a file, with their ends; nothing but a line feed ends one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def hunks(before: bytes, after: bytes) -> list[Hunk]:
    """The hunks that lead from one content to the other, in order."""
    old, new = lines_of(before), lines_of(after)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = (old[head : len(old) - tail], new[head : len(new) - tail])
    matcher = difflib.SequenceMatcher(None, *middle, autojunk=False)
    starts, new_starts = _starts(old), _starts(new)
    return [
        Hunk(
            start=starts[head + i],
            end=starts[head + j],
            new_start=new_starts[head + k],
            new_end=new_starts[head + m],
        )
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    ]


def _starts(lines: list[bytes]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def explained(before: bytes, after: bytes, hunk: Hunk, edits: Iterable[ByteEdit]) -> bool:
    """Whether edits of the file before make of a hunk what stands there after."""
    inside = [
        ByteEdit(edit.offset - hunk.start, edit.old, edit.new)
        for edit in edits
        if hunk.start <= edit.offset and edit.end <= hunk.end
    ]
    made = splice(before[hunk.start : hunk.end], inside)
    return made == after[hunk.new_start : hunk.new_end]
