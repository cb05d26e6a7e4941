"""A patch set of your own, for a small package: plan, apply, see the effect, revert.

Usage: python examples/own-set/run.py [FOLDER]

The environment is made in FOLDER, or in a temporary folder that is removed. It needs no network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import gatepatch

HERE = Path(__file__).resolve().parent
SET, PATCHES = "toykernels-sm89", HERE / "patches"


def install(prefix: Path) -> Path:
    """Make an environment with toykernels in it; return its interpreter."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(prefix)
    (site,) = prefix.glob("lib/python3*/site-packages")
    # Copied by hand instead of installed, so that the example needs no build backend. Without a
    # RECORD nothing vouches for the files, and gatepatch says "unwitnessed".
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "toykernels", site / "toykernels", ignore=ignore)
    info = site / "toykernels-1.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toykernels\nVersion: 1.2.0\n")
    return prefix / "bin" / "python"


def kernels(python: Path) -> str:
    """Which kernel each architecture gets."""
    answers = []
    for arch in ("8.6", "8.9", "9.0"):
        command = [str(python), "-m", "toykernels.dispatch", arch]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        answers.append(f"SM {arch}: {answer.strip()}")
    return ", ".join(answers)


def run(prefix: Path) -> None:
    """Apply the set and revert it."""
    python = install(prefix)
    print("before:", kernels(python))
    for file in gatepatch.plan(SET, prefix=prefix, patches=[PATCHES]).sets[0].files:
        print(file.diff)
    with gatepatch.applied(SET, prefix=prefix, patches=[PATCHES], assume="sm_89"):
        print("applied:", kernels(python))
    print("reverted:", kernels(python))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder) / "env")
