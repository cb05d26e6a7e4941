"""Targets: the distribution that the interpreter would import, its root, and its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import building
from building import install_editable, make_project
from gatepatch.edits import sha256
from gatepatch.environment import Environment, find_environment
from gatepatch.errors import TargetError
from gatepatch.target import Root, Target, find_target, roots
from gatepatch.workspace import Workspace
from trees import (
    git,
    make_distribution,
    make_environment,
    make_repository,
    python_of,
    site_of,
    write_files,
)

FILES = {"flashinfer/__init__.py": "", "flashinfer/jit/comm.py": "majors = [9, 10]\n"}
NAME = "flashinfer-python"


def environment(*paths: Path) -> Environment:
    """An environment that imports from these folders."""
    return Environment(
        python=Path("/opt/e/bin/python"),
        prefix=Path("/opt/e"),
        version=(3, 12),
        paths=paths,
        running=False,
    )


def target_of(*paths: Path, name: str = NAME) -> Target:
    found = find_target(environment(*paths), name)
    assert found is not None
    return found


# Finding


def test_an_ordinary_install(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, NAME, "0.6.3", FILES)
    target = target_of(tmp_path)
    assert (target.distribution, str(target.version)) == (NAME, "0.6.3")
    assert target.root == Root(
        path=tmp_path, state_dir=tmp_path / ".gatepatch", kind="site", repository=False
    )
    assert (target.metadata, target.editable, target.warnings) == (info, False, ())
    assert target.locate("flashinfer/jit/comm.py") == tmp_path / "flashinfer/jit/comm.py"
    assert target.relative("flashinfer/jit/comm.py") == "flashinfer/jit/comm.py"


@pytest.mark.parametrize(
    "folder",
    ["flashinfer_python-0.6.3", "Flashinfer.Python-0.6.3"],
)
@pytest.mark.parametrize("asked", ["flashinfer-python", "flashinfer_python", "FlashInfer.Python"])
def test_names_are_normalised(tmp_path: Path, folder: str, asked: str) -> None:
    write_files(tmp_path, {f"{folder}.dist-info/METADATA": "Name: x\nVersion: 0.6.3\n\n"})
    assert target_of(tmp_path, name=asked).distribution == NAME


@pytest.mark.parametrize("other", ["flashinfer", "flashinfer-python-extra", "flashinfer-pytho"])
def test_other_names_are_other_distributions(tmp_path: Path, other: str) -> None:
    make_distribution(tmp_path, NAME, "0.6.3", {})
    assert find_target(environment(tmp_path), other) is None


def test_nothing_installed(tmp_path: Path) -> None:
    assert find_target(environment(tmp_path, tmp_path / "gone"), NAME) is None


@pytest.mark.parametrize(
    "version", ["0.0.0.dev1+g1a2b3c4", "0.5.8.post1", "2!1.0rc1", "0.6.0+cu129"]
)
def test_versions(tmp_path: Path, version: str) -> None:
    make_distribution(tmp_path, NAME, version, FILES)
    assert str(target_of(tmp_path).version) == version


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("1.0-RC1", "1.0rc1"),
        ("v1.2", "1.2"),
        ("01.2", "1.2"),
        ("1.2-3", "1.2.post3"),
        ("1.0", "1.0"),
    ],
)
def test_a_version_is_canonical(tmp_path: Path, written: str, version: str) -> None:
    info = make_distribution(tmp_path, NAME, "1", FILES)
    (info / "METADATA").write_text(f"Name: x\nVersion: {written}\n")
    assert target_of(tmp_path).version == version


def test_a_version_in_the_description_is_not_the_version(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, NAME, "1", FILES)
    (info / "METADATA").write_text("Name: x\nversion:  2.0 \n\nVersion: 3\n")
    assert str(target_of(tmp_path).version) == "2.0"


NO_VERSION = (
    "{0}: no version is to be found\n  the installation is damaged: reinstall flashinfer-python"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Name: x\n\nVersion: 3\n", NO_VERSION),
        ("", NO_VERSION),
        ("Version: new\n", "{0}/METADATA: Invalid version: 'new'"),
    ],
)
def test_damaged_metadata(tmp_path: Path, text: str, message: str) -> None:
    info = make_distribution(tmp_path, NAME, "1", FILES)
    (info / "METADATA").write_text(text)
    with pytest.raises(TargetError) as refused:
        target_of(tmp_path)
    assert str(refused.value) == message.format(info)


def test_a_leftover_without_metadata_is_named(tmp_path: Path) -> None:
    make_distribution(tmp_path, NAME, "0.6.3", FILES)
    left = tmp_path / "flashinfer_python-0.6.1.dist-info"
    write_files(left, {"INSTALLER": "pip\n"})
    target = target_of(tmp_path)
    assert str(target.version) == "0.6.3"
    assert target.warnings == (
        f"{left} is a leftover without metadata of {NAME}, and is not looked at",
    )


def test_nothing_but_a_leftover(tmp_path: Path) -> None:
    left = tmp_path / "flashinfer_python-0.6.1.dist-info"
    write_files(left, {"INSTALLER": "pip\n"})
    with pytest.raises(TargetError, match="no version is to be found"):
        target_of(tmp_path)


def test_two_versions_in_one_folder_are_refused(tmp_path: Path) -> None:
    make_distribution(tmp_path, NAME, "0.6.1", FILES)
    make_distribution(tmp_path, NAME, "0.6.3", FILES)
    with pytest.raises(TargetError) as refused:
        target_of(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: has two versions of flashinfer-python: flashinfer_python-0.6.1.dist-info and "
        "flashinfer_python-0.6.3.dist-info; only one of them describes the files\n"
        "  pip uninstall flashinfer-python until none is left, and install it again"
    )


def test_a_module_without_metadata(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    with pytest.raises(TargetError) as refused:
        find_target(environment(tmp_path), NAME)
    assert str(refused.value) == (
        f"{tmp_path}/flashinfer: looks like flashinfer-python, but has no metadata (no .dist-info), "
        "so its version and its files are not known\n"
        "  install it with pip or uv: flashinfer-python (a checkout: pip install -e)"
    )


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_egg_is_refused(tmp_path: Path, kind: str) -> None:
    egg = tmp_path / "flashinfer_python-0.6.3-py3.12.egg"
    write_files(tmp_path, {egg.name if kind == "file" else f"{egg.name}/EGG-INFO/PKG-INFO": "PK"})
    with pytest.raises(TargetError) as refused:
        find_target(environment(tmp_path), NAME)
    assert str(refused.value) == (
        f"{egg}: flashinfer-python is installed as an egg, whose files cannot be patched safely\n"
        "  install it with pip or uv instead: pip install --force-reinstall flashinfer-python"
    )


def test_an_egg_beside_an_ordinary_install_is_not_looked_at(tmp_path: Path) -> None:
    write_files(tmp_path, {"flashinfer_python-0.6.1-py3.12.egg": "PK"})
    make_distribution(tmp_path, NAME, "0.6.3", FILES)
    assert str(target_of(tmp_path).version) == "0.6.3"


@pytest.mark.parametrize("form", ["folder", "file"])
def test_an_egg_info_as_apt_and_distutils_leave_it(tmp_path: Path, form: str) -> None:
    site = tmp_path / "lib/python3/dist-packages"
    metadata = "flashinfer_python-0.6.3.egg-info" + ("/PKG-INFO" if form == "folder" else "")
    write_files(site, {**FILES, metadata: "Name: x\nVersion: 0.6.3\n"})
    target = target_of(site)
    assert (str(target.version), target.root.kind, target.editable) == ("0.6.3", "site", False)
    assert target.witness("flashinfer/jit/comm.py") is None


def test_an_egg_info_beside_a_dist_info_is_older(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    write_files(site, {"flashinfer_python-0.1-py3.egg-info": "Version: 0.1\n"})
    make_distribution(site, NAME, "0.6.3", FILES)
    target = target_of(site)
    assert str(target.version) == "0.6.3"
    assert [*target.warnings] == [
        f"{site}/flashinfer_python-0.1-py3.egg-info is older metadata of {NAME}, and is not looked at"
    ]


# Two copies


def test_the_copy_that_is_imported_with_a_warning_that_names_both(tmp_path: Path) -> None:
    user, system = tmp_path / "user", tmp_path / "system"
    ours = make_distribution(user, NAME, "0.6.3", FILES)
    other = make_distribution(system, NAME, "0.6.1", FILES)
    target = target_of(user, system)
    assert (target.root.path, str(target.version)) == (user, "0.6.3")
    (warning,) = target.warnings
    assert warning == (
        f"a second copy of {NAME} is installed: {ours} is the one that is imported, "
        f"{other} is left as it is"
    )
    assert target_of(system, user).root.path == system


def test_one_folder_by_two_names_is_one_copy(tmp_path: Path) -> None:
    make_distribution(tmp_path / "lib", NAME, "0.6.3", FILES)
    (tmp_path / "lib64").symlink_to("lib")
    target = target_of(tmp_path / "lib64", tmp_path / "lib")
    assert target.warnings == ()
    assert target.root.path == tmp_path / "lib"


def test_a_second_copy_that_cannot_be_followed_does_no_harm(tmp_path: Path) -> None:
    make_distribution(tmp_path / "a", NAME, "0.6.3", FILES)
    other = make_distribution(tmp_path / "b", NAME, "0.6.1", {})
    (other / "direct_url.json").write_text('{"url": "file:///p", "dir_info": {"editable": true}}')
    assert len(target_of(tmp_path / "a", tmp_path / "b").warnings) == 1


def test_a_package_on_pythonpath_shadows_the_install(tmp_path: Path) -> None:
    mine, site = tmp_path / "mine", tmp_path / "site"
    write_files(mine, FILES)
    make_distribution(site, NAME, "0.6.3", FILES)
    assert target_of(site).shadow("flashinfer/jit/comm.py") is None
    assert target_of(mine, site).shadow("flashinfer/jit/comm.py") == mine / "flashinfer"
    assert target_of(site, mine).shadow("flashinfer/jit/comm.py") is None


def test_a_folder_that_is_no_package_shadows_nothing(tmp_path: Path) -> None:
    mine, site = tmp_path / "mine", tmp_path / "site"
    write_files(mine, {"flashinfer/notes.txt": ""})
    make_distribution(site, NAME, "0.6.3", FILES)
    assert target_of(mine, site).shadow("flashinfer/jit/comm.py") is None


def test_a_shadow_is_what_python_itself_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), NAME, "0.6.3", FILES)
    write_files(tmp_path / "mine", FILES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    target = find_target(find_environment(python=python_of(prefix)), NAME)
    assert target is not None
    done = subprocess.run(
        [python_of(prefix), "-B", "-c", "import flashinfer; print(flashinfer.__path__[0])"],
        capture_output=True,
        text=True,
    )
    assert str(target.shadow("flashinfer/jit/comm.py")) == done.stdout.strip()


# Paths


@pytest.mark.parametrize(
    "path",
    ["", "/", "/etc/passwd", "..", "../x", "a/../b", "a/./b", "a//b", "a/", "./a", "a\\b", "a\0b"],
)
def test_paths_that_are_refused(tmp_path: Path, path: str) -> None:
    make_distribution(tmp_path, NAME, "0.6.3", FILES)
    target = target_of(tmp_path)
    for method in (target.locate, target.relative):
        with pytest.raises(TargetError, match="is no path inside a distribution"):
            method(path)


def test_a_file_that_is_a_link_is_not_resolved(tmp_path: Path) -> None:
    """uv's link mode ``symlink``: the file is a link into uv's cache."""
    site, cache = tmp_path / "site", tmp_path / "cache"
    make_distribution(site, NAME, "0.6.3", FILES)
    write_files(cache, {"comm.py": FILES["flashinfer/jit/comm.py"]})
    file = site / "flashinfer/jit/comm.py"
    file.unlink()
    file.symlink_to(cache / "comm.py")
    target = target_of(site)
    assert target.locate("flashinfer/jit/comm.py") == file
    found = target.witness("flashinfer/jit/comm.py")
    assert found is not None
    assert found.sha256 == sha256(file.read_bytes())


def test_a_linked_folder_inside_the_root_is_followed(tmp_path: Path) -> None:
    make_distribution(tmp_path, NAME, "0.6.3", {"flashinfer/data/include/x.cuh": "x\n"})
    (tmp_path / "flashinfer/data").rename(tmp_path / "shared")
    (tmp_path / "flashinfer/data").symlink_to("../shared")
    target = target_of(tmp_path)
    assert target.locate("flashinfer/data/include/x.cuh") == tmp_path / "shared/include/x.cuh"
    assert target.relative("flashinfer/data/include/x.cuh") == "shared/include/x.cuh"
    found = target.witness("flashinfer/data/include/x.cuh")  # by the name that RECORD has
    assert found is not None
    assert found.sha256 == sha256(b"x\n")


def test_a_linked_folder_out_of_the_root_is_refused(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(site, NAME, "0.6.3", FILES)
    write_files(tmp_path / "out", {"x.cuh": ""})
    (site / "flashinfer/data").symlink_to("../../out")
    with pytest.raises(TargetError) as refused:
        target_of(site).locate("flashinfer/data/x.cuh")
    assert str(refused.value) == (
        f"flashinfer-python: flashinfer/data/x.cuh: leads out of {site}, to {tmp_path}/out\n"
        "  a symlinked folder is followed only inside its own root"
    )


def test_a_neighbour_whose_name_starts_alike_is_outside(tmp_path: Path) -> None:
    make_distribution(tmp_path / "site", NAME, "0.6.3", FILES)
    (tmp_path / "site2").mkdir()
    (tmp_path / "site/flashinfer/data").symlink_to("../../site2")
    with pytest.raises(TargetError, match="leads out of"):
        target_of(tmp_path / "site").locate("flashinfer/data/x")


def test_a_site_folder_reached_by_a_link_has_one_root(tmp_path: Path) -> None:
    make_distribution(tmp_path / "real", NAME, "0.6.3", FILES)
    (tmp_path / "link").symlink_to("real")
    assert target_of(tmp_path / "link").root == target_of(tmp_path / "real").root


def test_a_file_that_is_not_there_has_a_path_all_the_same(tmp_path: Path) -> None:
    make_distribution(tmp_path, NAME, "0.6.3", FILES)
    assert target_of(tmp_path).locate("flashinfer/no/such.py") == tmp_path / "flashinfer/no/such.py"


# Roots and checkouts

SETUPTOOLS = "setuptools.build_meta"


def make_checkout(folder: Path) -> Path:
    """A checkout whose Python source stands in a folder of it."""
    files = {f"python/{path}": text for path, text in building.PACKAGE.items()}
    files |= {"python/pyproject.toml": building.SETUPTOOLS, ".gitignore": "*.egg-info\n"}
    return make_repository(folder, {**files, "include/x.cuh": "x\n"})


def test_an_editable_checkout_in_git(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "c")
    site = tmp_path / "site"
    install_editable(checkout / "python", site, SETUPTOOLS)
    target = target_of(site, name=building.NAME)
    assert target.root == Root(
        path=checkout, state_dir=checkout / ".git/.gatepatch", kind="checkout", repository=True
    )
    assert target.locate("toy/jit/comm.py") == checkout / "python/toy/jit/comm.py"
    assert target.relative("toy/jit/comm.py") == "python/toy/jit/comm.py"
    found = target.witness("toy/jit/comm.py")
    assert found is not None
    assert (found.kind, found.sha256) == ("git", sha256(b"majors = [9, 10]\n"))
    assert target.witness("toy/new.py") is None


def test_a_linked_data_folder_of_a_checkout(tmp_path: Path) -> None:
    """FlashInfer's editable install links its headers into its package."""
    checkout = make_checkout(tmp_path / "c")
    (checkout / "python/toy/data").symlink_to("../../include")
    site = tmp_path / "site"
    install_editable(checkout / "python", site, SETUPTOOLS, {"editable_mode": "compat"})
    target = target_of(site, name=building.NAME)
    assert target.relative("toy/data/x.cuh") == "include/x.cuh"
    found = target.witness("toy/data/x.cuh")
    assert found is not None
    assert found.sha256 == sha256(b"x\n")


