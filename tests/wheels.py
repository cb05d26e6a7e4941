"""Real wheels, fetched once and unpacked: for slow tests only."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

# Read at import, before a test gets an empty home and an environment without settings.
_ENVIRONMENT = dict(os.environ)
_CACHE = Path(
    _ENVIRONMENT.get("GATEPATCH_TEST_CACHE") or Path.home() / ".cache" / "gatepatch-tests"
)


def fetch(distribution: str, version: str) -> Path:
    """Return the unpacked tree of a wheel: what lies in it is what an installer would install."""
    folder = _CACHE / f"{distribution}-{version}"
    if folder.is_dir():
        return folder
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        only = ["--only-binary", ":all:", "--dest", scratch]
        subprocess.run(
            [*pip, *only, f"{distribution}=={version}"], check=True, env=_ENVIRONMENT, cwd=scratch
        )
        (wheel,) = Path(scratch).glob("*.whl")
        tree = Path(scratch, "tree")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tree)
        try:
            tree.rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    return folder


def environment(name: str, *requirements: str) -> Path:
    """Return the interpreter of a virtual environment with these requirements installed."""
    major, minor = sys.version_info[:2]
    prefix = _CACHE / f"{name}-py{major}{minor}"
    if not prefix.is_dir():
        _CACHE.mkdir(parents=True, exist_ok=True)
        venv.EnvBuilder(with_pip=True, clear=True).create(prefix)
    python = prefix / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True, env=_ENVIRONMENT, cwd=prefix)
    return python
