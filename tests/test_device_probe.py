"""What the probe makes of every kind of CuPy, in a real child process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gatepatch
import wheels
from gatepatch.arch import Arch
from gatepatch.probing import device_probe
from gatepatch.probing.device_probe import Device, Probe, ProbeFailure, probe
from trees import make_distribution, make_environment, write_files

CUPY = """
import os
from types import SimpleNamespace

__version__ = "14.2.0"


class CUDARuntimeError(RuntimeError):
    pass


def visible():
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [n for n in (chosen or "").split(",") if n] if chosen is not None else ["0", "1", "2"]
    if not names:
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return [int(n) for n in names]


def properties(index):
    number = visible()[index]
    return {
        "name": b"NVIDIA Toy %d" % number,
        "major": 12,
        "minor": number % 2,
        "uuid": bytes([number]) * 16,
    }


cuda = SimpleNamespace(
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: len(visible()),
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 12090,
        getDeviceProperties=properties,
        deviceGetPCIBusId=lambda index: f"0000:{visible()[index]:02x}:00.0",
        deviceCanAccessPeer=lambda a, b: int((visible()[a], visible()[b]) != (0, 2)),
    )
)
"""


def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str = CUPY, *installed: str) -> None:
    """Have a CuPy that runs this code, and these distributions, first on ``sys.path``."""
    site = tmp_path / "site"
    write_files(site, {"cupy/__init__.py": code})
    for name in installed:
        make_distribution(site, name, "14.2.0", {})
    monkeypatch.syspath_prepend(site)


def device(number: int, index: int, peers: tuple[int, ...]) -> Device:
    byte = f"{number:02x}"
    return Device(
        index=index,
        name=f"NVIDIA Toy {number}",
        arch=Arch(12, number % 2),
        uuid="GPU-" + "-".join(byte * n for n in (4, 2, 2, 2, 6)),
        pci=f"0000:{byte}:00.0",
        peers=peers,
    )


# -- an answer --


def test_every_device_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, tmp_path)
    assert probe() == Probe(
        devices=(device(0, 0, (1,)), device(1, 1, (0, 2)), device(2, 2, (0, 1))),
        driver="13.0",
        runtime="12.9",
        cupy="14.2.0",
    )


DRIVER = """\
class Driver:
    def __init__(self, name):
        assert name == "libcuda.so.1"

    def cuDeviceGet(self, device, index):
        return FAILS

    def cuDeviceGetUuid_v2(self, buffer, device):
        buffer.raw = bytes.fromhex("9897df00d8308ed3c578376400a9ebb9")
        return 0


import ctypes

ctypes.CDLL = Driver
"""


@pytest.mark.parametrize(
    ("driver", "uuid"),
    [
        (DRIVER.replace("FAILS", "0"), "GPU-9897df00-d830-8ed3-c578-376400a9ebb9"),
        (DRIVER.replace("FAILS", "100"), ""),
        ("", ""),
    ],
    ids=["driver", "driver fails", "no driver library"],
)
def test_a_uuid_with_a_zero_byte_is_the_drivers_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: str, uuid: str
) -> None:
    """CuPy reads it as a C string: it ends at the zero."""
    code = CUPY.replace("bytes([number]) * 16", "bytes.fromhex('9897df')")
    use(monkeypatch, tmp_path, code + driver)
    answer = probe()
    assert isinstance(answer, Probe)
    assert {found.uuid for found in answer.devices} == {uuid}


def test_only_visible_devices_are_told_in_cuda_s_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,1")
    answer = probe()
    assert isinstance(answer, Probe)
    assert answer.devices == (device(2, 0, (1,)), device(1, 1, (0,)))


def test_what_cupy_prints_and_warns_is_no_part_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noise = (
        'import os, warnings, atexit\nprint("{}")\nos.write(1, b"{}\\n")\nwarnings.warn("{}")\n'
        'atexit.register(os.write, 1, b"late")\n'
    )
    use(monkeypatch, tmp_path, noise + CUPY)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    assert isinstance(probe(), Probe)


def test_two_cupy_packages_that_work_are_let_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, CUPY, "cupy-cuda12x", "cupy-cuda13x")
    assert isinstance(probe(), Probe)


def test_the_current_folder_is_not_imported_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path)
    write_files(tmp_path / "here", {"cupy.py": "raise SystemExit(3)", "json.py": "1 / 0"})
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert isinstance(probe(), Probe)


def test_the_asking_process_loads_no_cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    probe()
    assert "cupy" not in sys.modules


# -- no CuPy --


def test_no_cupy(tmp_path: Path) -> None:
    python = make_environment(tmp_path) / "bin/python"
    source = str(Path(gatepatch.__file__).parents[1])
    code = (
        "from gatepatch.probing import device_probe as p; r = p.probe(); print(r.reason, r.message)"
    )
    done = subprocess.run(
        [python, "-c", code],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (
        (
            'no-cupy CuPy is not installed; pip install "gatepatch[cuda12]" (or cuda13), as '
            "nvidia-smi's CUDA version says\n"
        ),
        "",
    )


WRAPPED = """
try:
    raise ImportError("libcudart.so.12: cannot open\\n shared object file")
