"""Anchored text edits for what no structural edit explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gatepatch.authoring.hunks import Hunk, lines_of
from gatepatch.authoring.writer import UNPROVED
from gatepatch.edits import ByteEdit, line_of
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.text import plan_text
from gatepatch.spec import Text


class CrowdedError(Exception):
    """An anchor needs lines that structural edits change.

    Args:
        edits: Those edits.
    """

    def __init__(self, edits: Sequence[ByteEdit]):
        super().__init__()
        self.edits = tuple(edits)


def text_edits(
    path: str,
    before: bytes,
    after: bytes,
    left: Sequence[Hunk],
    taken: Iterable[ByteEdit] = (),
) -> list[Text]:
    """Make text edits for some hunks, equal ones together.

    Args:
        path: The file's path, for messages.
        before: Its bytes before.
        after: Its bytes after.
        left: The hunks, in order.
        taken: Byte edits that others make; no anchor may overlap them.

    Raises:
        CrowdedError: An anchor would.
        RefusedError: A hunk cannot be told as text, or has no anchor.
    """
    maker = _Maker(path, before, after, tuple(taken))
    try:
        return maker.all(list(left))
    except RefusedError:
        if len(left) < 2:
            raise
        # Apart, each may need the lines of another for its anchor.
        whole = replace(left[0], end=left[-1].end, new_end=left[-1].new_end)
        return maker.all([whole])


class _Maker:
    """The steps of ``text_edits`` over one file."""

    def __init__(self, path: str, before: bytes, after: bytes, taken: tuple[ByteEdit, ...]):
        self.path = path
        self.before = before
        self.after = after
        self.taken = taken
        self.newline = b"\r\n" if b"\r\n" in before else b"\n"
        self.done: list[ByteEdit] = []
        self.starts = [0]
        for line in lines_of(before):
            self.starts.append(self.starts[-1] + len(line))

    def all(self, left: list[Hunk]) -> list[Text]:
        found: list[Text] = []
        self.done = []
        for group in self._groups(left):
            if (text := self._together(group)) is not None:
                found.append(text)
                left = [hunk for hunk in left if hunk not in group]
        while left:
            hunk = left.pop(0)
            text, end = self._alone(hunk, left)
            found.append(text)
            left = [other for other in left if other.start >= end]
        return found

    def _alone(self, hunk: Hunk, later: Sequence[Hunk]) -> tuple[Text, int]:
        """One edit for a hunk and those that its anchor reaches, and the offset behind it."""
        # Behind the last line, or before the first, no anchor is without its own text after.
        for grows in (False, True):
            for before, after, merged in self._wider(hunk, later):
                if not grows and (before in after or self._crowded(before, [merged.start])):
                    continue
                if (text := self._checked(before, after, [merged.start])) is not None:
                    return text, merged.end
        raise self._refused(hunk)

    def _groups(self, left: Sequence[Hunk]) -> list[list[Hunk]]:
        """Hunks that change the same lines in the same way."""
        groups: dict[tuple[bytes, bytes], list[Hunk]] = {}
        for hunk in left:
            if hunk.start < hunk.end and hunk.new_start < hunk.new_end:
                groups.setdefault(self._sides(hunk), []).append(hunk)
        return list(groups.values())

    def _sides(self, hunk: Hunk) -> tuple[bytes, bytes]:
        return (
            self.before[hunk.start : hunk.end],
            self.after[hunk.new_start : hunk.new_end],
        )

    def _together(self, group: Sequence[Hunk]) -> Text | None:
        """One edit for equal hunks, with the white space around left out where it can be."""
        old, new = self._sides(group[0])
        head, tail = _margins(old, new)
        for skip, cut in ((head, tail), (0, 0)):
            starts = [hunk.start + skip for hunk in group]
            core = old[skip : len(old) - cut], new[skip : len(new) - cut]
            if core[0] in core[1]:
                continue
            if (text := self._checked(*core, starts)) is not None:
                return text
        return None

    def _wider(self, hunk: Hunk, later: Sequence[Hunk]) -> Iterator[tuple[bytes, bytes, Hunk]]:
        """A hunk with more and more lines around it; hunks that it reaches become part of it."""
        first = self.starts.index(hunk.start)
        last = self.starts.index(hunk.end)
        bare = hunk.start == hunk.end or hunk.new_start == hunk.new_end
        above, below = (1, 1) if bare else (0, 1)
        lines = len(self.starts) - 1
        while True:
            low, high = max(first - above, 0), min(last + below, lines)
            merged = hunk
            for other in later:
                if other.start <= self.starts[high] and self.starts.index(other.end) >= 0:
                    merged = replace(hunk, end=other.end, new_end=other.new_end)
                    high = max(high, min(self.starts.index(other.end) + 1, lines))
            start, end = self.starts[low], self.starts[high]
            yield (
                self.before[start:end],
                self.before[start : hunk.start]
                + self.after[merged.new_start : merged.new_end]
                + self.before[merged.end : end],
                replace(merged, start=start, end=end),
            )
            if (low, high) == (0, lines):
                return
            if above < below:
                above = below
            else:
                below = below + max(1, below // 2)

    def _checked(self, old: bytes, new: bytes, starts: Sequence[int]) -> Text | None:
        """The edit that replaces a text at these places, if it does so there and nowhere else."""
        find, by = self._text(old), self._text(new)
        if find is None or by is None or not find.strip() or find == by:
            return None
        edit = Text(where="", find=find, replace=by, count=len(starts), unproved=UNPROVED)
        wanted = {ByteEdit(start, old, new) for start in starts}
        try:
            planned = {e for c in plan_text(self.before, edit, self.path) for e in c.edits}
            again = [e for c in plan_text(self.after, edit, self.path) for e in c.edits]
        except RefusedError:
            return None
        if planned != wanted or again or any(d.overlaps(w) for d in self.done for w in wanted):
            return None
        if crowded := self._crowded(old, starts):
            raise CrowdedError(crowded)
        self.done += wanted
        return edit

    def _crowded(self, old: bytes, starts: Sequence[int]) -> list[ByteEdit]:
        """The structural edits that a text at these places would overlap."""
        wanted = [ByteEdit(start, old, b"") for start in starts]
        return [edit for edit in self.taken if any(edit.overlaps(w) for w in wanted)]

    def _text(self, data: bytes) -> str | None:
        """Bytes as a set can have them: UTF-8, with the file's own line ends."""
        try:
            text = data.replace(self.newline, b"\n").decode()
        except UnicodeDecodeError:
            return None
        return text if text.encode().replace(b"\n", self.newline) == data else None

    def _refused(self, hunk: Hunk) -> RefusedError:
        old, new = self._sides(hunk)
        hint = "write this edit by hand"
        if self._text(old) is None or self._text(new) is None:
            message = "the edit cannot be told as text: its bytes are not UTF-8, or its line ends "
            message += "are not the file's"
            hint = "give the file its own line ends back, and leave the others as they were"
        elif not self.before.strip():
            message = "the file has no text that an edit could stand beside"
        else:
            message = "no text around the edit tells it from the rest of the file"
        where = f"{self.path}:{line_of(self.before, hunk.start)}"
        return RefusedError(Problem(message=message, where=where, hint=hint))


def _margins(old: bytes, new: bytes) -> tuple[int, int]:
    """How much white space a single line has in common before and after: in front, and behind."""
    if old.count(b"\n") > 1 or new.count(b"\n") > 1:
        return 0, 0
    head = len(old) - len(old.lstrip(b" \t"))
    head = head if new[:head] == old[:head] and new[head : head + 1].strip() else 0
    tail = len(old) - len(old.rstrip())
    return head, tail if new[len(new) - tail :] == old[len(old) - tail :] else 0
