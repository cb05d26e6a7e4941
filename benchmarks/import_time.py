"""What ``import gatepatch`` and ``gatepatch --version`` cost over a bare interpreter.

Usage: python benchmarks/import_time.py [RUNS]

Each command runs in fresh processes, in turn, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, Sequence[str]] = {
    "bare Python": ("-c", "pass"),
    "import gatepatch": ("-c", "import gatepatch"),
    "import gatepatch.api": ("-c", "import gatepatch.api"),
    "gatepatch --version": ("-m", "gatepatch", "--version"),
}


def measure(runs: int) -> dict[str, float]:
    """The median wall time of each command, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs + 1):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - start) * 1000)
    # The first round fills the disk's cache and writes bytecode.
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    """Print a line for each command."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    medians = measure(runs)
    bare = medians["bare Python"]
    print(f"Python {sys.version.split()[0]}, median of {runs} processes each")
    for name, value in medians.items():
        print(f"{name:22}{value:8.1f} ms{value - bare:+8.1f} ms{value / bare:8.2f} x bare")


if __name__ == "__main__":
    main()
