"""A root's state folder: the state document, the journal's file, and content by its hash."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gatepatch.edits import sha256
from gatepatch.errors import PendingError, Problem
from gatepatch.files import write_new

STATE = "state.json"
JOURNAL = "journal.json"
LOCK = "lock"
STORE = "store"
FOREIGN = "foreign"
"""Folder of bytes that the user had edited and asked to discard; gatepatch never removes it."""


def read_state(state_dir: Path) -> bytes | None:
    """The state document; None if nothing is applied."""
    return _read(state_dir / STATE)


def write_state(state_dir: Path, document: bytes | None) -> None:
    """Write the state document; None removes it."""
    if document is None:
        (state_dir / STATE).unlink(missing_ok=True)
    else:
        write_new(state_dir / STATE, document)


def read_blob(state_dir: Path, digest: str) -> bytes:
    """Some bytes by their SHA-256.

    Raises:
        PendingError: They are not there, or are damaged.
    """
    path = state_dir / STORE / digest
    data = _read(path)
    if data is None or sha256(data) != digest:
        what = "is not in the store" if data is None else "is damaged in the store"
        raise PendingError(
            Problem(
                message=f"the backup {digest[:12]}… {what}",
                where=str(path),
                hint="reinstall the package that the file belongs to",
            )
        )
    return data


def write_blob(folder: Path, data: bytes) -> None:
    """Keep some bytes in a folder, under their SHA-256; what is there and whole stays."""
    path = folder / sha256(data)
    if _read(path) != data:
        folder.mkdir(parents=True, exist_ok=True)
        write_new(path, data)


def drop_blobs(state_dir: Path, keep: Iterable[str]) -> None:
    """Remove what no applied set needs any more."""
    wanted = set(keep)
    store = state_dir / STORE
    if store.is_dir():
        for path in store.iterdir():
            if path.name not in wanted:
                path.unlink()
        if not wanted:
            store.rmdir()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
