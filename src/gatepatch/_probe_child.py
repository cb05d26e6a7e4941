"""The child of ``device_probe``: the only module that imports CuPy. Prints one JSON document."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import warnings
from typing import Any


def main() -> int:
    """Print the devices, or why there is no answer."""
    # CuPy warns on stderr where two of its wheels are installed, and may print on import.
    with contextlib.redirect_stdout(sys.stderr):
        answer = _ask()
    print(json.dumps(answer))
    return 0


def _ask() -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            import cupy
        except Exception as error:
            said = "; ".join(str(w.message).strip().splitlines()[0] for w in caught)
            first = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            return {"reason": "no-cupy", "detail": f"{first} ({said})" if said else first}
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        name = str(error).split(":")[0]
        missing = ("cudaErrorNoDevice", "cudaErrorInvalidDevice")
        return {
            "reason": "no-device" if name in missing else "no-driver",
            "detail": str(error),
        }
    if count == 0:
        return {"reason": "no-device", "detail": "CUDA counts none"}
    return {
        "devices": [_device(runtime, index, count) for index in range(count)],
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
    }


def _device(runtime: Any, index: int, count: int) -> dict[str, Any]:
    properties = runtime.getDeviceProperties(index)
    others = (other for other in range(count) if other != index)
    return {
        "index": index,
        "name": properties["name"].decode(),
        "capability": [properties["major"], properties["minor"]],
        "uuid": _uuid(properties["uuid"]),
        "pci": runtime.deviceGetPCIBusId(index),
        "peers": [other for other in others if runtime.deviceCanAccessPeer(index, other)],
    }


def _uuid(raw: bytes) -> str:
    digits = bytes(raw)[:16].hex()
    cuts = (0, 8, 12, 16, 20, 32)
    return "GPU-" + "-".join(digits[a:b] for a, b in itertools.pairwise(cuts))


if __name__ == "__main__":
    sys.exit(main())
