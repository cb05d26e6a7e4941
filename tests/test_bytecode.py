"""Bytecode is removed in all its forms, and the interpreter is the judge."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from gatepatch import bytecode

FORMS = {
    "checked by mtime": [],
    "optimised": ["-O"],
    "optimised twice": ["-OO"],
    "prefix folder": ["-X", "pycache_prefix={prefix}"],
}


def _value(folder: Path, options: list[str], **env: str) -> str:
    command = [sys.executable, "-I", *options, "-c"]
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import module; print(module.x)"
    done = subprocess.run([*command, code], capture_output=True, text=True, env=env, check=True)
    return done.stdout.strip()


def _edit(source: Path, text: str) -> None:
    """Change a file within the second in which it was written, to as many bytes."""
    source.write_text(text)
    os.utime(source, (1_700_000_000, 1_700_000_000))


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_a_stale_module_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    options = [option.format(prefix=tmp_path / "prefix") for option in options]
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "prefix"))
    source = tmp_path / "lib" / "module.py"
    source.parent.mkdir()
    _edit(source, "x = 1\n")
    assert _value(source.parent, options) == "1"
    _edit(source, "x = 2\n")
    assert _value(source.parent, options) == "1"  # the trap
    assert bytecode.remove(source) == 1
    assert _value(source.parent, options) == "2"


def test_an_unchecked_hash_goes_too(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("x = 1\n")
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    source.write_text("x = 'longer, and later'\n")
    assert _value(tmp_path, []) == "1"  # the trap
    assert bytecode.remove(source) == 1
    assert _value(tmp_path, []) == "longer, and later"


def test_every_interpreter_and_level_and_the_legacy_place_and_nothing_else(
    tmp_path: Path,
) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    gone = [
        cache / "mod.cpython-310.pyc",
        cache / "mod.cpython-314.opt-1.pyc",
        cache / "mod.cpython-314.opt-2.pyc",
        cache / "mod.pypy311.pyc",
        tmp_path / "mod.pyc",
    ]
    stay = [
        cache / "mod2.cpython-310.pyc",
        cache / "a_mod.cpython-310.pyc",
        cache / "mod.cpython-310.nbi",
        tmp_path / "mod2.pyc",
        tmp_path / "mod.py",
    ]
    for path in (*gone, *stay):
        path.write_bytes(b"")
    assert bytecode.remove(tmp_path / "mod.py") == len(gone)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in stay)
    assert bytecode.remove(tmp_path / "mod.py") == 0


def test_odd_names_are_no_patterns(tmp_path: Path) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    for name in ("[ab]*.cpython-311.pyc", "a.cpython-311.pyc", "b.x.cpython-311.pyc"):
        (cache / name).write_bytes(b"")
    assert bytecode.remove(tmp_path / "[ab]*.py") == 1
    assert sorted(path.name for path in cache.iterdir()) == [
        "a.cpython-311.pyc",
        "b.x.cpython-311.pyc",
    ]


def test_what_is_no_python_source_has_none(tmp_path: Path) -> None:
    (tmp_path / "kernel.pyc").write_bytes(b"")
    assert bytecode.remove(tmp_path / "kernel.cuh") == 0
    assert (tmp_path / "kernel.pyc").exists()
