"""Prints what NVML measures, one JSON line a device and interval; run as a script.

The one place that imports pynvml, in a process of its own: a device that has fallen off the bus
lets NVML's calls hang. It ends when nobody reads any more.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Sample the devices that the arguments name, until the pipe is closed."""
    request = json.loads(sys.argv[1])
    sys.path[:] = request["path"]
    try:
        import pynvml  # type: ignore[import-untyped,import-not-found,unused-ignore]

        pynvml.nvmlInit()
        devices = _devices(pynvml, request["uuids"])
    except ImportError:
        return say({"missing": 'nvidia-ml-py is not installed: pip install "gatepatch[nvml]"'})
    except Exception as error:  # NVMLError has a class for each code
        return say({"missing": f"NVML does not answer: {error}"})
    while True:
        now = time.monotonic()
        for uuid, handle in devices:
            say({"at": now, "device": uuid, **_measure(pynvml, handle)})
        time.sleep(max(0.0, now + request["interval"] - time.monotonic()))


def say(document: dict[str, Any]) -> None:
    """Print one line; a closed pipe is the end."""
    try:
        print(json.dumps(document), flush=True)
    except BrokenPipeError:
        sys.exit()


def _devices(nvml: Any, uuids: list[str]) -> list[tuple[str, Any]]:
    """Handles by UUID: NVML's order is not CUDA's, and it ignores CUDA_VISIBLE_DEVICES.

    A UUID may be shortened, as CUDA_VISIBLE_DEVICES may have it.
    """
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    known = [(_text(nvml.nvmlDeviceGetUUID(handle)), handle) for handle in handles]
    found = [pair for pair in known if not uuids or pair[0].startswith(tuple(uuids))]
    if not found:
        raise RuntimeError(f"it does not know {', '.join(uuids) or 'any device'}")
    return found


def _measure(nvml: Any, handle: Any) -> dict[str, float | None]:
    """What one device says now; None for what it does not say."""

    def ask(question: Callable[[], float]) -> float | None:
        with contextlib.suppress(nvml.NVMLError):
            return question()
        return None

    clock = nvml.NVML_CLOCK_SM
    return {
        "watts": ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        "busy": ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "clock": ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, clock)),
        "memory": ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20),
    }


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