except ImportError as error:
    raise ImportError(f"=====\\nFailed to import CuPy.\\n{error}\\n=====") from error
"""


def test_a_cupy_whose_libraries_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, WRAPPED, "cupy-cuda12x")
    assert probe() == ProbeFailure(
        reason="no-cupy",
        detail="libcudart.so.12: cannot open shared object file",
        installed=("cupy-cuda12x",),
    )


def test_two_cupy_packages_that_break_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, WRAPPED, "cupy-cuda13x", "cupy-cuda12x", "cupyx")
    answer = probe()
    assert isinstance(answer, ProbeFailure)
    assert answer.installed == ("cupy-cuda12x", "cupy-cuda13x")
    assert answer.message.endswith("pip uninstall cupy-cuda12x cupy-cuda13x, then install one")


def test_what_an_uninstall_has_left_is_no_cupy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_files(tmp_path / "site", {"cupy/left/over.txt": ""})
    monkeypatch.syspath_prepend(tmp_path / "site")
    answer = probe()
    assert isinstance(answer, ProbeFailure)
    assert answer.reason == "no-cupy"
    assert answer.message == (
        "CuPy cannot be imported: module 'cupy' has no attribute 'cuda'; "
        'pip install "gatepatch[cuda12]" (or cuda13), as nvidia-smi\'s CUDA version says'
    )


# -- no driver, no device --


def test_no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, tmp_path, f"{CUPY}\ncuda.runtime.driverGetVersion = lambda: 0\n")
    assert probe() == ProbeFailure(
        reason="no-driver",
        detail="none is installed, or this container was started without (docker run --gpus all)",
    )


def raising(text: str) -> str:
    """A CuPy that counts devices with this error."""
    return f"{CUPY}\ndef count():\n    raise CUDARuntimeError({text!r})\ncuda.runtime.getDeviceCount = count\n"


def test_a_driver_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
    code = f"{raising(text)}\ncuda.runtime.driverGetVersion = lambda: 11040\n"
    use(monkeypatch, tmp_path, code)
    assert probe() == ProbeFailure(
        reason="no-driver", detail="it knows CUDA up to 11.4, and CuPy needs 12.9", driver="11.4"
    )


def test_no_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, tmp_path, raising("cudaErrorNoDevice: no CUDA-capable device is detected"))
    assert probe() == ProbeFailure(
        reason="no-device", detail="nvidia-smi -L lists those that the driver sees"
    )


@pytest.mark.parametrize("code", [CUPY, f"{CUPY}\ncuda.runtime.getDeviceCount = lambda: 0\n"])
def test_no_visible_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    use(monkeypatch, tmp_path, code)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert probe() == ProbeFailure(reason="no-device", detail="CUDA_VISIBLE_DEVICES is ''")


# -- what fails --

FAILS = {
    "another error of CUDA": (
        raising("cudaErrorSystemNotReady: system not yet initialized"),
        "cudaErrorSystemNotReady: system not yet initialized",
    ),
    "a device that is lost": (
        (
            f"{CUPY}\ndef lost(index):\n    raise CUDARuntimeError('cudaErrorDevicesUnavailable: busy')\n"
            "cuda.runtime.getDeviceProperties = lost\n"
        ),
        "cudaErrorDevicesUnavailable: busy",
    ),
    "an error without words": (
        f"{CUPY}\ndef lost(index):\n    raise ValueError\ncuda.runtime.getDeviceProperties = lost\n",
        "ValueError",
    ),
    "a crash": ("import os\nos.abort()\n", "the probe ended with signal 6"),
    "an exit": ("raise SystemExit(3)\n", "the probe ended with exit code 3"),
    "an exit with words": (
        "import sys\nprint('loading'); sys.exit('driver mismatch')\n",
        "the probe ended with exit code 1: driver mismatch",
    ),
}


@pytest.mark.parametrize(("code", "detail"), FAILS.values(), ids=FAILS)
def test_what_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, detail: str
) -> None:
    use(monkeypatch, tmp_path, code)
    assert probe() == ProbeFailure(reason="failed", detail=detail)


def test_a_failure_names_cupy_packages_that_break_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, raising("cudaErrorUnknown: odd"), "cupy-cuda12x", "cupy-cuda13x")
    answer = probe()
    assert isinstance(answer, ProbeFailure)
    assert answer.message == (
        "the devices could not be asked: cudaErrorUnknown: odd; 2 CuPy packages are installed: "
        "pip uninstall cupy-cuda12x cupy-cuda13x, then install one"
    )


@pytest.mark.parametrize(
    "document",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"devices": 3}',
        '{"reason": "else"}',
        '{"reason": "no-driver"}',
        "\\xff",
    ],
)
def test_garbage_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: str
) -> None:
    child = tmp_path / "child.py"
    child.write_text(f"import os; os.write(1, b'{document}')")
    monkeypatch.setattr(device_probe, "_CHILD", str(child))
    answer = probe()
    assert isinstance(answer, ProbeFailure)
    assert answer.reason == "failed"
    assert answer.detail.startswith("the probe ended with exit code 0")


def test_an_interpreter_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert probe() == ProbeFailure(
        reason="failed", detail="[Errno 2] No such file or directory: '/nowhere/python'"
    )


# -- time --

HANGING = """
import os, subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
with open(os.environ["PIDS"], "w") as file:
    file.write(f"{os.getpid()} {other.pid}")
