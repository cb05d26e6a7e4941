"""Ask CuPy which devices there are, in a child process.

A process that has initialised CUDA cannot fork workers that use it (on an H200 the child's first
allocation failed with cudaErrorInitializationError), and importing CuPy takes about a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gatepatch.arch import Arch
from gatepatch.probing.properties import Answer
from gatepatch.records import dataclass

if TYPE_CHECKING:
    import subprocess

Reason = Literal["no-cupy", "no-driver", "no-device", "timeout", "failed"]

_CHILD = str(Path(__file__).with_name("_probe_child.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One CUDA device that is visible.

    Args:
        index: As CUDA counts, under ``CUDA_VISIBLE_DEVICES``.
        uuid: ``GPU-…``, as nvidia-smi has it; empty where neither CuPy nor the driver tells it.
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
        answers: What the devices answered to the questions of a deep probe.
    """

    devices: tuple[Device, ...]
    driver: str
    runtime: str
    cupy: str
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFailure:
    """Why there is no answer.

    Args:
        reason: What is missing.
        detail: More about it.
        installed: The CuPy packages that are installed, where CuPy cannot be used.
        driver: CUDA version that the driver supports, where CuPy needs a later one.
    """

    reason: Reason
    detail: str
    installed: tuple[str, ...] = ()
    driver: str = ""

    @property
    def message(self) -> str:
        """One line that says what is missing and what to do."""
        match self.reason:
            case "no-cupy":
                return self._no_cupy()
            case "no-driver":
                return f"there is no NVIDIA driver to use: {self.detail}"
            case "no-device":
                return f"no CUDA device is visible: {self.detail}"
            case "timeout":
                return f"the devices did not answer: {self.detail}; see whether nvidia-smi does"
            case "failed":
                return f"the devices could not be asked: {self.detail}{self._several()}"

    def _no_cupy(self) -> str:
        install = 'pip install "gatepatch[cuda12]" (or cuda13), as nvidia-smi\'s CUDA version says'
        if len(self.installed) > 1:
            return f"CuPy cannot be imported: {self.detail}{self._several()}"
        if self.installed:
            again = f"pip install --force-reinstall {self.installed[0]}"
            return f"CuPy cannot be imported: {self.detail}; {again}"
        if self.detail == "No module named 'cupy'":
            return f"CuPy is not installed; {install}"
        return f"CuPy cannot be imported: {self.detail}; {install}"

    def _several(self) -> str:
        if len(self.installed) < 2:
            return ""
        both = " ".join(self.installed)
        return f"; {len(self.installed)} CuPy packages are installed: pip uninstall {both}, then install one"


def child_environment(scratch: str) -> dict[str, str]:
    """The variables of a child that uses CUDA: nothing of it is kept in the user's home.

    Args:
        scratch: A folder in place of CuPy's cache, which CuPy 14.2 makes when it is imported,
            whether it keeps its cache in memory or not.
    """
    kept_nowhere = {"CUPY_CACHE_IN_MEMORY": "1", "CUPY_CACHE_DIR": scratch}
    return {**os.environ, **kept_nowhere, "CUDA_CACHE_DISABLE": "1"}


def probe(timeout: float = 30.0) -> Probe | ProbeFailure:
    """Ask CuPy, in a child process of gatepatch's own interpreter.

    Args:
        timeout: Seconds until the child and all that it started are ended.
    """
    import tempfile

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        return _ask(scratch, timeout)


def _ask(scratch: str, timeout: float) -> Probe | ProbeFailure:
    import subprocess

    command = [sys.executable, _CHILD, json.dumps([path for path in sys.path if path])]
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            env=child_environment(scratch),
        )
    except OSError as error:
        return ProbeFailure(reason="failed", detail=str(error))
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return ProbeFailure(reason="timeout", detail=f"nothing within {timeout:g} s")
    finally:
        end(child)
    try:
        return _read(json.loads(output))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ProbeFailure(
            reason="failed", detail=how_it_ended(child.returncode, errors or output)
        )


def end(child: subprocess.Popen[Any], wait: float = 1.0) -> None:
    """End a child and all that it has started.

    Args:
        wait: Seconds until it counts as one that cannot be ended.
    """
    import subprocess

    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    # A process that hangs inside the driver cannot be killed: it is not waited for.
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(wait)


def how_it_ended(code: int | None, said: str) -> str:
    """How a child ended, and the last that it said.

    Args:
        code: As ``Popen.returncode`` has it.
    """
    lines = said.strip().splitlines()
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return f"the probe ended with {how}" + (f": {lines[-1].strip()}" if lines else "")


def _read(document: dict[str, Any]) -> Probe | ProbeFailure:
    if "reason" in document:
        return _read_failure(document)
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
            for row in document["devices"]
        ),
        driver=_version(document["driver"]),
        runtime=_version(document["runtime"]),
        cupy=document["cupy"],
    )


def _read_failure(document: dict[str, Any]) -> ProbeFailure:
    reason: Reason = document["reason"]
    driver = ""
    match reason:
        case "no-driver" if document["driver"] == 0:
            detail = (
                "none is installed, or this container was started without (docker run --gpus all)"
            )
        case "no-driver":
            driver, runtime = map(_version, (document["driver"], document["runtime"]))
            detail = f"it knows CUDA up to {driver}, and CuPy needs {runtime}"
        case "no-device":
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            detail = f"CUDA_VISIBLE_DEVICES is {visible!r}"
            if visible is None:
                detail = "nvidia-smi -L lists those that the driver sees"
        case _:
            detail = document["detail"]
    installed = tuple(document.get("installed", ()))
    return ProbeFailure(reason=reason, detail=detail, installed=installed, driver=driver)


def _version(number: int) -> str:
    """CUDA's version numbers are 1000 x major + 10 x minor."""
    return f"{number // 1000}.{number % 1000 // 10}"
