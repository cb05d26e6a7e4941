"""The transaction: the only thing that writes into an environment.

Order: lock; settle a pending journal; verify every hash; backups to the store; journal; stage
each result beside its file; replace in order; bytecode; JIT; commit; state; drop the journal.
Everything that takes room on the device is written before the first file is replaced.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gatepatch import bytecode, jitcache, journal, locks, settle, signals, store
from gatepatch.change import (
    Committed,
    Recovered,
    Rename,
    RootChange,
    Transaction,
    Write,
)
from gatepatch.edits import sha256
from gatepatch.errors import Problem, StaleError, TransactionError
from gatepatch.files import Image, image, read, stage
from gatepatch.journal import FileStep, Journal, ModuleStep, RenameStep, RootSteps, pending
from gatepatch.target import Root


def commit(transaction: Transaction, *, timeout: float = 60.0) -> Committed:
    """Carry a transaction out, all of it or nothing.

    Args:
        transaction: What to do.
        timeout: Seconds to wait for each lock.

    Raises:
        StaleError: A file is not what the plan saw; nothing was changed.
        LockTimeoutError: A lock was not had in time; nothing was changed.
        TransactionError: A step failed; everything was put back.
        SignalError: A signal came before the commit point; everything was put back.
        PendingError: Putting back failed, or finishing what was committed; the backups and the
            journal are kept.
    """
    changes = sorted(transaction.changes, key=lambda change: change.root.state_dir)
    roots = {change.root.state_dir: change.root.path for change in changes}
    try:
        with signals.noted() as noted, _locked(roots, timeout, noted):
            _settle(roots, timeout, noted)
            _verify(changes)
            with _builds_held(transaction.jit, timeout, noted):
                compiled, removed = _carry_out(changes, transaction.jit, noted)
    except OSError as error:
        raise settle.explained(error) from error
    return Committed(bytecode_removed=compiled, jit_removed=removed, signal=noted.signum)


def recover(roots: Sequence[Root], *, timeout: float = 60.0) -> tuple[Recovered, ...]:
    """Settle what was interrupted: all-before if it was not committed, else all-after.

    Raises:
        LockTimeoutError: Another process holds a lock.
        TransactionError: A state folder cannot be written.
        PendingError: It cannot be settled; the backups and the journal are kept.
    """
    todo = {r.state_dir: r.path for r in roots if os.path.lexists(r.state_dir / journal.NAME)}
    try:
        with signals.noted() as noted, _locked(todo, timeout, noted):
            settled = _settle(todo, timeout, noted)
    except OSError as error:
        raise settle.explained(error) from error
    if noted.signum is not None:
        signal.raise_signal(noted.signum)
    return settled


def read_state(root: Root) -> bytes | None:
    """The state document of a root; None if nothing is applied there."""
    return store.read_state(root.state_dir)


def read_blob(root: Root, digest: str) -> bytes:
    """Some bytes of a root's store, by their SHA-256, verified."""
    return store.read_blob(root.state_dir, digest)


def _carry_out(
    changes: Sequence[RootChange], jit: Sequence[jitcache.Module], noted: signals.Noted
) -> tuple[int, tuple[Path, ...]]:
    """Do everything that stands between the locks; the counts are of bytecode and JIT."""
    name = os.urandom(6).hex()
    backups = [_backups(change) for change in changes]
    entry = Journal(
        id=name,
        phase="prepared",
        roots=tuple(_steps(*pair, name) for pair in zip(changes, backups, strict=True)),
        jit=tuple(_module_step(module) for module in jit),
    )
    try:
        _prepare(entry, changes, backups)
        noted.check()
        compiled = _execute(entry)
        removed = jitcache.remove(jit)
        noted.check()
        journal.commit(entry)
    except BaseException as error:
        left = settle.undo(entry, error)
        raise _outcome(error, left) from error
    settle.finish(entry)
    return compiled, removed


def _backups(change: RootChange) -> tuple[bytes, ...]:
    """What stands there now; a build lock may have been waited for since it was verified."""
    found = []
    for write in change.writes:
        data = read(change.root.path / write.path)
        if data is None or sha256(data) != write.before.sha256:
            raise _stale([change.root.path / write.path])
        found.append(data)
    return tuple(found)


def _steps(change: RootChange, backups: Sequence[bytes], name: str) -> RootSteps:
    state_dir = change.root.state_dir
    kept = {sha256(blob) for blob in change.blobs}
    added = set(store.missing(state_dir, (*change.blobs, *backups)))
    # Without a state document the store may be all that is left of one that was lost.
    known = change.state is None or store.read_state(state_dir) is not None
    surplus = (added | store.digests(state_dir) if known else added) - kept
    return RootSteps(
        root=str(change.root.path),
        state_dir=str(state_dir),
        files=tuple(
            FileStep(
                path=write.path,
                staged=f".{Path(write.path).name}.gatepatch-{name}",
                before=write.before.sha256,
                before_link=write.before.link,
                after=sha256(write.after),
            )
            for write in change.writes
        ),
        renames=tuple(
            RenameStep(source=rename.source, destination=rename.destination)
            for rename in change.renames
        ),
        state=None if change.state is None else change.state.decode(),
        added=tuple(sorted(added)),
        surplus=tuple(sorted(surplus)),
    )


