"""One run of the benchmark: its output, how it ended, and that nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from gatepatch.errors import GatepatchError
from gatepatch.signals import Noted

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL for whatever is left of a run."""

KEPT = 64 << 20
"""Bytes of a run's output that are kept; of more, the last ones."""

_SPARED = ("sccache",)
"""Whoever compiles first starts its server, which writes to the cache after it has answered."""

_KEEPER = str(Path(__file__).with_name("_keeper.py"))
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended.

    Args:
        how: ``exit``: by itself. ``timeout``: at the time limit. ``not-started``: not at all.
        code: Exit code, or the negative number of the signal that ended the command.
        seconds: How long the command itself ran.
        output: What it printed, on both streams.
        left: Processes that it left behind, which were ended.
        stuck: Processes that could not be ended, as in an uninterruptible system call.
        error: Why it could not be started.
    """

    how: Literal["exit", "timeout", "not-started"]
    code: int | None
    seconds: float
    output: str
    left: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    error: str = ""


class Feed(Protocol):
    """Something beside the run that writes lines meanwhile, as a sampler does."""

    def fileno(self) -> int:
        """The descriptor to wait for."""
        ...

    def read(self) -> bool:
        """Take what is there; false at its end."""
        ...


def execute(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout: float | None,
    orphaned: Sequence[str],
    noted: Noted,
    tee: Callable[[bytes], None],
    feeds: Sequence[Feed] = (),
) -> Ended:
    """Run a command in a session of its own, and end whatever it leaves behind.

    Args:
        command: The command.
        environment: Its environment variables.
        timeout: Seconds until it is ended; None for no limit.
        orphaned: The command that puts everything back if this process dies meanwhile.
        noted: Raises a signal that comes meanwhile, at once.
        tee: Is given the output as it comes.
        feeds: What else is to be read meanwhile.

    Raises:
        SignalError: A signal came; the run was ended.
        GatepatchError: The run could not be watched.
    """
    keeper = _Keeper(command, environment, timeout, orphaned, tee, feeds)
    with contextlib.closing(keeper):
        try:
            with noted.waiting():
                keeper.follow(None)
        except BaseException:
            keeper.stop()
            raise
        return keeper.ended()


class _Keeper:
    """The child that runs the command, as this process sees it."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        timeout: float | None,
        orphaned: Sequence[str],
        tee: Callable[[bytes], None],
        feeds: Sequence[Feed],
    ):
        self.tee = tee
        self.output = bytearray()
        self.report = b""
        self.reader, writer = os.pipe()
        request = {
            "command": list(command),
            "timeout": timeout,
            "grace": GRACE,
            "report": writer,
            "spared": _SPARED,
            "orphaned": list(orphaned),
        }
        try:
            # -S -E: nothing of this interpreter's settings is to keep it from its duty.
            self.child = subprocess.Popen(
                [sys.executable, "-I", "-S", _KEEPER, json.dumps(request)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
                pass_fds=[writer],
            )
        finally:
            os.close(writer)
        assert self.child.stdout is not None
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.child.stdout, selectors.EVENT_READ, self._read_output)
        self.selector.register(self.reader, selectors.EVENT_READ, self._read_report)
        for feed in feeds:
            self.selector.register(feed.fileno(), selectors.EVENT_READ, feed.read)

    def follow(self, patience: float | None) -> None:
        """Take what comes until the run is over, for so many seconds at most."""
        until = None if patience is None else time.monotonic() + patience
        while self.reader in self.selector.get_map():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            for key, _ in self.selector.select(left):
                if not key.data():
                    self.selector.unregister(key.fileobj)

    def stop(self) -> None:
        """End the run now; a keeper that does not is killed, and the command with it."""
        assert self.child.stdin is not None
        with contextlib.suppress(OSError):
            self.child.stdin.write(b"x")
            self.child.stdin.flush()
        with contextlib.suppress(GatepatchError):
            self.follow(2 * GRACE + 10)

    def ended(self) -> Ended:
        """How the run ended.

        Raises:
            GatepatchError: The keeper was killed.
        """
        assert self.child.stdout is not None
        os.set_blocking(self.child.stdout.fileno(), False)
        with contextlib.suppress(BlockingIOError):  # what cannot be ended may hold the pipe
            while self._read_output():
                pass
        try:
            found: dict[str, Any] = json.loads(self.report)
        except ValueError:
            raise GatepatchError(
                "the process that watches the benchmark was killed; is the machine out of memory?"
            ) from None
        return Ended(
            how=found["ended"],
            code=found.get("code"),
            seconds=found.get("seconds", 0.0),
            output=self.output.decode("utf-8", "replace"),
            left=tuple(found.get("left", ())),
            stuck=tuple(found.get("stuck", ())),
            error=found.get("error", ""),
        )

    def close(self) -> None:
        """Let go of the child."""
        self.selector.close()
        os.close(self.reader)
        if self.report:
            self.child.wait()
        else:
            self.child.kill()
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        self.child.wait()

    def _read_output(self) -> bool:
        assert self.child.stdout is not None
        data = os.read(self.child.stdout.fileno(), _CHUNK)
        self.output += data
        if len(self.output) > KEPT:
            del self.output[:-KEPT]
        if data:
            self.tee(data)
        return bool(data)

    def _read_report(self) -> bool:
        data = os.read(self.reader, _CHUNK)
        self.report += data
        return bool(data)


def last_lines(output: str, number: int = 12) -> Iterator[str]:
    """The last lines of an output that say something."""
    yield from [line.rstrip() for line in output.splitlines() if line.strip()][-number:]