def test_a_file_in_a_submodule_is_vouched_for_by_the_submodule(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "c")
    inner = make_repository(tmp_path / "inner", {"include/y.cuh": "y\n"})
    allow = ("-c", "protocol.file.allow=always")
    git(checkout, *allow, "submodule", "--quiet", "add", str(inner), "deps/inner")
    (checkout / "python/toy/deps").symlink_to("../../deps")
    install_editable(checkout / "python", tmp_path / "site", SETUPTOOLS)
    target = target_of(tmp_path / "site", name=building.NAME)
    assert target.root.path == checkout
    assert target.relative("toy/deps/inner/include/y.cuh") == "deps/inner/include/y.cuh"
    found = target.witness("toy/deps/inner/include/y.cuh")
    assert found is not None
    assert found.sha256 == sha256(b"y\n")
    assert target.reinstall_command("toy/deps/inner/include/y.cuh") == (
        f"git -C {checkout}/deps/inner checkout HEAD -- include/y.cuh"
    )


def test_two_environments_on_one_checkout_have_one_root(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "c")
    (tmp_path / "link").symlink_to("c")
    install_editable(checkout / "python", tmp_path / "a", SETUPTOOLS)
    install_editable(checkout / "python", tmp_path / "b", SETUPTOOLS, {"editable_mode": "compat"})
    write_files(tmp_path / "site-packages", {"toy-engine.egg-link": f"{tmp_path}/link/python\n."})
    found = {
        target_of(tmp_path / name, name=building.NAME).root for name in ("a", "b", "site-packages")
    }
    assert len(found) == 1


