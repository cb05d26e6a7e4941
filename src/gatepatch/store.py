"""A root's state folder: the state document, and content by its hash."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from gatepatch.edits import sha256
from gatepatch.errors import PendingError, Problem
from gatepatch.files import read, remove, sync_folder, write_new

STATE = "state.json"
STORE = "store"
FOREIGN = "foreign"
"""Folder of bytes that the user had edited and asked to discard; gatepatch never removes it."""


def read_state(state_dir: Path) -> bytes | None:
    """The state document; None if nothing is applied."""
    return read(state_dir / STATE)


def stage_state(state_dir: Path, document: bytes | None) -> None:
    """Write the next state document beside the present one, while there still is a way back."""
    if document is not None:
        write_new(state_dir / f".{STATE}", document)


def put_state(state_dir: Path, document: bytes | None) -> None:
    """Put the next state document in its place; None removes the present one."""
    staged = state_dir / f".{STATE}"
    if document is None:
        remove(state_dir / STATE)
    elif read(staged) == document:
        staged.replace(state_dir / STATE)
    else:
        write_new(state_dir / STATE, document)


def read_blob(state_dir: Path, digest: str) -> bytes:
    """Some bytes by their SHA-256.

    Raises:
        PendingError: They are not there, or are damaged.
    """
    path = state_dir / STORE / digest
    data = read(path)
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


def missing(state_dir: Path, blobs: Iterable[bytes]) -> dict[str, bytes]:
    """Those of some bytes that are not in the store, or are damaged there, by their SHA-256."""
    wanted = {sha256(data): data for data in blobs}
    return {d: data for d, data in wanted.items() if read(state_dir / STORE / d) != data}


def digests(state_dir: Path) -> set[str]:
    """What the store holds."""
    try:
        return {path.name for path in (state_dir / STORE).iterdir()}
    except FileNotFoundError:
        return set()


def add(folder: Path, blobs: Iterable[bytes]) -> None:
    """Keep some bytes in a folder, durably, each under its SHA-256; what is whole there stays."""
    todo = {sha256(data): data for data in blobs}
    todo = {digest: data for digest, data in todo.items() if read(folder / digest) != data}
    if todo:
        folder.mkdir(exist_ok=True)
        for digest, data in todo.items():
            write_new(folder / digest, data)
        sync_folder(folder)


def drop(state_dir: Path, digests: Iterable[str]) -> None:
    """Remove some bytes from the store, what unfinished writes left, and the store if empty.

    What cannot be removed stays: it is in nobody's way.
    """
    store = state_dir / STORE
    for path in (*(store / digest for digest in digests), *store.glob(".*")):
        with contextlib.suppress(OSError):
            remove(path)
    with contextlib.suppress(OSError):
        store.rmdir()
