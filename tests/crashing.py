"""Children that are stopped, interrupted or refused at each of their steps.

A step is a call that changes the file system, seen by an audit hook before it happens, so every
one is tried without the code knowing of it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

_CHANGES = {
    "fcntl.flock",
    "os.chmod",
    "os.chown",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.symlink",
    "os.utime",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Step(Protocol):
    """Is told of each change before it happens."""

    fired: bool

    def __call__(self, event: str, args: tuple[Any, ...]) -> None: ...


def is_change(event: str, args: tuple[Any, ...]) -> bool:
    """Whether an audit event is about to change something."""
    return event in _CHANGES or (event == "open" and isinstance(args[2], int) and _writes(args))


def _writes(args: tuple[Any, ...]) -> bool:
    return bool(args[2] & _WRITING)


def in_child(action: Callable[[], object], step: Step) -> tuple[int, bool]:
    """Run something in a forked child, and tell ``step`` of each change before it happens.

    Returns:
        The exit status, and whether the step fired. The status is 0, 1 for an exception,
        100 + ``exit_code`` for one of gatepatch's own, or the negative number of the signal
        that ended it.
    """
    return result_of(start_child(action, step))


def start_child(action: Callable[[], object], step: Step) -> int:
    """The same without waiting; returns the child's process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside pytest-xdist's thread
        child = os.fork()
    if child == 0:
        _run(action, step)
    return child


def result_of(child: int) -> tuple[int, bool]:
    """Wait for a child, and return as ``in_child`` does."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return (status, True) if status < 0 else (status % _FIRED, status >= _FIRED)


_FIRED = 128


def _run(action: Callable[[], object], step: Step) -> None:
    code = 1
    try:
        sys.addaudithook(lambda event, args: step(event, args) if is_change(event, args) else None)
        action()
        code = 0
    except BaseException as error:
        exit_code = getattr(error, "exit_code", None)
        code = 1 if exit_code is None else 100 + exit_code
        if exit_code is None:
            traceback.print_exc()
    finally:
        os._exit(code + _FIRED * step.fired)


class SignalAt:
    """Send the process a signal at its nth change; by default, kill it."""

    def __init__(self, number: int, signum: int = signal.SIGKILL):
        self.left = number
        self.signum = signum
        self.fired = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        self.left -= 1
        if self.left == 0:
            self.fired = True
            os.kill(os.getpid(), self.signum)


class KillWhere:
    """Kill the process at the first change that fits."""

    def __init__(self, fits: Callable[[str, str], bool]):
        self.fits = fits
        self.fired = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.fits(event, str(args[0])):
            os.kill(os.getpid(), signal.SIGKILL)


class FailAt:
    """Fail the nth change; if ``for_good``, every later one as well."""

    def __init__(self, number: int, code: int = errno.EIO, *, for_good: bool = False):
        self.left = number
        self.code = code
        self.for_good = for_good
        self.fired = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        self.left -= 1
        if self.left == 0 or (self.for_good and self.left < 0):
            self.fired = True
            name = args[0] if isinstance(args[0], (str, bytes)) else None
            raise OSError(self.code, os.strerror(self.code), name)


def counting(limit: int = 1000) -> Iterator[int]:
    """Numbers of steps, from 1; more than ``limit`` means that a loop does not end."""
    yield from range(1, limit)
    raise AssertionError(f"more than {limit} steps")


def snapshot(folder: Path) -> dict[str, tuple[str, object, int]]:
    """Everything in a folder but bytecode and gatepatch's own: kind, content and mode."""
    found: dict[str, tuple[str, object, int]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "__pycache__" in name or ".gatepatch/" in f"{name}/":
            continue
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = ("link", os.readlink(path), mode)  # noqa: PTH115
        elif path.is_dir():
            found[name] = ("folder", None, mode)
        else:
            found[name] = ("file", path.read_bytes(), mode)
    return found