time.sleep(120)
"""


def gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_gone(pids: Path) -> None:
    deadline = time.monotonic() + 10
    for process in map(int, pids.read_text().split()):
        while not gone(process):
            assert time.monotonic() < deadline, process
            time.sleep(0.02)


def test_a_probe_that_hangs_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, HANGING)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    start = time.monotonic()
    assert probe(timeout=3) == ProbeFailure(reason="timeout", detail="nothing within 3 s")
    assert time.monotonic() - start < 10
    wait_until_gone(tmp_path / "pids")


def test_what_a_probe_leaves_running_is_ended_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leaving = HANGING.replace("Popen([", "Popen(stdout=-3, stderr=-3, args=[")
    use(monkeypatch, tmp_path, leaving.replace("time.sleep(120)\n", CUPY))
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    assert isinstance(probe(), Probe)
    wait_until_gone(tmp_path / "pids")


def test_an_interruption_ends_the_probe(tmp_path: Path) -> None:
    write_files(tmp_path, {"cupy.py": HANGING})
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from gatepatch.probing import device_probe\n"
        "try: device_probe.probe()\nexcept KeyboardInterrupt: print('interrupted')"
    )
    pids = tmp_path / "pids"
    asking = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PIDS": str(pids)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not pids.exists() or " " not in pids.read_text():
        assert asking.poll() is None
        time.sleep(0.02)
    os.killpg(asking.pid, signal.SIGINT)
    assert asking.communicate()[0] == "interrupted\n"
    wait_until_gone(pids)


# -- real CuPy --


@pytest.mark.slow
def test_a_real_cupy_without_a_driver() -> None:
    python = wheels.environment("cupy", "cupy-cuda12x>=13")
    code = (
        "from gatepatch.probing import device_probe as p; r = p.probe()\n"
        "print(r.message if isinstance(r, p.ProbeFailure) else len(r.devices))"
    )
    done = subprocess.run(
        [python, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(gatepatch.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    none = (
        "there is no NVIDIA driver to use: none is installed, or this container was started "
        "without (docker run --gpus all)\n"
    )
    has_driver = Path("/proc/driver/nvidia").exists()
    assert (done.stdout == none) != has_driver, done.stdout + done.stderr
