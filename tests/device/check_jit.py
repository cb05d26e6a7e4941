"""FlashInfer's real JIT over apply and revert, on two GPUs: ``python tests/device/check_jit.py``.

Usage: python check_jit.py PYTHON WHEELS [--sccache] [SCRATCH FIRST LAST]

PYTHON has torch; WHEELS is a folder with the wheels of sglang 0.5.9, flashinfer-python 0.6.3 and
what the latter imports. They go into a scratch environment that sees PYTHON's packages. Prints the
time of each first load of ``trtllm_comm`` and PASS or FAIL for the sums of an all-reduce over two
GPUs before, with and after the set; exits 1 if one is wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from packaging.version import Version

import gatepatch
from gatepatch.trials import compiler_cache

SET = "sm120-allreduce"
NAMES = (
    "sglang", "flashinfer_python", "apache_tvm_ffi", "nvidia_ml_py", "nvidia_cudnn_frontend",
    "einops", "click", "tabulate", "tqdm", "requests", "urllib3", "certifi", "idna",
    "charset_normalizer",
)  # fmt: skip
RANKS = 2
TOLERANCE = 2 / 1024


def environment(python: str, wheels: Path, folder: Path) -> Path:
    """A scratch environment with the wheels, beside the packages of another interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for wheel in sorted(wheels.glob("*.whl")):
        if wheel.name.startswith(tuple(f"{name}-" for name in NAMES)):
            subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, site], check=True)
    shown = "import sysconfig; print(sysconfig.get_path('purelib'))"
    other = subprocess.run([python, "-c", shown], check=True, capture_output=True, text=True)
    (site / "torch.pth").write_text(other.stdout)
    return folder / "bin" / "python"


def load(python: Path, home: Path, variables: dict[str, str]) -> tuple[float, list[dict[str, Any]]]:
    """Load the module and sum over two GPUs; the seconds of it all, and each rank's answer."""
    script = str(Path(__file__).with_name("all_reduce.py"))
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(home), "PATH": path, **variables}
    env.pop("PYTHONPATH", None)
    port = str(20000 + os.getpid() % 20000)
    start = time.perf_counter()
    ranks = [
        subprocess.Popen(
            [python, script, str(rank), port],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    answers = []
    for rank in ranks:
        out, err = rank.communicate(timeout=400)
        if rank.returncode:
            raise RuntimeError(err[-2500:] or out[-500:])
        answers.append(json.loads(out.splitlines()[-1]))
    return time.perf_counter() - start, answers


def main(python: str, wheels: str, *options: str) -> int:
    """Go from side to side, and load each time; the exit code."""
    failed = False
    kept = [option for option in options if option != "--sccache"]
    with tempfile.TemporaryDirectory() as temporary:
        scratch, first, last = kept or (temporary, "1", "4")
        home = Path(scratch, "home")
        home.mkdir(parents=True, exist_ok=True)
        os.environ["HOME"] = str(home)
        there = Path(scratch, "env", "bin", "python")
        if first == "1":
            there = environment(python, Path(wheels), Path(scratch, "env"))
        through = compiler_cache.Through()
        if "--sccache" in options:
            through = compiler_cache.choose(Version("0.6.3"), os.environ)
            assert through.variables, through.note
            print(through.words)
        jit = home / ".cache" / "flashinfer"
        steps = ("before", "with the set", "after revert", "with it again")
        for number, step in list(enumerate(steps))[int(first) - 1 : int(last)]:
            start = time.perf_counter()
            if number % 2:
                jit_roots = [jit] if jit.is_dir() else []
                done = gatepatch.apply(SET, python=there, assume="sm_120", jit_roots=jit_roots)
                assert done.outcome == "applied", done
                assert done.jit_removed, done
            elif number:
                assert gatepatch.revert(python=there, jit_roots=[jit]).outcome == "reverted"
            switched = time.perf_counter() - start
            took, answers = load(there, home, dict(through.variables))
            off = max(value for answer in answers for value in answer["off"].values())
            slowest = max(answer["loaded_s"] for answer in answers)
            word = "PASS" if off <= TOLERANCE else "FAIL"
            failed = failed or word == "FAIL"
            print(
                f"{word}  {step:14}  switch {switched:5.2f} s, first load {slowest:6.2f} s, "
                f"all {took:6.2f} s, worst sum off by {off:.5f}  {answers[0]['off']}",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
