"""A compiler's word on a set: every outcome, with a stand-in for nvcc."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gatepatch
from compilerlike import CONTEXT, UNIT, FakeCompiler, header_of, make_compiled_server
from gatepatch.errors import UsageError
from gatepatch.verifying.compiling import Compiled, Job
from gatepatch.verifying.verify import Verified
from lookalikes import contents
from trees import site_of

SET = "sm120-allreduce"
OPEN = "__CUDA_ARCH__ < 1300"
SHUT = "__CUDA_ARCH__ < 1200"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_compiled_server(tmp_path)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    for name in ("CUDA_HOME", "CUDA_PATH", "CC"):
        monkeypatch.delenv(name, raising=False)
    compiler = FakeCompiler(tmp_path / "cuda")
    monkeypatch.setenv("CUDA_HOME", str(compiler.folder))
    return compiler


def apply(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")


def verify(server: Path, *archs: str, timeout: float = 60.0) -> Verified:
    return gatepatch.verify(SET, prefix=server, compile=True, archs=archs, timeout=timeout)


def kinds(found: Verified) -> list[str]:
    return [finding.kind for finding in found.findings]


def figures(found: Verified) -> dict[tuple[str, str], tuple[int | None, int | None]]:
    """PDL instructions and empty kernels, by target and side."""
    return {
        (unit.target, unit.side): (unit.instructions.get("griddepcontrol"), unit.empty)
        for unit in found.compiled
    }


# -- what agrees --


def test_the_set_does_what_it_says(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    before = contents(server)
    found = verify(server)
    assert found.findings == ()
    assert figures(found) == {
        ("compute_120a", "before"): (0, 1),
        ("compute_120a", "after"): (12, 0),
        ("compute_121a", "before"): (0, 1),
        ("compute_121a", "after"): (12, 0),
        ("compute_100a", "before"): (12, 0),
        ("compute_100a", "after"): (12, 0),
    }
    assert contents(server) == before
    assert {unit.unit for unit in found.compiled} == {UNIT}


def test_only_the_architectures_asked_for_are_compiled(
    server: Path, compiler: FakeCompiler
) -> None:
    apply(server)
    assert {target for target, _ in figures(verify(server, "sm_121"))} == {
        "compute_121a",
        "compute_100a",
    }


def test_another_architecture_is_an_error(server: Path, compiler: FakeCompiler) -> None:
    message = "sm120-allreduce names sm_120, sm_121, and not sm_90"
    with pytest.raises(UsageError, match=message):
        verify(server, "sm_90")


def test_the_command_is_flashinfer_s(
    server: Path, compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHINFER_EXTRA_CUDAFLAGS", "-DMINE='a b'")
    ffi = site_of(server) / "tvm_ffi" / "include"
    (ffi / "tvm").mkdir(parents=True)
    apply(server)
    verify(server, "sm_120")
    data = site_of(server) / "flashinfer/data"
    (call,) = (c for c in compiler.calls() if "compute_120a" in c and f"{data}/csrc/trt" in c)
    for word in ("-std=c++17", "-use_fast_math", "-DFLASHINFER_ENABLE_BF16", "-DMINE=a b"):
        assert f" {word} " in call
    for folder in (data / "include", data / "csrc", data / "cutlass/include", ffi):
        assert f" -isystem {folder} " in call


def test_the_family_target_is_taken_where_flashinfer_does(
    server: Path, compiler: FakeCompiler
) -> None:
    (site_of(server) / CONTEXT).write_text('suffix = "0f"\n')
    apply(server)
    targets = {target for target, _ in figures(verify(server))}
    assert targets == {"compute_120f", "compute_121a", "compute_100a"}


def test_folders_that_are_links_are_laid_out_as_folders(
    server: Path, compiler: FakeCompiler
) -> None:
    """As in a checkout, where they lie beside the package."""
    data = site_of(server) / "flashinfer/data"
    for name in ("csrc", "cutlass"):
        (data / name).rename(site_of(server) / name)
        (data / name).symlink_to(f"../../{name}")
    (site_of(server) / "csrc/again").symlink_to(".")
    apply(server)
    compiler.do("fail-pristine")
    found = verify(server, "sm_120")
    scratch = Path(shlex.split(found.findings[0].command)[-3]).parents[1]
    assert not (scratch / "csrc").is_symlink()
    assert (scratch / "csrc/trtllm_allreduce.cu").is_symlink()
    shutil.rmtree(scratch.parent)
    compiler.stop("fail-pristine")
    assert verify(server, "sm_120").findings == ()


def test_another_compiler_may_be_named(
    server: Path, compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FakeCompiler(tmp_path / "other")
    monkeypatch.setenv("FLASHINFER_NVCC", f"env {other.folder}/bin/nvcc")  # as with sccache
    apply(server)
    assert verify(server, "sm_120").findings == ()
    assert (len(other.calls()), compiler.calls()) == (4, [])


# -- what does not --


@pytest.mark.parametrize("place", [0, 6, 12])
def test_one_condition_left_shut_is_found(server: Path, compiler: FakeCompiler, place: int) -> None:
    apply(server)
    header = header_of(server)
    parts = header.read_text().split(OPEN)
    assert len(parts) == 14
    text = parts[0]
    for index, part in enumerate(parts[1:]):
        text += (SHUT if index == place else OPEN) + part
    header.write_text(text)
    found = verify(server, "sm_120")
    assert figures(found)["compute_120a", "after"] == ((12, 1) if place == 12 else (11, 0))
    assert kinds(found) == ["foreign", "left-shut", "expectation"]
    wrong = found.findings[-1]
    assert wrong.where == f"{UNIT} (12.0, as it is on disk)"
    assert (wrong.expected, wrong.found) == (
        ("empty kernels: as many as for 10.0, 0", "1")
        if place == 12
        else ("griddepcontrol instructions: as many as for 10.0, 12", "11")
    )


def test_a_set_that_is_not_applied_compiles_each_unit_once(
    server: Path, compiler: FakeCompiler
) -> None:
    found = verify(server, "sm_120")
    assert len(compiler.calls()) == 2
    assert kinds(found) == ["not-applied"] * 4 + ["expectation"] * 2


def test_the_code_of_the_like_architecture_must_stay(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    header = header_of(server)
    header.write_text(
        header.read_text().replace("__CUDA_ARCH__ >= 900", "__CUDA_ARCH__ >= 1100", 1)
    )
    found = verify(server, "sm_120")
    (changed,) = (finding for finding in found.findings if finding.kind == "like-changed")
    assert changed.found == "griddepcontrol.wait: 12, now 11"
    assert changed.command == f"gatepatch revert {SET}"


def test_a_compiler_error_is_shown_with_the_command_that_repeats_it(
    server: Path, compiler: FakeCompiler
) -> None:
    apply(server)
    compiler.do("fail-120")
    found = verify(server, "sm_120")
    assert kinds(found) == ["compile-error"]  # it does not compile without the set either
    assert [unit.kernels for unit in found.compiled if unit.target == "compute_120a"] == [None] * 2
    finding = found.findings[0]
    assert finding.where == f"{UNIT} (compute_120a, as it is on disk)"
    lines = finding.found.splitlines()
    assert lines[0] == f"{site_of(server) / UNIT}(1): error: line 1 is wrong"
    assert lines[12:] == ["… and 18 more lines"]
    words = shlex.split(finding.command)
    assert words[0] == str(compiler.folder / "bin/nvcc")
    assert words[-3:] == [str(site_of(server) / UNIT), "-o", "/dev/null"]


def test_what_fails_without_the_set_alone_can_be_repeated(
    server: Path, compiler: FakeCompiler
) -> None:
    apply(server)
    compiler.do("fail-pristine")
    found = verify(server, "sm_120")
    assert kinds(found) == ["compile-error"] * 2
    for finding, target in zip(found.findings, ("120a", "100a"), strict=True):
        assert finding.where == f"{UNIT} (compute_{target}, without the set)"
        source = Path(shlex.split(finding.command)[-3])  # its scratch folder is still there
        assert source.read_bytes() == (site_of(server) / UNIT).read_bytes()
        header = source.parents[1] / "include/flashinfer/comm/trtllm_allreduce.cuh"
        assert SHUT in header.read_text()
        assert OPEN not in header.read_text()
    shutil.rmtree(source.parents[2])


def test_a_file_that_changes_meanwhile_is_not_known_by_its_new_content(
    server: Path, compiler: FakeCompiler
) -> None:
    apply(server)
    compiler.do("touch")  # the header gets a line while it is compiled
    verify(server, "sm_120")
    compiler.stop("touch")
    compiler.calls()
    verify(server, "sm_120")
    assert [call for call in compiler.calls() if str(site_of(server) / UNIT) in call]


def test_what_failed_is_not_kept(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    compiler.do("fail-120")
    verify(server, "sm_120")
    compiler.stop("fail-120")
    compiler.calls()
    assert verify(server, "sm_120").findings == ()
    assert len(compiler.calls()) == 2


def test_without_a_compiler_the_rest_is_said(
    server: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apply(server)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    found = verify(server)
    (finding,) = found.findings
    assert finding.kind == "no-nvcc"
    assert finding.where == str(tmp_path / "nowhere/bin/nvcc")
    assert finding.found.startswith("there is no nvcc: looked at FLASHINFER_NVCC, CUDA_HOME")
    assert finding.command.startswith("name the CUDA toolkit")
    assert [file.outcome for file in found.files] == ["applied"] * 4


def test_a_compiler_that_is_none(server: Path, compiler: FakeCompiler) -> None:
    (compiler.folder / "version").write_text("something else")
    (finding,) = (f for f in verify(server).findings if f.kind == "no-nvcc")
    assert finding.found == "does not say which nvcc it is"


def test_a_compilation_that_hangs_is_ended(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    compiler.do("hang")
    found = verify(server, "sm_120", timeout=1.5)
    assert set(kinds(found)) == {"compile-error"}
    assert found.findings[0].found == "it did not end within 1.5 s, and was ended"
    assert_gone(compiler.pids())


def test_without_the_pristine_bytes_only_what_is_there_is_compiled(
    server: Path, compiler: FakeCompiler
) -> None:
    header = header_of(server)
    header.write_text(header.read_text().replace(SHUT, OPEN, 5))
    found = verify(server, "sm_120")
    assert {side for _, side in figures(found)} == {"after"}
    note = "the pristine bytes of include/flashinfer/comm/trtllm_allreduce.cuh are not to be had"
    assert any(line.startswith(note) for line in found.notes)


def test_nothing_to_compile_is_a_note(tmp_path: Path, compiler: FakeCompiler) -> None:
    server = make_compiled_server(tmp_path, version="0.3.1")
    assert "the set names no unit to compile for the releases found" in verify(server).notes


# -- the cache --


def test_what_is_known_is_not_compiled_again(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    first = verify(server)
    assert len(compiler.calls()) == 6
    again = verify(server)
    assert compiler.calls() == []
    assert figures(again) == figures(first)
    assert all(unit.cached for unit in again.compiled)
    gatepatch.revert(prefix=server)
    assert figures(verify(server))["compute_120a", "after"] == (0, 1)
    assert compiler.calls() == []  # the bytes are those of "before"


@pytest.mark.parametrize("change", ["header", "flag", "variable", "version"])
def test_another_input_is_compiled_again(
    server: Path, compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    apply(server)
    verify(server, "sm_120")
    compiler.calls()
    match change:
        case "header":
            unit = site_of(server) / UNIT
            unit.write_text(unit.read_text() + "// another\n")
        case "flag":
            monkeypatch.setenv("FLASHINFER_EXTRA_CUDAFLAGS", "-DMINE")
        case "variable":
            monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DMINE")
        case "version":
            (compiler.folder / "version").write_text("release 13.1, V13.1.0")
    verify(server, "sm_120")
    assert len(compiler.calls()) == 4


def test_a_damaged_entry_is_compiled_again(
    server: Path, compiler: FakeCompiler, home: Path
) -> None:
    apply(server)
    verify(server, "sm_120")
    compiler.calls()
    entries = list((home / ".cache/gatepatch/compile").glob("*/*.json"))
    assert len(entries) == 4
    for entry, text in zip(entries, ("", "[]", '{"schema": 1}', '{"schema": 9}'), strict=True):
        entry.write_text(text)
    assert verify(server, "sm_120").findings == ()
    assert len(compiler.calls()) == 4


def test_a_cache_that_cannot_be_written_is_a_note(
    server: Path, compiler: FakeCompiler, home: Path
) -> None:
    (home / ".cache").write_text("a file")
    apply(server)
    found = verify(server, "sm_120")
    assert found.findings == ()
    assert any(note.startswith("the results could not be kept: ") for note in found.notes)


# -- the command line --


def process(server: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gatepatch", "verify", SET, "--prefix", str(server), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def running(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def assert_gone(pids: list[int]) -> None:
    """Wait until no process with one of these numbers runs any more."""
    assert pids
    while any(map(running, pids)):
        time.sleep(0.02)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_compilers(
    server: Path, compiler: FakeCompiler, signum: signal.Signals, tmp_path: Path
) -> None:
    apply(server)
    compiler.do("hang")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-m", "gatepatch", "verify", SET, "--prefix", str(server), "--compile"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    while not compiler.pids():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signum)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (128 + signum, "")
    assert err == f"error: interrupted by signal {signum.value}; nothing was changed\n"
    assert_gone(compiler.pids())
    assert list(scratch.iterdir()) == []


def test_one_document_with_the_figures(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    child = process(server, "--compile", "--arch", "sm_120", "--json")
    out, err = child.communicate(timeout=60)
    document = json.loads(out)
    assert (child.returncode, err) == (0, "")
    assert (document["schema"], document["command"], document["verified"]) == (1, "verify", True)
    row = next(row for row in document["compiled"] if row["side"] == "after")
    assert (row["arch"], row["instructions"]) == ("12.0", {"griddepcontrol": 12})


def test_figures_and_findings_in_words(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    compiler.do("fail-121")
    child = process(server, "--compile")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (1, "")  # progress is for a terminal
    lines = [line.rpartition("  (")[0] for line in out.splitlines() if "compute_120a" in line]
    assert lines == [
        "  trtllm_allreduce.cu  compute_120a  before  0 griddepcontrol, 2 kernels, 1 of them a bare return",
        "  trtllm_allreduce.cu  compute_120a  after   12 griddepcontrol, 2 kernels, 0 of them a bare return",
    ]
    assert f"finding: compile-error: {UNIT} (compute_121a, as it is on disk)\n" in out
    assert out.endswith("1 finding\n")


def test_progress_says_what_begins_and_what_came_of_it(
    server: Path, compiler: FakeCompiler
) -> None:
    apply(server)
    compiler.do("fail-121")
    steps: list[Compiled | Job] = []
    gatepatch.verify(SET, prefix=server, compile=True, progress=steps.append)
    assert sum(isinstance(step, Job) for step in steps) == 6
    ends = [step for step in steps if isinstance(step, Compiled)]
    assert [end.summary is None for end in ends].count(True) == 2
    steps.clear()
    gatepatch.verify(SET, prefix=server, compile=True, archs="sm_120", progress=steps.append)
    assert all(isinstance(step, Compiled) and step.cached for step in steps)


def test_progress_shows_on_a_terminal(server: Path, compiler: FakeCompiler) -> None:
    apply(server)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gatepatch", "verify", SET, "--prefix", str(server)]
    child = subprocess.Popen(
        [*command, "--compile", "--arch", "sm_120"], stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # Linux says EIO when the other end is closed
        while read := os.read(ours, 4096):
            said += read
    os.close(ours)
    assert child.wait() == 0
    lines = said.decode().splitlines()
    assert sum(line.startswith("compiling trtllm_allreduce.cu for compute_") for line in lines) == 4
    assert sum(line.startswith("compiled  trtllm_allreduce.cu for compute_") for line in lines) == 4
