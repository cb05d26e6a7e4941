"""Read unified diffs, git's or plain ones, and apply them exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepatch.authoring.hunks import lines_of
from gatepatch.errors import GatepatchError, Problem, RefusedError

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_REFUSED = {
    b"new file mode": "adds a file",
    b"deleted file mode": "takes a file away",
    b"rename from": "renames a file",
    b"copy from": "copies a file",
    b"old mode": "changes a file's mode",
    b"GIT binary patch": "changes a binary file",
    b"Binary files": "changes a binary file",
}
_NO_NEWLINE = b"\\"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffHunk:
    """One hunk.

    Args:
        where: The diff's file, and the line of the hunk's header.
        start: The first line of the file that it is about, from 1; the one before for none.
        old: The lines that must stand there, with their ends.
        new: The lines to put there.
    """

    where: str
    start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """What a diff does to one file.

    Args:
        where: The diff's file, and the line of the file's header.
        path: As the diff has it, without ``a/`` or ``b/``.
        hunks: In order.
    """

    where: str
    path: str
    hunks: tuple[DiffHunk, ...]


def read_diff(path: Path) -> tuple[FileDiff, ...]:
    """Read a diff.

    Raises:
        GatepatchError: It cannot be opened.
        RefusedError: It has no hunk, is cut off, or does what a patch set cannot do.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise GatepatchError(
            Problem(message=f"cannot be read: {error.strerror}", where=str(path))
        ) from None
    found = tuple(_Reader(str(path), data).files())
    if not found:
        raise RefusedError(
            Problem(
                message="has no hunk of a unified diff",
                where=str(path),
                hint="make one: git diff, or diff -u OLD NEW",
            )
        )
    return found


class _Reader:
    """A diff's lines, and the place in them."""

    def __init__(self, source: str, data: bytes):
        self.source = source
        self.lines = lines_of(data)
        self.at = 0

    def files(self) -> Iterator[FileDiff]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            for start, what in _REFUSED.items():
                if line.startswith(start):
                    raise self.error(f"{what}, and a patch set changes the lines of files only")
            following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else b""
            if line.startswith(b"--- ") and following.startswith(b"+++ "):
                yield self.file(line, following)
            else:
                self.at += 1

    def file(self, old: bytes, new: bytes) -> FileDiff:
        where = f"{self.source}:{self.at + 1}"
        names = [_name(old), _name(new)]
        if "/dev/null" in names:
            what = "adds a file" if names[0] == "/dev/null" else "takes a file away"
            raise self.error(f"{what}, and a patch set changes the lines of files only")
        self.at += 2
        hunks = []
        while self.at < len(self.lines) and (match := _HUNK.match(self.lines[self.at])):
            hunks.append(self.hunk(match))
        if not hunks:
            raise self.error("expected a hunk: @@ -LINE,COUNT +LINE,COUNT @@")
        return FileDiff(where=where, path=_common(*names), hunks=tuple(hunks))

    def hunk(self, match: re.Match[bytes]) -> DiffHunk:
        header = self.at + 1
        counts = [1 if match[i] is None else int(match[i]) for i in (2, 4)]
        old: list[bytes] = []
        new: list[bytes] = []
        self.at += 1
        while len(old) < counts[0] or len(new) < counts[1]:
            if self.at >= len(self.lines):
                raise self.error("the hunk is cut off")
            line = self.lines[self.at]
            if line == b"\n":  # some editors strip the blank in front of an empty line
                line = b" \n"
            sides = {b" ": (old, new), b"-": (old,), b"+": (new,)}.get(line[:1], ())
            if line.startswith(_NO_NEWLINE):
                self.no_newline(old, new)
            elif not sides:
                raise self.error(f"is no line of a hunk: its header, on line {header}, says more")
            for side in sides:
                side.append(line[1:])
            if len(old) > counts[0] or len(new) > counts[1]:
                message = "is no line of a hunk: its header, "
                raise self.error(f"{message}on line {header}, says fewer such lines")
            self.at += 1
        if self.at < len(self.lines) and self.lines[self.at].startswith(_NO_NEWLINE):
            self.no_newline(old, new)
            self.at += 1
        where = f"{self.source}:{header}"
        return DiffHunk(where=where, start=int(match[1]), old=tuple(old), new=tuple(new))

    def no_newline(self, old: list[bytes], new: list[bytes]) -> None:
        """The line before has no end."""
        kind = self.lines[self.at - 1][:1]
        for side, kinds in ((old, b" -"), (new, b" +")):
            if kind in kinds and side:
                side[-1] = side[-1].removesuffix(b"\n")

    def error(self, message: str) -> RefusedError:
        line = min(self.at + 1, len(self.lines))
        return RefusedError(Problem(message=message, where=f"{self.source}:{line}"))


def _name(header: bytes) -> str:
    """The path in a ``---`` or ``+++`` line, without the time behind it."""
    text = header[4:].rstrip(b"\r\n").split(b"\t")[0].strip()
    if text.startswith(b'"') and text.endswith(b'"'):
        # Git quotes a path as C does a string, in octal.
        escaped = text[1:-1].decode("latin-1")
        return escaped.encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
    return text.decode("utf-8", "surrogateescape")


def _common(old: str, new: str) -> str:
    """The path of a file, going by both its names."""
    if old.startswith("a/") and new.startswith("b/"):
        return new[2:]
    return new


def apply_diff(pristine: bytes, diff: FileDiff) -> bytes:
    """Apply a diff exactly: each hunk at its line, byte for byte.

    Raises:
        RefusedError: One does not fit; with every hunk that does not.
    """
    lines = lines_of(pristine)
    result: list[bytes] = []
    problems: list[Problem] = []
    done = 0
    for number, hunk in enumerate(diff.hunks, 1):
        start = hunk.start - 1 if hunk.old else hunk.start
        if start < done or tuple(lines[start : start + len(hunk.old)]) != hunk.old:
            problems.append(_misfit(lines, hunk, diff.path, number, start, done))
            continue
        result += [*lines[done:start], *hunk.new]
        done = start + len(hunk.old)
    if problems:
        raise RefusedError(problems)
    return b"".join([*result, *lines[done:]])


def _misfit(
    lines: Sequence[bytes], hunk: DiffHunk, path: str, number: int, start: int, done: int
) -> Problem:
    if start < done:
        return Problem(message=f"hunk {number} of {path} overlaps the one before", where=hunk.where)
    elsewhere = [
        at + 1
        for at in range(len(lines) - len(hunk.old) + 1)
        if tuple(lines[at : at + len(hunk.old)]) == hunk.old
    ]
    for offset, wanted in enumerate(hunk.old):
        found = lines[start + offset] if start + offset < len(lines) else None
        if found != wanted:
            break
    shown = "the file's end" if found is None else repr(found.decode("utf-8", "backslashreplace"))
    place = f"{path}, line {start + offset + 1}"
    message = f"hunk {number} does not apply: {place} is {shown}, and the diff has "
    message += repr(wanted.decode("utf-8", "backslashreplace"))
    hint = "make the diff against the installed release"
    if elsewhere:
        hint += f"; the same lines stand at line {', '.join(map(str, elsewhere[:3]))}"
    return Problem(message=message, where=hunk.where, hint=hint)
