"""What ``verify`` says of the bytes on disk, of imports, bytecode and binaries."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import gatepatch
from gatepatch import cli
from gatepatch.errors import UnknownSetError
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.verify import Verified
from jitlike import Jit
from lookalikes import COMM, COMMUNICATOR, FLASHINFER, HEADER, SERVER_ARGS, contents, make_server
from ninjas import ninja_at_hand
from trees import (
    git,
    make_distribution,
    make_environment,
    make_repository,
    python_of,
    record_of,
    site_of,
    write_files,
)

SET = "sm120-allreduce"
APPLY = f"gatepatch apply {SET}"
WAY_OUT = f"gatepatch revert {SET} --discard-foreign, then {APPLY}"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


def apply(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")


def verify(server: Path, name: str = SET, **more: object) -> Verified:
    return gatepatch.verify(name, prefix=server, **more)  # type: ignore[arg-type]


def findings(found: Verified) -> list[tuple[str, str]]:
    """Kinds and what was found."""
    return [(finding.kind, finding.found) for finding in found.findings]


def only(found: Verified) -> Finding:
    (finding,) = found.findings
    return finding


def stats(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Everything in a folder, with inode and mtime."""
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        yield path, status.st_ino, status.st_mtime_ns


# -- where everything holds --


def test_an_applied_set_is_verified_and_nothing_is_written(server: Path, home: Path) -> None:
    apply(server)
    before = list(stats(server)), list(stats(home))
    found = verify(server)
    assert (found.outcome, found.findings, found.notes) == ("applied", (), ())
    assert [file.outcome for file in found.files] == ["applied"] * 4
    assert all(file.sha256 == file.expected for file in found.files)
    assert (list(stats(server)), list(stats(home))) == before


def test_each_gate_has_its_verdict_by_architecture(server: Path) -> None:
    apply(server)
    comm, header, communicator, _ = verify(server).files
    (place,) = comm.places
    assert place.verdict["yes"] == "9.0 10.0 10.3 12.0 12.1"
    assert (place.admitted, place.kept, place.line) == ({"12.0": True, "12.1": True}, True, 2)
    assert [p.line for p in header.places] == list(range(1, 38, 3))
    gate = next(p for p in communicator.places if p.verdict)
    assert gate.admitted == {"12.0": True, "12.1": True}


def test_other_operands_of_a_chain_may_tell_the_architectures_apart(tmp_path: Path) -> None:
    """As from sglang 0.5.14 on, where several nodes are for SM 10.x alone."""
    server = make_server(tmp_path)
    file = site_of(server) / SERVER_ARGS
    change(file, "self.nnodes == 1", "(self.nnodes == 1 or is_sm100_supported())")
    info = site_of(server) / "sglang-0.5.9.dist-info"
    names = [line.partition(",")[0] for line in (info / "RECORD").read_text().splitlines()]
    (info / "RECORD").write_text(record_of(site_of(server), names[:-1], info.name))
    apply(server)
    found = verify(server)
    assert found.findings == ()
    assert found.files[-1].places[0].admitted == {"12.0": True, "12.1": True}


def test_native_releases_are_verified(tmp_path: Path) -> None:
    server = make_environment(tmp_path, "native")
    files = {
        path: text.replace("[9, 10]", "[9, 10, 12]").replace(" && (__CUDA_ARCH__ < 1200)", "")
        for path, text in FLASHINFER.items()
    }
    make_distribution(site_of(server), "flashinfer-python", "0.6.17", files)
    found = verify(server)
    assert [file.outcome for file in found.files] == ["native"] * 2
    assert [finding.kind for finding in found.findings] == ["not-installed"]  # SGLang


