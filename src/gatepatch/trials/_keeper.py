"""Runs one command and ends all that it has started; run as a script, with the standard library.

It is the child of a trial and the parent of the benchmark. Whatever the benchmark starts and
leaves behind, daemons included, becomes its child (PR_SET_CHILD_SUBREAPER) and is ended with it.
Its stdin is a pipe from the trial: a byte means to end the run now, and the end of the pipe that
the trial is dead: then it ends the run, and runs the command that puts the environment back.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILLED_WITHIN = 5.0


class Keeper:
    """One run.

    Args:
        request: ``command``, ``timeout`` (seconds or None), ``grace`` (seconds between the polite
            and the other signal), ``spared`` (names of programs whose daemons are not the
            benchmark's, such as a compiler cache's server).
    """

    def __init__(self, request: dict[str, Any]):
        self.request = request
        self.status: int | None = None
        self.first = 0
        self.wake, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for signum in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, lambda *_: None)  # not SIG_IGN, which the command would inherit
        self.libc = ctypes.CDLL(None)
        self.libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def run(self) -> dict[str, Any]:
        """Run the command, and say how it went."""
        started = time.monotonic()
        try:
            child = subprocess.Popen(
                self.request["command"],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                # Where the keeper itself is killed, the command goes too.
                preexec_fn=lambda: self.libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
            )
        except OSError as error:
            return {"ended": "not-started", "error": f"{error.filename}: {error.strerror}"}
        self.first = child.pid
        timeout = self.request["timeout"]
        ended = self._wait(None if timeout is None else started + timeout)
        seconds = time.monotonic() - started
        left = [] if ended != "exit" else names(self._alive())
        stuck = self._end_all()
        child.returncode = self.status if self.status is not None else -signal.SIGKILL
        return {
            "ended": ended,
            "code": self.status,
            "seconds": seconds,
            "left": left,
            "stuck": stuck,
        }

    def _wait(self, deadline: float | None) -> str:
        """Wait for the command, the trial's word or its death, or the time limit."""
        while True:
            self._reap()
            if self.status is not None:
                return "exit"
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return "timeout"
            ready, _, _ = select.select([0, self.wake], [], [], left)
            self._drain()
            if 0 in ready:
                return "stopped" if os.read(0, 1) else "orphaned"

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake, 512):
                pass

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.first:
                    self.status = os.waitstatus_to_exitcode(status)

    def _alive(self) -> dict[int, str]:
        self._reap()
        spared = self.request["spared"]
        return {pid: name for pid, name in descendants(os.getpid()).items() if name not in spared}

    def _end_all(self) -> list[str]:
        """End everything that is left: politely, then not; return what cannot be ended."""
        for signum, patience in (
            (signal.SIGTERM, self.request["grace"]),
            (signal.SIGKILL, _KILLED_WITHIN),
        ):
            told: set[int] = set()
            until = time.monotonic() + patience
            while alive := self._alive():
                for pid in alive.keys() - told:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signum)
                    told.add(pid)
                if time.monotonic() >= until:
                    break
                select.select([self.wake], [], [], 0.02)
                self._drain()
            else:
                return []
        return names(self._alive())


def descendants(root: int) -> dict[int, str]:
    """The processes below one that are alive, with their names."""
    children: dict[int, list[tuple[int, str, str]]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208, thousands of entries
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{entry}/stat") as file:  # noqa: PTH123
                # 4242 (a name) S 1 …; the name may hold spaces and parentheses.
                head, _, tail = file.read().rpartition(")")
                state, parent = tail.split()[:2]
                name = head.partition("(")[2]
                children.setdefault(int(parent), []).append((int(entry), name, state))
    found: dict[int, str] = {}
    todo = [root]
    while todo:
        for pid, name, state in children.get(todo.pop(), []):
            todo.append(pid)
            if state not in "ZX":
                found[pid] = name
    return found


def names(processes: dict[int, str]) -> list[str]:
    """Processes, for a person."""
    return [f"{name} ({pid})" for pid, name in sorted(processes.items())]


def main() -> None:
    """Run what the arguments say, report on a descriptor, and stand in for a dead trial."""
    request = json.loads(sys.argv[1])
    report = Keeper(request).run()
    with contextlib.suppress(OSError):
        os.write(request["report"], json.dumps(report).encode())
    if report["ended"] == "orphaned":
        with open(os.devnull, "r+") as nothing:  # noqa: PTH123
            subprocess.run(
                request["orphaned"], stdin=nothing, stdout=nothing, stderr=nothing, check=False
            )


if __name__ == "__main__":
    main()
