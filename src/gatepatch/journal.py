"""The journal: what a transaction is about to do, so that a kill at any instant can be settled.

One journal serves all roots of a transaction and lies in the first of them; each other root has
a pointer to it. Pointers are written before it and removed after it, so a pointer without its
journal means that nothing is pending.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gatepatch import locks
from gatepatch.errors import PendingError, Problem
from gatepatch.files import remove, sync_folder, write_new
from gatepatch.records import asdict, dataclass, replace

if TYPE_CHECKING:
    from gatepatch.target import Root

SCHEMA = 1
NAME = "journal.json"
_NEXT = f".{NAME}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """One file that is replaced.

    Args:
        path: Relative to the root.
        staged: Name of the new content beside it.
        before: SHA-256 of the old content, which is in the store.
        before_link: The text of the symlink that stood there; None for a regular file.
        after: SHA-256 of the new content.
    """

    path: str
    staged: str
    before: str
    before_link: str | None
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameStep:
    """One folder that is renamed; both paths relative to the root."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleStep:
    """One JIT module that derives from the files, as ``jitcache.Module`` has it."""

    kind: str
    name: str
    folder: str
    lock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSteps:
    """What happens under one root.

    Args:
        root: The root's folder.
        state_dir: Its state folder.
        files: In the order in which they are replaced.
        renames: After the files.
        state: The state document afterwards; None removes it.
        added: SHA-256 of what was put into the store; removed when everything is put back.
        surplus: SHA-256 of what is removed from the store when everything is done.
    """

    root: str
    state_dir: str
    files: tuple[FileStep, ...]
    renames: tuple[RenameStep, ...]
    state: str | None
    added: tuple[str, ...]
    surplus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A transaction in progress.

    Args:
        id: Its name.
        phase: ``prepared``: undo it. ``committed``: finish it.
        roots: At least one; the journal lies in the first.
        jit: JIT modules that are removed.
    """

    id: str
    phase: Literal["prepared", "committed"]
    roots: tuple[RootSteps, ...]
    jit: tuple[ModuleStep, ...]


def write(journal: Journal) -> None:
    """Write the journal durably: first the pointers, then the journal itself.

    What the commit point needs is written too: from here on it takes no room on the device.
    """
    first, *others = (Path(steps.state_dir) for steps in journal.roots)
    for state_dir in others:
        pointer = {"journal": str(first / NAME), "id": journal.id, "state_dir": str(state_dir)}
        write_new(state_dir / NAME, json.dumps({"schema": SCHEMA, **pointer}).encode())
        sync_folder(state_dir)
    write_new(first / _NEXT, _document(replace(journal, phase="committed")))
    write_new(first / NAME, _document(journal))
    sync_folder(first)


def commit(journal: Journal) -> None:
    """Pass the commit point."""
    first = Path(journal.roots[0].state_dir)
    (first / _NEXT).replace(first / NAME)
    sync_folder(first)


def drop(journal: Journal) -> None:
    """Remove the journal, then the pointers to it, which mean nothing any more."""
    first, *others = (Path(steps.state_dir) for steps in journal.roots)
    remove(first / NAME)
    sync_folder(first)
    for path in (first / _NEXT, *(state_dir / NAME for state_dir in others)):
        with contextlib.suppress(OSError):
            remove(path)


def read(state_dir: Path, root: Path) -> Journal | None:
    """The journal that is pending in a root; None if none is.

    Raises:
        PendingError: It cannot be read, or its tree was moved or copied meanwhile.
    """
    path = state_dir / NAME
    try:
        document = _load(path)
        if document is not None and "journal" in document:
            return _follow(path, document, state_dir)
        return None if document is None else _moved(path, _parse(document), state_dir, root)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PendingError(
            Problem(
                message=f"the journal of an interrupted change cannot be read: {error}",
                where=str(path),
                hint="upgrade gatepatch; if the file is damaged, reinstall the packages that were "
                "patched and remove the folder that it lies in",
            )
        ) from None


def pending(root: Root) -> str | None:
    """One line on an unfinished change; None if there is none. Takes no lock.

    Raises:
        PendingError: Its journal cannot be read.
    """
    found = read(root.state_dir, root.path)
    if found is None:
        return None
    files = sum(len(steps.files) for steps in found.roots)
    todo = "be put back" if found.phase == "prepared" else "be finished"
    if process := locks.holder(root.state_dir / locks.NAME):
        return f"process {process} is changing {files} files in {root.path} right now"
    return f"an interrupted change of {files} files in {root.path} is to {todo}: gatepatch recover"


def _follow(path: Path, pointer: Mapping[str, Any], state_dir: Path) -> Journal | None:
    target = Path(pointer["journal"])
    if pointer["state_dir"] != str(state_dir) or not target.parent.parent.is_dir():
        raise PendingError(
            Problem(
                message=f"a change of several environments was interrupted, and its journal "
                f"{target} is out of reach",
                where=str(path),
                hint="bring both back to their places and run: gatepatch recover. If the other "
                f"one is gone for good, remove {path} and see: gatepatch status",
            )
        )
    document = _load(target)
    if document is None or document.get("id") != pointer["id"]:
        return None  # that change was settled
    return _parse(document)


def _moved(path: Path, journal: Journal, state_dir: Path, root: Path) -> Journal:
    """The journal as it holds for a tree that was moved or copied."""
    first = journal.roots[0]
    if first.state_dir == str(state_dir):
        return journal
    if len(journal.roots) > 1:
        raise PendingError(
            Problem(
                message="a change of several environments was interrupted, and this one was moved "
                f"or copied since, from {first.state_dir}",
                where=str(path),
                hint="bring it back to its place and run: gatepatch recover",
            )
        )
    return replace(journal, roots=(replace(first, state_dir=str(state_dir), root=str(root)),))


def _load(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    if document["schema"] != SCHEMA:
        raise ValueError(f"schema {document['schema']} is not {SCHEMA}")
    return document


def _document(journal: Journal) -> bytes:
    return json.dumps({"schema": SCHEMA, **asdict(journal)}).encode()


def _parse(document: Mapping[str, Any]) -> Journal:
    return Journal(
        id=document["id"],
        phase=document["phase"],
        roots=tuple(_root(steps) for steps in document["roots"]),
        jit=tuple(ModuleStep(**step) for step in document["jit"]),
    )


def _root(steps: Mapping[str, Any]) -> RootSteps:
    changed = {
        "files": tuple(FileStep(**step) for step in steps["files"]),
        "renames": tuple(RenameStep(**step) for step in steps["renames"]),
        "added": tuple(steps["added"]),
        "surplus": tuple(steps["surplus"]),
    }
    return RootSteps(**{**steps, **changed})
