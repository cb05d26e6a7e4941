"""Real ninja: the one at hand, or a version of it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from wheels import fetch

VERSIONS = {"1.10": "1.10.2.4", "1.11": "1.11.1.4", "1.13": "1.13.0"}
"""ninja's versions to those of its distribution on PyPI."""


def ninja_at_hand() -> str:
    """The program in the environment that runs the tests, or on the path."""
    beside = Path(sys.executable).with_name("ninja")
    found = str(beside) if beside.is_file() else shutil.which("ninja")
    assert found, "the tests need ninja: pip install ninja"
    return found


def ninja_of(version: str) -> str:
    """The program of a version, fetched once."""
    tree = fetch("ninja", VERSIONS[version])
    (program,) = (p for p in tree.rglob("ninja") if p.is_file())
    program.chmod(0o755)  # an archive's modes are lost when it is unpacked
    return str(program)