def test_a_checkout_is_verified(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    checkout = make_repository(tmp_path / "checkout", FLASHINFER)
    shutil.rmtree(site_of(server) / "flashinfer")
    shutil.rmtree(site_of(server) / "flashinfer_python-0.6.3.dist-info")
    pth = {"__editable__.flashinfer.pth": f"{checkout}\n"}
    info = make_distribution(site_of(server), "flashinfer-python", "0.6.3", pth)
    (info / "direct_url.json").write_text(
        json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    )
    apply(server)
    found = verify(server)
    assert (found.outcome, found.findings) == ("applied", ())
    git(checkout, "checkout", "-q", "HEAD", "--", HEADER)
    assert findings(verify(server)) == [
        ("not-applied", "the release's own bytes, with 13 places to change")
    ]


def test_lost_state_is_a_note(server: Path) -> None:
    apply(server)
    (site_of(server) / ".gatepatch/state.json").unlink()
    found = verify(server)
    assert (found.outcome, found.findings) == ("applied", ())
    assert f"the state that knew of {COMM} is lost; its bytes say what it is" in found.notes


# -- state, hashes, verdicts --


def test_a_set_that_is_not_applied(server: Path) -> None:
    found = verify(server)
    assert found.outcome == "pristine"
    assert findings(found) == [
        ("not-applied", f"the release's own bytes, with {places} to change")
        for places in ("1 place", "13 places", "3 places", "1 place")
    ]
    assert {finding.command for finding in found.findings} == {APPLY}
    (place,) = found.files[0].places
    assert (place.admitted, place.kept) == ({"12.0": False, "12.1": False}, True)


def test_a_set_that_was_reverted(server: Path) -> None:
    apply(server)
    gatepatch.revert(prefix=server)
    assert {finding.kind for finding in verify(server).findings} == {"not-applied"}


def change(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def test_a_condition_shut_again_by_hand(server: Path) -> None:
    apply(server)
    change(site_of(server) / HEADER, "< 1300", "< 1200")
    foreign, left = verify(server).findings
    assert (foreign.kind, foreign.command) == ("foreign", WAY_OUT)
    assert (left.kind, left.where) == ("left-shut", f"{site_of(server) / HEADER}:1")
    assert "< 1200" in left.found
    assert "< 1300" in left.expected
    assert left.command == WAY_OUT


def test_a_condition_that_lets_in_another_architecture(server: Path) -> None:
    apply(server)
    change(site_of(server) / HEADER, "#if (", "#if __CUDA_ARCH__ == 750 || (")
    found = verify(server)
    kinds = dict(findings(found))
    assert set(kinds) == {"foreign", "verdict"}
    assert kinds["verdict"] == "sm_75: yes, must be no"
    (place,) = (place for file in found.files for place in file.places if place.wrong)
    assert (place.line, place.kept, place.admitted) == (1, False, {"12.0": True, "12.1": True})


def test_a_bound_dropped_by_hand(server: Path) -> None:
    apply(server)
    change(site_of(server) / HEADER, " && (__CUDA_ARCH__ < 1300)", "")
    kinds = dict(findings(verify(server)))
    assert set(kinds) == {"foreign", "not-judged"}
    assert "12" in kinds["not-judged"]


def test_a_release_expected_to_be_native_that_is_not(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    shutil.rmtree(site_of(server) / "flashinfer")
    shutil.rmtree(site_of(server) / "flashinfer_python-0.6.3.dist-info")
    files = {p: text.replace(" && (__CUDA_ARCH__ < 1200)", "") for p, text in FLASHINFER.items()}
    make_distribution(site_of(server), "flashinfer-python", "0.6.17", files)
    finding = next(f for f in verify(server).findings if f.kind == "not-native")
    assert finding.where == str(site_of(server) / COMM)
    assert "--force-reinstall flashinfer-python==0.6.17" in finding.command


def test_a_file_that_is_missing(server: Path) -> None:
    apply(server)
    (site_of(server) / SERVER_ARGS).unlink()
    finding = only(verify(server))
    assert (finding.kind, finding.found) == ("missing", "no such file")
    assert "pip install" in finding.command


def test_an_upgrade_over_the_set(server: Path) -> None:
    apply(server)
    shutil.rmtree(site_of(server) / "flashinfer_python-0.6.3.dist-info")
    files = {path: text + "\n" for path, text in FLASHINFER.items()}
    make_distribution(site_of(server), "flashinfer-python", "0.6.4", files)
    assert (
        findings(verify(server))
        == [("upgraded", "the bytes of flashinfer-python 0.6.4, installed over them")] * 2
    )


def test_what_is_not_installed_and_what_is_in_no_range(tmp_path: Path) -> None:
    server = make_environment(tmp_path, "empty")
    make_distribution(site_of(server), "flashinfer-python", "0.2.5", {"flashinfer/__init__.py": ""})
    found = verify(server)
    assert found.outcome == "missing"
    assert findings(found) == [
        ("no-range", "version 0.2.5"),
        ("not-installed", "it is not installed"),
    ]
    assert found.findings[0].command == f"gatepatch show {SET}"


def test_an_unknown_set_is_an_error(server: Path) -> None:
    with pytest.raises(UnknownSetError, match="did you mean 'sm120-allreduce'"):
        verify(server, "sm120-allreduc")


OWN = """schema: 1
name: own
summary: A test
why: A test.
admit: [sm_120]
like: sm_100
targets:
  - distribution: flashinfer-python
    versions: "==0.6.3"
    files:
"""
KEYWORD = "open: {within: gen_trtllm_comm_module, keyword: supported_major_versions}"
EDITS = {
    "header": (
        HEADER,
        'open: {condition: "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200", count: 13}',
    ),
    "text": (COMM, 'text: {find: "def gen", replace: "# Mine.\\ndef gen", unproved: A test.}'),
    "other text": (
        COMM,
        'text: {find: "def gen", replace: "# Other.\\ndef gen", unproved: A test.}',
    ),
}


def write_own(folder: Path, *edits: str, name: str = "own", admit: str = "sm_120") -> Path:
    folder.mkdir(exist_ok=True)
    rows = [
        f"      - path: {path}\n        edits:\n          - {edit}\n"
        for path, edit in (EDITS[each] for each in edits)
    ]
    text = OWN.replace("name: own", f"name: {name}").replace("[sm_120]", f"[{admit}]")
    (folder / f"{name}.yaml").write_text(text + "".join(rows))
    return folder


def test_a_set_that_was_changed_after_it_was_applied(server: Path, tmp_path: Path) -> None:
    folder = write_own(tmp_path / "sets", "text")
    gatepatch.apply("own", prefix=server, patches=[folder], assume="sm_120")
    assert verify(server, "own", patches=[folder]).findings == ()
    write_own(folder, "other text")
    kinds = [finding.kind for finding in verify(server, "own", patches=[folder]).findings]
    assert kinds == ["bytes", "left-shut"]


def test_a_file_that_the_set_names_no_more(server: Path, tmp_path: Path) -> None:
    folder = write_own(tmp_path / "sets", "text")
    gatepatch.apply("own", prefix=server, patches=[folder], assume="sm_120")
    write_own(folder, "header")
    found = verify(server, "own", patches=[folder])
    assert [finding.kind for finding in found.findings] == ["stray", "not-applied"]


def test_reasons_of_edits_without_a_proof_are_said(server: Path, tmp_path: Path) -> None:
    folder = write_own(tmp_path / "sets", "text")
    gatepatch.apply("own", prefix=server, patches=[folder], assume="sm_120")
    assert verify(server, "own", patches=[folder]).notes == (f"{COMM}:1 is not proved: A test.",)


def test_two_sets_on_one_file(server: Path, tmp_path: Path) -> None:
    folder = write_own(tmp_path / "sets", "header")
    write_own(folder, "header", name="two", admit="sm_121")
    for name in ("own", "two"):
        gatepatch.apply(name, prefix=server, patches=[folder], assume=["sm_120", "sm_121"])
    for name, other in (("own", "two"), ("two", "own")):
        found = verify(server, name, patches=[folder])
        assert (found.outcome, found.findings) == ("applied", ())
        assert f"{HEADER} is shared with {other}" in found.notes


def test_a_set_beside_the_one_that_is_applied(server: Path, tmp_path: Path) -> None:
    folder = write_own(tmp_path / "sets", "header")
    write_own(folder, "header", name="two", admit="sm_121")
    gatepatch.apply("own", prefix=server, patches=[folder], assume="sm_120")
    found = verify(server, "two", patches=[folder])
    assert (found.outcome, [f.kind for f in found.findings]) == ("pristine", ["not-applied"])


# -- what is imported --


def test_a_copy_that_comes_first(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(server)
    write_files(tmp_path / "first", {"flashinfer/__init__.py": ""})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"))
    found = verify(server)
    assert {finding.kind for finding in found.findings} == {"shadowed"}
    assert found.findings[0].found == f"{tmp_path}/first/flashinfer is imported in its place"


@pytest.mark.parametrize("name", ["comm.abi3.so", "comm/__init__.py"])
def test_a_module_that_comes_before_its_source(server: Path, name: str) -> None:
    apply(server)
    other = site_of(server) / "flashinfer/jit" / name
    write_files(other.parent, {other.name: ""})
    finding = only(verify(server))
    assert (finding.kind, finding.where, finding.found) == (
        "shadowed",
        str(other),
        f"it gives {other}",
    )


def test_nothing_of_the_package_is_run(server: Path, tmp_path: Path) -> None:
    apply(server)
    for package in ("flashinfer", "sglang/srt"):
        with (site_of(server) / package / "__init__.py").open("a") as file:
            file.write(f"open({str(tmp_path / 'run')!r}, 'w')\n")
    assert verify(server).findings == ()
    assert not (tmp_path / "run").exists()


def test_a_namespace_package_is_followed(server: Path) -> None:
    (site_of(server) / "sglang/srt/__init__.py").unlink()
    (site_of(server) / "sglang/__init__.py").unlink()
    apply(server)
    found = verify(server)
    assert (found.findings, found.notes) == ((), ())


def test_an_interpreter_that_cannot_run_is_a_note(server: Path) -> None:
    apply(server)
    for python in (server / "bin").glob("python*"):
        python.unlink()
    found = verify(server)
    assert found.findings == ()
    (note,) = found.notes
    assert note == (
        f"the interpreter of {server} cannot run here: what it would import, and its bytecode, "
        "were not looked at"
    )


# -- bytecode --


def compiled_with(source: Path, how: str) -> None:
    """Leave bytecode of other code beside a source, as it may happen."""
    right, status = source.read_bytes(), source.stat()
    other = right.replace(b"12", b"13")
    assert other != right
    modes = py_compile.PycInvalidationMode
    mode = {"unchecked": modes.UNCHECKED_HASH, "checked": modes.CHECKED_HASH}.get(
        how, modes.TIMESTAMP
    )
    source.write_bytes(other)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    optimize = 2 if how == "optimised" else 0
    py_compile.compile(str(source), invalidation_mode=mode, optimize=optimize, doraise=True)
    source.write_bytes(right)
    later = 10**10 if how == "recompiled anyway" else 0
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + later))


@pytest.mark.parametrize(
    ("how", "ground"),
    [
        ("unchecked", "it is hash-based and unchecked, so it is loaded whatever the source says"),
        ("same second and size", "it has the source's mtime and size, and was compiled from"),
        ("optimised", "it has the source's mtime and size, and was compiled from something else"),
    ],
)
def test_stale_bytecode_that_would_be_loaded(server: Path, how: str, ground: str) -> None:
    apply(server)
    compiled_with(site_of(server) / COMM, how)
    finding = only(verify(server))
    assert finding.kind == "stale-bytecode"
    assert finding.found.startswith(ground)
    assert finding.expected == f"bytecode of {site_of(server) / COMM} as it stands"
    subprocess.run(finding.command, shell=True, check=True)
    assert verify(server).findings == ()


@pytest.mark.parametrize("how", ["checked", "recompiled anyway"])
def test_stale_bytecode_that_would_not_be_loaded(server: Path, how: str) -> None:
    apply(server)
    compiled_with(site_of(server) / COMM, how)
    assert verify(server).findings == ()


def test_bytecode_that_is_right(server: Path) -> None:
    apply(server)
    subprocess.run([python_of(server), "-m", "compileall", "-q", site_of(server)], check=True)
    assert list(site_of(server).rglob("*.pyc"))
    assert verify(server).findings == ()


# -- binaries --


def test_a_prebuilt_module_that_came_later(server: Path) -> None:
    apply(server)
    binary = site_of(server) / "flashinfer/data/aot/trtllm_comm/trtllm_comm.so"
    write_files(binary.parent, {binary.name: "binary"})
    finding = only(verify(server))
    assert (finding.kind, finding.where) == ("prebuilt", str(binary))
    assert finding.command == f"{APPLY} --hide-aot"
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert verify(server).findings == ()


def test_sources_in_an_installer_s_cache(server: Path, tmp_path: Path) -> None:
    apply(server)
    env = site_of(server) / "flashinfer/jit/env.py"
    write_files(tmp_path / "cache", {"flashinfer/jit/env.py": ""})
    env.symlink_to(tmp_path / "cache/flashinfer/jit/env.py")
    finding = only(verify(server))
    assert (finding.kind, finding.where) == ("compiled-elsewhere", str(env))
    assert finding.found.endswith(f"compiles those in {tmp_path}/cache/flashinfer")


def build(server: Path, home: Path) -> Jit:
    """Build the module as FlashInfer would, with this environment's sources."""
    unit = '#include "flashinfer/comm/trtllm_allreduce.cuh"\n'
    write_files(site_of(server), {"flashinfer/data/csrc/comm.cu": unit})
    jit = Jit(
        package=site_of(server) / "flashinfer",
        ops=home / ".cache/flashinfer/0.6.3/120a/cached_ops",
        ninja=ninja_at_hand(),
    )
    long_ago = time.time() - 100  # an apply dates what it writes a second ahead
    os.utime(site_of(server) / HEADER, (long_ago, long_ago))
    jit.load("trtllm_comm")
    return jit


def test_a_binary_built_from_the_patched_sources(server: Path, home: Path) -> None:
    apply(server)
    build(server, home)
    found = verify(server)
    assert (found.findings, found.notes) == ((), ())


def test_a_binary_of_another_environment(server: Path, home: Path, tmp_path: Path) -> None:
    other = make_server(tmp_path, "other")
    apply(server)
    build(other, home)
    finding = only(verify(server))
    assert finding.kind == "jit-binary"
    assert finding.found.endswith("which is not this environment's")
    assert finding.command == f"rm -r {home}/.cache/flashinfer/0.6.3/120a/cached_ops/trtllm_comm"


def test_a_binary_that_the_next_load_builds_again_is_a_note(server: Path, home: Path) -> None:
    apply(server)
    build(server, home)
    later = time.time() + 100
    os.utime(site_of(server) / HEADER, (later, later))
    found = verify(server)
    assert found.findings == ()
    assert found.notes[0].endswith("is newer than the binary; the next load builds it again")


def test_another_module_s_binary_is_no_concern(server: Path, home: Path, tmp_path: Path) -> None:
    other = make_server(tmp_path, "other")
    apply(server)
    jit = build(other, home)
    jit.load("norm")
    shutil.rmtree(jit.ops / "trtllm_comm")
    assert verify(server).findings == ()


# -- the command line --


def test_words_and_exit_codes(server: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["verify", SET, "--prefix", str(server)]
    assert cli.main(words) == 1
    out = capsys.readouterr().out
    assert f"    line {', '.join(map(str, range(1, 38, 3)))}: 12.0 12.1 not as 10.0" in out
    there = f"gatepatch apply --prefix {server} {SET}"
    assert out.endswith(
        f"finding: not-applied: {site_of(server) / SERVER_ARGS}\n"
        "  expected: the set's edits\n"
        "  found:    the release's own bytes, with 1 place to change\n"
        f"  next:     {there}\n4 findings\n"
    )
    apply(server)
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{SET}: applied\n  applied  {COMM}  (flashinfer-python 0.6.3, sha256 ")
    assert "    line 2: 12.0 12.1 as 10.0; the others as before\n" in out
    assert out.endswith("verified: nothing found\n")
    assert err == ""


def test_one_document(server: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", SET, "--prefix", str(server), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert (document["command"], document["verified"]) == ("verify", False)
    assert document["findings"][0]["kind"] == "not-applied"
    assert document["files"][2]["path"] == COMMUNICATOR
    assert document["files"][1]["places"][0]["line"] == 1
    assert (document["archs"], document["like"]) == (["12.0", "12.1"], "10.0")


def test_a_pending_change_exits_4(
    server: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(server)
    monkeypatch.setattr(
        "gatepatch.workspace.pending", lambda root: "3 of 4 files are written: gatepatch recover"
    )
    before = contents(server)
    assert cli.main(["verify", SET, "--prefix", str(server), "--json"]) == 4
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["outcome"], document["verified"]) == ("interrupted", False)
    assert "3 of 4 files are written" in err
    assert contents(server) == before


def test_an_architecture_without_compile_is_a_wrong_command_line(
    server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", SET, "--prefix", str(server), "--arch", "sm_120"]) == 2
    assert capsys.readouterr().err == ("error: --arch picks what is compiled\n  add --compile\n")
