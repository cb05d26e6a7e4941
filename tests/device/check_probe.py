"""Ask a machine that has NVIDIA devices: run it there with ``python tests/device/check_probe.py``.

It wants gatepatch and CuPy, prints what it measures and a line PASS or FAIL for each check, and
exits 1 if one fails.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from checks import failed

import gatepatch
from gatepatch.errors import ProbeError
from gatepatch.probing.device_probe import Probe
from gatepatch.report import to_json
from lookalikes import contents, make_server

SET = "sm120-allreduce"
USE = "import cupy; assert int(cupy.arange(4).sum()) == 6"


def seconds(action: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.monotonic()
    action()
    return time.monotonic() - start


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def use_device() -> None:
    """Allocate and compute on a device."""
    exec(USE, {})


def check_answer() -> str:
    """The probe answers, and as ``nvidia-smi`` does."""
    answer = gatepatch.probe()
    print(to_json(answer))
    assert isinstance(answer, Probe), answer.message
    query = "nvidia-smi --query-gpu=uuid,compute_cap,name --format=csv,noheader"
    told = subprocess.run(query.split(), capture_output=True, text=True, check=True).stdout
    for device in answer.devices:
        line = f"{device.uuid}, {device.arch}, {device.name}"
        assert line in told.splitlines(), f"{line!r} is not what nvidia-smi says: {told}"
    return f"{len(answer.devices)} devices"


def check_nothing_loaded() -> str:
    """The process that has asked has loaded no CuPy and no CUDA."""
    assert "cupy" not in sys.modules
    maps = Path("/proc/self/maps").read_text()
    assert "libcuda" not in maps, "libcuda is loaded"
    return "no CuPy, no libcuda"


def check_fork() -> str:
    """A process forked after the probe uses the devices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = multiprocessing.get_context("fork").Process(target=use_device)
        child.start()
    child.join(120)
    assert child.exitcode == 0, f"it ended with {child.exitcode}"
    return "the forked child computed"


def check_fork_matters() -> str:
    """Where CuPy has been asked in the same process, a forked child cannot use it."""
    code = (
        "import os, cupy; cupy.cuda.runtime.getDeviceCount(); cupy.zeros(1)\n"
        "if os.fork() == 0:\n"
        f"    {USE}\n"
        "    os._exit(0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    done = run(code)
    assert done.returncode != 0, "it could: the reason for the child process is gone"
    last = done.stderr.strip().splitlines()[-1]
    assert "cudaErrorInitializationError" in last, last
    return last


def check_refusal() -> str:
    """A set that is not for these devices is refused, and nothing is changed."""
    answer = gatepatch.probe()
    assert isinstance(answer, Probe), answer.message
    admitted = gatepatch.show(SET).archs
    if any(device.arch in admitted for device in answer.devices):
        return "not tried: the set is for these devices"
    with tempfile.TemporaryDirectory() as folder:
        server = make_server(Path(folder))
        before = contents(server)
        try:
            gatepatch.apply(SET, prefix=server)
        except ProbeError as error:
            assert contents(server) == before, "something was changed"
            return str(error)
    raise AssertionError("it was applied")


def check_hidden() -> str:
    """With no visible device the probe says so."""
    code = (
        "import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "import gatepatch; print(gatepatch.probe().reason)"
    )
    done = run(code)
    assert done.stdout == "no-device\n", done.stdout + done.stderr
    return "no-device"


CHECKS = (
    check_answer,
    check_nothing_loaded,
    check_fork,
    check_fork_matters,
    check_refusal,
    check_hidden,
)


def main() -> int:
    """Run all checks; the exit code."""
    count = failed(CHECKS)
    bare = min(seconds(lambda: run("pass")) for _ in range(3))
    cupy = min(seconds(lambda: run("import cupy")) for _ in range(3))
    probe = min(seconds(gatepatch.probe) for _ in range(3))
    print(
        f"importing CuPy: {cupy - bare:.2f} s over a bare interpreter; gatepatch.probe(): {probe:.2f} s"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
