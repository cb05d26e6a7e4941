"""The transaction: the only thing that writes into an environment.

Order: lock; settle a pending journal; verify every hash; backups to the store; journal; stage
each result beside its file; replace in order; bytecode; JIT; commit; state; drop the journal.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Literal

from gatepatch import bytecode, jitcache, journal, store
from gatepatch.edits import sha256
from gatepatch.errors import (
    GatepatchError,
    LockTimeoutError,
    PendingError,
    Problem,
    SignalError,
    StaleError,
    TransactionError,
)
from gatepatch.files import Image, image, stage, stage_link, sync_folder
from gatepatch.journal import FileStep, Journal, RenameStep, RootSteps
from gatepatch.target import Root

Checkpoint = Callable[[str], None]
"""Is told the name of each step before it is done; tests stop the process there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One file to replace.

    Args:
        path: Relative to the root.
        before: What must stand there now.
        after: The new content.
        link: Put this symlink back instead of writing the content.
        newer_than: Nanoseconds: the mtime of a known output built from what stands there.
    """

    path: str
    before: Image
    after: bytes
    link: str | None = None
    newer_than: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A folder to rename; both paths relative to the root."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RootChange:
    """Everything that changes under one root.

    Args:
        blobs: All that the store must hold while the new state stands.
        foreign: Bytes of the user's that are replaced, kept for good.
        state: The state document afterwards; None where nothing is applied.
    """

    root: Root
    writes: tuple[Write, ...]
    renames: tuple[Rename, ...] = ()
    blobs: tuple[bytes, ...] = ()
    foreign: tuple[bytes, ...] = ()
    state: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Changes that happen together or not at all, and the JIT modules that derive from them."""

    changes: tuple[RootChange, ...]
    jit: tuple[jitcache.Module, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a transaction did.

    Args:
        bytecode_removed: How many compiled files were removed.
        jit_removed: The module folders that were removed.
        signal: Number of a signal that came after the commit point.
    """

    bytecode_removed: int
    jit_removed: tuple[Path, ...]
    signal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """How an interrupted change was settled."""

    root: Path
    outcome: Literal["rolled-back", "completed"]
    files: tuple[str, ...]


def commit(
    transaction: Transaction,
    *,
    timeout: float = 60.0,
    checkpoint: Checkpoint = lambda step: None,
) -> Committed:
    """Carry a transaction out, all of it or nothing.

    Args:
        transaction: What to do.
        timeout: Seconds to wait for each lock.
        checkpoint: Is told each step; for tests.

    Raises:
        StaleError: A file is not what the plan saw; nothing was changed.
        LockTimeoutError: A lock was not had in time; nothing was changed.
        TransactionError: A step failed; everything was put back.
        SignalError: A signal came before the commit point; everything was put back.
        PendingError: Putting back failed; the backups and the journal are kept.
    """
    changes = sorted(transaction.changes, key=lambda change: str(change.root.path))
    roots = [change.root for change in changes]
    with _locked([root.state_dir for root in roots], timeout):
        for root in roots:
            _settle(root.state_dir, checkpoint)
        _verify(changes)
        with jitcache.hold(transaction.jit, timeout), _signals_noted() as noted:
            entry = _prepare(changes, checkpoint)
            compiled = 0
            try:
                _execute(entry, changes, checkpoint, noted)
                compiled = _remove_bytecode(entry)
                checkpoint("jit")
                jit_removed = jitcache.remove(transaction.jit)
                noted.check()
                checkpoint("commit")
                journal.write(replace(entry, phase="committed"))
            except BaseException as error:
                _undo(entry, checkpoint)
                raise _explained(error) from error
            _finish(entry, checkpoint)
        return Committed(bytecode_removed=compiled, jit_removed=jit_removed, signal=noted.signum)


def pending(root: Root) -> str | None:
    """One line on an interrupted change; None if there is none. Takes no lock."""
    found = journal.read(root.state_dir)
    if found is None:
        return None
    files = sum(len(steps.files) for steps in found.roots)
    todo = "be put back" if found.phase == "prepared" else "be finished"
    return f"an interrupted change of {files} files in {root.path} is to {todo}: gatepatch recover"


def recover(
    roots: Sequence[Root],
    *,
    timeout: float = 60.0,
    checkpoint: Checkpoint = lambda step: None,
) -> tuple[Recovered, ...]:
    """Settle what was interrupted: all-before if it was not committed, else all-after.

    Raises:
        LockTimeoutError: Another process holds the lock.
        PendingError: It cannot be settled; the backups and the journal are kept.
    """
    with_journal = [root for root in roots if journal.read(root.state_dir) is not None]
    if not with_journal:
        return ()
    with _locked([root.state_dir for root in with_journal], timeout):
        settled = [_settle(root.state_dir, checkpoint) for root in with_journal]
    return tuple(recovered for recovered in settled if recovered is not None)


def read_state(root: Root) -> bytes | None:
    """The state document of a root; None if nothing is applied there."""
    return store.read_state(root.state_dir)


def read_blob(root: Root, digest: str) -> bytes:
    """Some bytes of a root's store, by their SHA-256, verified."""
    return store.read_blob(root.state_dir, digest)


def _prepare(changes: Sequence[RootChange], checkpoint: Checkpoint) -> Journal:
    """Put the backups into the store and write the journal; nothing installed is touched yet."""
    name = uuid.uuid4().hex[:12]
    try:
        steps = []
        for change in changes:
            checkpoint("store")
            root, state_dir = change.root.path, change.root.state_dir
            backups = [(root / write.path).read_bytes() for write in change.writes]
            for data in (*change.blobs, *backups):
                store.write_blob(state_dir / store.STORE, data)
            for data in change.foreign:
                store.write_blob(state_dir / store.FOREIGN, data)
            if (state_dir / store.STORE).is_dir():
                sync_folder(state_dir / store.STORE)
            steps.append(_steps(change, name))
        entry = Journal(id=name, phase="prepared", roots=tuple(steps))
        checkpoint("journal")
        journal.write(entry)
        return entry
    except OSError as error:
        for change in changes:
            _clean(change.root.state_dir)
        raise _explained(error) from error


def _steps(change: RootChange, name: str) -> RootSteps:
    root = change.root.path
    return RootSteps(
        root=str(root),
        state_dir=str(change.root.state_dir),
        files=tuple(
            FileStep(
                path=write.path,
                staged=f".{Path(write.path).name}.gatepatch-{name}",
                before=write.before.sha256,
                link=write.before.link,
                mode=(root / write.path).stat().st_mode & 0o7777,
            )
            for write in change.writes
        ),
        renames=tuple(
            RenameStep(source=rename.source, destination=rename.destination)
            for rename in change.renames
        ),
        state=change.state.decode() if change.state is not None else None,
        keep=tuple(sha256(blob) for blob in change.blobs),
    )


def _execute(
    entry: Journal, changes: Sequence[RootChange], checkpoint: Checkpoint, noted: _Noted
) -> None:
    for steps, change in zip(entry.roots, changes, strict=True):
        for step, write in zip(steps.files, change.writes, strict=True):
            checkpoint("stage")
            path, staged = _places(steps, step)
            if write.link is not None:
                stage_link(staged, write.link)
            else:
                stage(path, staged, write.after, newer_than=write.newer_than)
    noted.check()
    for steps in entry.roots:
        for step in steps.files:
            checkpoint("replace")
            path, staged = _places(steps, step)
            staged.replace(path)
        for rename in steps.renames:
            checkpoint("rename")
            (Path(steps.root) / rename.source).rename(Path(steps.root) / rename.destination)
        _sync_folders(steps)


def _undo(entry: Journal, checkpoint: Checkpoint) -> None:
    """Put everything back, in reverse; keep journal and backups if any of it fails.

    Raises:
        PendingError: Something could not be put back.
    """
    problems: list[Problem] = []
    for steps in reversed(entry.roots):
        root = Path(steps.root)
        for rename in reversed(steps.renames):
            if (root / rename.destination).exists() and not (root / rename.source).exists():
                checkpoint("undo-rename")
                with _collected(problems, root / rename.destination):
                    (root / rename.destination).rename(root / rename.source)
        for step in reversed(steps.files):
            checkpoint("undo-file")
            with _collected(problems, root / step.path):
                _undo_file(steps, step)
        with _collected(problems, root):
            _sync_folders(steps)
    if problems:
        raise PendingError(
            (
                *problems,
                Problem(
                    message="not everything could be put back; the backups are kept",
                    where=str(Path(entry.roots[0].state_dir) / store.JOURNAL),
                    hint="mend the cause, then: gatepatch recover",
                ),
            )
        )
    _remove_bytecode(entry)
    checkpoint("undo-journal")
    journal.drop(entry)
    for steps in entry.roots:
        _clean(Path(steps.state_dir))


def _undo_file(steps: RootSteps, step: FileStep) -> None:
    path, staged = _places(steps, step)
    staged.unlink(missing_ok=True)
    if image(path) == Image(sha256=step.before, link=step.link):
        return
    data = store.read_blob(Path(steps.state_dir), step.before)
    if step.link is not None:
        stage_link(staged, step.link)
    elif path.exists():
        stage(path, staged, data)
    else:
        staged.write_bytes(data)
        staged.chmod(step.mode)
    staged.replace(path)


def _finish(entry: Journal, checkpoint: Checkpoint) -> None:
    """Bring the state folders to what was committed, then drop the journal."""
    for steps in entry.roots:
        checkpoint("state")
        store.write_state(Path(steps.state_dir), steps.state.encode() if steps.state else None)
    checkpoint("drop-journal")
    journal.drop(entry)
    for steps in entry.roots:
        checkpoint("clean")
        store.drop_blobs(Path(steps.state_dir), steps.keep)
        _clean(Path(steps.state_dir))


def _settle(state_dir: Path, checkpoint: Checkpoint) -> Recovered | None:
    entry = journal.read(state_dir)
    if entry is None:
        # A pointer whose journal is gone: the change was settled.
        (state_dir / store.JOURNAL).unlink(missing_ok=True)
        return None
    try:
        if entry.phase == "committed":
            _finish(entry, checkpoint)
        else:
            _undo(entry, checkpoint)
    except OSError as error:
        raise PendingError(
            Problem(
                message=f"an interrupted change could not be settled: {error.strerror}",
                where=str(error.filename or state_dir),
                hint="mend the cause, then: gatepatch recover",
            )
        ) from error
    return Recovered(
        root=Path(entry.roots[0].root),
        outcome="completed" if entry.phase == "committed" else "rolled-back",
        files=tuple(step.path for steps in entry.roots for step in steps.files),
    )


def _verify(changes: Sequence[RootChange]) -> None:
    problems = [
        Problem(
            message="has changed since the plan was made",
            where=str(change.root.path / write.path),
            hint="run the same command again",
        )
        for change in changes
        for write in change.writes
        if image(change.root.path / write.path) != write.before
    ]
    if problems:
        raise StaleError(problems)


def _places(steps: RootSteps, step: FileStep) -> tuple[Path, Path]:
    path = Path(steps.root) / step.path
    return path, path.with_name(step.staged)


def _sync_folders(steps: RootSteps) -> None:
    for folder in {(Path(steps.root) / step.path).parent for step in steps.files}:
        sync_folder(folder)


def _remove_bytecode(entry: Journal) -> int:
    return sum(
        bytecode.remove(Path(steps.root) / step.path)
        for steps in entry.roots
        for step in steps.files
    )


def _clean(state_dir: Path) -> None:
    """Remove the backups of a root that carries nothing.

    The lock file stays: to unlink it under a waiting process would let two hold "the" lock.
    """
    if not (state_dir / store.STATE).exists():
        with contextlib.suppress(OSError):
            store.drop_blobs(state_dir, ())


@contextlib.contextmanager
def _collected(problems: list[Problem], path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problems.append(
            Problem(message=f"could not be put back: {error.strerror}", where=str(path))
        )
    except GatepatchError as error:
        problems.extend(error.problems)


def _explained(error: BaseException) -> BaseException:
    if not isinstance(error, OSError):
        return error
    return TransactionError(
        Problem(
            message=f"{error.strerror or error}; nothing was changed",
            where=str(error.filename2 or error.filename or "writing"),
            hint=_HINTS.get(error.errno or 0, "mend the cause, then run the same command again"),
        )
    )


_HINTS = {
    13: "run it as the owner of the files",
    1: "run it as the owner of the files; lsattr shows whether one is immutable",
    28: "make room on the device, then run the same command again",
    30: "the file system is read-only: do this where the image is built, or remount it",
}


@contextlib.contextmanager
def _locked(state_dirs: Sequence[Path], timeout: float) -> Iterator[None]:
    """Hold the locks of some roots, and of whatever shares a pending journal with them."""
    from filelock import FileLock, Timeout

    wanted = set(state_dirs)
    for state_dir in state_dirs:
        if entry := journal.read(state_dir):
            wanted.update(Path(steps.state_dir) for steps in entry.roots)
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        for state_dir in sorted(wanted):
            lock = state_dir / store.LOCK
            try:
                state_dir.mkdir(parents=True, exist_ok=True)
                left = max(0.0, deadline - time.monotonic())
                stack.enter_context(FileLock(lock, timeout=left, poll_interval=0.02))
            except Timeout:
                raise LockTimeoutError(
                    Problem(
                        message=f"another gatepatch has held the lock for {timeout:g} s",
                        where=str(lock),
                        hint=f"see which: fuser {lock}",
                    )
                ) from None
            except OSError as error:
                raise _explained(error) from error
        yield


class _Noted:
    """Signals that have come while they have to wait."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def note(self, signum: int, frame: FrameType | None) -> None:
        self.signum = signum

    def check(self) -> None:
        if self.signum is not None:
            raise SignalError(self.signum)


@contextlib.contextmanager
def _signals_noted() -> Iterator[_Noted]:
    noted = _Noted()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(signum, noted.note) for signum in signals]
    try:
        yield noted
    finally:
        for signum, handler in zip(signals, previous, strict=True):
            signal.signal(signum, handler if handler is not None else signal.SIG_DFL)


__all__ = [
    "Committed",
    "Image",
    "Recovered",
    "Rename",
    "RootChange",
    "Transaction",
    "Write",
    "commit",
    "image",
    "pending",
    "read_blob",
    "read_state",
    "recover",
]
