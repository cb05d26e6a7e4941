"""Editable installs by real build backends: what is located is what Python imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import building
from building import install_editable, make_project
from gatepatch.editable import Location
from gatepatch.environment import find_environment
from gatepatch.errors import TargetError
from gatepatch.target import Target, find_target
from trees import make_distribution, make_environment, python_of, site_of, write_files

SRC = {f"src/{path}": text for path, text in building.PACKAGE.items()}
SETUPTOOLS = "setuptools.build_meta"


def target_of(prefix: Path) -> Target:
    found = find_target(find_environment(python=python_of(prefix)), building.NAME)
    assert found is not None
    return found


def imported(prefix: Path, module: str) -> Path:
    """The file that the environment's own interpreter imports."""
    code = f"import importlib; print(importlib.import_module({module!r}).__file__)"
    done = subprocess.run(
        [python_of(prefix), "-B", "-c", code], capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def assert_followed(
    prefix: Path, files: tuple[str, ...] = ("toy/__init__.py", "toy/jit/comm.py")
) -> Target:
    target = target_of(prefix)
    assert target.editable
    for file in files:
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert target.locate(file) == imported(prefix, module)
        assert target.shadow(file) is None
    return target


@pytest.mark.parametrize(
    ("backend", "pyproject", "files", "settings"),
    [
        pytest.param("hatchling.build", building.HATCHLING
                     + "[tool.hatch.build.targets.wheel]\npackages = ['toy']\n",
                     building.PACKAGE, {}, id="hatchling"),
        pytest.param("hatchling.build", building.HATCHLING
                     + "[tool.hatch.build.targets.wheel]\npackages = ['src/toy']\n",
                     SRC, {}, id="hatchling, src"),
        pytest.param("hatchling.build", building.HATCHLING
                     + "[tool.hatch.build]\ndev-mode-exact = true\n"
                     + "[tool.hatch.build.targets.wheel]\npackages = ['src/toy']\n",
                     SRC, {}, id="hatchling, exact: the editables package"),
        pytest.param(SETUPTOOLS, building.SETUPTOOLS, SRC, {}, id="setuptools, src: a path file"),
        pytest.param(SETUPTOOLS, building.SETUPTOOLS, building.PACKAGE, {},
                     id="setuptools, flat: an import hook"),
        pytest.param(SETUPTOOLS, building.SETUPTOOLS, building.PACKAGE,
                     {"editable_mode": "compat"}, id="setuptools, compat"),
        pytest.param(SETUPTOOLS, building.SETUPTOOLS, building.PACKAGE,
                     {"editable_mode": "strict"}, id="setuptools, strict: a tree of links"),
        pytest.param("flit_core.buildapi", building.FLIT, building.PACKAGE, {}, id="flit"),
        pytest.param("pdm.backend", building.PDM, SRC, {}, id="pdm"),
        pytest.param("pdm.backend", building.PDM
                     + "[tool.pdm.build]\neditable-backend = 'editables'\n",
                     SRC, {}, id="pdm, the editables package"),
        pytest.param("poetry.core.masonry.api", building.POETRY, building.PACKAGE, {}, id="poetry"),
    ],
)  # fmt: skip
def test_what_is_located_is_what_is_imported(
    tmp_path: Path,
    backend: str,
    pyproject: str,
    files: Mapping[str, str],
    settings: Mapping[str, str],
) -> None:
    prefix = make_environment(tmp_path)
    share_editables(prefix)
    project = make_project(tmp_path / "a project", pyproject, files)
    install_editable(project, site_of(prefix), backend, settings)
    target = assert_followed(prefix)
    assert str(target.version) == "1.5.0.dev1+gabc1234"
    assert target.root.path.is_relative_to(project)
    assert target.warnings == ()


def share_editables(prefix: Path) -> None:
    """The hook that hatchling and pdm write imports ``editables`` at run time."""
    import editables

    folder = Path(editables.__file__).parent
    (site_of(prefix) / "editables").symlink_to(folder)


def test_a_mapped_module_that_is_one_file(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    pyproject = building.SETUPTOOLS + (
        "[tool.setuptools]\npackages = ['toy']\npy-modules = ['toy_main']\n"
    )
    files = {"toy/__init__.py": "", "toy_main.py": "x = 1\n"}
    project = make_project(tmp_path / "p", pyproject, files)
    install_editable(project, site_of(prefix), SETUPTOOLS)
    assert_followed(prefix, ("toy/__init__.py", "toy_main.py"))


def test_namespace_packages_are_mapped_by_their_dotted_names(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    pyproject = building.SETUPTOOLS + (
        "[tool.setuptools]\npackages = ['space.toy', 'space.toy.jit']\n"
        "[tool.setuptools.package-dir]\n'space.toy' = 'lib/toy'\n"
    )
    files = {"lib/toy/__init__.py": "", "lib/toy/jit/__init__.py": "", "lib/toy/jit/comm.py": ""}
    project = make_project(tmp_path / "p", pyproject, files)
    install_editable(project, site_of(prefix), SETUPTOOLS)
    assert_followed(prefix, ("space/toy/__init__.py", "space/toy/jit/comm.py"))


def test_the_packages_of_a_path_file_with_two_lines(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    pyproject = building.HATCHLING + (
        "[tool.hatch.build]\ndev-mode-dirs = ['one', 'two']\n"
        "[tool.hatch.build.targets.wheel]\npackages = ['one/toy', 'two/other']\n"
    )
    files = {"one/toy/__init__.py": "", "two/other/__init__.py": ""}
    project = make_project(tmp_path / "p", pyproject, files)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    install_editable(project, site_of(prefix), "hatchling.build")
    target = assert_followed(prefix, ("toy/__init__.py", "other/__init__.py"))
    assert target.relative("other/__init__.py") == "two/other/__init__.py"


def test_the_egg_info_beside_the_source_is_no_second_copy(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    install_editable(project, site_of(prefix), SETUPTOOLS, {"editable_mode": "compat"})
    assert (project / "toy_engine.egg-info").is_dir()
    assert project in find_environment(python=python_of(prefix)).paths
    assert target_of(prefix).warnings == ()


def test_a_source_folder_on_pythonpath_is_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_environment(tmp_path)
    other = make_environment(tmp_path, "other")
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    install_editable(project, site_of(other), SETUPTOOLS)  # leaves an egg-info beside the source
    monkeypatch.setenv("PYTHONPATH", str(project))
    target = assert_followed(prefix)
    assert (target.root.kind, target.root.path) == ("checkout", project)
    assert target.root == target_of(other).root


def test_flits_symlink_install(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", building.FLIT)
    site = site_of(prefix)
    (site / "toy").symlink_to(project / "toy")
    info = make_distribution(site, building.NAME, "1.5", {})
    url = {"url": project.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(url))
    with (info / "RECORD").open("a") as record:
        record.write("toy,,\n")
    target = target_of(prefix)
    assert target.editable
    assert target.root.path == project
    assert target.locate("toy/jit/comm.py") == project / "toy/jit/comm.py"
    assert target.shadow("toy/jit/comm.py") is None


@pytest.mark.parametrize("line", ["{0}\n.", "{0}\n../", "../../../../p\n."])
def test_an_egg_link(tmp_path: Path, line: str) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    egg_info = {"toy_engine.egg-info/PKG-INFO": "Name: toy-engine\nVersion: 1.5\n\nBody\n"}
    write_files(project, egg_info)
    write_files(
        site_of(prefix),
        {"toy-engine.egg-link": line.format(project), "easy-install.pth": f"{project}\n"},
    )
    target = assert_followed(prefix)
    assert str(target.version) == "1.5"
    assert target.root.path == project
    assert target.warnings == ()


def test_an_empty_egg_link(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    write_files(site_of(prefix), {"toy-engine.egg-link": ""})
    with pytest.raises(TargetError) as refused:
        target_of(prefix)
    assert str(refused.value) == (
        f"{site_of(prefix)}/toy-engine.egg-link: names no folder on its first line\n"
        "  install it again: pip install -e FOLDER"
    )


def fake_editable(
    prefix: Path, project: Path, files: Mapping[str, str], *, record: bool = True
) -> Path:
    info = make_distribution(site_of(prefix), building.NAME, "1.5", files, record=record)
    url = {"url": project.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(url))
    return info


@pytest.mark.parametrize(
    ("mark", "backend"),
    [
        ("class MesonpyMetaFinder: pass", "meson-python"),
        ("class ScikitBuildRedirectingFinder: pass", "scikit-build-core"),
    ],
)
def test_hooks_that_build_are_refused(tmp_path: Path, mark: str, backend: str) -> None:
    prefix = make_environment(tmp_path)
    info = fake_editable(
        prefix,
        tmp_path / "a p",
        {"_toy_editable.py": mark + "\n", "toy.pth": "import _toy_editable\n"},
    )
    with pytest.raises(TargetError) as refused:
        target_of(prefix)
    assert str(refused.value) == (
        f"{info}: is an editable install of {tmp_path}/a p by {backend}, whose import hook builds "
        "and maps files as they are imported: it cannot be read\n"
        f"  install it without -e: pip install '{tmp_path}/a p'"
    )


def test_an_unknown_hook_is_refused(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    info = fake_editable(prefix, tmp_path / "p", {"_hook.py": "x = (\n", "a.pth": "import _hook\n"})
    with pytest.raises(TargetError) as refused:
        target_of(prefix)
    assert str(refused.value) == (
        f"{info}: is an editable install of {tmp_path}/p by a mechanism that gatepatch cannot "
        "read\n  install it with a path file: pip install --config-settings editable_mode=compat "
        f"-e {tmp_path}/p (setuptools), or without -e"
    )


def test_an_editable_install_without_record_is_refused(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    info = fake_editable(prefix, tmp_path / "p", {"toy.pth": f"{tmp_path}\n"}, record=False)
    with pytest.raises(TargetError) as refused:
        target_of(prefix)
    assert str(refused.value) == (
        f"{info}: is an editable install of {tmp_path}/p, and has no RECORD to follow\n"
        f"  install it again: pip install -e {tmp_path}/p"
    )


def test_a_source_folder_that_is_gone(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    info = fake_editable(prefix, tmp_path / "p", {"toy.pth": f"{tmp_path}/p\n"})
    with pytest.raises(TargetError) as refused:
        target_of(prefix)
    assert str(refused.value) == (
        f"{info}: is an editable install of {tmp_path}/p, which is not there\n"
        "  install toy-engine again"
    )


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"url": "file:///p"}', '{"url": 1, "dir_info": {"editable": true}}',
     '{"url": "file:///p", "dir_info": []}', '{"url": "file:///p", "dir_info": {"editable": 1}}'],
)  # fmt: skip
def test_a_damaged_note_of_the_source_is_an_ordinary_install(tmp_path: Path, text: str) -> None:
    prefix = make_environment(tmp_path)
    info = make_distribution(site_of(prefix), building.NAME, "1.5", building.PACKAGE)
    (info / "direct_url.json").write_text(text)
    assert not target_of(prefix).editable


def test_a_path_that_no_mapped_package_holds(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    install_editable(project, site_of(prefix), SETUPTOOLS)
    with pytest.raises(TargetError) as refused:
        target_of(prefix).locate("other/x.py")
    assert str(refused.value) == (
        "toy-engine: other/x.py: lies in none of the packages that its editable install maps: toy"
    )


def test_what_an_older_install_left_shadows_the_source(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", building.SETUPTOOLS)
    install_editable(project, site_of(prefix), SETUPTOOLS)
    write_files(site_of(prefix), {"toy/__init__.py": "", "toy/jit/comm.py": ""})
    target = target_of(prefix)
    left = site_of(prefix) / "toy"
    assert imported(prefix, "toy") == left / "__init__.py"
    assert target.shadow("toy/jit/comm.py") == left


def test_the_base_of_mapped_packages() -> None:
    paths = {"toy": Path("/p/src/toy"), "space.other": Path("/p/src/space/other")}
    assert Location(packages=paths).base == Path("/p/src")
    assert Location(packages={**paths, "third": Path("/p/third")}).base == Path("/p")


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pip", "uv"])
@pytest.mark.parametrize(
    ("pyproject", "files", "refused"),
    [
        (building.HATCHLING + "[tool.hatch.build.targets.wheel]\npackages = ['toy']\n",
         building.PACKAGE, ""),
        (building.SETUPTOOLS, building.PACKAGE, ""),
        (building.SETUPTOOLS, SRC, ""),
        (building.FLIT, building.PACKAGE, ""),
        (building.PDM, SRC, ""),
        (building.POETRY, building.PACKAGE, ""),
        (building.MESON, {**building.PACKAGE, "meson.build":
                          "project('toy')\npy = import('python').find_installation()\n"
                          "py.install_sources('toy/__init__.py', subdir: 'toy')\n"},
         "meson-python"),
        (building.SCIKIT_BUILD, building.PACKAGE, ""),  # a path file beside its hook
    ],
    ids=["hatchling", "setuptools", "setuptools-src", "flit", "pdm", "poetry", "meson", "scikit"],
)  # fmt: skip
def test_real_installers(
    tmp_path: Path, tool: str, pyproject: str, files: Mapping[str, str], refused: str
) -> None:
    prefix = make_environment(tmp_path)
    project = make_project(tmp_path / "p", pyproject, files)
    if tool == "pip":
        run(sys.executable, "-m", "pip", "--python", prefix, "install", "-q", "-e", project)
    else:
        run(sys.executable, "-m", "uv", "pip", "install", "-q", "-p", python_of(prefix),
            "-e", project)  # fmt: skip
    if refused:
        with pytest.raises(TargetError, match=f" by {refused}, whose import hook builds"):
            target_of(prefix)
    else:
        assert_followed(prefix)
