"""Ask CuPy which devices there are, in a child process.

A process that has initialised CUDA cannot fork workers that use it (on an H200 the child's first
allocation failed with cudaErrorInitializationError), and importing CuPy takes about a second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Literal, get_args

from gatepatch.arch import Arch

Reason = Literal["no-cupy", "no-driver", "no-device", "timeout", "failed"]
_REASONS: tuple[Reason, ...] = get_args(Reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One CUDA device that is visible.

    Args:
        index: As CUDA counts, under ``CUDA_VISIBLE_DEVICES``.
        uuid: ``GPU-…``, as nvidia-smi has it.
        pci: PCI address.
        peers: Indices of the devices whose memory it can reach directly.
    """

    index: int
    name: str
    arch: Arch
    uuid: str
    pci: str
    peers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the probe found: at least one device.

    Args:
        driver: CUDA version that the driver supports, such as ``13.0``.
        runtime: CUDA version that CuPy runs with.
        cupy: Version of CuPy.
    """

    devices: tuple[Device, ...]
    driver: str
    runtime: str
    cupy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFailure:
    """Why there is no answer."""

    reason: Reason
    detail: str

    @property
    def message(self) -> str:
        """One line that says what is missing and what to do."""
        match self.reason:
            case "no-cupy":
                return (
                    f"CuPy cannot be imported: {self.detail}; install it for the driver's CUDA: "
                    'pip install "gatepatch[cuda12]" or "gatepatch[cuda13]"'
                )
            case "no-driver":
                return f"there is no NVIDIA driver, or it is too old for CuPy: {self.detail}"
            case "no-device":
                return f"no CUDA device is visible: {self.detail}"
            case "timeout":
                return f"the devices did not answer: {self.detail}"
            case "failed":
                return f"the probe failed: {self.detail}"


def probe(timeout: float = 30.0) -> Probe | ProbeFailure:
    """Ask CuPy, in a child process of gatepatch's own interpreter.

    Args:
        timeout: Seconds until the child and all that it started are ended.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "gatepatch._probe_child"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return ProbeFailure(reason="timeout", detail=f"no answer within {timeout:g} s")
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    try:
        return _read(json.loads(output.splitlines()[-1]))
    except (IndexError, ValueError, KeyError, TypeError):
        lines = (errors or output).strip().splitlines()
        detail = lines[-1] if lines else f"the child ended with {child.returncode} and said nothing"
        return ProbeFailure(reason="failed", detail=detail)


def _read(document: dict[str, object]) -> Probe | ProbeFailure:
    for reason in _REASONS:
        if document.get("reason") == reason:
            return ProbeFailure(reason=reason, detail=str(document["detail"]))
    rows = document["devices"]
    assert isinstance(rows, list)
    return Probe(
        devices=tuple(
            Device(
                index=row["index"],
                name=row["name"],
                arch=Arch(*row["capability"]),
                uuid=row["uuid"],
                pci=row["pci"],
                peers=tuple(row["peers"]),
            )
            for row in rows
        ),
        driver=_version(document["driver"]),
        runtime=_version(document["runtime"]),
        cupy=str(document["cupy"]),
    )


def _version(number: object) -> str:
    """CUDA's version numbers are 1000 x major + 10 x minor."""
    assert isinstance(number, int)
    return f"{number // 1000}.{number % 1000 // 10}"
