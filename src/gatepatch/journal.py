"""The journal: what a transaction is about to do, so that a kill at any instant can be settled.

One journal serves all roots of a transaction and lies in the first of them; each other root has
a pointer to it. Pointers are written before it and removed after it, so a pointer without its
journal means that nothing is pending.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gatepatch.errors import PendingError, Problem
from gatepatch.files import sync_folder, write_new
from gatepatch.store import JOURNAL

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """One file that is replaced.

    Args:
        path: Relative to the root.
        staged: Name of the new content beside it.
        before: SHA-256 of the old content, which is in the store.
        link: The text of the symlink that stood there; None for a regular file.
        mode: Mode of the old file.
    """

    path: str
    staged: str
    before: str
    link: str | None
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameStep:
    """One folder that is renamed; both paths relative to the root."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSteps:
    """What happens under one root.

    Args:
        root: The root's folder.
        state_dir: Its state folder.
        files: In the order in which they are replaced.
        state: The state document afterwards; None removes it.
        keep: SHA-256 of what the store must hold afterwards.
    """

    root: str
    state_dir: str
    files: tuple[FileStep, ...]
    renames: tuple[RenameStep, ...]
    state: str | None
    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A transaction in progress.

    Args:
        id: Its name.
        phase: ``prepared``: undo it. ``committed``: finish it.
    """

    id: str
    phase: Literal["prepared", "committed"]
    roots: tuple[RootSteps, ...]


def write(journal: Journal) -> None:
    """Write the journal durably: first the pointers, then the journal itself."""
    first, *others = (Path(steps.state_dir) for steps in journal.roots)
    if journal.phase == "prepared":
        for state_dir in others:
            pointer = {"schema": SCHEMA, "journal": str(first / JOURNAL)}
            write_new(state_dir / JOURNAL, json.dumps(pointer).encode())
            sync_folder(state_dir)
    document = {"schema": SCHEMA, **asdict(journal)}
    write_new(first / JOURNAL, json.dumps(document, indent=1).encode())
    sync_folder(first)


def drop(journal: Journal) -> None:
    """Remove the journal, then the pointers to it."""
    for steps in journal.roots:
        (Path(steps.state_dir) / JOURNAL).unlink(missing_ok=True)
        sync_folder(Path(steps.state_dir))


def read(state_dir: Path) -> Journal | None:
    """The journal that is pending in a root; None if none is.

    Raises:
        PendingError: It cannot be read.
    """
    path = state_dir / JOURNAL
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']} is not {SCHEMA}")
        if "journal" in document:
            path = Path(document["journal"])
            document = json.loads(path.read_bytes())
        return Journal(
            id=document["id"],
            phase=document["phase"],
            roots=tuple(
                RootSteps(
                    root=steps["root"],
                    state_dir=steps["state_dir"],
                    files=tuple(FileStep(**step) for step in steps["files"]),
                    renames=tuple(RenameStep(**step) for step in steps["renames"]),
                    state=steps["state"],
                    keep=tuple(steps["keep"]),
                )
                for steps in document["roots"]
            ),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PendingError(
            Problem(
                message=f"the journal of an interrupted change cannot be read: {error}",
                where=str(path),
                hint="upgrade gatepatch; if it is damaged, reinstall the packages and remove the "
                "folder that it lies in",
            )
        ) from None
