"""Byte edits: replacements at offsets of the pristine bytes."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable

from gatepatch.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ByteEdit:
    """Replace ``old`` at ``offset`` by ``new``; an insertion has an empty ``old``.

    Args:
        offset: Offset in bytes from the start of the pristine file.
        old: The bytes that must stand there.
        new: The bytes to put there.
    """

    offset: int
    old: bytes
    new: bytes

    @property
    def end(self) -> int:
        """The offset just behind the replaced bytes."""
        return self.offset + len(self.old)

    def overlaps(self, other: ByteEdit) -> bool:
        """Whether the two touch a common byte, or insert at one place."""
        if self.offset == other.offset:
            return True
        return self.offset < other.end and other.offset < self.end

    def touches(self, other: ByteEdit) -> bool:
        """Whether the two overlap, or nothing stands between them: they may edit one condition."""
        return self.offset <= other.end and other.offset <= self.end


def splice(pristine: bytes, edits: Iterable[ByteEdit]) -> bytes:
    """Apply edits to the pristine bytes.

    Raises:
        ValueError: Two edits overlap, or the bytes to be replaced are not there.
    """
    ordered = sorted(edits)
    for first, second in itertools.pairwise(ordered):
        if first.overlaps(second):
            raise ValueError(f"edits overlap at offset {second.offset}")
    result = pristine
    for edit in reversed(ordered):
        if pristine[edit.offset : edit.end] != edit.old:
            raise ValueError(f"offset {edit.offset}: expected {edit.old!r}")
        result = result[: edit.offset] + edit.new + result[edit.end :]
    return result


def unsplice(result: bytes, edits: Iterable[ByteEdit]) -> bytes:
    """Undo edits: return the pristine bytes that ``splice`` made the result from.

    Raises:
        ValueError: The bytes that the edits put there are not there.
    """
    shift = 0
    inverse = []
    for edit in sorted(edits):
        inverse.append(ByteEdit(edit.offset + shift, edit.new, edit.old))
        shift += len(edit.new) - len(edit.old)
    return splice(result, inverse)


def sha256(data: bytes) -> str:
    """The SHA-256 of some bytes, in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def line_of(data: bytes, offset: int) -> int:
    """The line, from 1, on which an offset stands."""
    return data.count(b"\n", 0, offset) + 1


def unified_diff(path: str, before: bytes, after: bytes) -> str:
    """A unified diff with ``a/`` and ``b/`` prefixes; bytes that are not UTF-8 show as escapes."""
    import difflib

    old, new = (
        data.decode("utf-8", "backslashreplace").splitlines(keepends=True)
        for data in (before, after)
    )
    diff = difflib.unified_diff(old, new, fromfile=f"a/{path}", tofile=f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff
    )