def test_a_worktree_keeps_its_state_in_its_own_git_folder(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "c")
    git(checkout, "worktree", "add", "-q", str(tmp_path / "w"), "-b", "side")
    install_editable(tmp_path / "w/python", tmp_path / "site", SETUPTOOLS)
    target = target_of(tmp_path / "site", name=building.NAME)
    assert target.root.path == tmp_path / "w"
    assert target.root.state_dir == checkout / ".git/worktrees/w/.gatepatch"


def test_a_checkout_without_git(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    install_editable(project, tmp_path / "site", SETUPTOOLS)
    target = target_of(tmp_path / "site", name=building.NAME)
    assert target.root == Root(
        path=project, state_dir=project / ".gatepatch", kind="checkout", repository=False
    )
    assert target.witness("toy/jit/comm.py") is None


def test_an_environment_inside_a_repository_is_not_a_checkout(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": ""})
    site = repository / ".venv/lib/python3.12/site-packages"
    make_distribution(site, NAME, "0.6.3", FILES)
    assert target_of(site).root.kind == "site"
    assert target_of(site).root.path == site


def test_git_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = make_checkout(tmp_path / "c")
    install_editable(checkout / "python", tmp_path / "site", SETUPTOOLS)
    monkeypatch.setenv("PATH", str(tmp_path))
    target = target_of(tmp_path / "site", name=building.NAME)
    assert target.warnings == (
        f"git is not installed, so nothing vouches for the files of {checkout}",
    )
    assert target.witness("toy/jit/comm.py") is None


def test_the_roots_of_an_environment(tmp_path: Path) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    checkout = make_checkout(tmp_path / "c")
    install_editable(checkout / "python", site, SETUPTOOLS)
    make_distribution(site, NAME, "0.6.3", FILES)
    broken = make_distribution(site, "broken", "1", {})
    (broken / "direct_url.json").write_text('{"url": "file:///p", "dir_info": {"editable": true}}')
    write_files(site, {"empty.egg-link": ""})
    (other / ".gatepatch").mkdir(parents=True)
    found = roots(environment(site, other, tmp_path / "gone"))
    assert [root.path for root in found] == [site, checkout, other, tmp_path / "gone"]


def test_the_roots_that_have_state(tmp_path: Path) -> None:
    site = tmp_path / "site"
    checkout = make_checkout(tmp_path / "c")
    install_editable(checkout / "python", site, SETUPTOOLS)
    workspace = Workspace(environment(checkout, site))
    assert workspace.roots() == ()
    (checkout / ".git" / ".gatepatch").mkdir()
    assert [(root.path, root.kind) for root in workspace.roots()] == [(checkout, "checkout")]
    (site / ".gatepatch").mkdir()
    assert [root.path for root in workspace.roots()] == [site, checkout]
    (checkout / ".gatepatch").mkdir()
    assert [(root.path, root.kind) for root in workspace.roots()] == [
        (checkout, "site"),
        (site, "site"),
    ]


# The way back


def installed(tmp_path: Path, installer: str = "pip", url: object = None) -> str:
    info = make_distribution(tmp_path, NAME, "0.6.3", FILES, installer=installer)
    if url is not None:
        (info / "direct_url.json").write_text(json.dumps(url))
    return target_of(tmp_path).reinstall_command("flashinfer/jit/comm.py")


def test_the_command_that_reinstalls(tmp_path: Path) -> None:
    assert installed(tmp_path / "pip") == (
        "/opt/e/bin/python -m pip install --no-deps --force-reinstall flashinfer-python==0.6.3"
    )
    assert installed(tmp_path / "uv", "uv") == (
        "uv pip install --python /opt/e/bin/python --no-deps --reinstall-package "
        "flashinfer-python flashinfer-python==0.6.3"
    )
    assert installed(tmp_path / "conda", "conda") == (
        "conda install -p /opt/e --force-reinstall flashinfer-python=0.6.3"
    )


def test_the_command_names_the_url_that_a_distribution_came_from(tmp_path: Path) -> None:
    pip = "/opt/e/bin/python -m pip install --no-deps --force-reinstall"
    archive = {"url": "https://example.org/x.whl", "archive_info": {}}
    assert installed(tmp_path / "a", url=archive) == (
        f"{pip} 'flashinfer-python @ https://example.org/x.whl'"
    )
    vcs = {"url": "https://example.org/r", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    assert installed(tmp_path / "b", url=vcs) == (
        f"{pip} 'flashinfer-python @ git+https://example.org/r@abc'"
    )


def test_the_command_of_a_checkout_works(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "a checkout")
    install_editable(checkout / "python", tmp_path / "site", SETUPTOOLS)
    target = target_of(tmp_path / "site", name=building.NAME)
    command = target.reinstall_command("toy/jit/comm.py")
    assert command == f"git -C '{checkout}' checkout HEAD -- python/toy/jit/comm.py"
    write_files(checkout, {"python/toy/jit/comm.py": "edited\n", "include/x.cuh": "mine\n"})
    subprocess.run(command, shell=True, check=True)
    assert (checkout / "python/toy/jit/comm.py").read_text() == "majors = [9, 10]\n"
    assert (checkout / "include/x.cuh").read_text() == "mine\n"
    assert target.reinstall_command() == f"git -C '{checkout}' checkout HEAD -- FILE"


def test_a_checkout_without_git_has_no_command(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    install_editable(project, tmp_path / "site", SETUPTOOLS)
    target = target_of(tmp_path / "site", name=building.NAME)
    assert target.reinstall_command() == f"copy it again from where {project} came from"


# Cost


def test_finding_two_among_two_hundred_is_cheap(tmp_path: Path) -> None:
    for number in range(200):
        write_files(tmp_path, {f"package_{number}-1.{number}.dist-info/METADATA": "Version: 1\n\n"})
        (tmp_path / f"package_{number}").mkdir()
    make_distribution(tmp_path, NAME, "0.6.3", FILES)
    make_distribution(tmp_path, "sglang", "0.5.9", {"sglang/__init__.py": ""})
    where = environment(tmp_path)

    def once() -> float:
        start = time.perf_counter()
        assert find_target(where, NAME)
        assert find_target(where, "sglang")
        return time.perf_counter() - start

    assert min(once() for _ in range(5)) < 0.010


def test_importing_is_cheap(tmp_path: Path) -> None:
    code = "import sys, gatepatch.target; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "csv", "json", "subprocess", "importlib.metadata", "libcst", "yaml",
        "cupy", "filelock", "packaging.utils", "packaging.tags", "logging",
    }  # fmt: skip


# Real installers


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["clone", "copy", "hardlink", "symlink"])
def test_uvs_link_modes(tmp_path: Path, mode: str) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", building.HATCHLING)
    write_files(project, {"toy_engine/__init__.py": "", "toy_engine/jit.py": "majors = [9, 10]\n"})
    subprocess.run(
        [sys.executable, "-m", "uv", "build", "-q", "--wheel", "-o", tmp_path, project], check=True
    )
    wheel = next(tmp_path.glob("*.whl"))
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "-p", str(python_of(prefix))]
    cache = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([*uv, "--link-mode", mode, wheel], check=True, env=cache)
    target = find_target(find_environment(python=python_of(prefix)), building.NAME)
    assert target is not None
    file = target.locate("toy_engine/jit.py")
    assert file == site_of(prefix) / "toy_engine/jit.py"
    assert file.is_symlink() == (mode == "symlink")
    found = target.witness("toy_engine/jit.py")
    assert found is not None
    assert found.sha256 == sha256(file.read_bytes())
    assert target.warnings == ()
    assert target.reinstall_command().startswith("uv pip install --python ")
