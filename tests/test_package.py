"""What importing costs and does, the public names, and the wheel in an empty environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import gatepatch
from gatepatch import catalog
from lookalikes import contents, make_server
from trees import python_of

REPOSITORY = Path(__file__).parents[1]
HEAVY = ("cupy", "filelock", "libcst", "packaging", "typing", "yaml")


def python(code: str, cwd: Path) -> str:
    """What a fresh interpreter prints."""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def modules_after(statement: str, cwd: Path) -> set[str]:
    """The modules that a statement loads into a fresh interpreter."""
    code = f"import sys; b = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - b))"
    return set(python(code, cwd).split())


def test_import_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = modules_after("import gatepatch", tmp_path)
    assert loaded == {"gatepatch"} | {m for m in loaded if m.startswith("__")}


@pytest.mark.parametrize(
    "statement",
    ["import gatepatch.api", "import gatepatch; gatepatch.apply, gatepatch.GatepatchError"],
)
def test_naming_a_function_loads_no_dependency(statement: str, tmp_path: Path) -> None:
    loaded = {name.partition(".")[0] for name in modules_after(statement, tmp_path)}
    assert loaded.isdisjoint({*HEAVY} - {"typing"})


@pytest.mark.parametrize("command", ["--version", "--help"])
def test_the_command_line_loads_no_engine(command: str, tmp_path: Path) -> None:
    code = f"import gatepatch.cli\ntry: gatepatch.cli.main(['{command}'])\nexcept SystemExit: pass"
    loaded = {name.partition(".")[0] for name in modules_after(code, tmp_path)}
    assert loaded.isdisjoint({"cupy", "filelock", "libcst", "yaml"})


def test_import_writes_nothing(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = "import sys\nsys.addaudithook(lambda e, a: e == 'open' and a[2] & 3 and print(a[0]))\n"
    assert python(f"{code}import gatepatch\ngatepatch.apply", tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    assert list(home.rglob("*")) == []


def test_public_names() -> None:
    assert gatepatch.__all__ == [
        "GatepatchError",
        "__version__",
        "applied",
        "apply",
        "cache",
        "doctor",
        "lint",
        "list_sets",
        "new",
        "pin",
        "plan",
        "probe",
        "recover",
        "revert",
        "scan",
        "show",
        "status",
        "trial",
        "verify",
    ]
    assert dir(gatepatch) == gatepatch.__all__
    for name in gatepatch.__all__:
        assert getattr(gatepatch, name) is not None


def test_no_other_name() -> None:
    with pytest.raises(AttributeError, match="module 'gatepatch' has no attribute 'patch'"):
        _ = gatepatch.patch


def test_sets_of_an_editable_install_are_those_of_the_checkout() -> None:
    assert catalog.shipped() == REPOSITORY / "patches"


@pytest.mark.slow
def test_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    """Build it, install it with its dependencies, and do the main job with it."""
    dist = tmp_path / "dist"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", os.fspath(dist), REPOSITORY],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sets = {
        f"gatepatch/patches/{path.relative_to(REPOSITORY / 'patches').as_posix()}"
        for path in (REPOSITORY / "patches").rglob("*")
        if path.is_file()
    }
    assert "gatepatch/patches/sm120-allreduce/set.yaml" in sets
    assert sets <= names
    assert "gatepatch/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)

    prefix = tmp_path / "tool"
    venv.create(prefix, with_pip=True, symlinks=True)
    subprocess.run(
        [python_of(prefix), "-m", "pip", "install", "--quiet", wheel],
        check=True,
        stdout=subprocess.DEVNULL,
    )

    server = make_server(tmp_path)
    before = contents(server)

    def run(*words: str) -> dict[str, object]:
        command = [os.fspath(prefix / "bin" / "gatepatch"), *words, "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=tmp_path)
        document: dict[str, object] = json.loads(done.stdout)
        return document

    listed = run("list")["sets"]
    assert isinstance(listed, list)
    assert "sm120-allreduce" in [row["name"] for row in listed]
    where = ("sm120-allreduce", "--prefix", os.fspath(server))
    assert run("plan", *where)["outcome"] == "would-apply"
    assert run("apply", *where, "--assume", "sm_120")["outcome"] == "applied"
    assert contents(server) != before
    assert run("revert", *where)["outcome"] == "reverted"
    assert contents(server) == before


def test_no_module_hides_a_public_name() -> None:
    """Once imported, a module is an attribute of its package, and ``__getattr__`` is not asked."""
    folder = Path(gatepatch.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix in ("", ".py")}
    assert modules & set(gatepatch.__all__) == set()
