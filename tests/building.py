"""Small source trees for real build backends, and editable installs of them without a network."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from trees import record_of, write_files

_BUILD = """
import importlib, json, sys
backend, folder, settings = json.loads(sys.argv[1])
sys.stdout = sys.stderr
hooks = importlib.import_module(backend)
getattr(hooks, "get_requires_for_build_editable", len)(settings)  # as pip does
name = hooks.build_editable(folder, settings or None)
print(name, file=sys.__stdout__)
"""

NAME = "toy-engine"

SETUPTOOLS = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "toy-engine"
version = "1.5.0.dev1+gabc1234"
"""

HATCHLING = """
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"
[project]
name = "toy-engine"
version = "1.5.0.dev1+gabc1234"
"""

FLIT = """
[build-system]
requires = ["flit_core>=3.12"]
build-backend = "flit_core.buildapi"
[project]
name = "toy-engine"
version = "1.5.0.dev1+gabc1234"
description = "A toy"
[tool.flit.module]
name = "toy"
"""

PDM = """
[build-system]
requires = ["pdm-backend>=2.4"]
build-backend = "pdm.backend"
[project]
name = "toy-engine"
version = "1.5.0.dev1+gabc1234"
"""

POETRY = """
[build-system]
requires = ["poetry-core>=2"]
build-backend = "poetry.core.masonry.api"
[project]
name = "toy-engine"
version = "1.5.0.dev1+gabc1234"
description = "A toy"
[tool.poetry]
packages = [{include = "toy"}]
"""

MESON = """
[build-system]
requires = ["meson-python>=0.17"]
build-backend = "mesonpy"
[project]
name = "toy-engine"
version = "1.5.0"
"""

SCIKIT_BUILD = """
[build-system]
requires = ["scikit-build-core>=0.11"]
build-backend = "scikit_build_core.build"
[project]
name = "toy-engine"
version = "1.5.0"
[tool.scikit-build]
wheel.cmake = false
wheel.packages = ["toy"]
"""

PACKAGE: Mapping[str, str] = {
    "toy/__init__.py": "flag = False\n",
    "toy/jit/comm.py": "majors = [9, 10]\n",
    "toy/jit/__init__.py": "",
}


def make_project(folder: Path, pyproject: str, files: Mapping[str, str] = PACKAGE) -> Path:
    """Write a source tree; return its folder."""
    write_files(folder, {"pyproject.toml": pyproject, **files})
    return folder


def install_editable(
    project: Path, site: Path, backend: str, settings: Mapping[str, str] | None = None
) -> Path:
    """Install a source tree as pip does, by its real backend; return the ``.dist-info``."""
    wheels = project.parent / f"{project.name}-wheels"
    wheels.mkdir(exist_ok=True)
    request = json.dumps([backend, str(wheels), dict(settings or {})])
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, request], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(wheels / done.stdout.strip()) as wheel:
        wheel.extractall(site)
        names = wheel.namelist()
    info = next(name for name in names if name.endswith("/METADATA")).partition("/")[0]
    url = {"url": project.as_uri(), "dir_info": {"editable": True}}
    write_files(site / info, {"direct_url.json": json.dumps(url)})
    files = [n for n in names if not n.endswith(("/", "/RECORD"))]
    (site / info / "RECORD").write_text(record_of(site, [*files, f"{info}/direct_url.json"], info))
    return site / info
