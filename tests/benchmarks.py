"""Synthetic benchmarks for trials: shell scripts, which start in a few milliseconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from lookalikes import FLASHINFER, SGLANG, contents
from trees import make_distribution, make_environment, make_repository, site_of

WITH = '[ "$GATEPATCH_TRIAL_SIDE" = with ]'
"""Whether the run is one with the set."""


SET = "toy"
"""A set of text edits: planned in milliseconds, where gates in Python take a parser."""

_SET = """
schema: 1
name: toy
summary: Two files at once
why: A trial's own tests want a set that is planned fast.
admit: [sm_120, sm_121]
like: sm_100
targets:
  - distribution: flashinfer-python
    versions: "==0.6.3"
    files:
      - path: flashinfer/jit/comm.py
        edits:
          - text: {find: "[9, 10]", replace: "[9, 10, 12]", unproved: A test.}
      - path: flashinfer/data/include/flashinfer/comm/trtllm_allreduce.cuh
        edits:
          - text: {find: "< 1200", replace: "< 1300", count: 13, unproved: A test.}
"""


def write_toy_set(folder: Path) -> Path:
    """Write the set; return the folder that it is in."""
    folder.mkdir()
    (folder / "toy.yaml").write_text(_SET)
    return folder


_SPLIT = """
  - distribution: sglang
    versions: ">=0.0.0.dev0"
    files:
      - path: sglang/srt/layers/communicator.py
        edits:
          - text: {find: "batch_size > 0", replace: "batch_size > 1", unproved: A test.}
"""


def make_split_server(tmp_path: Path) -> tuple[Path, Path]:
    """Make an environment with sglang in a git checkout, and let the set touch that too.

    Returns:
        Its prefix, and the checkout.
    """
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "flashinfer-python", "0.6.3", FLASHINFER)
    checkout = make_repository(tmp_path / "c", {f"python/{p}": text for p, text in SGLANG.items()})
    link = {"__editable__.sglang.pth": f"{checkout / 'python'}\n"}
    info = make_distribution(site_of(prefix), "sglang", "0.0.0.dev1+g1234", link)
    url = {"url": f"file://{checkout}/python", "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(url))
    with (tmp_path / "toy" / "toy.yaml").open("a") as file:
        file.write(_SPLIT)
    return prefix, checkout


def script(folder: Path, text: str, name: str = "bench.sh") -> list[str]:
    """Write a benchmark; return the command that runs it. ``$HERE`` is a folder of its own."""
    path = folder / name
    path.write_text(f"HERE={folder}\n{text}\n")
    return ["sh", str(path)]


def throughput(without: str, having: str) -> str:
    """A benchmark that prints a throughput: one of a side's values, run by run."""
    return f"""
values="{without}"; if {WITH}; then values="{having}"; fi
set -- $values
shift $(( (GATEPATCH_TRIAL_RUN - 1) % $# ))
echo "throughput: 1.0"
echo "throughput: $1 tokens/s"
"""


def installed(prefix: Path) -> dict[str, bytes]:
    """The files of an environment, without gatepatch's own."""
    return {p: data for p, data in contents(prefix).items() if not p.startswith(".gatepatch/")}


def wait_for(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to be so in time"
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def number_in(path: Path) -> int:
    """The process id that a benchmark has written, once it has."""
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())
