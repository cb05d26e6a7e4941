"""ninja's files, as real ninja writes them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from gatepatch import ninja
from jitlike import Jit, make_package
from trees import write_files

# -- build.ninja --


def test_a_manifest_of_flashinfer_s_kind() -> None:
    text = """ninja_required_version = 1.3
name = comm
cuda_home = /usr/local/cuda
nvcc = $cuda_home/bin/nvcc

# a comment
common_cflags = -DX $
    -isystem /env/flashinfer/data/include $
    -I${cuda_home}/include
post_cflags =

rule cuda_compile
  command = $nvcc $common_cflags -c $in -o $out $post_cflags
  depfile = $out.d
  deps = gcc

rule link
  command = c++ $in -o $out

build $name/a.cuda.o: cuda_compile /env/a$ b.cu | /env/extra$$.h || first |@ check
  post_cflags = -O3
build $name/$name.so | $name/map: link $name/a.cuda.o $
    $name/b.o
default $name/$name.so
"""
    assert ninja.read_manifest(text) == (
        ninja.Edge(
            outputs=("comm/a.cuda.o",),
            command="/usr/local/cuda/bin/nvcc -DX -isystem /env/flashinfer/data/include "
            "-I/usr/local/cuda/include -c  -o  -O3",
            depfile=True,
            inputs=("/env/a b.cu", "/env/extra$.h"),
        ),
        ninja.Edge(
            outputs=("comm/comm.so", "comm/map"),
            command="c++  -o ",
            depfile=False,
            inputs=("comm/a.cuda.o", "comm/b.o"),
        ),
    )


@pytest.mark.parametrize("text", ["  indented = 1\n", "build a b\n", "build a:\n", "\0\n  x\n"])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^no "):
        ninja.read_manifest(text)


# -- .ninja_log --


def test_the_last_entry_of_an_output_counts() -> None:
    log = "# ninja log v5\n1\t5\t70\ta.o\tff\n2\t3\t80\tb.o\t0\n10\t30\t90\ta.o\tff\n4\t5\t9"
    assert ninja.read_log(log) == {
        "a.o": ninja.LogEntry(took=20_000_000, mtime=90),
        "b.o": ninja.LogEntry(took=1_000_000, mtime=80),
    }


@pytest.mark.parametrize("text", ["", "# ninja log v4\n", "# ninja log v8\n", "other\n"])
def test_a_log_of_an_unknown_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^no \.ninja_log of a known version"):
        ninja.read_log(text)


# -- .ninja_deps --


def path_record(number: int, path: bytes) -> bytes:
    body = path + b"\0" * (-len(path) % 4) + struct.pack("<i", ~number)
    return struct.pack("<I", len(body)) + body


def deps_record(version: int, output: int, mtime: int, *inputs: int) -> bytes:
    stamp = struct.pack("<i" if version == 3 else "<q", mtime)
    body = struct.pack("<i", output) + stamp + struct.pack(f"<{len(inputs)}i", *inputs)
    return struct.pack("<I", len(body) | 1 << 31) + body


def deps_file(version: int) -> bytes:
    return b"".join(
        (
            b"# ninjadeps\n",
            struct.pack("<i", version),
            path_record(0, b"a.o"),
            path_record(1, b"a.cu"),
            deps_record(version, 0, 7, 1),
            path_record(2, b"deep/a.cuh"),
            deps_record(version, 0, 8, 1, 2),
        )
    )


@pytest.mark.parametrize("version", [3, 4])
def test_the_last_record_of_an_output_counts(version: int) -> None:
    assert ninja.read_deps(deps_file(version)) == {
        "a.o": ninja.Deps(mtime=8, inputs=("a.cu", "deep/a.cuh"))
    }


@pytest.mark.parametrize("version", [3, 4])
def test_what_follows_a_record_that_is_cut_off_is_not_believed(version: int) -> None:
    data = deps_file(version)
    known = [{}, {"a.o": ninja.Deps(mtime=7, inputs=("a.cu",))}]
    known.append(ninja.read_deps(data))
    seen = [ninja.read_deps(data[:end]) for end in range(16, len(data) + 1)]
    steps = [value for i, value in enumerate(seen) if i == 0 or value != seen[i - 1]]
    assert steps == known


def test_a_wrong_checksum_ends_it() -> None:
    data = deps_file(4).replace(struct.pack("<i", ~2), struct.pack("<i", ~9))
    assert ninja.read_deps(data) == {"a.o": ninja.Deps(mtime=7, inputs=("a.cu",))}


def test_a_number_of_no_path_ends_it() -> None:
    data = deps_file(4) + deps_record(4, 0, 9, 3)
    assert ninja.read_deps(data) == ninja.read_deps(deps_file(4))


@pytest.mark.parametrize("data", [b"", b"# ninjadeps\n", b"# ninjadeps\n\x05\0\0\0", b"x" * 40])
def test_deps_of_an_unknown_version_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no \.ninja_deps of a known version"):
        ninja.read_deps(data)


# -- what real ninja writes --


def test_the_records_of_a_real_build_are_read(tmp_path: Path) -> None:
    package = make_package(tmp_path / "site")
    jit = Jit(package=package, ops=tmp_path / "cached_ops")
    jit.load("comm", "comm.cu", "binding.cpp")
    folder = jit.ops / "comm"
    (cuda, host, link) = ninja.read_manifest((folder / "build.ninja").read_text())
    deps = ninja.read_deps((folder / ".ninja_deps").read_bytes())
    log = ninja.read_log((folder / ".ninja_log").read_text())
    assert {e.outputs[0] for e in (cuda, host, link)} == set(log)
    headers = [f"{package}/data/include/flashinfer/{n}.cuh" for n in ("comm", "deep")]
    assert deps[cuda.outputs[0]].inputs == (f"{package}/data/csrc/comm.cu", *headers)
    assert deps[host.outputs[0]].inputs == (f"{package}/data/csrc/binding.cpp",)
    for output, entry in log.items():
        mtime = Path(output).stat().st_mtime_ns
        assert 0 <= entry.took < 60 * 10**9
        assert mtime - entry.took - 10**9 <= entry.mtime <= mtime
    assert {d.mtime for d in deps.values()} <= {Path(o).stat().st_mtime_ns for o in log}


def test_many_builds_make_a_record_that_is_still_read(tmp_path: Path) -> None:
    package = make_package(tmp_path / "site")
    jit = Jit(package=package, ops=tmp_path / "cached_ops", absolute=False)
    for count in range(8):
        write_files(package, {f"data/include/flashinfer/h{count}.cuh": "\n"})
        includes = "".join(f'#include "flashinfer/h{n}.cuh"\n' for n in range(count + 1))
        write_files(package, {"data/csrc/comm.cu": includes})
        (jit.ops / "comm/comm.so").unlink(missing_ok=True)
        (jit.ops / "comm/comm.cuda.o").unlink(missing_ok=True)
        jit.load()
    deps = ninja.read_deps((jit.ops / ".ninja_deps").read_bytes())
    assert len(deps["comm/comm.cuda.o"].inputs) == 9
