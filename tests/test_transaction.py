"""A transaction does all of what it says, and nothing else."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changing import (
    FILES,
    STATE,
    backward,
    forward,
    forward_of,
    make_module,
    make_root,
    mtimes,
    root_of,
)
from crashing import SignalAt, in_child, result_of, snapshot, start_child
from gatepatch import bytecode, jitcache, locks
from gatepatch.edits import sha256
from gatepatch.errors import (
    LockTimeoutError,
    PendingError,
    SignalError,
    StaleError,
    TransactionError,
)
from gatepatch.target import Root
from gatepatch.transaction import (
    Image,
    RootChange,
    Transaction,
    Write,
    commit,
    image,
    pending,
    read_blob,
    read_state,
    recover,
)

NEVER = SignalAt(0)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return make_root(tmp_path)


@contextlib.contextmanager
def _unchanged(root: Root) -> Iterator[None]:
    """Nothing changes in here, no mtime, and no state folder appears or goes."""
    before = snapshot(root.path), mtimes(root), root.state_dir.exists()
    yield
    assert (snapshot(root.path), mtimes(root), root.state_dir.exists()) == before


# What must not change


STALE: dict[str, Callable[[Root], object]] = {
    "content": lambda root: (root.path / "pkg/a.py").write_bytes(b"upgraded"),
    "gone": lambda root: (root.path / "pkg/a.py").unlink(),
    "a link now": lambda root: _to_link(root.path / "pkg/sub/b.cuh"),
    "another link": lambda root: _to_link(root.path / "pkg/linked.py"),
    "no prebuilt module": lambda root: shutil.rmtree(root.path / "pkg/data/aot/mod"),
    "hidden already": lambda root: (root.path / "pkg/data/aot/mod.hidden").mkdir(),
    "another state": lambda root: _put_state(root, b"another"),
}


def _to_link(path: Path) -> None:
    kept = path.with_name("kept")
    kept.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to("kept")


def _put_state(root: Root, document: bytes) -> None:
    root.state_dir.mkdir(exist_ok=True)
    (root.state_dir / "state.json").write_bytes(document)


@pytest.mark.parametrize("change", STALE.values(), ids=STALE)
def test_a_stale_plan_changes_nothing(
    tmp_path: Path, root: Root, change: Callable[[Root], object]
) -> None:
    other = make_root(tmp_path, "other")
    transaction = forward(other, root)
    change(root)
    before = snapshot(tmp_path)
    with pytest.raises(StaleError, match="has changed since the plan was made"):
        commit(transaction)
    assert snapshot(tmp_path) == before
    assert not other.state_dir.exists()


def test_two_plans_from_one_state_do_not_drop_each_other(root: Root) -> None:
    first, second = forward_of(root), forward_of(root)
    first = replace(first, writes=first.writes[:1], renames=(), state=b"the first")
    second = replace(second, writes=second.writes[1:], renames=(), state=b"the second")
    commit(Transaction(changes=(first,)))
    with _unchanged(root), pytest.raises(StaleError, match=r"state\.json"):
        commit(Transaction(changes=(second,)))
    assert read_state(root) == b"the first"


def test_a_file_that_changes_while_a_build_is_waited_for_is_stale(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def hold(modules: Sequence[jitcache.Module], timeout: float) -> Iterator[None]:
        (root.path / "pkg/other.py").rename(root.path / "pkg/a.py")
        yield

    monkeypatch.setattr(jitcache, "hold", hold)
    with pytest.raises(StaleError):
        commit(forward(root))
    assert (root.path / "pkg/a.py").read_bytes() == b"not touched\n"
    assert not root.state_dir.exists()


def test_a_cache_that_files_are_linked_from_is_never_touched(tmp_path: Path, root: Root) -> None:
    def cached() -> dict[str, tuple[bytes, int, int]]:
        return {
            path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
            for path in (tmp_path / "cache-site").iterdir()
        }

    before = cached()
    assert (root.path / "pkg/sub/b.cuh").stat().st_nlink == 2
    commit(forward(root))
    assert cached() == before
    assert (root.path / "pkg/sub/b.cuh").stat().st_nlink == 1
    commit(backward(root))
    assert cached() == before


def test_a_build_lock_that_is_not_had_changes_nothing(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold(modules: Sequence[jitcache.Module], timeout: float) -> Iterator[None]:
        raise LockTimeoutError("a build is running")

    monkeypatch.setattr(jitcache, "hold", contextlib.contextmanager(hold))
    with _unchanged(root), pytest.raises(LockTimeoutError, match="a build is running"):
        commit(forward(root))


def test_a_lock_that_is_not_had_changes_nothing(root: Root) -> None:
    transaction = forward(root)
    with locks.held([root.state_dir], 0, lambda: None):
        with _unchanged(root), pytest.raises(LockTimeoutError, match=f"process {os.getpid()}"):
            commit(transaction, timeout=0.05)
        assert pending(root) is None
    commit(transaction)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_waiting_for_a_lock_changes_nothing(root: Root, signum: int) -> None:
    transaction = forward(root)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signum))
    with locks.held([root.state_dir], 0, lambda: None), _unchanged(root):
        timer.start()
        with pytest.raises(SignalError, match=f"signal {int(signum)}"):
            commit(transaction, timeout=30)
    timer.join()


# Before and after


def test_everything_is_done_and_undone(tmp_path: Path, root: Root) -> None:
    before = snapshot(tmp_path)
    done = commit(forward(root))
    assert done.signal is None
    assert done.bytecode_removed == 1
    for file, (_, after) in FILES.items():
        path = root.path / file
        assert path.read_bytes() == after
        assert not path.is_symlink()
    assert stat.S_IMODE((root.path / "pkg/a.py").stat().st_mode) == 0o755
    assert (root.path / "pkg/data/aot/mod.hidden/mod.so").read_bytes() == b"binary"
    assert read_state(root) == STATE
    assert sorted(path.name for path in root.state_dir.iterdir()) == ["lock", "state.json", "store"]
    assert [read_blob(root, sha256(old)) for old, _ in FILES.values()] == [
        old for old, _ in FILES.values()
    ]
    commit(backward(root))
    assert snapshot(tmp_path) == before
    assert not root.state_dir.exists()
    assert recover([root]) == ()


def test_two_roots_go_together(tmp_path: Path) -> None:
    roots = make_root(tmp_path, "b"), make_root(tmp_path, "a")
    before = snapshot(tmp_path)
    commit(forward(*roots))
    assert [read_state(root) for root in roots] == [STATE, STATE]
    commit(backward(*roots))
    assert snapshot(tmp_path) == before


def test_every_mtime_is_fresh_there_and_back(root: Root) -> None:
    (root.path / "pkg/sub/b.cuh").unlink()
    (root.path / "pkg/sub/b.cuh").write_bytes(FILES["pkg/sub/b.cuh"][0])
    future = time.time_ns() + 3600 * 10**9
    os.utime(root.path / "pkg/sub/b.cuh", ns=(future, future))
    start, old = time.time_ns(), mtimes(root)
    change = forward_of(root)
    built = time.time_ns() + 7200 * 10**9
    writes = (replace(change.writes[0], newer_than=built), *change.writes[1:])
    commit(Transaction(changes=(replace(change, writes=writes),)))
    new = mtimes(root)
    assert new["pkg/a.py"] > built
    assert new["pkg/sub/b.cuh"] > future
    assert all(new[file] > max(start, old[file]) for file in FILES)
    commit(backward(root))
    newest = mtimes(root)
    assert newest["pkg/a.py"] > new["pkg/a.py"]
    assert newest["pkg/sub/b.cuh"] > new["pkg/sub/b.cuh"]


def test_a_link_whose_cache_is_gone_comes_back_as_a_file(tmp_path: Path, root: Root) -> None:
    commit(forward(root))
    shutil.rmtree(tmp_path / "cache-site")
    commit(backward(root))
    path = root.path / "pkg/linked.py"
    assert not path.is_symlink()
    assert path.read_bytes() == FILES["pkg/linked.py"][0]


def test_jit_modules_go_with_it(tmp_path: Path, root: Root) -> None:
    module = make_module(tmp_path)
    done = commit(forward(root, jit=(module,)))
    assert done.jit_removed == (module.folder,)
    assert not module.folder.exists()


def test_the_store_holds_what_is_named_and_no_more(root: Root) -> None:
    commit(forward(root))
    change = RootChange(
        root=root,
        writes=(
            Write(
                path="pkg/a.py",
                before=_image(root, "pkg/a.py"),
                after=b"newest a\n",
            ),
        ),
        blobs=(b"old a\n", b"something else\n"),
        state=b"next",
        state_before=STATE,
    )
    commit(Transaction(changes=(change,)))
    held = {path.read_bytes() for path in (root.state_dir / "store").iterdir()}
    assert held == {b"old a\n", b"something else\n"}


def test_a_store_whose_state_was_lost_keeps_what_it_has(root: Root) -> None:
    commit(forward(root))
    (root.state_dir / "state.json").unlink()
    transaction = forward_of(root)
    with pytest.raises(StaleError):
        commit(Transaction(changes=(replace(transaction, state_before=b"x"),)))
    writes = (replace(transaction.writes[0], after=b"another\n"),)
    commit(Transaction(changes=(replace(transaction, writes=writes, renames=(), blobs=()),)))
    assert read_blob(root, sha256(b"old b\r\n")) == b"old b\r\n"


def test_foreign_bytes_outlive_everything(root: Root) -> None:
    change = replace(forward_of(root), foreign=(b"edited by hand",))
    commit(Transaction(changes=(change,)))
    commit(backward(root))
    assert [path.name for path in root.state_dir.iterdir() if path.name != "lock"] == ["foreign"]
    kept = root.state_dir / "foreign" / sha256(b"edited by hand")
    assert kept.read_bytes() == b"edited by hand"


def test_a_damaged_backup_is_written_anew(root: Root) -> None:
    commit(forward(root))
    (root.state_dir / "store" / sha256(b"old a\n")).write_bytes(b"rotten")
    change = RootChange(
        root=root,
        writes=(),
        blobs=tuple(old for old, _ in FILES.values()),
        state=b"next",
        state_before=STATE,
    )
    commit(Transaction(changes=(change,)))
    assert read_blob(root, sha256(b"old a\n")) == b"old a\n"


def test_another_thread_can_commit(root: Root) -> None:
    thread = threading.Thread(target=commit, args=(forward(root),))
    thread.start()
    thread.join()
    assert read_state(root) == STATE


def test_bytecode_made_in_between_goes_too(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = root.path / "pkg/__pycache__/a.cpython-311.pyc"
    real = Path.replace

    def replace_and_compile(self: Path, target: Path) -> Path:
        if self.name.startswith(".a.py."):
            compiled.write_bytes(b"of the old source")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace_and_compile)
    assert commit(forward(root)).bytecode_removed == 2
    assert not compiled.exists()


# What goes wrong


def test_bytecode_that_cannot_be_removed_stops_it_before_anything_is_replaced(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(source))

    monkeypatch.setattr(bytecode, "remove", refuse)
    with _unchanged(root), pytest.raises(TransactionError) as caught:
        commit(forward(root))
    assert str(caught.value) == (
        f"{root.path}/pkg/a.py: Permission denied; nothing was changed\n"
        "  run it as the owner of the files"
    )


def test_a_module_that_cannot_be_removed_puts_everything_back(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(modules: Sequence[jitcache.Module]) -> tuple[Path, ...]:
        raise OSError(errno.EBUSY, "Device or resource busy", "/cache/mod")

    before = snapshot(root.path)
    monkeypatch.setattr(jitcache, "remove", refuse)
    with pytest.raises(TransactionError, match="/cache/mod: Device or resource busy"):
        commit(forward(root))
    assert snapshot(root.path) == before
    assert not root.state_dir.exists()


def test_an_error_of_ours_puts_everything_back_too(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(root.path)
    monkeypatch.setattr(jitcache, "remove", lambda modules: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        commit(forward(root))
    assert snapshot(root.path) == before


def test_what_could_not_be_put_back_says_why_and_what_to_do(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace
    renamed: list[str] = []

    def refuse(self: Path, target: Path) -> Path:
        if "gatepatch-" in self.name:
            renamed.append(self.name)
            if len(renamed) > 1:
                raise OSError(errno.EIO, "Input/output error", str(self), None, str(target))
        return real(self, target)

    before = snapshot(root.path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(PendingError) as caught:
            commit(forward(root))
    assert str(caught.value) == (
        f"{root.path}/pkg/sub/b.cuh: Input/output error\n"
        f"{root.path}/pkg/a.py: Input/output error\n"
        f"{root.state_dir}/journal.json: not everything could be put back; backups and journal "
        "are kept\n"
        "  mend the cause, then: gatepatch recover"
    )
    assert read_blob(root, sha256(b"old a\n")) == b"old a\n"
    assert pending(root) is not None
    assert [r.outcome for r in recover([root])] == ["rolled-back"]
    assert snapshot(root.path) == before


def test_a_root_that_is_gone_is_one_clear_error(tmp_path: Path) -> None:
    root = root_of(tmp_path / "gone")
    with pytest.raises(TransactionError, match="No such file or directory; nothing was changed"):
        commit(
            Transaction(changes=(RootChange(root=root, writes=(), state=b"x", state_before=None),))
        )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="gatepatch-test-"))
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("where", [".", "pkg/sub", "pkg/__pycache__"])
def test_a_folder_that_may_not_be_written(common: Path, where: str) -> None:
    root = make_root(common)
    transaction = forward(root)
    if os.geteuid() == 0:
        for path in (common, *common.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        (root.path / "pkg/a.py").chmod(0o755)
    (root.path / where).chmod(0o555)
    report = common / "report"

    def attempt() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            commit(transaction)
        except TransactionError as error:
            report.write_text(str(error))

    with _unchanged(root):
        assert in_child(attempt, NEVER) == (0, False)
    text = report.read_text()
    assert text.startswith(str(root.path / where).removesuffix("."))
    assert text.endswith(
        ": Permission denied; nothing was changed\n  run it as the owner of the files"
    )


SMALL, LARGE = b"small\n", b"large" * 200_000


def _with_large(root: Root) -> RootChange:
    (root.path / "pkg/large.cuh").write_bytes(SMALL)
    before = _image(root, "pkg/large.cuh")
    change = forward_of(root)
    large = Write(path="pkg/large.cuh", before=before, after=LARGE)
    return replace(change, writes=(*change.writes, large))


def test_a_write_that_the_kernel_refuses(tmp_path: Path, root: Root) -> None:
    transaction = Transaction(changes=(_with_large(root),))
    report = tmp_path / "report"

    def attempt() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            commit(transaction)
        except TransactionError as error:
            report.write_text(str(error))

    with _unchanged(root):
        assert in_child(attempt, NEVER) == (0, False)
    assert report.read_text() == (
        f"{root.path}/pkg/large.cuh: File too large; nothing was changed\n"
        "  mend the cause, then run the same command again"
    )


def test_a_full_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _small_device(tmp_path / "device") as full:
        root = make_root(tmp_path / "device")
        transaction = Transaction(changes=(_with_large(root),))
        if not full:
            monkeypatch.setattr(os, "fsync", _no_space)
        with _unchanged(root), pytest.raises(TransactionError) as caught:
            commit(transaction)
        assert "No space left on device; nothing was changed" in str(caught.value)
        assert "make room on the device, then run the same command again" in str(caught.value)


def _no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def _small_device(folder: Path) -> Iterator[bool]:
    """A real device of half a megabyte, where the user may mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


