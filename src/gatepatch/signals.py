"""Signals that have to wait until a change is settled."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from gatepatch.errors import SignalError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Noted:
    """What has come meanwhile.

    Attributes:
        signum: The first signal; None if none came.
        at_once: Whether a signal raises at once: nothing has been changed yet.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.at_once = False

    def note(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.signum = self.signum or signum
        if self.at_once:
            raise SignalError(signum)

    def check(self) -> None:
        """Raise if a signal has come.

        Raises:
            SignalError: One has.
        """
        if self.signum is not None:
            raise SignalError(self.signum)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Let signals raise at once, while something else is waited for."""
        self.at_once = True
        try:
            self.check()
            yield
        finally:
            self.at_once = False


@contextlib.contextmanager
def noted() -> Iterator[Noted]:
    """Note interruption and termination instead of acting on them.

    Only the main thread may set handlers; in any other thread signals never arrive anyway. An
    ignored signal stays ignored, as SIGINT is in a shell's background jobs.
    """
    result = Noted()
    if threading.current_thread() is not threading.main_thread():
        yield result
        return
    previous = {s: signal.getsignal(s) for s in _SIGNALS}
    taken = [s for s, handler in previous.items() if handler is not signal.SIG_IGN]
    for signum in taken:
        signal.signal(signum, result.note)
    try:
        yield result
    finally:
        for signum in taken:
            # None: set by C code, which cannot be set again from here.
            signal.signal(signum, previous[signum] or signal.SIG_DFL)
