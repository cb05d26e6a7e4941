"""A change that is killed, interrupted or refused at any step is all-before or all-after."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from changing import (
    FILES,
    backward,
    forward,
    forward_of,
    make_module,
    make_root,
    mtimes,
    root_of,
)
from crashing import FailAt, KillWhere, SignalAt, counting, in_child, snapshot
from gatepatch import locks
from gatepatch.edits import sha256
from gatepatch.errors import LockTimeoutError, PendingError, SignalError, StaleError
from gatepatch.target import Root
from gatepatch.transaction import Transaction, commit, pending, read_blob, read_state, recover

REFUSED, PENDING = 101, 104


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process needs none, and they would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


START = {
    "one root, pristine": (["site"], "pristine"),
    "one root, applied": (["site"], "applied"),
    "two roots, pristine": (["a", "b"], "pristine"),
    "two roots, applied": (["a", "b"], "applied"),
}
starts = pytest.mark.parametrize(("names", "start"), START.values(), ids=START)


class Tree:
    """Fresh copies of a tree, and what it looks like before and after a change."""

    def __init__(self, folder: Path, names: list[str], start: str):
        self.folder = folder
        self.names = names
        self.origin = folder / "origin"
        for name in names:
            make_root(self.origin, name)
        self.make: Callable[..., Transaction] = forward if start == "pristine" else backward
        if start == "applied":
            commit(forward(*self.roots(self.origin)))
        self.copies = itertools.count()
        self.before = snapshot(self.origin)
        self.state_before = read_state(self.roots(self.origin)[0])
        self.after, self.state_after = self._result()

    def roots(self, folder: Path) -> list[Root]:
        return [root_of(folder / name) for name in self.names]

    def copy(self) -> Path:
        return self.copy_of(self.origin)

    def copy_of(self, origin: Path) -> Path:
        copy = self.folder / f"copy{next(self.copies)}"
        shutil.copytree(origin, copy, symlinks=True)
        return copy

    def _result(self) -> tuple[dict[str, tuple[str, object, int]], bytes | None]:
        copy = self.copy()
        commit(self.make(*self.roots(copy)))
        return snapshot(copy), read_state(self.roots(copy)[0])

    def check(self, folder: Path) -> str:
        """Say which of the two it is, and see that nothing is left over."""
        now = snapshot(folder)
        word = "before" if now == self.before else "after" if now == self.after else "torn"
        assert word != "torn", {k: (now.get(k), self.before.get(k)) for k in now | self.before}
        wanted = self.state_before if word == "before" else self.state_after
        for root in self.roots(folder):
            assert pending(root) is None
            assert read_state(root) == wanted
            assert not (root.state_dir / "journal.json").exists()
            if wanted is not None:
                for old, _ in FILES.values():
                    assert read_blob(root, sha256(old)) == old
        return word

    def check_usable(self, folder: Path, word: str) -> None:
        """Go there and back from whatever was settled, until no trace is left."""
        roots = self.roots(folder)
        if word == "before":
            commit(self.make(*roots))
        assert snapshot(folder) == self.after
        commit((backward if self.make is forward else forward)(*roots))
        assert snapshot(folder) == self.before
        for root in roots:
            assert root.state_dir.exists() == (self.state_before is not None)


@starts
def test_a_kill_at_any_step_is_settled(tmp_path: Path, names: list[str], start: str) -> None:
    tree = Tree(tmp_path, names, start)
    words = []
    for number in counting():
        folder = tree.copy()
        roots = tree.roots(folder)
        transaction = tree.make(*roots)
        status, killed = in_child(partial(commit, transaction), SignalAt(number))
        recover(roots)
        words.append(tree.check(folder))
        tree.check_usable(folder, words[-1])
        shutil.rmtree(folder)
        if not killed:
            break
        assert status == -signal.SIGKILL
    # All-before up to one step, all-after from there on.
    assert words == sorted(words, reverse=True)
    assert words[0] == "before"
    assert words[-2:] == ["after", "after"]


@pytest.mark.parametrize("names", [["site"], pytest.param(["a", "b"], marks=pytest.mark.slow)])
def test_a_kill_during_recovery_is_settled_too(tmp_path: Path, names: list[str]) -> None:
    tree = Tree(tmp_path, names, "pristine")
    for number in counting():
        folder = tree.copy()
        transaction = tree.make(*tree.roots(folder))
        _, killed = in_child(partial(commit, transaction), SignalAt(number))
        if killed and not any(map(pending, tree.roots(folder))):
            continue
        for second in counting():
            # The journal names folders, so every try has to lie where the first one lay.
            again = tree.copy_of(folder)
            folder.rename(kept := tmp_path / "kept")
            again.rename(folder)
            roots = tree.roots(folder)
            _, twice = in_child(partial(recover, roots), SignalAt(second))
            recover(roots)
            tree.check(folder)
            shutil.rmtree(folder)
            kept.rename(folder)
            if not twice:
                break
        shutil.rmtree(folder)
        if not killed:
            break


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_step(tmp_path: Path, signum: int) -> None:
    tree = Tree(tmp_path, ["a", "b"], "pristine")
    words = []
    for number in counting():
        folder = tree.copy()
        roots = tree.roots(folder)
        step = SignalAt(number, signum)
        report = tmp_path / "report"
        assert in_child(_reported(tree.make(*roots), step, report), step)[0] == 0
        words.append(tree.check(folder))
        shutil.rmtree(folder)
        if report.read_text() == "committed None":
            break
        expected = {"before": "SignalError", "after": "committed"}
        assert report.read_text() == f"{expected[words[-1]]} {int(signum)}"
    assert words == sorted(words, reverse=True)
    assert words[0] == "before"
    assert words[-2:] == ["after", "after"]


def _reported(transaction: Transaction, step: SignalAt, report: Path) -> Callable[[], None]:
    def action() -> None:
        try:
            text = f"committed {commit(transaction).signal}"
        except SignalError as error:
            text = f"SignalError {error.signum}"
        step.left = 0  # the report itself is no step
        report.write_text(text)

    return action


@starts
def test_one_failure_at_any_step(tmp_path: Path, names: list[str], start: str) -> None:
    tree = Tree(tmp_path, names, start)
    statuses = set()
    for number in counting():
        folder = tree.copy()
        roots = tree.roots(folder)
        transaction = tree.make(*roots)
        status, failed = in_child(partial(commit, transaction), FailAt(number, errno.EACCES))
        statuses.add(status)
        if status == PENDING:
            assert any(map(pending, roots))
        recover(roots)
        word = tree.check(folder)
        assert (status, word) in {(0, "after"), (REFUSED, "before"), (PENDING, "after")}
        tree.check_usable(folder, word)
        shutil.rmtree(folder)
        if not failed:
            break
    assert statuses == {0, REFUSED, PENDING}


@starts
def test_a_file_system_that_fails_for_good(tmp_path: Path, names: list[str], start: str) -> None:
    tree = Tree(tmp_path, names, start)
    for number in counting():
        folder = tree.copy()
        roots = tree.roots(folder)
        transaction = tree.make(*roots)
        step = FailAt(number, errno.EROFS, for_good=True)
        status, failed = in_child(partial(commit, transaction), step)
        assert status in (0, REFUSED, PENDING)
        if status == PENDING:
            assert any(map(pending, roots))
        recover(roots)
        word = tree.check(folder)
        if status != PENDING:
            assert word == ("before" if status == REFUSED else "after")
        tree.check_usable(folder, word)
        shutil.rmtree(folder)
        if not failed:
            break


def test_recovery_gives_fresh_mtimes_to_what_was_replaced(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    old = mtimes(root)
    cached = (tmp_path / "cache-site/a.py").stat().st_mtime_ns
    transaction = forward(root)
    _kill(transaction, lambda event, path: event == "os.rename" and "linked.py.gatepatch" in path)
    between = mtimes(root)
    assert [r.outcome for r in recover([root])] == ["rolled-back"]
    new = mtimes(root)
    for file in ("pkg/a.py", "pkg/sub/b.cuh"):
        assert new[file] > between[file] > old[file]
    assert new["pkg/linked.py"] == old["pkg/linked.py"]
    assert (tmp_path / "cache-site/a.py").stat().st_mtime_ns == cached


def test_recovery_removes_modules_that_may_derive_from_a_torn_tree(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    module = make_module(tmp_path)
    transaction = forward(root, jit=(module,))
    _kill(transaction, lambda event, path: event == "os.rename" and path == str(module.folder))
    assert module.folder.exists()
    torn = snapshot(root.path)
    with FileLock(module.lock), pytest.raises(LockTimeoutError, match="mod is being built"):
        recover([root], timeout=0.1)
    assert snapshot(root.path) == torn
    recover([root])
    assert not module.folder.exists()
    assert not root.state_dir.exists()


def test_recovery_does_not_make_a_cache_anew_that_is_gone(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    before = snapshot(root.path)
    _kill_at_commit(forward(root, jit=(make_module(tmp_path),)))
    shutil.rmtree(tmp_path / "cached_ops")
    recover([root])
    assert snapshot(root.path) == before
    assert not (tmp_path / "cached_ops").exists()


def test_recovery_leaves_alone_what_someone_else_changed_since(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    _kill_at_commit(forward(root))
    (root.path / "pkg/a.py").unlink()
    (root.path / "pkg/a.py").write_bytes(b"upgraded\n")
    shutil.rmtree(root.path / "pkg/sub")
    (recovered,) = recover([root])
    assert (root.path / "pkg/a.py").read_bytes() == b"upgraded\n"
    assert not (root.path / "pkg/sub").exists()
    assert (root.path / "pkg/linked.py").is_symlink()
    assert set(recovered.left) == {str(root.path / "pkg/a.py"), str(root.path / "pkg/sub/b.cuh")}
    assert pending(root) is None


def test_a_lost_backup_keeps_the_journal_and_the_others(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    _kill_at_commit(forward(root))
    lost = root.state_dir / "store" / sha256(b"old a\n")
    lost.write_bytes(b"rotten")
    with pytest.raises(PendingError, match="is damaged in the store") as caught:
        recover([root])
    assert "gatepatch recover" in str(caught.value)
    assert pending(root) is not None
    assert (root.path / "pkg/sub/b.cuh").read_bytes() == b"old b\r\n"
    lost.write_bytes(b"old a\n")
    recover([root])
    assert (root.path / "pkg/a.py").read_bytes() == b"old a\n"
    assert not root.state_dir.exists()


def test_the_next_commit_settles_what_is_pending_first(tmp_path: Path) -> None:
    root, other = make_root(tmp_path, "a"), make_root(tmp_path, "b")
    before = snapshot(tmp_path)
    transaction = forward(root, other)
    _kill_at_commit(transaction)
    alone = forward_of(other)  # the plan sees the torn tree, so it is stale afterwards
    with pytest.raises(StaleError):
        commit(Transaction(changes=(alone,)))
    assert snapshot(tmp_path) == before
    assert not root.state_dir.exists()
    commit(forward(other))


def test_a_moved_tree_is_settled_where_it_is(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    _kill_at_commit(forward(root))
    copy = root_of(tmp_path / "copy")
    shutil.copytree(root.path, copy.path, symlinks=True)
    torn = snapshot(root.path)
    assert [r.root for r in recover([copy])] == [copy.path]
    assert (copy.path / "pkg/a.py").read_bytes() == b"old a\n"
    assert snapshot(root.path) == torn
    recover([root])
    assert snapshot(root.path) == snapshot(copy.path)


def test_a_copy_of_one_root_of_two_is_refused(tmp_path: Path) -> None:
    first, second = make_root(tmp_path, "a"), make_root(tmp_path, "b")
    _kill_at_commit(forward(first, second))
    for root in (first, second):
        copy = root_of(tmp_path / f"copy-{root.path.name}")
        shutil.copytree(root.path, copy.path, symlinks=True)
        with pytest.raises(PendingError, match="a change of several environments"):
            recover([copy])
    shutil.move(first.path, tmp_path / "away")
    with pytest.raises(PendingError, match="out of reach"):
        recover([second])
    shutil.move(tmp_path / "away", first.path)
    assert len(recover([second])) == 2
    assert not first.state_dir.exists()


def test_pending_says_whether_it_is_at_work_or_interrupted(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert pending(root) is None
    _kill_at_commit(forward(root))
    line = f"an interrupted change of 3 files in {root.path} is to be put back: gatepatch recover"
    assert pending(root) == line
    with locks.held([root.state_dir], 0.0, lambda: None):
        assert pending(root) == (
            f"process {os.getpid()} is changing 3 files in {root.path} right now"
        )


def test_a_damaged_journal_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    root.state_dir.mkdir()
    for content in (b"", b"[]", b"{}", b'{"schema": 9}', b'{"schema": 1}', b"\xff"):
        (root.state_dir / "journal.json").write_bytes(content)
        with pytest.raises(PendingError, match=r"cannot be read.*\n.*reinstall"):
            pending(root)
        with pytest.raises(PendingError):
            commit(forward(root))


def _kill(transaction: Transaction, fits: Callable[[str, str], bool]) -> None:
    status, _ = in_child(partial(commit, transaction), KillWhere(fits))
    assert status == -signal.SIGKILL


def _kill_at_commit(transaction: Transaction) -> None:
    """Kill it when all files are replaced and nothing is settled."""
    _kill(transaction, lambda event, p: event == "os.rename" and p.endswith("/.journal.json"))