# Laws


class File(NamedTuple):
    before: bytes
    after: bytes
    mode: int
    link: bool
    age: int


trees = st.lists(
    st.builds(
        File,
        before=st.binary(max_size=30),
        after=st.binary(max_size=30),
        mode=st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o4755]),
        link=st.booleans(),
        age=st.integers(-(10**6), 10**6),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=25, deadline=None)
@given(files=trees, data=st.data())
def test_a_change_and_its_inverse_are_the_identity(
    tmp_path_factory: pytest.TempPathFactory, files: list[File], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("law")
    root = root_of(folder / "site")
    root.path.mkdir()
    for number, file in enumerate(files):
        path = folder / f"cached{number}"
        path.write_bytes(file.before)
        path.chmod(file.mode)
        now = time.time() + file.age
        os.utime(path, (now, now))
        installed = root.path / f"file{number}.py"
        if file.link:
            installed.symlink_to(f"../cached{number}")
        else:
            shutil.copy2(path, installed)
    before = snapshot(folder)
    there = [_write(root, f"file{n}.py", file.after) for n, file in enumerate(files)]
    change = RootChange(
        root=root, writes=tuple(data.draw(st.permutations(there))), state=b"s", state_before=None
    )
    commit(Transaction(changes=(change,)))
    for number, file in enumerate(files):
        path = root.path / f"file{number}.py"
        assert path.read_bytes() == file.after
        assert stat.S_IMODE(path.lstat().st_mode) == file.mode
    back = [
        replace(
            _write(root, f"file{n}.py", file.before),
            link=f"../cached{n}" if file.link else None,
        )
        for n, file in enumerate(files)
    ]
    commit(
        Transaction(
            changes=(RootChange(root=root, writes=tuple(back), state=None, state_before=b"s"),)
        )
    )
    assert snapshot(folder) == before
    assert not root.state_dir.exists()


def _write(root: Root, path: str, after: bytes) -> Write:
    return Write(path=path, before=_image(root, path), after=after)


def _image(root: Root, path: str) -> Image:
    found = image(root.path / path)
    assert found is not None
    return found


@pytest.mark.parametrize("count", [2, 16])
def test_of_many_at_once_one_commits_and_the_others_are_stale(root: Root, count: int) -> None:
    transaction = forward(root)
    ready = root.path.parent / "ready"

    def attempt() -> None:
        while not ready.exists():
            time.sleep(0.001)
        try:
            commit(transaction)
        except StaleError:
            os._exit(7)

    children = [start_child(attempt, NEVER) for _ in range(count)]
    ready.touch()
    assert sorted(result_of(child)[0] for child in children) == [0, *[7] * (count - 1)]
    assert read_state(root) == STATE
