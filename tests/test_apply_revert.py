"""Apply, status and revert, on stand-ins for the real packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import gatepatch
from gatepatch.errors import ProbeError, RefusedError, SpecError, TargetError, UnknownSetError
from gatepatch.results import Result
from lookalikes import COMM, COMMUNICATOR, HEADER, SERVER_ARGS, contents, make_server
from trees import make_distribution, make_environment, site_of

SET = "sm120-allreduce"
EDITED = {COMM, HEADER, COMMUNICATOR, SERVER_ARGS}


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


def outcomes(result: Result) -> dict[str, str]:
    return {file.path: file.outcome for value in result.sets for file in value.files}


def sed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    copy = path.with_suffix(".new")
    copy.write_text(text.replace(old, new))
    copy.replace(path)


def test_apply_changes_the_four_files_and_no_other(server: Path) -> None:
    before = contents(server)
    result = gatepatch.apply(SET, prefix=server, assume="sm_120")
    after = contents(server)
    assert result.outcome == "applied"
    assert outcomes(result) == dict.fromkeys(EDITED, "applied")
    changed = {p for p in before if before[p] != after[p]}
    assert changed == EDITED
    assert b"[9, 10, 12]" in after[COMM]
    assert after[HEADER].count(b"< 1300") == 13
    assert b"or _is_sm120_supported)" in after[COMMUNICATOR]
    assert b"or is_sm120_supported()) and self.nnodes == 1" in after[SERVER_ARGS]


def test_revert_is_the_identity_on_bytes_mode_and_owner(server: Path) -> None:
    (site_of(server) / COMM).chmod(0o640)
    before = contents(server)
    modes = {p: (site_of(server) / p).stat().st_mode for p in before}
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    result = gatepatch.revert(SET, prefix=server)
    assert result.outcome == "reverted"
    assert contents(server) == before
    assert {p: (site_of(server) / p).stat().st_mode for p in before} == modes
    assert gatepatch.status(SET, prefix=server).outcome == "pristine"


def test_applying_again_changes_no_byte_and_no_mtime(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    before = {p: (site_of(server) / p).stat().st_mtime_ns for p in contents(server)}
    result = gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert result.outcome == "already-applied"
    assert {p: (site_of(server) / p).stat().st_mtime_ns for p in contents(server)} == before


def test_plan_writes_nothing(server: Path) -> None:
    before = contents(server)
    result = gatepatch.plan(SET, prefix=server)
    assert result.outcome == "would-apply"
    assert all(file.diff.startswith("--- a/") for file in result.sets[0].files)
    assert contents(server) == before
    assert not (site_of(server) / ".gatepatch").exists()


def test_written_files_are_newer_than_now_and_than_they_were(server: Path) -> None:
    path = site_of(server) / HEADER
    future = path.stat().st_mtime_ns + 3_600_000_000_000
    os.utime(path, ns=(future, future))
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    applied = path.stat().st_mtime_ns
    assert applied > future
    gatepatch.revert(prefix=server)
    assert path.stat().st_mtime_ns > applied


def test_other_environments_that_share_the_files_stay_as_they_are(server: Path) -> None:
    shared = server.parent / "cache"
    shutil.copytree(site_of(server), shared, copy_function=os.link)
    before = {p: (shared / p).read_bytes() for p in EDITED}
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    gatepatch.revert(prefix=server)
    assert {p: (shared / p).read_bytes() for p in EDITED} == before


def test_a_link_into_the_cache_becomes_a_file_and_a_link_again(server: Path) -> None:
    path = site_of(server) / COMM
    cached = server.parent / "cached.py"
    path.rename(cached)
    path.symlink_to(cached)
    original = cached.read_bytes()
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert not path.is_symlink()
    assert cached.read_bytes() == original
    gatepatch.revert(prefix=server)
    assert path.is_symlink()
    assert path.read_bytes() == original


def test_a_file_edited_by_hand_is_refused_with_the_ways_out(server: Path) -> None:
    sed(site_of(server) / COMM, "[9, 10]", "[9, 10, 12]")
    before = contents(server)
    with pytest.raises(RefusedError) as caught:
        gatepatch.apply(SET, prefix=server, assume="sm_120")
    text = str(caught.value)
    assert "foreign: something other than gatepatch has edited it" in text
    assert "RECORD has" in text
    assert f"gatepatch apply {SET} --accept-current" in text
    assert f"gatepatch revert {SET} --discard-foreign" in text
    assert "pip install --no-deps --force-reinstall flashinfer-python==0.6.3" in text
    assert contents(server) == before
    assert gatepatch.status(SET, prefix=server).outcome == "foreign"


def test_accept_current_takes_edits_by_hand_as_the_base(server: Path) -> None:
    sed(site_of(server) / COMM, "[9, 10]", "[9, 10, 12]")
    before = contents(server)
    result = gatepatch.apply(SET, prefix=server, assume="sm_120", accept_current=True)
    assert result.outcome == "applied"
    assert gatepatch.status(SET, prefix=server).outcome == "applied"
    gatepatch.revert(prefix=server)
    assert contents(server) == before


def test_discard_foreign_needs_the_pristine_bytes(server: Path) -> None:
    sed(site_of(server) / COMM, "[9, 10]", "[9, 10, 12]")
    with pytest.raises(RefusedError, match="force-reinstall"):
        gatepatch.revert(SET, prefix=server, discard_foreign=True)


def test_discard_foreign_takes_them_from_a_wheel_and_keeps_the_foreign_ones(server: Path) -> None:
    path = site_of(server) / COMM
    wheel = server.parent / "flashinfer_python-0.6.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(path, COMM)
    pristine = contents(server)
    sed(path, "[9, 10]", "[9, 10, 12]")
    foreign = path.read_bytes()
    result = gatepatch.revert(SET, prefix=server, discard_foreign=True, wheels=[wheel])
    assert result.outcome == "reverted"
    assert path.read_bytes() == pristine[COMM]
    kept = list((site_of(server) / ".gatepatch" / "foreign").iterdir())
    assert [file.read_bytes() for file in kept] == [foreign]


def test_a_file_edited_after_apply_is_never_written(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    sed(site_of(server) / COMM, "[9, 10, 12]", "[9, 10, 11, 12]")
    before = contents(server)
    with pytest.raises(RefusedError, match="foreign"):
        gatepatch.revert(prefix=server)
    assert contents(server) == before
    with pytest.raises(RefusedError, match="foreign"):
        gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert contents(server) == before
    result = gatepatch.revert(prefix=server, discard_foreign=True)
    assert result.outcome == "reverted"
    assert b"[9, 10])" in (site_of(server) / COMM).read_bytes()


def test_an_upgraded_file_is_never_overwritten_with_old_bytes(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    site = site_of(server)
    shutil.rmtree(site / "flashinfer")
    shutil.rmtree(site / "flashinfer_python-0.6.3.dist-info")
    newer = {
        "flashinfer/__init__.py": "",
        COMM: "# newer\ndef gen_trtllm_comm_module():\n    return flags(supported_major_versions=[9, 10])\n",
        HEADER: "#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200\nwait();\n#endif\n" * 13,
    }
    make_distribution(site, "flashinfer-python", "0.6.4", newer)
    assert outcomes(gatepatch.status(SET, prefix=server))[COMM] == "upgraded"
    result = gatepatch.revert(prefix=server)
    assert outcomes(result)[COMM] == "upgraded"
    assert outcomes(result)[COMMUNICATOR] == "reverted"
    assert (site / COMM).read_text() == newer[COMM]
    assert gatepatch.apply(SET, prefix=server, assume="sm_120").outcome == "applied"
    assert b"# newer" in (site / COMM).read_bytes()


def test_apply_after_an_upgrade_patches_the_new_bytes(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    site = site_of(server)
    newer = (
        "# newer\ndef gen_trtllm_comm_module():\n    return f(supported_major_versions=[9, 10])\n"
    )
    shutil.rmtree(site / "flashinfer_python-0.6.3.dist-info")
    header = "#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200\nwait();\n#endif\n" * 13
    make_distribution(site, "flashinfer-python", "0.6.4", {COMM: newer, HEADER: header})
    result = gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert outcomes(result) == {
        COMM: "applied",
        HEADER: "applied",
        COMMUNICATOR: "already-applied",
        SERVER_ARGS: "already-applied",
    }
    gatepatch.revert(prefix=server)
    assert (site / COMM).read_text() == newer


def test_without_a_witness_files_are_pristine_and_said_to_be_unwitnessed(tmp_path: Path) -> None:
    from lookalikes import FLASHINFER, SGLANG

    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.3", FLASHINFER, record=False)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG, record=False)
    before = contents(prefix)
    result = gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    assert {file.witness for file in result.sets[0].files} == {"none"}
    gatepatch.revert(prefix=prefix)
    assert contents(prefix) == before


def test_native_releases_are_checked_by_verdict(tmp_path: Path) -> None:
    from lookalikes import SGLANG

    prefix = make_environment(tmp_path)
    native = {
        COMM: "def gen_trtllm_comm_module():\n    return f(supported_major_versions=[9, 10, 12])\n",
        HEADER: "#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900)\nwait();\n#endif\n" * 13,
    }
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.18", native)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG)
    result = gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    assert outcomes(result) == {
        COMM: "native",
        HEADER: "native",
        COMMUNICATOR: "applied",
        SERVER_ARGS: "applied",
    }


def test_a_native_release_that_is_not_is_refused(tmp_path: Path) -> None:
    from lookalikes import FLASHINFER, SGLANG

    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.18", FLASHINFER)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG)
    before = contents(prefix)
    with pytest.raises(RefusedError):
        gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    assert contents(prefix) == before


def test_a_set_is_all_or_nothing_across_its_distributions(tmp_path: Path) -> None:
    from lookalikes import SGLANG

    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "sglang", "0.5.9", SGLANG)
    before = contents(prefix)
    with pytest.raises(RefusedError, match="flashinfer-python is not installed"):
        gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    assert contents(prefix) == before


def test_a_version_outside_every_range_is_refused_with_the_ranges(tmp_path: Path) -> None:
    from lookalikes import FLASHINFER, SGLANG

    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.3", FLASHINFER)
    make_distribution(site_of(prefix), "sglang", "0.4.1", SGLANG)
    with pytest.raises(RefusedError, match=r"sglang 0\.4\.1 is outside every range") as caught:
        gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    assert ">=0.5.8.dev0,<0.5.14.dev0; " in str(caught.value)
    assert "install sglang 0.4.9 or later" in str(caught.value)


def test_another_architecture_assumed_is_refused(server: Path) -> None:
    with pytest.raises(ProbeError, match=r"sm120-allreduce is for SM 12\.0, SM 12\.1"):
        gatepatch.apply(SET, prefix=server, assume="sm_90")
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    again = gatepatch.apply(SET, prefix=server, assume="sm_90")
    assert again.outcome == "already-applied"
    assert again.warnings


def test_require_pin_refuses_what_no_pin_knows(server: Path) -> None:
    with pytest.raises(RefusedError, match="no pin has these bytes"):
        gatepatch.apply(SET, prefix=server, assume="sm_120", require_pin=True)


def test_an_unknown_set_is_named_with_the_nearest(server: Path) -> None:
    with pytest.raises(UnknownSetError, match="did you mean 'sm120-allreduce'"):
        gatepatch.apply("sm120-allreduces", prefix=server)
    with pytest.raises(UnknownSetError):
        gatepatch.revert("nothing-like-it", prefix=server)


def test_applied_reverts_at_the_end_whatever_happens(server: Path) -> None:
    before = contents(server)

    def fail() -> None:
        with gatepatch.applied(SET, prefix=server, assume="sm_120"):
            assert gatepatch.status(SET, prefix=server).outcome == "applied"
            raise RuntimeError("the benchmark failed")

    with pytest.raises(RuntimeError, match="the benchmark failed"):
        fail()
    assert contents(server) == before


def test_a_set_that_was_applied_before_stays_behind_applied(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    with gatepatch.applied(SET, prefix=server, assume="sm_120"):
        pass
    assert gatepatch.status(SET, prefix=server).outcome == "applied"


def test_revert_needs_no_yaml_no_parser_and_no_cupy(server: Path) -> None:
    before = contents(server)
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    code = """
import sys
for name in ("yaml", "libcst", "cupy"):
    sys.modules[name] = None
