"""Samples of power, utilisation, clocks and memory while a run goes on, from a child process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gatepatch.probing.device_probe import Device
from gatepatch.trials.power import Sample

INTERVAL = 0.5
"""Seconds between two looks: NVML's own power reading is a mean over about as long."""

_CHILD = str(Path(__file__).with_name("_sampler.py"))


def visible(devices: Sequence[Device], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The UUIDs of the devices that a run sees; none where that is not known.

    Args:
        devices: What the probe found; empty where it was not asked.
        environment: The environment variables of the runs.
    """
    if devices:
        return tuple(device.uuid for device in devices)
    named = [part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return tuple(named) if all(part.startswith("GPU-") for part in named) else ()


class Sampler:
    """One run's samples.

    Args:
        uuids: The devices to look at; all for none.
        interval: Seconds between two looks.

    Attributes:
        missing: Why there are none; empty while there may be some.
    """

    def __init__(self, uuids: Sequence[str], interval: float):
        self.missing = ""
        self._samples: list[Sample] = []
        self._rest = b""
        self._began = time.monotonic()
        request = {
            "path": [path for path in sys.path if path],
            "uuids": list(uuids),
            "interval": interval,
        }
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", _CHILD, json.dumps(request)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        )

    def fileno(self) -> int:
        """The descriptor to wait for."""
        assert self._child.stdout is not None
        return self._child.stdout.fileno()

    def read(self) -> bool:
        """Take what is there; false at its end."""
        data = os.read(self.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        return bool(data)

    def _take(self, line: bytes) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(line)
            if "missing" in found:
                self.missing = str(found["missing"])
                return
            second = found.pop("at") - self._began
            self._samples.append(Sample(second=round(second, 3), **found))

    def samples(self) -> tuple[Sample, ...]:
        """What was seen so far."""
        return tuple(self._samples)


@contextlib.contextmanager
def sampling(uuids: Sequence[str] = ()) -> Iterator[Sampler]:
    """Sample while the block runs."""
    sampler = Sampler(uuids, INTERVAL)
    try:
        yield sampler
    finally:
        child = sampler._child
        child.kill()
        assert child.stdout is not None
        child.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1.0)  # one that hangs inside the driver cannot be killed
