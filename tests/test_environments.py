"""Apply and revert in every kind of environment: Python itself sees the one and the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import building
import gatepatch
from building import install_editable, make_project
from gatepatch.errors import RefusedError
from trees import (
    git,
    make_distribution,
    make_environment,
    make_repository,
    python_of,
    site_of,
    write_files,
)

SET = """
schema: 1
name: toy-sm120
summary: Admit SM 12.x to the toy's list
why: a test
admit: [sm_120, sm_121]
like: sm_100
targets:
  - distribution: toy-engine
    versions: ">=1.5.0.dev0"
    files:
      - path: toy/jit/comm.py
        edits:
          - open: {within: gen_comm_module, keyword: supported_major_versions}
"""

SOURCE = """\
def gen_spec(name, supported_major_versions):
    return supported_major_versions


def gen_comm_module():
    return gen_spec("comm", supported_major_versions=[9, 10])
"""

PACKAGE = {"toy/__init__.py": "", "toy/jit/__init__.py": "", "toy/jit/comm.py": SOURCE}
SETUPTOOLS = "setuptools.build_meta"


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    write_files(tmp_path / "patches", {"toy-sm120/set.yaml": SET})
    return tmp_path / "patches"


def majors(python: Path) -> str:
    """What the environment's own interpreter makes of the source."""
    code = "from toy.jit.comm import gen_comm_module as f; print(f())"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd="/")
    return done.stdout.strip() or done.stderr


def assert_there_and_back(python: Path, patches: Path) -> None:
    assert majors(python) == "[9, 10]"
    keywords = {"python": python, "patches": [patches]}
    done = gatepatch.apply("toy-sm120", assume="sm_120", **keywords)  # type: ignore[arg-type]
    assert done.outcome == "applied"
    assert majors(python) == "[9, 10, 12]"
    again = gatepatch.apply("toy-sm120", assume="sm_120", **keywords)  # type: ignore[arg-type]
    assert again.outcome == "already-applied"
    assert gatepatch.status(python=python, patches=[patches]).outcome == "applied"
    assert gatepatch.revert(python=python).outcome == "reverted"
    assert majors(python) == "[9, 10]"


def plain(prefix: Path) -> None:
    make_distribution(site_of(prefix), building.NAME, "1.5", PACKAGE)


def user_site(prefix: Path) -> None:
    config = prefix / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = Path(os.environ["HOME"]) / ".local/lib" / version / "site-packages"
    make_distribution(site, building.NAME, "1.5", PACKAGE)


def path_file(prefix: Path) -> None:
    project = make_project(prefix.parent / "p", building.SETUPTOOLS, PACKAGE)
    install_editable(project, site_of(prefix), SETUPTOOLS, {"editable_mode": "compat"})


def import_hook(prefix: Path) -> None:
    project = make_project(prefix.parent / "p", building.SETUPTOOLS, PACKAGE)
    install_editable(project, site_of(prefix), SETUPTOOLS)


def strict(prefix: Path) -> None:
    project = make_project(prefix.parent / "p", building.SETUPTOOLS, PACKAGE)
    install_editable(project, site_of(prefix), SETUPTOOLS, {"editable_mode": "strict"})


def checkout(prefix: Path) -> None:
    files = {"pyproject.toml": building.SETUPTOOLS, **PACKAGE}
    files = {f"python/{path}": text for path, text in files.items()}
    make_repository(prefix.parent / "c", {".gitignore": "*.egg-info/\n*-wheels/\n", **files})
    install_editable(prefix.parent / "c/python", site_of(prefix), SETUPTOOLS)


def egg_link(prefix: Path) -> None:
    project = make_project(prefix.parent / "p", building.SETUPTOOLS, PACKAGE)
    write_files(project, {"toy_engine.egg-info/PKG-INFO": "Version: 1.5\n\n"})
    links = {"toy-engine.egg-link": f"{project}\n.", "easy-install.pth": f"{project}\n"}
    write_files(site_of(prefix), links)


def links_into_a_cache(prefix: Path) -> None:
    plain(prefix)
    file, cached = site_of(prefix) / "toy/jit/comm.py", prefix.parent / "cached"
    file.rename(cached)
    file.symlink_to(cached)


def hard_links_into_a_cache(prefix: Path) -> None:
    plain(prefix)
    os.link(site_of(prefix) / "toy/jit/comm.py", prefix.parent / "cached")


@pytest.mark.parametrize(
    "install",
    [plain, user_site, path_file, import_hook, strict, checkout, egg_link, links_into_a_cache,
     hard_links_into_a_cache],
    ids=lambda install: install.__name__,
)  # fmt: skip
def test_there_and_back(tmp_path: Path, patches: Path, install: Callable[[Path], None]) -> None:
    prefix = make_environment(tmp_path)
    install(prefix)
    assert_there_and_back(python_of(prefix), patches)
    cached = tmp_path / "cached"
    if cached.exists():
        assert cached.read_text() == SOURCE


