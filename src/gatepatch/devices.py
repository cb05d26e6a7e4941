"""Whether the machine's devices are ones that a set admits."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gatepatch.arch import Arch
from gatepatch.device_probe import Device, Probe, ProbeFailure, probe
from gatepatch.errors import ProbeError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The devices that were found, and what a person should know of them."""

    devices: tuple[Device, ...] = ()
    warnings: tuple[str, ...] = ()


def check(
    name: str, archs: frozenset[Arch], assume: Sequence[Arch], *, all_devices: bool = False
) -> Checked:
    """Ask the devices, unless architectures are assumed, and demand one that is named.

    Args:
        name: The set's name, for the command to type.
        archs: The architectures that the set admits or excludes.
        assume: Architectures that stand in for the probe.
        all_devices: Demand it of every visible device.

    Raises:
        ProbeError: None is named, or not all are, or the devices could not be asked.
    """
    if assume:
        if problem := _mismatch(assume, archs, all_devices):
            raise ProbeError(f"{name} is for {_names(archs)}, and {problem} is assumed")
        return Checked()
    answer = probe()
    if isinstance(answer, ProbeFailure):
        first = min(archs).name
        raise ProbeError(
            Problem(
                message=answer.message,
                hint=f"to apply it without asking a device: gatepatch apply {name} --assume {first}",
            )
        )
    if problem := _mismatch([device.arch for device in answer.devices], archs, all_devices):
        raise ProbeError(
            Problem(
                message=f"{name} is for {_names(archs)}, and this machine has {_listed(answer)}",
                hint="nothing was changed: on these devices the set would do nothing",
            )
            if problem != "one of several"
            else Problem(
                message=f"--all-devices: {name} is for {_names(archs)}, "
                f"and this machine has {_listed(answer)}",
            )
        )
    others = [device for device in answer.devices if device.arch not in archs]
    warnings = tuple(
        f"device {d.index}, {d.name}, is {d.arch}: nothing changes for it" for d in others
    )
    return Checked(devices=answer.devices, warnings=warnings)


def warn(archs: frozenset[Arch], assume: Sequence[Arch]) -> tuple[str, ...]:
    """Say so where a set is applied and the devices are not ones that it names."""
    if assume:
        found: Sequence[Arch] = assume
    elif importlib.util.find_spec("cupy") is None:
        return ()
    else:
        answer = probe()
        if isinstance(answer, ProbeFailure):
            return ()
        found = [device.arch for device in answer.devices]
    if any(arch in archs for arch in found):
        return ()
    return (f"the set is for {_names(archs)}, and this machine has {_names(found)}",)


def warn_imported(paths: Iterable[str]) -> tuple[str, ...]:
    """Say so where this process has imported a module that was changed."""
    changed = {path.removesuffix(".py").replace("/", ".") for path in paths if path.endswith(".py")}
    imported = sorted(changed & set(sys.modules))
    return tuple(
        f"this process has imported {module} already: restart it to run the new source"
        for module in imported
    )


def _mismatch(found: Sequence[Arch], archs: frozenset[Arch], all_devices: bool) -> str:
    named = [arch in archs for arch in found]
    if not any(named):
        return _names(found)
    return "one of several" if all_devices and not all(named) else ""


def _names(archs: Iterable[Arch]) -> str:
    return ", ".join(f"SM {arch}" for arch in sorted(set(archs)))


def _listed(answer: Probe) -> str:
    return ", ".join(f"{d.name} (SM {d.arch})" for d in answer.devices)


__all__ = ["Checked", "Device", "check", "warn", "warn_imported"]
