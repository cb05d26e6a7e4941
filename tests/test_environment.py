"""Environments, found without importing anything from them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gatepatch.environment import Environment, find_environment
from gatepatch.errors import TargetError, UsageError
from trees import make_distribution, make_environment, python_of, site_of, write_files

VERSION = sys.version_info[:2]


def in_child(python: Path, code: str, *flags: str, cwd: Path | None = None) -> str:
    """What a child process prints that finds its own environment."""
    source = Path(__file__).parents[1] / "src"
    done = subprocess.run(
        [python, *flags, "-c", code], capture_output=True, text=True, cwd=cwd, check=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    return done.stdout


def test_the_running_environment() -> None:
    found = find_environment()
    assert found.running
    assert found.prefix == Path(sys.prefix)
    assert found.version == VERSION
    assert found.python == Path(sys.executable)
    assert all(path.is_dir() and path.is_absolute() for path in found.paths)


def test_the_folder_of_the_running_script_does_not_count(tmp_path: Path) -> None:
    write_files(tmp_path / "scripts", {"deploy.py": "x = 1\n"})
    code = (
        "import sys; sys.path[0] = {0!r}; sys.modules['__main__'].__file__ = {0!r} + '/deploy.py'\n"
        "from gatepatch.environment import find_environment as f; print(f().paths)"
    ).format(str(tmp_path / "scripts"))
    assert str(tmp_path) not in in_child(Path(sys.executable), code)


def test_the_current_folder_of_dash_m_does_not_count(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"show.py": "from gatepatch.environment import *\nprint(find_environment().paths)\n"},
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "show"], capture_output=True, text=True, cwd=tmp_path, env=env
    )
    assert done.stdout.startswith("(")
    assert f"'{tmp_path}'" not in done.stdout


def test_another_environment_by_its_interpreter(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    found = find_environment(python=python_of(prefix))
    assert not found.running
    assert found.prefix == prefix
    assert found.version == VERSION
    assert found.python == python_of(prefix)
    assert site_of(prefix) in found.paths


def test_the_interpreters_link_is_not_resolved(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    assert python_of(prefix).is_symlink()
    assert find_environment(python=str(python_of(prefix))).prefix == prefix


def test_an_interpreter_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_environment(tmp_path)
    monkeypatch.setenv("PATH", str(prefix / "bin"), prepend=os.pathsep)
    assert find_environment(python="python").prefix == prefix


def test_an_interpreter_by_a_relative_path_is_not_looked_up_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = make_environment(tmp_path, "here"), make_environment(tmp_path, "other")
    monkeypatch.chdir(here / "bin")
    monkeypatch.setenv("PATH", str(other / "bin"), prepend=os.pathsep)
    assert find_environment(python="./python").prefix == here
    assert find_environment(python=Path("python")).prefix == here


def test_pythonpath_and_user_site_count_in_the_order_of_import(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    user = home / ".local" / "lib" / f"python{VERSION[0]}.{VERSION[1]}" / "site-packages"
    for folder in (mine, user):
        folder.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(mine))
    base = Path(sys.base_prefix) / "bin" / f"python{VERSION[0]}.{VERSION[1]}"
    paths = find_environment(python=base).paths
    assert paths[0] == mine
    if in_child(base, "import site; print(site.ENABLE_USER_SITE)") == "True\n":
        assert user in paths


def test_path_files_count(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    (tmp_path / "source").mkdir()
    (site_of(prefix) / "_x.pth").write_text(f"{tmp_path / 'source'}\n{tmp_path / 'gone'}\n")
    paths = find_environment(python=python_of(prefix)).paths
    assert paths[-1] == tmp_path / "source"


def test_asking_writes_nothing_and_survives_what_start_up_files_print(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    write_files(
        site_of(prefix),
        {
            "noise.py": "import atexit\nprint('hello')\natexit.register(print, 'bye')\n",
            "noise.pth": "import noise\n",
        },
    )
    before = sorted(prefix.rglob("*"))
    assert find_environment(python=python_of(prefix)).prefix == prefix
    assert sorted(prefix.rglob("*")) == before


def test_a_prefix_whose_interpreter_runs_is_asked(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    found = find_environment(prefix=prefix)
    assert found.python == python_of(prefix) or found.python == prefix / "bin" / "python3"
    assert found == find_environment(python=found.python)


def test_a_relative_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_environment(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_environment(prefix="env").prefix == prefix


def test_the_running_prefix_is_the_running_environment() -> None:
    assert find_environment(prefix=sys.prefix).running


def without_interpreter(prefix: Path, *layouts: str) -> Environment:
    """The environment of a prefix that holds only these folders."""
    for layout in layouts:
        (prefix / layout).mkdir(parents=True)
    return find_environment(prefix=prefix)


@pytest.mark.parametrize(
    "layout",
    [
        "lib/python3.12/site-packages",
        "lib64/python3.12/site-packages",
        "local/lib/python3.12/dist-packages",
        "lib/python3.12/dist-packages",
    ],
)
def test_layouts(tmp_path: Path, layout: str) -> None:
    found = without_interpreter(tmp_path, layout)
    assert found == Environment(
        python=None,
        prefix=tmp_path,
        version=(3, 12),
        paths=(tmp_path / layout,),
        running=False,
    )


def test_debian_layouts_in_the_order_of_import(tmp_path: Path) -> None:
    pip, apt = "local/lib/python3.11/dist-packages", "lib/python3/dist-packages"
    found = without_interpreter(tmp_path, apt, pip)
    assert found.paths == (tmp_path / pip, tmp_path / apt)
    assert found.version == (3, 11)


def test_lib64_that_is_a_link_counts_once(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib64").symlink_to("lib")
    found = without_interpreter(tmp_path, "lib/python3.12/site-packages")
    assert found.paths == (tmp_path / "lib/python3.12/site-packages",)


def test_an_interpreter_that_cannot_run_leaves_the_layout(tmp_path: Path) -> None:
    write_files(tmp_path, {"bin/python3": "#!/nowhere/python\n", "bin/python": "not a program"})
    (tmp_path / "bin" / "python3").chmod(0o755)
    found = without_interpreter(tmp_path, "lib/python3.9/site-packages")
    assert (found.python, found.version) == (None, (3, 9))


def test_path_files_of_a_layout_follow_their_folder(tmp_path: Path) -> None:
    folder = "lib/python3.12/site-packages"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    write_files(
        tmp_path / folder,
        {
            "1.pth": f"# a comment\n\nimport os\nimport\tos\n../../../a\n{tmp_path}/gone\n",
            "2.pth": b"\xef\xbb\xbf" + f"{tmp_path}/b  \n".encode(),
            ".hidden.pth": f"{tmp_path}\n",
        },
    )
    found = without_interpreter(tmp_path)
    assert found.paths == (tmp_path / folder, tmp_path / "a", tmp_path / "b")


def test_a_layout_with_several_pythons_is_refused(tmp_path: Path) -> None:
    layouts = ("lib/python3.10/site-packages", "lib/python3.9/site-packages")
    with pytest.raises(TargetError) as refused:
        without_interpreter(tmp_path, *layouts)
    assert str(refused.value) == (
        f"{tmp_path}: holds several Pythons: 3.9, 3.10\n  name the interpreter: --python EXE"
    )


def test_a_virtual_environments_note_tells_which_python(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr\nversion_info = 3.10.1.final.0\n")
    layouts = ("lib/python3.10/site-packages", "lib/python3.9/site-packages")
    assert without_interpreter(tmp_path, *layouts).paths == (tmp_path / layouts[0],)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # xdist's workers have threads
def test_folders_that_may_not_be_read_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is closed to other users
        closed = Path(folder) / "closed"
        (closed / "inside").mkdir(parents=True)
        Path(folder).chmod(0o755)
        closed.chmod(0)
        monkeypatch.setattr(sys, "path", [str(closed / "inside"), str(closed), folder])
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            try:
                if os.geteuid() == 0:  # nothing is closed to root
                    os.setuid(65534)
                os.write(writing, repr(find_environment().paths).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        closed.chmod(0o700)
        assert os.read(reading, 4096).decode() == repr((Path(folder),))


def test_both_is_wrong() -> None:
    with pytest.raises(UsageError, match=re.escape("give --python or --prefix, not both")):
        find_environment(python="python", prefix="/")


def test_no_such_interpreter(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^{tmp_path}/python: no such interpreter$"):
        find_environment(python=tmp_path / "python")
    with pytest.raises(UsageError, match=r"^no-such-python-anywhere: no such interpreter$"):
        find_environment(python="no-such-python-anywhere")


def test_a_folder_given_for_an_interpreter(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as wrong:
        find_environment(python=tmp_path)
    assert str(wrong.value) == (
        f"{tmp_path}: no such interpreter\n  its folder is named by --prefix {tmp_path}"
    )


def test_no_such_prefix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^{tmp_path}/gone: no such folder$"):
        find_environment(prefix=tmp_path / "gone")


def test_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    with pytest.raises(TargetError) as refused:
        find_environment(prefix=tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: is no Python environment: no site-packages or dist-packages in it\n"
        "  name its interpreter instead: --python EXE"
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho first >&2; echo 'no such module' >&2; exit 3\n", "no such module"),
        ("#!/bin/sh\necho hello\n", "no answer"),
        ("#!/bin/sh\necho gatepatch:nonsense\n", "Expecting value: line 1 column 1 (char 0)"),
    ],
    ids=["fails", "says nothing", "says something else"],
)
def test_what_is_not_an_interpreter(tmp_path: Path, script: str, said: str) -> None:
    path = tmp_path / "python"
    path.write_text(script)
    path.chmod(0o755)
    with pytest.raises(TargetError) as refused:
        find_environment(python=path)
    assert str(refused.value) == f"{path}: does not answer as a Python interpreter: {said}"


def test_a_file_that_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_text("")
    with pytest.raises(TargetError, match=r"does not answer as a Python interpreter: .*Permission"):
        find_environment(python=path)


def test_nothing_of_the_environment_is_imported(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "boom", "1", {"boom/__init__.py": "raise SystemExit(9)\n"})
    assert find_environment(python=python_of(prefix)).prefix == prefix
