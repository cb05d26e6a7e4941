"""The mark of a trial: what a killed trial's set is to be put back to, and by whom it is run.

It lies in the state folder of every root that the trial touches, from before the first change to
after the last, and the process that runs the trial holds a lock on it. A mark that nobody holds
is of a trial that was killed. The mark in the first root counts; it is removed first, so another
root's mark without it means nothing any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gatepatch import locks, settle
from gatepatch.errors import LockTimeoutError, PendingError, Problem
from gatepatch.files import read, remove, sync_folder, write_new
from gatepatch.records import asdict, dataclass, replace
from gatepatch.target import Root

SCHEMA = 1
NAME = "trial.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A trial that is not over.

    Args:
        id: Its name.
        name: The set's name.
        root: The root that this mark lies in.
        roots: All roots of the trial, the first one's mark being the one that counts.
        state: The root's state document before the trial; None if there was none.
        jit_roots: The JIT cache roots that the trial was told of.
        process: The process that runs it.
        began: When, in UTC, as ISO 8601.
    """

    id: str
    name: str
    root: Root
    roots: tuple[Root, ...]
    state: str | None
    jit_roots: tuple[str, ...]
    process: int
    began: str


@contextlib.contextmanager
def held(marks: Sequence[Mark], timeout: float) -> Iterator[None]:
    """Mark some roots while a trial runs, and take the marks away after it.

    Where the block ends with an error of the class PendingError the marks stay: what the trial
    has changed could not be put back.

    Args:
        marks: One for each root.
        timeout: Seconds to wait for each lock.

    Raises:
        LockTimeoutError: A lock was not had in time, or another trial is marked.
        TransactionError: A state folder cannot be written.
    """
    folders = [mark.root.state_dir for mark in marks]
    with contextlib.ExitStack() as stack:
        try:
            _begin(marks, timeout, stack)
        except OSError as error:
            drop(folders, marks[0].id, timeout)
            raise settle.explained(error) from error
        try:
            yield
        except PendingError:
            raise
        except BaseException:
            drop(folders, marks[0].id, timeout)
            raise
        drop(folders, marks[0].id, timeout)


def _begin(marks: Sequence[Mark], timeout: float, stack: contextlib.ExitStack) -> None:
    folders = [mark.root.state_dir for mark in marks]
    with _locked(folders, timeout):
        for folder in folders:
            if (folder / NAME).exists():
                raise LockTimeoutError(_running(folder / NAME, read_mark(folder)))
        for mark in reversed(marks):  # the first one counts
            write_new(mark.root.state_dir / NAME, _document(mark))
            sync_folder(mark.root.state_dir)
            stack.callback(os.close, _hold(mark.root.state_dir / NAME))


def drop(folders: Sequence[Path], name: str, timeout: float) -> None:
    """Take a trial's marks away, the first one first."""
    with _locked([folder for folder in folders if folder.is_dir()], timeout):
        for folder in folders:
            found = read_mark(folder)
            if found is not None and found.id == name:
                remove(folder / NAME)
                sync_folder(folder)


def read_mark(state_dir: Path) -> Mark | None:
    """The mark in a state folder, whether its trial runs or not; None if there is none.

    Raises:
        PendingError: It cannot be read.
    """
    path = state_dir / NAME
    data = read(path)
    if data is None:
        return None
    try:
        return _parse(json.loads(data))
    except (ValueError, KeyError, TypeError) as error:
        raise PendingError(
            Problem(
                message=f"the mark of a trial cannot be read: {error}",
                where=str(path),
                hint="upgrade gatepatch; if the file is damaged, see what is applied with "
                f"gatepatch status, then remove {path}",
            )
        ) from None


def running(root: Root) -> Mark | None:
    """The trial that a process runs in a root right now; None if none does."""
    mark = _of(root)
    return mark if mark is not None and _is_held(root.state_dir / NAME) else None


def killed(root: Root) -> Mark | None:
    """The trial that was killed in a root and is to be settled; None if there is none."""
    mark = _of(root)
    return mark if mark is not None and not _is_held(root.state_dir / NAME) else None


def pending(root: Root) -> str | None:
    """One line on a trial that was killed; None if none was. Takes no lock."""
    mark = killed(root)
    if mark is None:
        return None
    return (
        f"a trial of {mark.name}, begun {mark.began}, was killed: what it changed is to be "
        "put back: gatepatch recover"
    )


def told(mark: Mark) -> str:
    """One line on a trial that is running."""
    return (
        f"process {mark.process} runs a trial of {mark.name} here, begun {mark.began}: "
        "what is applied changes until it is over"
    )


def refusal(root: Root, mark: Mark) -> LockTimeoutError:
    """What a command says that would change a root in the middle of a trial."""
    return LockTimeoutError(_running(root.state_dir / NAME, mark))


def _running(path: Path, mark: Mark | None) -> Problem:
    who = f"process {locks.holder(path) or (mark.process if mark else 'unknown')}"
    what = f" of {mark.name}, begun {mark.began}" if mark else ""
    return Problem(
        message=f"{who} runs a trial{what} here; nothing else may change the environment meanwhile",
        where=str(path),
        hint="wait for it, or interrupt it: it puts everything back",
    )


def _of(root: Root) -> Mark | None:
    """The mark of a root, if it means anything, with the root where it is now."""
    mark = read_mark(root.state_dir)
    if mark is None:
        return None
    first = mark.roots[0]
    if len(mark.roots) == 1 or mark.root.state_dir != root.state_dir:
        return replace(mark, root=root, roots=(root,))  # the tree may have been moved or copied
    if first.state_dir == root.state_dir or not first.path.is_dir():
        return mark
    counting = read_mark(first.state_dir)
    return mark if counting is not None and counting.id == mark.id else None


def _is_held(path: Path) -> bool:
    """Whether a process holds a mark. A shared lock: two that look do not see each other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def _hold(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _locked(folders: Sequence[Path], timeout: float) -> contextlib.AbstractContextManager[None]:
    return locks.held(folders, time.monotonic() + timeout, lambda: None)


def _document(mark: Mark) -> bytes:
    return json.dumps({"schema": SCHEMA, **asdict(mark)}, indent=1, default=str).encode()


def _parse(document: dict[str, Any]) -> Mark:
    if document.pop("schema") != SCHEMA:
        raise ValueError("another gatepatch wrote it")
    changed = {
        "root": _root(document["root"]),
        "roots": tuple(map(_root, document["roots"])),
        "jit_roots": tuple(document["jit_roots"]),
    }
    return Mark(**{**document, **changed})


def _root(value: dict[str, Any]) -> Root:
    paths = {"path": Path(value["path"]), "state_dir": Path(value["state_dir"])}
    return Root(**{**value, **paths})
