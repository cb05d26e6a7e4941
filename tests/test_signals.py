"""Signals are noted, raised where nothing has been changed, and handlers are put back."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from gatepatch.errors import SignalError
from gatepatch.signals import noted


def test_a_signal_is_noted_and_the_handlers_come_back() -> None:
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    with noted() as signals:
        signals.check()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(SignalError) as caught:
            signals.check()
    assert caught.value.signum == signals.signum == signal.SIGTERM
    assert str(caught.value) == "interrupted by signal 15; nothing was changed"
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_wait_is_interrupted_at_once() -> None:
    with noted() as signals:
        start = time.monotonic()
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(SignalError), signals.waiting():
            time.sleep(10)
        timer.join()
        assert time.monotonic() - start < 5
        assert not signals.at_once


def test_one_that_came_before_the_wait_stops_it_too() -> None:
    with noted() as signals:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(SignalError), signals.waiting():
            raise AssertionError("waited")


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noted() as signals:
            signal.raise_signal(signal.SIGINT)
            signals.check()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_sets_no_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with noted() as signals:
            seen.append((signals.signum, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(None, before)]