import gatepatch
print(gatepatch.revert(prefix=sys.argv[1]).outcome)
"""
    # No folder of sets either: what ships is hidden by a catalog that finds nothing.
    done = subprocess.run(
        [sys.executable, "-c", code, str(server)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["reverted"]
    assert contents(server) == before


def test_a_path_out_of_the_root_is_refused(server: Path) -> None:
    site = site_of(server)
    (site / "flashinfer" / "jit").rename(server.parent / "elsewhere")
    (site / "flashinfer" / "jit").symlink_to(server.parent / "elsewhere")
    with pytest.raises((TargetError, RefusedError), match="leads out of"):
        gatepatch.apply(SET, prefix=server, assume="sm_120")


def test_a_checkout_is_witnessed_by_git_and_keeps_its_state_in_the_git_folder(
    tmp_path: Path,
) -> None:
    from lookalikes import FLASHINFER, SGLANG

    prefix = make_environment(tmp_path)
    site = site_of(prefix)
    make_distribution(site, "flashinfer-python", "0.6.3", FLASHINFER)
    checkout = tmp_path / "checkout"
    for path, text in SGLANG.items():
        file = checkout / "python" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(checkout)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    info = make_distribution(
        site, "sglang", "0.0.0.dev1+g1234", {"__editable__.sglang.pth": f"{checkout / 'python'}\n"}
    )
    url = f'{{"url": "file://{checkout}/python", "dir_info": {{"editable": true}}}}'
    (info / "direct_url.json").write_text(url)
    result = gatepatch.apply(SET, prefix=prefix, assume="sm_120")
    assert {f.witness for f in result.sets[0].files if f.distribution == "sglang"} == {"git"}
    status = subprocess.run([*git, "status", "--short"], capture_output=True, text=True, check=True)
    assert status.stdout.split() == ["M", f"python/{COMMUNICATOR}", "M", f"python/{SERVER_ARGS}"]
    shutil.rmtree(checkout / ".git" / ".gatepatch")
    lost = gatepatch.status(SET, prefix=prefix)
    assert outcomes(lost)[f"python/{COMMUNICATOR}"] == "applied"
    gatepatch.revert(prefix=prefix)
    gatepatch.revert(SET, prefix=prefix)
    status = subprocess.run([*git, "status", "--short"], capture_output=True, text=True, check=True)
    assert status.stdout == ""


def test_status_does_not_take_one_sets_work_for_anothers(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    found = {value.name: value.outcome for value in gatepatch.status(prefix=server).sets}
    assert found == {SET: "applied", f"{SET}-off": "skipped"}
    result = gatepatch.status(prefix=server)
    assert result.outcome == "applied"


def test_damaged_metadata_of_one_distribution_hides_no_other_set(
    server: Path, tmp_path: Path
) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    (metadata,) = site_of(server).glob("sglang-*.dist-info/METADATA")
    metadata.write_text("")
    result = gatepatch.status(prefix=server)
    (value,) = (value for value in result.sets if value.name == SET)
    assert value.outcome == "applied"
    assert {file.version for file in value.files} == {"0.5.9", "0.6.3"}
    assert any("no version is to be found" in warning for warning in result.warnings)
    with pytest.raises(TargetError, match="no version is to be found"):
        gatepatch.status(SET, prefix=server)
    assert gatepatch.revert(prefix=server).outcome == "reverted"


def test_a_set_that_does_not_load_hides_no_other_set(server: Path, tmp_path: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    broken = tmp_path / "sets" / "mine"
    broken.mkdir(parents=True)
    (broken / "set.yaml").write_text("name: mine\nsumary: none\n")

    result = gatepatch.status(prefix=server, patches=[tmp_path / "sets"])

    assert result.outcome == "applied"
    assert any("set.yaml" in w and "sumary" in w for w in result.warnings)
    with pytest.raises(SpecError, match="sumary"):
        gatepatch.status("mine", prefix=server, patches=[tmp_path / "sets"])