def _prepare(
    entry: Journal, changes: Sequence[RootChange], backups: Sequence[Sequence[bytes]]
) -> None:
    """Write everything that takes room; nothing that is installed is touched yet."""
    for change, own in zip(changes, backups, strict=True):
        state_dir = change.root.state_dir
        store.add(state_dir / store.STORE, (*change.blobs, *own))
        store.add(state_dir / store.FOREIGN, change.foreign)
        store.stage_state(state_dir, change.state)
    journal.write(entry)
    for steps, change in zip(entry.roots, changes, strict=True):
        for step, write in zip(steps.files, change.writes, strict=True):
            path, staged = settle.places(steps, step)
            stage(path, staged, write.after, link=write.link, newer_than=write.newer_than)


def _execute(entry: Journal) -> int:
    """Put everything in its place, and count the compiled files that were removed."""
    # Once before, so that what cannot be removed stops it here, and once after.
    compiled = _remove_bytecode(entry)
    for steps in entry.roots:
        for step in steps.files:
            path, staged = settle.places(steps, step)
            staged.replace(path)
        for rename in steps.renames:
            root = Path(steps.root)
            (root / rename.source).rename(root / rename.destination)
        settle.sync_folders(steps)
    return compiled + _remove_bytecode(entry)


def _remove_bytecode(entry: Journal) -> int:
    return sum(
        bytecode.remove(Path(steps.root) / step.path)
        for steps in entry.roots
        for step in steps.files
    )


def _outcome(error: BaseException, left: tuple[str, ...]) -> BaseException:
    if not isinstance(error, OSError):
        return error
    explained = settle.explained(error)
    if not left:
        return explained
    changed = Problem(message="was changed by someone else meanwhile", where=", ".join(left))
    return TransactionError((*explained.problems, changed))


def _settle(roots: dict[Path, Path], timeout: float, noted: signals.Noted) -> tuple[Recovered, ...]:
    """Settle what is pending in some roots, which are locked."""
    settled: list[Recovered] = []
    for state_dir, root in roots.items():
        entry = journal.read(state_dir, root)
        if entry is None:
            # A pointer whose journal is gone: the change was settled.
            (state_dir / journal.NAME).unlink(missing_ok=True)
            continue
        # A cache that is gone holds no binary, and is not to be made anew.
        modules = [m for m in map(_module, entry.jit) if m.lock.parent.is_dir()]
        with _builds_held(modules, timeout, noted):
            if entry.phase == "committed":
                settle.finish(entry)
                left: tuple[str, ...] = ()
            else:
                left = settle.undo(entry)
                jitcache.remove(modules)
        settled.extend(
            Recovered(
                root=Path(steps.root),
                outcome="completed" if entry.phase == "committed" else "rolled-back",
                files=tuple(step.path for step in steps.files),
                left=tuple(path for path in left if Path(path).is_relative_to(steps.root)),
            )
            for steps in entry.roots
        )
    return tuple(settled)


def _verify(changes: Sequence[RootChange]) -> None:
    """Compare everything with what the plan saw.

    Raises:
        StaleError: Something differs.
    """
    stale: list[Path] = []
    for change in changes:
        root, state_dir = change.root.path, change.root.state_dir
        if change.state_before != store.read_state(state_dir):
            stale.append(state_dir / store.STATE)
        stale += [root / w.path for w in change.writes if image(root / w.path) != w.before]
        for rename in change.renames:
            if not os.path.lexists(root / rename.source):
                stale.append(root / rename.source)
            if os.path.lexists(root / rename.destination):
                stale.append(root / rename.destination)
    if stale:
        raise _stale(stale)


def _stale(paths: Iterable[Path]) -> StaleError:
    return StaleError(
        Problem(
            message="has changed since the plan was made",
            where=str(path),
            hint="run the same command again",
        )
        for path in paths
    )


@contextlib.contextmanager
def _locked(roots: dict[Path, Path], timeout: float, noted: signals.Noted) -> Iterator[None]:
    """Hold the locks of some roots, and of whatever shares a pending journal with them."""
    deadline = time.monotonic() + timeout
    wanted = dict(roots)
    while True:
        with locks.held(wanted, deadline, noted.check):
            # Looked at under the lock: whoever held it may just have been killed.
            more = {
                Path(steps.state_dir): Path(steps.root)
                for state_dir, root in wanted.items()
                if (entry := journal.read(state_dir, root)) is not None
                for steps in entry.roots
                if Path(steps.root).is_dir()
            }
            if more.keys() <= wanted.keys():
                yield
                return
        wanted.update(more)


@contextlib.contextmanager
def _builds_held(
    modules: Sequence[jitcache.Module], timeout: float, noted: signals.Noted
) -> Iterator[None]:
    """Let no build of the modules run meanwhile: it would read one source and stamp another."""
    with contextlib.ExitStack() as stack:
        with noted.waiting():
            stack.enter_context(jitcache.hold(modules, timeout))
        yield


def _module_step(module: jitcache.Module) -> ModuleStep:
    return ModuleStep(
        kind=module.kind,
        name=module.name,
        folder=str(module.folder),
        lock=str(module.lock),
    )


def _module(step: ModuleStep) -> jitcache.Module:
    return jitcache.Module(
        kind=step.kind,
        name=step.name,
        folder=Path(step.folder),
        lock=Path(step.lock),
        newest_output=0,
    )


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
