"""The marks of trials: who holds them, what a killed one leaves, and trees that were moved."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from changing import root_of
from crashing import result_of, start_child
from gatepatch import trialmark
from gatepatch.errors import LockTimeoutError, PendingError
from gatepatch.target import Root
from gatepatch.trialmark import Mark, held, killed, read_mark, running


class Never:
    """A step that is never taken."""

    fired = False

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        """Nothing."""


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Root, Root]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return root_of(tmp_path / "a"), root_of(tmp_path / "b")


def marks(*roots: Root) -> list[Mark]:
    first = Mark(
        id="one",
        name="toy",
        root=roots[0],
        roots=roots,
        state='{"schema": 1}',
        jit_roots=("/cache",),
        process=os.getpid(),
        began="2026-11-30T09:00:00+00:00",
    )
    return [replace(first, root=root) for root in roots]


def kill_one(*roots: Root) -> None:
    """Leave the marks of a trial whose process was killed."""

    def run() -> None:
        with held(marks(*roots), 5):
            os.kill(os.getpid(), signal.SIGKILL)

    assert result_of(start_child(run, Never())) == (-signal.SIGKILL, True)


def test_a_mark_is_held_while_the_trial_runs_and_gone_after_it(roots: tuple[Root, Root]) -> None:
    with held(marks(*roots), 5):
        assert [running(root) for root in roots] == marks(*roots)
        assert [killed(root) for root in roots] == [None, None]
    assert [root.state_dir.exists() for root in roots] == [False, False]


def test_marks_go_after_an_error_and_stay_where_nothing_could_be_put_back(
    roots: tuple[Root, Root],
) -> None:
    with pytest.raises(KeyError), held(marks(*roots), 5):
        raise KeyError
    assert read_mark(roots[0].state_dir) is None
    with pytest.raises(PendingError), held(marks(*roots), 5):
        raise PendingError("it could not")
    assert [killed(root) for root in roots] == marks(*roots)


def test_a_second_trial_is_refused_and_says_who_runs_the_first(roots: tuple[Root, Root]) -> None:
    with held(marks(*roots), 5):
        with pytest.raises(LockTimeoutError) as caught, held(marks(roots[1]), 5):
            raise AssertionError
        assert f"process {os.getpid()} runs a trial of toy, begun 2026-11-30" in str(caught.value)
        assert read_mark(roots[1].state_dir) is not None


def test_a_killed_trial_is_seen_in_each_root(roots: tuple[Root, Root]) -> None:
    kill_one(*roots)
    assert [running(root) for root in roots] == [None, None]
    assert [found and found.roots for found in map(killed, roots)] == [roots, roots]


def test_without_the_first_mark_the_others_mean_nothing(roots: tuple[Root, Root]) -> None:
    kill_one(*roots)
    (roots[0].state_dir / trialmark.NAME).unlink()
    assert [killed(root) for root in roots] == [None, None]


def test_where_the_first_root_is_gone_the_other_mark_counts(roots: tuple[Root, Root]) -> None:
    kill_one(*roots)
    roots[0].path.rename(roots[0].path.with_name("elsewhere"))
    assert killed(roots[1]) is not None


def test_a_tree_that_was_copied_is_settled_where_it_is(
    roots: tuple[Root, Root], tmp_path: Path
) -> None:
    kill_one(roots[0])
    roots[0].path.rename(tmp_path / "moved")
    moved = root_of(tmp_path / "moved")
    found = killed(moved)
    assert found is not None
    assert (found.root, found.roots) == (moved, (moved,))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1, "id": "x"}'])
def test_a_damaged_mark_says_so(roots: tuple[Root, Root], text: str) -> None:
    roots[0].state_dir.mkdir()
    (roots[0].state_dir / trialmark.NAME).write_text(text)
    with pytest.raises(PendingError, match="the mark of a trial cannot be read") as caught:
        killed(roots[0])
    assert str(roots[0].state_dir / trialmark.NAME) in str(caught.value)
