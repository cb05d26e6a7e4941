"""Locks exclude, also while their folder comes and goes."""

from __future__ import annotations

import multiprocessing
import os
import time
from functools import partial
from pathlib import Path

import pytest

from crashing import SignalAt, in_child
from gatepatch import locks
from gatepatch.errors import LockTimeoutError


def _nothing() -> None:
    pass


def test_the_folder_comes_and_goes_with_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / ".gatepatch"
    with locks.held([folder], 0, _nothing):
        assert locks.holder(folder / locks.NAME) == os.getpid()
        (folder / ".unfinished").write_bytes(b"")
    assert not folder.exists()
    assert locks.holder(folder / locks.NAME) is None


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / ".gatepatch"
    with locks.held([folder], 0, _nothing):
        (folder / "state.json").write_bytes(b"")
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "state.json"]
    assert locks.holder(folder / locks.NAME) is None


def test_a_held_lock_times_out_and_says_who_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / ".gatepatch"
    with locks.held([folder], 0, _nothing):
        start = time.monotonic()
        with (
            pytest.raises(LockTimeoutError) as caught,
            locks.held([folder], start + 0.1, _nothing),
        ):
            raise AssertionError("two held it")
        assert 0.1 <= time.monotonic() - start < 1
    assert str(caught.value) == (
        f"{folder}/lock: process {os.getpid()} holds the lock of this environment\n"
        f"  wait for it, or allow more time; to see what it is: ps -fp {os.getpid()}"
    )


def test_one_that_is_not_had_gives_the_others_back(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with locks.held([second], 0, _nothing):
        with pytest.raises(LockTimeoutError), locks.held([second, first], 0, _nothing):
            raise AssertionError("two held it")
        assert not first.exists()


def test_a_waiter_is_interrupted_by_its_check(tmp_path: Path) -> None:
    calls = iter(range(10))

    def check() -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    with (
        locks.held([tmp_path / "a"], 0, _nothing),
        pytest.raises(KeyboardInterrupt),
        locks.held([tmp_path / "a"], time.monotonic() + 60, check),
    ):
        raise AssertionError("two held it")


def test_a_root_that_is_gone_is_no_endless_loop(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    for folder in (tmp_path / "gone/.gatepatch", tmp_path / "link"):
        with pytest.raises(FileNotFoundError), locks.held([folder], 0, _nothing):
            raise AssertionError("held it")
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_a_killed_holder_holds_no_more(tmp_path: Path) -> None:
    folder = tmp_path / ".gatepatch"

    def hold() -> None:
        with locks.held([folder], 0, _nothing):
            (folder / "file").mkdir()
            (folder / "killed here").mkdir()

    # mkdir, open, flock, mkdir
    assert in_child(hold, SignalAt(5))[1]
    with locks.held([folder], 0, _nothing):
        assert sorted(path.name for path in folder.iterdir()) == ["file", "lock"]


def _count(folder: Path, file: Path, times: int) -> None:
    for _ in range(times):
        with locks.held([folder], time.monotonic() + 60, _nothing):
            # The folder is removed each time, so that every waiter waits on a dead file.
            value = int(file.read_text())
            file.write_text(str(value + 1))


def test_nobody_holds_it_twice_while_the_folder_comes_and_goes(tmp_path: Path) -> None:
    file = tmp_path / "count"
    file.write_text("0")
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=partial(_count, tmp_path / ".gatepatch", file, 100))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert file.read_text() == "300"
    assert not (tmp_path / ".gatepatch").exists()
