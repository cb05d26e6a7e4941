"""A scan of sglang and flashinfer-python against ast-grep with four Python patterns.

Usage: python benchmarks/scan.py PREFIX AST_GREP [DISTRIBUTION ...]

PREFIX is an environment that has the distributions, AST_GREP the program of ``ast-grep-cli``.
Everything runs in turn in one run: a busy machine slows all alike, and the ratios are what counts.
Processor time is that of the process and its children; memory is the largest child's, times two
scanning processes, and the parent's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PATTERNS = ("$A()[0] == $B", "is_sm100_supported()", "$M.major == $N", "$X in [$$$]")
DISTRIBUTIONS = ("sglang", "flashinfer-python")


def timed(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Run a command; return its wall time and its processor time, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        command,
        check=False,  # ast-grep exits 1 where nothing matches
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line for each, and the ratios."""
    prefix, ast_grep, *distributions = sys.argv[1:]
    (site,) = Path(prefix).glob("lib/python3*/site-packages")
    wall = cpu = 0.0
    for pattern in PATTERNS:
        command = [ast_grep, "run", "-l", "python", "-j", "2", "-p", pattern, str(site)]
        one = timed([*command, "--no-ignore", "hidden", "--no-ignore", "vcs"])
        print(f"ast-grep {pattern:24} {one[0]:8.1f} s wall {one[1]:8.1f} s cpu")
        wall, cpu = wall + one[0], cpu + one[1]
    names = distributions or DISTRIBUTIONS
    scan = [sys.executable, "-m", "gatepatch", "scan", *names, "--sm", "120", "--like", "100"]
    with tempfile.TemporaryDirectory() as cache:
        command = [*scan, "--prefix", prefix, "--json"]
        first = timed(command, {"XDG_CACHE_HOME": cache})
        second = timed(command, {"XDG_CACHE_HOME": cache})
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"ast-grep, four patterns            {wall:8.1f} s wall {cpu:8.1f} s cpu")
    print(f"gatepatch scan, the first time     {first[0]:8.1f} s wall {first[1]:8.1f} s cpu")
    print(f"gatepatch scan, the second time    {second[0]:8.1f} s wall {second[1]:8.1f} s cpu")
    print(f"first / ast-grep {first[0] / wall:.2f}; second / first {second[0] / first[0]:.3f}")
    print(f"largest process {largest} MB")


if __name__ == "__main__":
    main()
