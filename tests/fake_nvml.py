"""A stand-in for pynvml: devices whose figures a file has, in NVML's own order."""

from __future__ import annotations

from pathlib import Path

MODULE = """
import json
import pathlib

NVML_CLOCK_SM = 1
_ORDER = ["GPU-b", "GPU-a"]


class NVMLError(Exception):
    pass


def _now(uuid):
    value = json.loads(pathlib.Path(__file__).with_name("devices.json").read_text())[uuid]
    if value is None:
        raise NVMLError("not supported")
    return value


class _Named:
    def __init__(self, **values):
        self.__dict__.update(values)


def nvmlInit():
    pass


def nvmlDeviceGetCount():
    return len(_ORDER)


def nvmlDeviceGetHandleByIndex(index):
    return _ORDER[index]


def nvmlDeviceGetUUID(handle):
    return handle


def nvmlDeviceGetPowerUsage(handle):
    return _now(handle)[0] * 1000


def nvmlDeviceGetUtilizationRates(handle):
    return _Named(gpu=_now(handle)[1])


def nvmlDeviceGetClockInfo(handle, clock):
    return 1980


def nvmlDeviceGetMemoryInfo(handle):
    return _Named(used=512 << 20)
"""


def install(folder: Path, module: str = MODULE) -> Path:
    """Write the module; return the file that has the figures: UUID to watts and utilisation."""
    folder.mkdir()
    (folder / "pynvml.py").write_text(module)
    figures = folder / "devices.json"
    figures.write_text('{"GPU-a": [250, 100], "GPU-b": [75, 0]}')
    return figures
