"""Anchored text edits: exact bytes, an exact count, and always a reason why there is no proof."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from gatepatch.edits import ByteEdit, line_of
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.spec import Edit, Text


def plan(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    """Plan the edits of a file that no gate engine reads.

    Raises:
        RefusedError: A text is not there exactly as often as it must be, or an edit is of
            another kind.
    """
    changes: list[Change] = []
    for edit in edits:
        if not isinstance(edit, Text):
            raise RefusedError(
                Problem(
                    message="only text edits can be made in a file of this kind",
                    where=f"{context.path} ({edit.where})",
                )
            )
        changes += plan_text(source, edit, context.path)
    return FileEdits(changes=tuple(changes))


def plan_text(source: bytes, edit: Text, path: str) -> tuple[Change, ...]:
    """Find the places of one text edit; line breaks in it stand for the file's own.

    Raises:
        RefusedError: The text is not there exactly as often as it must be.
    """
    newline = b"\r\n" if b"\r\n" in source else b"\n"
    find, replacement = (
        text.encode().replace(b"\n", newline) for text in (edit.find, edit.replace)
    )
    done = _spans(source, replacement) if replacement else []
    todo = [span for span in _spans(source, find) if not _inside(span, done)]
    # Where an edit takes away what stands before or behind its anchor, find holds the replacement.
    done = [span for span in done if not _inside(span, todo)]
    # Where the text is simply deleted, its absence cannot be told from a wrong anchor.
    if len(todo) + len(done) != edit.count:
        found = ", ".join(f"line {line_of(source, start)}" for start, _ in todo[:10])
        raise RefusedError(
            Problem(
                message=f"expected the text {edit.count} times, found it {len(todo) + len(done)} times"
                + (f" ({found})" if found else f"; nearest: {_nearest(source, find)}"),
                where=f"{path} ({edit.where})",
                hint="make the anchor longer, or correct count",
            )
        )
    return tuple(
        Change(
            where=edit.where,
            line=line_of(source, start),
            end_line=line_of(source, max(start, end - 1)),
            before=source[start:end].decode("utf-8", "backslashreplace"),
            after=edit.replace,
            edits=(ByteEdit(start, find, replacement),) if pending else (),
            unproved=edit.unproved,
        )
        for (start, end), pending in sorted(
            [(span, True) for span in todo] + [(span, False) for span in done]
        )
    )


def _inside(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _spans(source: bytes, text: bytes) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(re.escape(text), source)]


def _nearest(source: bytes, find: bytes) -> str:
    wanted = find.strip().split(b"\n")[0].decode("utf-8", "backslashreplace").strip()
    lines = [line.strip() for line in source.decode("utf-8", "backslashreplace").split("\n")]
    near = difflib.get_close_matches(wanted, lines, n=1, cutoff=0.5)
    return f"line {lines.index(near[0]) + 1}: {near[0]}" if near else "nothing like it"
