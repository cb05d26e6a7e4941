"""FlashInfer's JIT caches: found by shape, held by its own locks, removed module by module."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from gatepatch.errors import LockTimeoutError, UsageError
from gatepatch.jitcache import Module, cache_roots, find_modules, hold, list_modules, remove

COMM = {"flashinfer": ("trtllm_comm",)}

LAYOUTS = {
    "0.3.1": "120",
    "0.4.1": "0.4.1/120a",
    "0.6.12": "0.6.12/120f",
    "joined": "0.6.3/90a_120a",
    "noarch": "noarch",
    "development": "0.0.0+unknown/121a",
}


def build(ops: Path, name: str, mtime: int = 10**18) -> Path:
    """A module as FlashInfer leaves it; mtime in nanoseconds."""
    folder = ops / name
    folder.mkdir(parents=True)
    (ops / "tmp").mkdir(exist_ok=True)
    (ops / "tmp" / f"{name}.lock").touch()
    for file in ("build.ninja", f"{name}.so", f"{name}.cuda.o"):
        (folder / file).write_text(file)
        os.utime(folder / file, ns=(mtime, mtime))
    os.utime(folder, ns=(mtime, mtime))
    return folder


@contextlib.contextmanager
def holding(lock: Path) -> Iterator[int]:
    """Another process that holds a lock as FlashInfer does; the value is its process id."""
    code = (
        "import sys, time; from filelock import FileLock\n"
        "with FileLock(sys.argv[1], thread_local=False): print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, lock], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "held\n"
        yield child.pid
    finally:
        child.kill()
        child.communicate()


# -- where --


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_is_found(home: Path, layout: str) -> None:
    folder = build(home / ".cache/flashinfer" / layout / "cached_ops", "trtllm_comm")
    (module,) = find_modules(COMM, cache_roots({"HOME": str(home)}))
    assert module == Module(
        kind="flashinfer",
        name="trtllm_comm",
        folder=folder,
        lock=folder.parent / "tmp" / "trtllm_comm.lock",
        newest_output=10**18,
    )


def test_all_bases_are_looked_in(tmp_path: Path) -> None:
    found = {}
    variables = {"HOME": tmp_path / "h", "FLASHINFER_WORKSPACE_BASE": tmp_path / "w"}
    bases = [*variables.values(), tmp_path / "h/.cache/sglang"]
    for base in bases:
        found[base] = build(base / ".cache/flashinfer/0.6.3/120a/cached_ops", "trtllm_comm")
    roots = cache_roots({name: str(path) for name, path in variables.items()})
    assert {m.folder for m in find_modules(COMM, roots)} == set(found.values())


def test_sglang_may_have_its_own_base(tmp_path: Path) -> None:
    folder = build(tmp_path / "s/.cache/flashinfer/0.6.17/120f/cached_ops", "trtllm_comm")
    roots = cache_roots({"HOME": str(tmp_path / "h"), "SGLANG_CACHE_DIR": str(tmp_path / "s")})
    assert [m.folder for m in list_modules(roots)] == [folder]


@pytest.mark.parametrize(
    "named",
    [
        "base",
        "base/.cache/flashinfer",
        "base/.cache/flashinfer/0.6.3",
        "base/.cache/flashinfer/0.6.3/120a",
        "base/.cache/flashinfer/0.6.3/120a/cached_ops",
    ],
)
def test_a_root_may_be_named_at_any_height(tmp_path: Path, home: Path, named: str) -> None:
    ops = tmp_path / "base/.cache/flashinfer/0.6.3/120a/cached_ops"
    folder = build(ops, "trtllm_comm")
    roots = cache_roots({"HOME": str(home)}, [tmp_path / named])
    assert [m.folder for m in find_modules(COMM, roots)] == [folder]


def test_a_root_that_is_not_there_is_an_error(tmp_path: Path, home: Path) -> None:
    missing = tmp_path / "cahce"
    with pytest.raises(UsageError) as error:
        cache_roots({"HOME": str(home)}, [missing])
    assert str(error.value) == f"--jit-root {missing}: no such folder, or it cannot be read"


def test_no_cache_is_no_error(home: Path) -> None:
    assert cache_roots({"HOME": str(home)}) == ()
    assert find_modules(COMM, ()) == ()


def test_a_home_that_is_not_known_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no such user, no HOME
    assert cache_roots({}) == ()


def test_sglang_s_default_base_counts_beside_the_one_that_is_set(tmp_path: Path) -> None:
    home = tmp_path / "h"
    folder = build(home / ".cache/sglang/.cache/flashinfer/0.6.17/120f/cached_ops", "trtllm_comm")
    roots = cache_roots({"HOME": str(home), "SGLANG_CACHE_DIR": str(tmp_path / "s")})
    assert [m.folder for m in list_modules(roots)] == [folder]


def test_sglang_s_base_may_begin_with_a_tilde(home: Path) -> None:
    folder = build(home / "s/.cache/flashinfer/0.6.17/120f/cached_ops", "trtllm_comm")
    roots = cache_roots({"HOME": str(home), "SGLANG_CACHE_DIR": "~/s"})
    assert [m.folder for m in list_modules(roots)] == [folder]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("closed", ["120a", "120a/cached_ops"])
def test_a_cache_that_is_closed_is_like_one_that_is_not_known(closed: str) -> None:
    code = (
        "import os, sys; from pathlib import Path; from gatepatch import jitcache;"
        "os.setuid(65534);"
        "print([m.folder.parts[-3] for m in jitcache.list_modules([Path(sys.argv[1])])])"
    )
    with tempfile.TemporaryDirectory() as name:  # tmp_path is closed itself
        root = Path(name)
        root.chmod(0o755)
        for arch in ("120a", "120f"):
            build(root / arch / "cached_ops", "trtllm_comm")
        (root / closed).chmod(0o700)
        done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['120f']\n", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_home_that_is_closed_is_no_error(tmp_path: Path) -> None:
    build(tmp_path / "h/.cache/flashinfer/0.6.3/120a/cached_ops", "trtllm_comm")
    (tmp_path / "h").chmod(0o700)
    code = (
        "import os, sys; from gatepatch import jitcache; os.setuid(65534);"
        "print(jitcache.cache_roots({'HOME': sys.argv[1]}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "h"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("()\n", "")


def test_one_folder_that_is_reached_in_two_ways_is_one(tmp_path: Path, home: Path) -> None:
    root = home / ".cache/flashinfer"
    folder = build(root / "0.6.3/120a/cached_ops", "trtllm_comm")
    (root / "0.6.3/120f").symlink_to("120a")
    (tmp_path / "link").symlink_to(root)
    modules = find_modules(COMM, cache_roots({"HOME": str(home)}, [tmp_path / "link", root]))
    assert [m.folder for m in modules] == [folder]
    with hold(modules, 1.0):
        pass


# -- what --


def test_only_modules_of_the_name_are_found(tmp_path: Path) -> None:
    for name in ("trtllm_comm", "trtllm_comm_2", "xtrtllm_comm", "norm"):
        build(tmp_path / "cached_ops", name)
    (tmp_path / "cached_ops/.trtllm_comm.gatepatch-0").mkdir()
    assert [m.name for m in find_modules(COMM, [tmp_path])] == ["trtllm_comm"]
    names = ["norm", "trtllm_comm", "trtllm_comm_2", "xtrtllm_comm"]
    assert [m.name for m in list_modules([tmp_path])] == names


def test_names_of_other_kinds_of_caches_find_nothing(tmp_path: Path) -> None:
    build(tmp_path / "cached_ops", "trtllm_comm")
    assert find_modules({"other": ("trtllm_comm",)}, [tmp_path]) == ()


def test_a_module_whose_first_build_may_begin_any_time_is_held(tmp_path: Path) -> None:
    """It would read the source before the change, and stamp its binary after it."""
    ops = tmp_path / "cached_ops"
    build(ops, "other")
    (module,) = find_modules(COMM, [tmp_path])
    assert (module.name, module.folder.exists()) == ("trtllm_comm", False)
    with hold([module], 1.0):
        lock = ops / "tmp" / "trtllm_comm.lock"
        with pytest.raises(Timeout):
            FileLock(lock).acquire(timeout=0)
    assert remove([module]) == ()
    assert [each.name for each in list_modules([tmp_path]) if each.folder.exists()] == ["other"]


def test_a_first_build_has_a_lock_and_no_folder_yet(tmp_path: Path) -> None:
    lock = tmp_path / "cached_ops/tmp/trtllm_comm.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    lock.with_name("flashinfer_jit.lock").touch()  # that of batches names no module
    (module,) = list_modules([tmp_path])
    assert (module.name, module.folder.exists(), module.newest_output) == ("trtllm_comm", False, 0)


def test_the_newest_output_counts_wherever_it_lies(tmp_path: Path) -> None:
    folder = build(tmp_path / "cached_ops", "trtllm_comm")
    (folder / "deep").mkdir()
    (folder / "deep/x.o").touch()
    os.utime(folder / "deep/x.o", ns=(0, 4 * 10**18))
    (folder / "dangling").symlink_to("nowhere")
    (module,) = list_modules([tmp_path])
    assert module.newest_output == 4 * 10**18


# -- locks --


def modules_of(tmp_path: Path, *names: str) -> tuple[Module, ...]:
    for name in names:
        build(tmp_path / "cached_ops", name)
    return list_modules([tmp_path])


@pytest.mark.parametrize(
    ("lock", "what"),
    [("trtllm_comm", "trtllm_comm"), ("flashinfer_jit", "a batch of modules")],
)
def test_a_running_build_is_waited_for_and_then_named(tmp_path: Path, lock: str, what: str) -> None:
    modules = modules_of(tmp_path, "norm", "trtllm_comm")
    path = tmp_path / f"cached_ops/tmp/{lock}.lock"
    start = time.monotonic()
    with holding(path), pytest.raises(LockTimeoutError) as error, hold(modules, 0.3):
        raise AssertionError("held by two")
    assert 0.3 <= time.monotonic() - start < 10
    assert str(error.value) == (
        f"{path}: {what} is being built or loaded by another process, and was not free "
        f"within 0.3 s\n  see which: fuser -v {path}; wait for it, allow more time, "
        "or stop the server"
    )
    with hold(modules, 5.0):
        pass  # a lock that was not had leaves none of the others held


def test_the_build_of_another_module_is_not_waited_for(tmp_path: Path) -> None:
    modules_of(tmp_path, "norm", "trtllm_comm")
    with (
        holding(tmp_path / "cached_ops/tmp/norm.lock"),
        hold(find_modules(COMM, [tmp_path]), 0.0),
    ):
        pass


def test_a_build_that_ends_in_time_is_no_error(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "trtllm_comm")
    with holding(modules[0].lock) as process:
        code = "import os, sys, time; time.sleep(0.3); os.kill(int(sys.argv[1]), 9)"
        with subprocess.Popen([sys.executable, "-c", code, str(process)]), hold(modules, 20.0):
            pass


def test_no_build_can_begin_while_the_locks_are_held(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "trtllm_comm")
    with hold(modules, 1.0):
        for name in ("trtllm_comm", "flashinfer_jit"):
            with pytest.raises(Timeout):
                FileLock(tmp_path / f"cached_ops/tmp/{name}.lock", thread_local=False).acquire(0)
    with FileLock(modules[0].lock, thread_local=False).acquire(timeout=0):
        pass


def test_the_time_is_for_all_locks_together(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "a", "b")
    start = time.monotonic()
    with (
        holding(modules[1].lock),
        pytest.raises(LockTimeoutError),
        hold(tuple(reversed(modules)), 0.5),
    ):
        pass
    assert time.monotonic() - start < 5


def test_a_signal_interrupts_the_wait(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "trtllm_comm")
    old = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(InterruptedError()))
    try:
        with holding(modules[0].lock):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(InterruptedError), hold(modules, 30.0):
                pass
    finally:
        signal.signal(signal.SIGALRM, old)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_locks_that_root_makes_belong_to_the_cache_s_owner(tmp_path: Path) -> None:
    ops = tmp_path / "cached_ops"
    (ops / "trtllm_comm").mkdir(parents=True)
    os.chown(ops, 65534, 65534)
    with hold(list_modules([tmp_path]), 1.0):
        pass
    made = [ops / "tmp", ops / "tmp/trtllm_comm.lock", ops / "tmp/flashinfer_jit.lock"]
    assert [path.stat().st_uid for path in made] == [65534] * 3


# -- removal --


def test_only_the_module_named_goes(tmp_path: Path) -> None:
    ops = tmp_path / "cached_ops"
    comm, norm = build(ops, "trtllm_comm"), build(ops, "norm")
    (ops / ".ninja_log").write_text("# ninja log v5\n")  # shared by all until 0.6.0
    (ops / ".ninja_deps").write_bytes(b"# ninjadeps\n")
    modules = find_modules(COMM, [tmp_path])
    with hold(modules, 1.0):
        assert remove(modules) == (comm,)
    left = {path.name for path in ops.iterdir()}
    assert left == {".ninja_log", ".ninja_deps", "norm", "tmp"}
    assert len(list(norm.iterdir())) == 3


def test_a_folder_is_renamed_before_anything_in_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build(tmp_path / "cached_ops", "trtllm_comm")
    seen = []

    def rmtree(path: Path, ignore_errors: bool = False) -> None:
        seen.append((path.parent, sorted(p.name for p in path.iterdir()), folder.exists()))

    monkeypatch.setattr("shutil.rmtree", rmtree)
    remove(list_modules([tmp_path]))
    whole = ["build.ninja", "trtllm_comm.cuda.o", "trtllm_comm.so"]
    assert seen == [(folder.parent, whole, False)]


def test_a_folder_that_cannot_be_renamed_goes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build(tmp_path / "cached_ops", "trtllm_comm")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "x")))
        assert remove(list_modules([tmp_path])) == (folder,)
    assert not folder.exists()


def test_another_error_of_a_rename_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build(tmp_path / "cached_ops", "trtllm_comm")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EACCES, "x")))
        with pytest.raises(OSError, match="x"):
            remove(list_modules([tmp_path]))
    assert len(list(folder.iterdir())) == 3


def test_what_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    ops = tmp_path / "cached_ops"
    folder = build(ops, "trtllm_comm")
    for name in (".trtllm_comm.gatepatch-dead", ".trtllm_comm_2.gatepatch-x"):
        (ops / name).mkdir()
        (ops / name / "x.so").touch()
    assert remove(find_modules(COMM, [tmp_path])) == (folder,)
    assert {p.name for p in ops.iterdir()} == {"tmp", ".trtllm_comm_2.gatepatch-x"}


def test_a_linked_folder_loses_the_link_alone(tmp_path: Path) -> None:
    real = build(tmp_path / "elsewhere", "trtllm_comm")
    (tmp_path / "cached_ops").mkdir()
    (tmp_path / "cached_ops/trtllm_comm").symlink_to(real)
    remove(list_modules([tmp_path]))
    assert list((tmp_path / "cached_ops").iterdir()) == []
    assert len(list(real.iterdir())) == 3


def test_a_module_that_is_not_built_is_nothing_to_remove(tmp_path: Path) -> None:
    lock = tmp_path / "cached_ops/tmp/trtllm_comm.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert remove(list_modules([tmp_path])) == ()
