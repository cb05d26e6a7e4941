"""Settling a change: all-before, or all-after."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from gatepatch import bytecode, journal, store
from gatepatch.errors import GatepatchError, PendingError, Problem, TransactionError
from gatepatch.files import image, remove, stage, sync_folder
from gatepatch.journal import FileStep, Journal, RenameStep, RootSteps
from gatepatch.records import replace


def undo(entry: Journal, cause: BaseException | None = None) -> tuple[str, ...]:
    """Put everything back, in reverse; keep journal and backups if any of it fails.

    May be repeated after a kill at any point of it.

    Args:
        entry: The journal.
        cause: The error that made it necessary.

    Returns:
        Paths that are left as they are, because someone else has changed them meanwhile.

    Raises:
        PendingError: Something could not be put back.
    """
    problems: list[Problem] = []
    left: list[str] = []
    for steps in reversed(entry.roots):
        for rename in reversed(steps.renames):
            with _collected(problems, Path(steps.root) / rename.destination):
                _undo_rename(steps, rename)
        for step in reversed(steps.files):
            with _collected(problems, Path(steps.root) / step.path):
                if not _undo_file(steps, step):
                    left.append(str(Path(steps.root) / step.path))
        sync_folders(steps)
    if not problems:
        for steps in entry.roots:
            store.drop(Path(steps.state_dir), steps.added)
        with _collected(problems, Path(entry.roots[0].state_dir)):
            journal.drop(entry)
    if problems:
        first = (_problem(cause),) if isinstance(cause, OSError) else ()
        raise _pending(entry, (*first, *problems), "not everything could be put back")
    return tuple(left)


def finish(entry: Journal) -> None:
    """Bring the state folders to what was committed, then drop the journal.

    May be repeated after a kill at any point of it.

    Raises:
        PendingError: It could not be done.
    """
    problems: list[Problem] = []
    for steps in entry.roots:
        state_dir = Path(steps.state_dir)
        with _collected(problems, state_dir):
            store.put_state(state_dir, None if steps.state is None else steps.state.encode())
        store.drop(state_dir, steps.surplus)
    if not problems:
        with _collected(problems, Path(entry.roots[0].state_dir)):
            journal.drop(entry)
    if problems:
        raise _pending(entry, tuple(problems), "the change is made, its record is not finished")


def places(steps: RootSteps, step: FileStep) -> tuple[Path, Path]:
    """Where a file is, and where its next content is staged."""
    path = Path(steps.root) / step.path
    return path, path.with_name(step.staged)


def sync_folders(steps: RootSteps) -> None:
    """Make everything that was renamed under a root durable."""
    names = {step.path for step in steps.files}
    names.update(name for r in steps.renames for name in (r.source, r.destination))
    for folder in sorted({(Path(steps.root) / name).parent for name in names}):
        sync_folder(folder)


def explained(error: OSError) -> TransactionError:
    """An error of the operating system, after which everything was put back, in words."""
    problem = _problem(error)
    hint = HINTS.get(error.errno or 0, "mend the cause, then run the same command again")
    return TransactionError(
        replace(problem, message=f"{problem.message}; nothing was changed", hint=hint)
    )


HINTS = {
    errno.EACCES: "run it as the owner of the files",
    errno.EPERM: "run it as the owner of the files; lsattr shows whether one is immutable",
    errno.ENOSPC: "make room on the device, then run the same command again",
    errno.EDQUOT: "make room in the quota, then run the same command again",
    errno.EROFS: "the file system is read-only: do this where the image is built, or remount it",
}
"""What to do about an error of the operating system."""


def _problem(error: OSError) -> Problem:
    where = error.filename2 or error.filename
    return Problem(
        message=error.strerror or str(error), where=None if where is None else os.fsdecode(where)
    )


def _undo_rename(steps: RootSteps, rename: RenameStep) -> None:
    source, destination = Path(steps.root) / rename.source, Path(steps.root) / rename.destination
    if os.path.lexists(destination) and not os.path.lexists(source):
        destination.rename(source)


def _undo_file(steps: RootSteps, step: FileStep) -> bool:
    """Put one file back, and say whether its old content stands there now.

    What was replaced gets a fresh mtime again: a build may have read it in between. What was not
    replaced keeps its own.
    """
    path, staged = places(steps, step)
    remove(staged)
    now = image(path)
    if now is not None and (now.sha256, now.link) == (step.before, step.before_link):
        return True
    if now is None or now.sha256 != step.after:
        return False  # upgraded, removed or edited since: not ours to write
    data = store.read_blob(Path(steps.state_dir), step.before)
    stage(path, staged, data, link=step.before_link)
    bytecode.remove(path)
    staged.replace(path)
    return True


def _pending(entry: Journal, problems: tuple[Problem, ...], message: str) -> PendingError:
    return PendingError(
        (
            *problems,
            Problem(
                message=f"{message}; backups and journal are kept",
                where=str(Path(entry.roots[0].state_dir) / journal.NAME),
                hint="mend the cause, then: gatepatch recover",
            ),
        )
    )


@contextlib.contextmanager
def _collected(problems: list[Problem], path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problems.append(Problem(message=error.strerror or str(error), where=str(path)))
    except GatepatchError as error:
        problems.extend(error.problems)
