"""Trials on a machine that has NVIDIA devices: ``python tests/device/check_trial.py [SECONDS [FOLDER]]``.

It wants gatepatch, CuPy and nvidia-ml-py, prints the figures and a line PASS or FAIL for each check,
and exits 1 if one fails. A run takes SECONDS (6), the whole about three minutes. The
records go into FOLDER, or with the scratch environment.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from checks import failed

import gatepatch
from gatepatch.trials import summary
from gatepatch.trials.record import Trial
from lookalikes import contents, make_server

SET = "sm120-allreduce"
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "6"
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else None
WORK = str(Path(__file__).with_name("gpu_work.py"))


def trial(without: str, having: str) -> tuple[Trial, bool]:
    """Try the set with one kind of run a side; say whether the files are as before."""
    with tempfile.TemporaryDirectory() as folder:
        server = make_server(Path(folder))
        before = contents(server)
        found = gatepatch.trial(
            SET,
            [sys.executable, WORK, SECONDS, without, having],
            prefix=server,
            assume="sm_120",
            metric=r"throughput: ([0-9.]+)",
            repeat=2,
            timeout=120,
            output=FOLDER,
        )
        after = {p: d for p, d in contents(server).items() if not p.startswith(".gatepatch/")}
    for line in summary.lines(found):
        print(line)
    for run in found.runs:
        print(f"  run {run.number}, {run.side}: {'; '.join(map(_figures, run.uses))}")
    return found, after == before


def _figures(use: object) -> str:
    names = ("device", "samples", "watts", "busy", "clock", "memory")
    return ", ".join(f"{name} {getattr(use, name)}" for name in names)


def check_gain() -> str:
    """Twice the work keeps the set, and nothing looks like spinning."""
    found, _ = trial("half", "work")
    assert found.outcome == "applied", found.outcome
    assert not any(run.spins for run in found.runs), "a run that works is said to spin"
    assert found.decision is not None
    return found.decision.reason


def check_spinning() -> str:
    """Blocks that wait for a flag are recognised by their power, and the set goes out."""
    found, same = trial("work", "spin")
    assert found.outcome == "reverted", found.outcome
    assert same, "the files are not as they were"
    spun = [run.number for run in found.runs if run.spins]
    assert spun == [run.number for run in found.runs if run.side == "with"], spun
    return summary.spins(found)[0]


def check_devices() -> str:
    """Samples are of the devices that the runs see, by UUID."""
    found, _ = trial("work", "work")
    answer = gatepatch.probe()
    seen = {use.device for run in found.runs for use in run.uses}
    assert seen == {device.uuid for device in getattr(answer, "devices", ())}, seen
    assert found.decision is not None
    return found.decision.reason


def main(checks: tuple[Callable[[], str], ...]) -> int:
    """Run all checks; the exit code."""
    return 1 if failed(checks) else 0


if __name__ == "__main__":
    sys.exit(main((check_gain, check_spinning, check_devices)))
