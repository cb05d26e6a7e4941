"""The child of ``device_probe``: the only module that imports CuPy. Prints one JSON document.

Run as a file, with the parent's ``sys.path`` as its argument: ``python -m`` would look for CuPy in
the current folder first.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import uuid
import warnings
from typing import Any

_UUID_BYTES = 16
_NO_DRIVER = ("cudaErrorInsufficientDriver", "cudaErrorStubLibrary")
_NO_DEVICE = ("cudaErrorNoDevice", "cudaErrorInvalidDevice")


def main(path: list[str]) -> int:
    """Print the devices, or why there is no answer.

    Args:
        path: What to import from.
    """
    sys.path[:] = path
    # Whatever CuPy, its libraries or the driver print is no part of the answer.
    answers = os.dup(1)
    os.dup2(2, 1)
    answer = json.dumps(_ask())
    with os.fdopen(answers, "w") as file:
        file.write(answer)
    return 0


def _ask() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two CuPy wheels: they may work together all the same
        try:
            import cupy

            runtime = cupy.cuda.runtime
            version = cupy.__version__
        except Exception as error:  # also AttributeError: a folder that an uninstall has left
            return {"reason": "no-cupy", "detail": _cause(error), "installed": _installed()}
        try:
            return {**_devices(runtime), "cupy": version}
        except Exception as error:
            return {"reason": "failed", "detail": _cause(error), "installed": _installed()}


def _devices(runtime: Any) -> dict[str, Any]:
    driver = runtime.driverGetVersion()  # 0: there is none
    versions = {"driver": driver, "runtime": runtime.runtimeGetVersion()}
    try:
        count = runtime.getDeviceCount() if driver else 0
    except runtime.CUDARuntimeError as error:
        name = str(error).split(":")[0]
        if name in _NO_DRIVER:
            return {"reason": "no-driver", **versions}
        if name in _NO_DEVICE:
            return {"reason": "no-device"}
        raise
    if not driver:
        return {"reason": "no-driver", **versions}
    if not count:
        return {"reason": "no-device"}
    return {**versions, "devices": [_device(runtime, index, count) for index in range(count)]}


def _device(runtime: Any, index: int, count: int) -> dict[str, Any]:
    properties = runtime.getDeviceProperties(index)
    others = (other for other in range(count) if other != index)
    return {
        "index": index,
        "name": properties["name"].decode(),
        "capability": [properties["major"], properties["minor"]],
        "uuid": _uuid(index, bytes(properties["uuid"])),
        "pci": runtime.deviceGetPCIBusId(index),
        "peers": [other for other in others if runtime.deviceCanAccessPeer(index, other)],
    }


def _uuid(index: int, said: bytes) -> str:
    """A device's UUID as nvidia-smi writes it; empty where it cannot be had."""
    if len(said) < _UUID_BYTES:
        # CuPy 14.2 reads it as a C string, and that of one GPU in sixteen has a zero byte in it
        # (seen: GPU-9897df00-...). The driver knows it.
        device, whole = ctypes.c_int(), ctypes.create_string_buffer(_UUID_BYTES)
        try:
            driver = ctypes.CDLL("libcuda.so.1")
            if driver.cuDeviceGet(ctypes.byref(device), index):
                return ""
            if driver.cuDeviceGetUuid_v2(whole, device):
                return ""
        except (OSError, AttributeError):
            return ""
        said = whole.raw
    return f"GPU-{uuid.UUID(bytes=said[:_UUID_BYTES])}"


def _cause(error: BaseException) -> str:
    """The first cause in one line: CuPy wraps what failed in a page of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def _installed() -> list[str]:
    """The CuPy packages that are installed: two of them break each other."""
    from importlib.metadata import distributions

    names = {str(d.metadata["Name"]).lower() for d in distributions()}
    return sorted(name for name in names if name == "cupy" or name.startswith("cupy-"))


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
