"""The locks of state folders.

A lock file goes with its folder when nothing is applied any more. Whoever waited on the removed
file finds, when the lock is his, that another file or none stands at the path, and tries again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gatepatch.errors import LockTimeoutError, Problem

NAME = "lock"
_POLL = 0.02


@contextlib.contextmanager
def held(folders: Iterable[Path], deadline: float, check: Callable[[], None]) -> Iterator[None]:
    """Hold the locks of some folders, taken in the order of their paths.

    The folders are made where they are missing, and go again if nothing but the lock is in them.

    Args:
        folders: State folders.
        deadline: Until when to wait, by ``time.monotonic``.
        check: Called while waiting; may raise.

    Raises:
        LockTimeoutError: Another process holds one of them.
        OSError: A folder cannot be made or locked.
    """
    with contextlib.ExitStack() as stack:
        for folder in sorted(folders):
            descriptor = _acquire(folder, deadline, check)
            stack.callback(os.close, descriptor)
            stack.callback(_tidy, folder)
        yield


def holder(lock: Path) -> int | None:
    """The process that holds a lock, as the kernel lists it; None if none is known."""
    try:
        inode = lock.stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        # 1: FLOCK  ADVISORY  WRITE 4242 08:01:1234 0 EOF; a waiter's line has an arrow.
        fields = line.split()
        if "->" not in fields and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return None


def _acquire(folder: Path, deadline: float, check: Callable[[], None]) -> int:
    lock = folder / NAME
    while True:
        check()
        with contextlib.suppress(FileExistsError):
            folder.mkdir()  # not exist_ok: it fails where another removes the folder meanwhile
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            if folder.is_symlink():
                raise  # it leads nowhere
            continue  # another process has just removed the folder
        try:
            _wait(descriptor, lock, deadline, check)
            if _same(descriptor, lock):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _wait(descriptor: int, lock: Path, deadline: float, check: Callable[[], None]) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        if time.monotonic() >= deadline:
            process = holder(lock)
            raise LockTimeoutError(
                Problem(
                    message=f"process {process or 'unknown'} holds the lock of this environment",
                    where=str(lock),
                    hint="wait for it, or allow more time; to see what it is: "
                    + (f"ps -fp {process}" if process else f"fuser -v {lock}"),
                )
            )
        check()
        time.sleep(_POLL)


def _same(descriptor: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False


def _tidy(folder: Path) -> None:
    """Remove a folder in which nothing is left but the lock and unfinished files.

    The last thing done under the lock: once the lock file is gone, another may hold a new one.
    """
    with contextlib.suppress(OSError):
        for path in folder.glob(".*"):
            path.unlink()
        if [path.name for path in folder.iterdir()] == [NAME]:
            (folder / NAME).unlink()
            folder.rmdir()
