"""Whether the machine's devices are ones that a set admits."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gatepatch.arch import Arch
from gatepatch.errors import ProbeError, Problem
from gatepatch.probing.device_probe import Device, ProbeFailure, probe
from gatepatch.probing.requirements import unmet, wanted
from gatepatch.records import dataclass
from gatepatch.spec import Requirements

NOTHING = Requirements()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The devices that were found, and what a person should know of them."""

    devices: tuple[Device, ...] = ()
    warnings: tuple[str, ...] = ()


def check(
    name: str,
    archs: frozenset[Arch],
    assume: Sequence[Arch],
    *,
    all_devices: bool = False,
    requires: Requirements = NOTHING,
    command: str = "apply",
) -> Checked:
    """Ask the devices, unless architectures are assumed, and demand one that is named.

    Every device that is named must be able to do what the set requires; the others are not asked.

    Args:
        name: The set's name, for the command to type.
        archs: The architectures that the set admits or excludes.
        assume: Architectures that stand in for the probe.
        all_devices: Demand it of every device.
        requires: What an assumption cannot answer.
        command: The command to type.

    Raises:
        ProbeError: None is named, or not all are, or one cannot do what is required, or the devices
            could not be asked.
    """
    if assume:
        _demand(name, archs, assume, f"--assume says {names_of(assume)}", all_devices)
        return Checked(warnings=tuple(map(_not_asked, wanted(requires).values())))
    answer = probe()
    if isinstance(answer, ProbeFailure):
        line = f"gatepatch {command} {name} --assume {min(archs).name}"
        raise ProbeError(
            Problem(message=answer.message, hint=f"to {command} it without asking a device: {line}")
        )
    found = [device.arch for device in answer.devices]
    _demand(name, archs, found, f"this machine has {listed(answer.devices)}", all_devices)
    named = [device for device in answer.devices if device.arch in archs]
    _require(name, requires, named, command)
    return Checked(
        devices=answer.devices,
        warnings=tuple(
            f"device {device.index}, {device.name}, is SM {device.arch}: nothing changes for it"
            for device in answer.devices
            if device.arch not in archs
        ),
    )


def seen() -> tuple[Device, ...]:
    """The visible devices, where CuPy is there to ask; none otherwise."""
    if importlib.util.find_spec("cupy") is None:
        return ()
    answer = probe()
    return () if isinstance(answer, ProbeFailure) else answer.devices


def warn(archs: frozenset[Arch], assume: Sequence[Arch]) -> tuple[str, ...]:
    """Say so where a set is applied and no device is one that it names."""
    if assume:
        found, what = assume, f"--assume says {names_of(assume)}"
    elif importlib.util.find_spec("cupy") is None:
        return ()
    else:
        answer = probe()
        if isinstance(answer, ProbeFailure):
            return ()
        found = [device.arch for device in answer.devices]
        what = f"this machine has {listed(answer.devices)}"
    if any(arch in archs for arch in found):
        return ()
    return (f"the set is for {names_of(archs)}, and {what}",)


def warn_imported(changed: Mapping[str, Path]) -> tuple[str, ...]:
    """Say so where this process has imported a module that was changed.

    Args:
        changed: Name in the distribution, such as ``flashinfer/jit/comm.py``, to the file. It may
            lie in another environment than the one that was imported from.
    """
    warnings = []
    for path, file in sorted(changed.items()):
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        imported = getattr(sys.modules.get(module), "__file__", None)
        if imported is not None and os.path.realpath(imported) == os.path.realpath(file):
            warnings.append(
                f"this process has imported {module} already: restart it to run the new source"
            )
    return tuple(warnings)


def _demand(
    name: str, archs: frozenset[Arch], found: Sequence[Arch], what: str, all_devices: bool
) -> None:
    """Demand that one of the architectures found is named, or all.

    Raises:
        ProbeError: It is not so.
    """
    named = [arch in archs for arch in found]
    message = f"{name} is for {names_of(archs)}, and {what}"
    if not any(named):
        hint = "nothing was changed: there the set would do nothing"
        raise ProbeError(Problem(message=message, hint=hint))
    if all_devices and not all(named):
        hint = "nothing was changed; without --all-devices one that it is for is enough"
        raise ProbeError(Problem(message=f"--all-devices: {message}", hint=hint))


def _require(name: str, requires: Requirements, named: Sequence[Device], command: str) -> None:
    """Demand that the devices can do what is required.

    Raises:
        ProbeError: One of them cannot, or gave no answer.
    """
    if not (required := wanted(requires)):
        return
    from gatepatch.probing import deep_probe

    asked = deep_probe.questions([device.index for device in named], required)
    line = f"gatepatch {command} {name} --assume {named[0].arch.name}"
    hint = f"nothing was changed; to {command} it without asking a device: {line}"
    if problems := [
        Problem(message=f"{name} {words}", hint=hint)
        for words in unmet(requires, deep_probe.ask(asked), named)
    ]:
        raise ProbeError(problems)


def _not_asked(what: str) -> str:
    return f"--assume cannot answer this, and no device was asked: the set requires {what}"


def names_of(archs: Iterable[Arch]) -> str:
    """Architectures, for a person."""
    return ", ".join(f"SM {arch}" for arch in sorted(set(archs)))


def listed(devices: Iterable[Device]) -> str:
    """Devices, for a person: how many of each name."""
    counts = Counter(f"{device.name} (SM {device.arch})" for device in devices)
    return ", ".join(f"{n} x {what}" if n > 1 else what for what, n in counts.items())


__all__ = ["Checked", "Device", "check", "listed", "names_of", "warn", "warn_imported"]