def test_a_prefix_whose_interpreter_cannot_run(tmp_path: Path, patches: Path) -> None:
    site = tmp_path / "image/usr/lib/python3/dist-packages"
    make_distribution(site, building.NAME, "1.5", PACKAGE)
    prefix = tmp_path / "image/usr"
    done = gatepatch.apply("toy-sm120", prefix=prefix, patches=[patches], assume="sm_120")
    assert done.outcome == "applied"
    assert "[9, 10, 12]" in (site / "toy/jit/comm.py").read_text()
    assert gatepatch.revert(prefix=prefix).outcome == "reverted"
    assert (site / "toy/jit/comm.py").read_text() == SOURCE
    assert not (site / ".gatepatch/state.json").exists()


def test_two_environments_on_one_checkout_agree(tmp_path: Path, patches: Path) -> None:
    one, two = make_environment(tmp_path, "one"), make_environment(tmp_path, "two")
    checkout(one)
    project = tmp_path / "c/python"
    install_editable(project, site_of(two), SETUPTOOLS, {"editable_mode": "compat"})
    keywords = {"patches": [patches], "assume": "sm_120"}
    first = gatepatch.apply("toy-sm120", python=python_of(one), **keywords)  # type: ignore[arg-type]
    second = gatepatch.apply("toy-sm120", python=python_of(two), **keywords)  # type: ignore[arg-type]
    assert (first.outcome, second.outcome) == ("applied", "already-applied")
    assert git(tmp_path / "c", "status", "--porcelain", "-uall") == "M python/toy/jit/comm.py"
    assert gatepatch.revert(python=python_of(two)).outcome == "reverted"
    assert git(tmp_path / "c", "status", "--porcelain", "-uall") == ""
    assert gatepatch.status(python=python_of(one), patches=[patches]).outcome == "pristine"


def test_lost_state_of_a_checkout_is_rebuilt_from_git(tmp_path: Path, patches: Path) -> None:
    prefix = make_environment(tmp_path)
    checkout(prefix)
    python = python_of(prefix)
    gatepatch.apply("toy-sm120", python=python, patches=[patches], assume="sm_120")
    (tmp_path / "c/.git/.gatepatch").rename(tmp_path / "lost")
    assert gatepatch.status(python=python, patches=[patches]).outcome == "applied"
    assert gatepatch.revert(python=python, patches=[patches]).outcome == "reverted"
    assert majors(python) == "[9, 10]"


def test_a_shadowed_install_is_refused(
    tmp_path: Path, patches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_environment(tmp_path)
    plain(prefix)
    write_files(tmp_path / "mine", PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    with pytest.raises(RefusedError) as refused:
        gatepatch.plan("toy-sm120", python=python_of(prefix), patches=[patches])
    assert str(refused.value) == (
        "toy/jit/comm.py (toy-engine 1.5): a change would have no effect: "
        f"{tmp_path}/mine/toy is imported in its place\n"
        f"  take {tmp_path}/mine off the import path (PYTHONPATH), or remove what an older install "
        "left there"
    )


def test_revert_needs_no_metadata(tmp_path: Path, patches: Path) -> None:
    prefix = make_environment(tmp_path)
    plain(prefix)
    python = python_of(prefix)
    gatepatch.apply("toy-sm120", python=python, patches=[patches], assume="sm_120")
    make_distribution(site_of(prefix), building.NAME, "1.6", {})  # two versions in one folder
    assert gatepatch.revert(python=python).outcome == "reverted"
    assert majors(python) == "[9, 10]"


@pytest.mark.skipif(os.geteuid() != 0, reason="another owner takes root to make")
def test_revert_needs_no_git(tmp_path: Path, patches: Path) -> None:
    prefix = make_environment(tmp_path)
    checkout(prefix)
    python = python_of(prefix)
    gatepatch.apply("toy-sm120", python=python, patches=[patches], assume="sm_120")
    for folder in (tmp_path / "c", tmp_path / "c/.git"):
        os.chown(folder, 1234, 1234)
    assert gatepatch.revert(python=python).outcome == "reverted"
    assert majors(python) == "[9, 10]"


def test_foreign_edits_in_a_checkout_name_the_command_for_that_file(
    tmp_path: Path, patches: Path
) -> None:
    prefix = make_environment(tmp_path)
    checkout(prefix)
    write_files(tmp_path / "c", {"python/toy/jit/comm.py": SOURCE.replace("10]", "10, 12, 13]")})
    with pytest.raises(RefusedError, match="foreign: something other than gatepatch") as refused:
        gatepatch.plan("toy-sm120", python=python_of(prefix), patches=[patches])
    assert f"git -C {tmp_path}/c checkout HEAD -- python/toy/jit/comm.py" in str(refused.value)
