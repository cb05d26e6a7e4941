"""Prebuilt modules that would be loaded in place of a patched source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import gatepatch
from gatepatch.aot import AotBinary, find_aot
from gatepatch.environment import find_environment
from gatepatch.errors import RefusedError, TargetError
from gatepatch.target import find_target
from lookalikes import FLASHINFER, HEADER, contents, make_server
from trees import git, make_distribution, make_repository, site_of

SET = "sm120-allreduce"
COMM = {"flashinfer": ("trtllm_comm",)}
OWN = "flashinfer/data/aot/trtllm_comm/trtllm_comm.so"
PACKAGE = "flashinfer_jit_cache/jit_cache/trtllm_comm/trtllm_comm.so"
PROVIDER = "flashinfer_jit_cache_sm120/jit_cache/trtllm_comm/trtllm_comm.so"
PLACES = {"in FlashInfer": OWN, "in the cache package": PACKAGE, "in a provider": PROVIDER}


def prebuild(site: Path, path: str, content: bytes = b"prebuilt") -> Path:
    """Put a prebuilt module there, and another one beside it."""
    modules = (site / path).parents[1]
    for name in ("trtllm_comm", "norm"):
        (modules / name).mkdir(parents=True)
        (modules / name / f"{name}.so").write_bytes(content)
    return site / path


def hidden_beside(binary: Path) -> Path:
    """Where a module is moved to."""
    return binary.with_name(f"{binary.name}.gatepatch-hidden")


def found_in(prefix: Path) -> tuple[AotBinary, ...]:
    environment = find_environment(prefix=prefix)
    return find_aot(environment, find_target(environment, "flashinfer-python"), COMM)


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


# -- what is found --


def test_nothing_is_found_where_nothing_is_prebuilt(server: Path) -> None:
    (site_of(server) / OWN).parent.mkdir(parents=True)  # without the library it is not loaded
    assert found_in(server) == ()


@pytest.mark.parametrize("path", PLACES.values(), ids=PLACES)
def test_the_modules_of_the_name_alone_are_found(server: Path, path: str) -> None:
    prebuild(site_of(server), path)
    (binary,) = found_in(server)
    assert (binary.module, binary.path) == ("trtllm_comm", path)
    assert binary.hidden == path + ".gatepatch-hidden"
    assert binary.root.path == site_of(server)


def test_other_names_of_caches_find_nothing(server: Path) -> None:
    prebuild(site_of(server), OWN)
    environment = find_environment(prefix=server)
    target = find_target(environment, "flashinfer-python")
    assert find_aot(environment, target, {"other": ("trtllm_comm",)}) == ()


def test_of_two_cache_packages_the_one_that_is_imported_counts(
    server: Path, tmp_path: Path
) -> None:
    first = prebuild(site_of(server), PACKAGE)
    prebuild(tmp_path / "second", PACKAGE)
    (site_of(server) / "second.pth").write_text(f"{tmp_path / 'second'}\n")
    (binary,) = found_in(server)
    assert binary.root.path / binary.path == first


def test_a_checkout_s_own_are_found_under_the_checkout(server: Path, tmp_path: Path) -> None:
    site = site_of(server)
    shutil.rmtree(site / "flashinfer")
    shutil.rmtree(site / "flashinfer_python-0.6.3.dist-info")
    checkout = make_repository(tmp_path / "checkout", FLASHINFER)
    make_distribution(
        site,
        "flashinfer-python",
        "0.6.3",
        {
            "flashinfer.pth": f"{checkout}\n",
            "flashinfer_python-0.6.3.dist-info/direct_url.json": (
                f'{{"url": "file://{checkout}", "dir_info": {{"editable": true}}}}'
            ),
        },
    )
    prebuild(checkout, OWN)
    (binary,) = found_in(server)
    assert (binary.root.path, binary.path) == (checkout, OWN)


def test_modules_that_lie_outside_the_root_are_refused(server: Path, tmp_path: Path) -> None:
    prebuild(tmp_path, "built/trtllm_comm/trtllm_comm.so")
    (site_of(server) / "flashinfer/data/aot").symlink_to(tmp_path / "built")
    with pytest.raises(TargetError) as error:
        found_in(server)
    assert "leads out of" in str(error.value)


# -- what apply and revert make of it --


@pytest.mark.parametrize("path", PLACES.values(), ids=PLACES)
def test_apply_refuses_and_says_how(server: Path, path: str) -> None:
    binary = prebuild(site_of(server), path)
    before = contents(server)
    with pytest.raises(RefusedError) as error:
        gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert str(error.value) == (
        f"{binary}: the prebuilt trtllm_comm would be loaded, so a patched source has no effect\n"
        "  move it aside in the same step: gatepatch apply sm120-allreduce --hide-aot"
    )
    assert contents(server) == before


@pytest.mark.parametrize("path", PLACES.values(), ids=PLACES)
def test_hide_then_revert_is_the_identity(server: Path, path: str) -> None:
    binary = prebuild(site_of(server), path)
    before = contents(server)
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert not binary.exists()
    assert hidden_beside(binary).read_bytes() == b"prebuilt"
    assert (binary.parents[1] / "norm/norm.so").is_file()
    again = gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert again.outcome == "already-applied"
    gatepatch.revert(SET, prefix=server)
    assert contents(server) == before


def test_a_module_under_a_root_that_the_set_does_not_edit_is_hidden_too(
    server: Path, tmp_path: Path
) -> None:
    binary = prebuild(tmp_path / "second", PACKAGE)
    (site_of(server) / "second.pth").write_text(f"{tmp_path / 'second'}\n")
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert found_in(server) == ()
    gatepatch.revert(SET, prefix=server)
    assert binary.is_file()
    assert sorted(p.name for p in (tmp_path / "second").iterdir()) == ["flashinfer_jit_cache"]


def test_what_is_installed_after_the_apply_is_refused_by_the_next(server: Path) -> None:
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    binary = prebuild(site_of(server), PACKAGE)
    with pytest.raises(RefusedError) as error:
        gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert "would be loaded" in str(error.value)
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert not binary.exists()
    gatepatch.revert(SET, prefix=server)
    assert binary.exists()


def test_what_is_installed_again_is_refused_until_the_old_one_is_removed(server: Path) -> None:
    binary = prebuild(site_of(server), PACKAGE)
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    hidden = hidden_beside(binary)
    binary.write_bytes(b"newer")
    with pytest.raises(RefusedError) as error:
        gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert str(error.value) == (
        f"{binary}: was installed again since it was moved aside; the old one is {hidden}\n"
        f"  remove the old one: rm {hidden}"
    )
    hidden.unlink()
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert hidden.read_bytes() == b"newer"


def test_revert_leaves_what_was_installed_again(server: Path) -> None:
    binary = prebuild(site_of(server), PACKAGE)
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    binary.write_bytes(b"newer")
    result = gatepatch.revert(SET, prefix=server)
    assert result.outcome == "reverted"
    assert any("installed again" in warning for warning in result.warnings)
    assert binary.read_bytes() == b"newer"


def test_revert_works_where_the_hidden_module_is_gone(server: Path) -> None:
    prebuild(site_of(server), PACKAGE)
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    shutil.rmtree(site_of(server) / "flashinfer_jit_cache")
    result = gatepatch.revert(SET, prefix=server)
    assert result.outcome == "reverted"
    assert f"{PACKAGE}: was moved aside, and is not there any more" in result.warnings


def test_git_sees_a_checkout_as_it_was_after_hiding_and_reverting(
    server: Path, tmp_path: Path
) -> None:
    site = site_of(server)
    shutil.rmtree(site / "flashinfer")
    shutil.rmtree(site / "flashinfer_python-0.6.3.dist-info")
    checkout = make_repository(
        tmp_path / "checkout", {**FLASHINFER, ".gitignore": "__pycache__/\naot/\n"}
    )
    make_distribution(
        site,
        "flashinfer-python",
        "0.6.3",
        {
            "flashinfer.pth": f"{checkout}\n",
            "flashinfer_python-0.6.3.dist-info/direct_url.json": (
                f'{{"url": "file://{checkout}", "dir_info": {{"editable": true}}}}'
            ),
        },
    )
    binary = prebuild(checkout, OWN)
    gatepatch.apply(SET, prefix=server, assume="sm_120", hide_aot=True)
    assert not binary.exists()
    gatepatch.revert(SET, prefix=server)
    assert git(checkout, "status", "--porcelain") == ""
    assert binary.exists()


# -- other sources --


def test_apply_refuses_links_that_flashinfer_follows(server: Path, tmp_path: Path) -> None:
    site = site_of(server)
    cache = tmp_path / "cache"
    for path in [*FLASHINFER, "flashinfer/jit/env.py"]:
        (cache / path).parent.mkdir(parents=True, exist_ok=True)
        (cache / path).write_text(FLASHINFER.get(path, ""))
        (site / path).unlink(missing_ok=True)
        (site / path).symlink_to(cache / path)
    before = contents(server)
    with pytest.raises(RefusedError) as error:
        gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert str(error.value) == (
        f"{site}/flashinfer/jit/env.py: links into an installer's cache, and FlashInfer compiles "
        f"the sources there, so a patched one has no effect: {cache}/flashinfer\n"
        "  install it without links: uv pip install --link-mode copy --no-deps "
        "--reinstall-package flashinfer-python flashinfer-python==0.6.3"
    )
    assert contents(server) == before


def test_apply_refuses_a_linked_source(server: Path, tmp_path: Path) -> None:
    """After a revert the link's old mtime would keep the patched binary."""
    header = site_of(server) / HEADER
    header.rename(tmp_path / "header")
    header.symlink_to(tmp_path / "header")
    before = contents(server)
    with pytest.raises(RefusedError, match="is a link, so a JIT would not see") as error:
        gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert "--link-mode copy" in str(error.value)
    assert contents(server) == before


def test_a_linked_python_file_is_no_reason_to_refuse(server: Path, tmp_path: Path) -> None:
    module = site_of(server) / "flashinfer/jit/comm.py"
    module.rename(tmp_path / "comm")
    module.symlink_to(tmp_path / "comm")
    gatepatch.apply(SET, prefix=server, assume="sm_120")
    assert b"12" in module.read_bytes()
    gatepatch.revert(prefix=server)
    assert module.is_symlink()
