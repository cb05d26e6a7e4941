"""A pinned apply of the four files, against patch-package-py with the same change as a diff.

Usage: python benchmarks/apply.py [ROUNDS]

Both tools are installed, as wheels, in one scratch environment with the real sglang 0.5.9 and
flashinfer-python 0.6.3, and patch that environment. Each command is a fresh process; the commands
run in turn, so that a busy machine slows all of them alike, and each starts from the same bytes.
Processor time varies less where others work too, and leaves out the waiting for the disk.
patch-package-py (``p12y``) gets the diffs that ``gatepatch plan`` prints; it checks no hash, keeps
no backup and syncs nothing to the disk.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SET = "sm120-allreduce"
REQUIREMENTS = ("sglang==0.5.9", "flashinfer-python==0.6.3")
OTHER = "patch-package-py==0.2.1"
APPLY = ("gatepatch", "apply", SET, "--assume", "sm_120")
REVERT = ("gatepatch", "revert")


class Scratch:
    """An environment with both tools and both packages.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.prefix = folder / "env"
        venv.EnvBuilder(with_pip=True).create(self.prefix)
        self._pip("install", "--no-deps", "--only-binary", ":all:", *REQUIREMENTS)
        self._pip("install", str(ROOT), OTHER)
        (self.patches).mkdir()
        planned = json.loads(self.run("gatepatch", "plan", SET, "--json"))
        for file in planned["sets"][0]["files"]:
            name = f"{file['distribution']}+{file['version']}.patch"
            with (self.patches / name).open("a") as patch:
                patch.write(file["diff"])

    @property
    def patches(self) -> Path:
        """Where ``p12y`` looks for its patches: under the folder that it runs in."""
        return self.folder / "patches"

    def _pip(self, *words: str) -> None:
        pip = [str(self.prefix / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "-q", *words], capture_output=True, text=True)
        # What it says where all went well is that sglang's dependencies are not here.
        if done.returncode:
            sys.exit(done.stderr)

    def run(self, *words: str) -> str:
        """Run one of the environment's commands; its output."""
        command = [str(self.prefix / "bin" / words[0]), *words[1:]]
        environment = {**os.environ, "HOME": str(self.folder)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=self.folder, env=environment
        )
        return done.stdout

    def timed(self, *words: str) -> tuple[float, float]:
        """The wall time of a command, and its processor time, in milliseconds."""
        start, used = time.perf_counter(), _processor_time()
        self.run(*words)
        return (time.perf_counter() - start) * 1000, (_processor_time() - used) * 1000

    def contents(self) -> dict[Path, bytes]:
        """The files that the change is about."""
        (site,) = self.prefix.glob("lib/python*/site-packages")
        folders = (
            site / "sglang" / "srt",
            site / "flashinfer" / "jit",
            site / "flashinfer" / "data",
        )
        found = (path for folder in folders for path in folder.rglob("*"))
        kinds = (".py", ".cuh")
        return {path: path.read_bytes() for path in found if path.suffix in kinds}

    def take_back(self) -> None:
        """Undo what ``p12y`` has done; it cannot do so itself."""
        (site,) = self.prefix.glob("lib/python*/site-packages")
        for patch in self.patches.iterdir():
            subprocess.run(["patch", "-s", "-R", "-p1", "-i", patch], check=True, cwd=site)


def _processor_time() -> float:
    """What the processes that have ended used, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(scratch: Scratch, rounds: int) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Wall and processor times of each command; the first round is a warm-up."""
    other = ("p12y", "apply", "-e", str(scratch.prefix))
    before = scratch.contents()
    times: dict[str, list[tuple[float, float]]] = {}

    def note(name: str, *words: str) -> None:
        times.setdefault(name, []).append(scratch.timed(*words))

    for _ in range(rounds + 1):
        note("p12y apply", *other)
        theirs = scratch.contents()
        note("p12y apply, again", *other)
        scratch.take_back()
        note("gatepatch apply", *APPLY)
        assert scratch.contents() == theirs != before, "the two do not make the same change"
        note("gatepatch apply, again", *APPLY)
        note("gatepatch revert", *REVERT)
        assert scratch.contents() == before
    return {name: values[1:] for name, values in times.items()}


def main() -> None:
    """Print a line for each command."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        times = measure(Scratch(Path(folder)), rounds)
    medians = {
        name: [statistics.median(each) for each in zip(*values, strict=True)]
        for name, values in times.items()
    }
    base = medians["p12y apply"]
    print(f"Python {sys.version.split()[0]}, {OTHER}, median of {rounds} processes each")
    print(f"{'':24}  wall ms    of p12y  processor ms    of p12y")
    for name, (wall, used) in medians.items():
        print(f"{name:24}{wall:9.1f}{wall / base[0]:11.2f}{used:14.1f}{used / base[1]:11.2f}")


if __name__ == "__main__":
    main()
