"""Binaries that do not derive from the sources on disk are found; the others are let be."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gatepatch.cachecheck import Finding, check
from gatepatch.files import MTIME_STEP
from jitlike import Jit, load_elsewhere, make_package
from trees import write_files

HEADER = "data/include/flashinfer/comm.cuh"
SOURCE = "data/csrc/comm.cu"


@pytest.fixture(params=[True, False], ids=["0.6.0 on", "up to 0.5.3"])
def jit(request: pytest.FixtureRequest, tmp_path: Path) -> Jit:
    """An environment and its cache, in either layout."""
    package = make_package(tmp_path / "env/site")
    ops = tmp_path / "base/.cache/flashinfer/0.6.3/120a/cached_ops"
    return Jit(package=package, ops=ops, absolute=request.param)


def findings(jit: Jit, *packages: Path) -> list[tuple[str, Path]]:
    """Reasons and paths."""
    root = jit.ops.parents[2]
    return [(f.reason, f.path) for f in check([root], packages or (jit.package,))]


def age(folder: Path, seconds: float = 100) -> None:
    """Make everything in a folder older, as if it had been installed long ago."""
    for path in folder.rglob("*"):
        stat = path.stat()
        old = stat.st_mtime_ns - int(seconds * 10**9)
        os.utime(path, ns=(old, old))


def change(path: Path, mtime: int | None = None) -> None:
    """Write other content, with an mtime in nanoseconds."""
    path.write_bytes(path.read_bytes() + b"int changed = 1;\n")
    if mtime is not None:
        os.utime(path, ns=(mtime, mtime))


# -- what must not be found --


def test_nothing_is_wrong_with_a_fresh_build(jit: Jit) -> None:
    jit.load("comm", "comm.cu", "binding.cpp")
    jit.load("other", "binding.cpp")
    assert findings(jit) == []


def test_nothing_is_wrong_with_sources_written_right_before_the_build(jit: Jit) -> None:
    change(jit.package / SOURCE)
    jit.load()
    assert findings(jit) == []


def test_nothing_is_wrong_after_a_change_and_a_build(jit: Jit) -> None:
    jit.load()
    now = time.time_ns() + MTIME_STEP
    change(jit.package / HEADER, now)
    time.sleep(1.1)
    assert "changed" in jit.load()
    assert findings(jit) == []


def test_a_build_that_failed_or_never_was_is_nothing(jit: Jit) -> None:
    jit.load()
    (jit.ops / "empty").mkdir()
    for path in (jit.ops / "comm").glob("*.o"):
        path.unlink()
    (jit.ops / "comm/comm.so").unlink()
    change(jit.package / SOURCE, time.time_ns() + MTIME_STEP)
    assert findings(jit) == []


def test_no_cache_is_nothing(tmp_path: Path) -> None:
    assert check([], [tmp_path]) == ()
    assert check([tmp_path], []) == ()


def test_headers_of_the_system_are_no_other_environment_s(jit: Jit, tmp_path: Path) -> None:
    write_files(tmp_path, {"cuda/include/cuda.h": "int cuda = 1;\n"})
    change(jit.package / SOURCE)
    with (jit.package / SOURCE).open("a") as file:
        file.write(f'#include "{tmp_path}/cuda/include/cuda.h"\n')
    assert "cuda = 1" in jit.load()
    assert findings(jit) == []


def test_an_editable_checkout_s_links_are_its_own(jit: Jit, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "flashinfer/data").mkdir(parents=True)
    for name in ("csrc", "include"):
        (jit.package / "data" / name).rename(checkout / name)
        (checkout / "flashinfer/data" / name).symlink_to(f"../../{name}")
    jit = replace(jit, package=checkout / "flashinfer")
    jit.load()
    assert findings(jit) == []


def test_sources_that_are_generated_beside_the_cache_are_its_own(jit: Jit) -> None:
    generated = jit.ops.parent / "generated/comm/comm.cu"
    write_files(generated.parent, {"comm.cu": (jit.package / SOURCE).read_text()})
    jit.load()
    manifest = jit.ops / "comm/build.ninja"
    text = manifest.read_text().replace(str(jit.package / SOURCE), str(generated))
    manifest.write_text(text)
    jit.load()
    assert findings(jit) == []


# -- what ninja sees too --


@pytest.mark.parametrize("path", [SOURCE, HEADER, "data/include/flashinfer/deep.cuh"])
def test_a_source_or_header_that_is_newer(jit: Jit, path: str) -> None:
    jit.load()
    change(jit.package / path, time.time_ns() + MTIME_STEP)
    assert findings(jit) == [("outdated", jit.package / path)]
    assert "changed" in jit.load()


# -- what ninja does not see --


def test_a_header_that_changed_while_it_was_compiled(jit: Jit) -> None:
    age(jit.package)
    before = repr(jit.load()) + "\n"
    shutil.rmtree(jit.ops)
    child = load_elsewhere(replace(jit, delay=2.5))
    changed = time.time_ns() + MTIME_STEP
    change(jit.package / HEADER, changed)
    assert (child.communicate()[0], child.returncode) == (before, 0)
    # ninja 1.12 and later see it too; with those before, it is the only sign.
    reason = findings(jit)
    assert reason in (
        [("changed-while-built", jit.package / HEADER)],
        [("outdated", jit.package / HEADER)],
    )
    rebuilt = "changed" in replace(jit, delay=2.5).load()
    assert rebuilt == (reason[0][0] == "outdated")


def test_a_header_that_no_depfile_of_a_host_unit_lists(jit: Jit) -> None:
    age(jit.package)
    jit.load("comm", "binding.cpp")
    deep = jit.package / "data/include/flashinfer/deep.cuh"
    change(deep, time.time_ns() + 2 * MTIME_STEP)
    assert "changed" not in jit.load("comm", "binding.cpp")  # what the finding is for
    assert findings(jit) == [("unseen-header", deep)]


def test_another_environment_s_sources_are_built(jit: Jit, tmp_path: Path) -> None:
    jit.load()
    second = make_package(tmp_path / "second/site")
    change(second / HEADER)
    mine = replace(jit, package=second)
    assert "changed" not in mine.load()  # FlashInfer 0.4.0 to 0.6.11: what the finding is for
    assert findings(mine) == [("other-environment", jit.package / SOURCE)]
    assert findings(mine, second, jit.package) == []
    root = jit.ops.parents[2]
    assert check([root], ()) == ()


def test_another_environment_s_headers_are_used(jit: Jit, tmp_path: Path) -> None:
    jit.load()
    second = make_package(tmp_path / "second/site")
    manifest = jit.ops / "comm/build.ninja"
    text = manifest.read_text().replace(
        str(jit.package / "data/include"), str(second / "data/include")
    )
    manifest.write_text(text)
    jit.load()
    ((reason, path),) = findings(jit)
    assert reason == "other-environment"
    assert path.is_relative_to(second / "data/include")


def test_the_environment_is_gone(jit: Jit) -> None:
    jit.load()
    shutil.rmtree(jit.package)
    found = findings(jit)
    assert ("missing-source", jit.package / SOURCE) in found
    assert {reason for reason, _ in found} == {"missing-source"}


def test_a_cache_that_was_moved_is_built_where_it_was(tmp_path: Path) -> None:
    jit = Jit(package=make_package(tmp_path / "site"), ops=tmp_path / "old/120a/cached_ops")
    jit.load()
    (tmp_path / "old").rename(tmp_path / "new")
    moved = replace(jit, ops=tmp_path / "new/120a/cached_ops")
    change(jit.package / SOURCE, time.time_ns() + MTIME_STEP)
    assert "changed" not in moved.load()  # what the finding is for
    assert [(f.reason, f.path) for f in check([tmp_path / "new"], [jit.package])] == [
        ("moved", jit.ops / "comm/comm.cuda.o"),
        ("moved", jit.ops / "comm/comm.so"),
    ]


@pytest.mark.parametrize("name", ["build.ninja", ".ninja_log", ".ninja_deps"])
def test_what_cannot_be_read_is_said(jit: Jit, name: str) -> None:
    jit.load()
    folder = jit.ops / "comm" if jit.absolute or name == "build.ninja" else jit.ops
    (folder / name).write_bytes(b"  \xff = what\n")
    assert findings(jit) == [("unreadable", folder / name)]


# -- words --


MESSAGES = {
    "outdated": "/p is newer than the binary; the next load builds it again",
    "changed-while-built": "/p changed while it was compiled, and ninja does not see it",
    "unseen-header": "/p is newer than the binary, and no depfile lists it",
    "missing-source": "it is built from /p, which is not there",
    "other-environment": "it is built from /p, which is not this environment's",
    "moved": "its build.ninja builds /p, and another file is loaded",
    "unreadable": "/p cannot be read, so it is not known what it is built from",
}


@pytest.mark.parametrize(("reason", "message"), MESSAGES.items(), ids=MESSAGES)
def test_every_reason_has_its_words(reason: str, message: str) -> None:
    finding = Finding(
        module="comm",
        folder=Path("/c/a b"),
        reason=reason,  # type: ignore[arg-type]
        path=Path("/p"),
    )
    assert finding.message == message
    assert finding.command == (None if reason == "outdated" else "rm -r '/c/a b'")
