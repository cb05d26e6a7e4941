"""CuPy, the driver and the devices, in the environment that gatepatch runs in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from gatepatch.arch import Arch
from gatepatch.devices import listed, names_of
from gatepatch.doctoring.check import Check
from gatepatch.doctoring.subject import Subject
from gatepatch.environment import find_environment
from gatepatch.errors import TargetError
from gatepatch.metadata import canonical_name, is_whole, metadata_in, version_of
from gatepatch.probing.device_probe import Probe, ProbeFailure

_PIP = f"{sys.executable} -m pip"


def cupy(subject: Subject) -> Iterator[Check]:
    """CuPy: there, alone, and not newer than the driver."""
    packages = _packages()
    if len(packages) > 1:
        yield _several(packages, "" if subject.assume else subject.probe.driver)
        return
    here = ", ".join(f"{name} {version}" for name, version in packages.items())
    if subject.assume:
        found = f"{here or 'not installed'}; --assume does without"
        yield Check(name="cupy", outcome="ok", found=found)
        return
    match subject.probe:
        case ProbeFailure(reason="no-cupy") as failure:
            found, _, command = failure.message.rpartition("; ")
            yield Check(
                name="cupy",
                outcome="problem" if packages else "note",
                found=found,
                next=command,
            )
        case ProbeFailure(driver=str(driver)) as failure if driver:
            yield _too_new(packages, failure.detail, driver)
        case Probe() as probe if _major(probe.runtime) > _major(probe.driver):
            words = f"it knows CUDA up to {probe.driver}, and CuPy needs {probe.runtime}"
            yield _too_new(packages, words, probe.driver)
        case Probe() as probe:
            cuda = f"CUDA {probe.runtime}; the driver knows CUDA up to {probe.driver}"
            found = f"{here or f'CuPy {probe.cupy}'}, {cuda}"
            yield Check(name="cupy", outcome="ok", found=found)
        case ProbeFailure() if packages:
            yield Check(name="cupy", outcome="ok", found=here)


def _several(packages: Mapping[str, str], driver: str) -> Check:
    return Check(
        name="cupy",
        outcome="problem",
        found=f"{' and '.join(packages)} are installed in {sys.prefix}, and break each other",
        next=f"{_PIP} uninstall {' '.join(packages)}, then: {_install(driver)}",
    )


def _too_new(packages: Mapping[str, str], words: str, driver: str) -> Check:
    named = " ".join(packages) or "cupy"
    return Check(
        name="cupy",
        outcome="problem",
        found=f"{named} is for a later CUDA than the driver: {words}",
        next=f"{_PIP} uninstall {named}, then: {_install(driver)}",
    )


def _install(driver: str) -> str:
    """How to install the CuPy for a driver's CUDA version."""
    if not driver:
        return f'{_PIP} install "gatepatch[cuda12]" (or cuda13, as nvidia-smi\'s CUDA version says)'
    return f'{_PIP} install "gatepatch[cuda{max(12, min(13, _major(driver)))}]"'


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _packages() -> dict[str, str]:
    """The CuPy packages of the environment that gatepatch runs in, with their versions."""
    found: dict[str, str] = {}
    for folder in find_environment().paths:
        for metadata in metadata_in(folder):
            name = canonical_name(metadata.stem.split("-")[0])
            if (name == "cupy" or name.startswith("cupy-")) and is_whole(metadata):
                try:
                    found.setdefault(name, version_of(metadata, name))
                except TargetError:
                    found.setdefault(name, "of no known version")
    return dict(sorted(found.items()))


def devices(subject: Subject) -> Iterator[Check]:
    """Which devices there are, and which sets name them."""
    if subject.assume:
        yield from _named(subject, subject.assume, f"not asked: {names_of(subject.assume)} assumed")
        return
    match subject.probe:
        case Probe() as probe:
            archs = [device.arch for device in probe.devices]
            yield from _named(subject, archs, listed(probe.devices))
        case ProbeFailure() as failure:
            yield _without(subject, failure)


def _named(subject: Subject, archs: Sequence[Arch], what: str) -> Iterator[Check]:
    naming = [n for n, each in subject.sets.items() if any(a in each.archs for a in archs)]
    if naming:
        yield Check(name="devices", outcome="ok", found=f"{what}; named by {', '.join(naming)}")
    else:
        yield Check(
            name="devices",
            outcome="note",
            found=f"{what}; no set names it",
            next=f"gatepatch scan --sm {min(archs).name}",
        )
    for name in dict.fromkeys(value.name for value in subject.applied):
        goals = [value.goal.archs for value in subject.applied if value.name == name]
        if not any(arch in named for named in goals for arch in archs):
            yield Check(
                name="devices",
                outcome="note",
                found=f"{name} is applied and is for {names_of(a for g in goals for a in g)}: "
                "it changes nothing for these devices",
            )


def _without(subject: Subject, failure: ProbeFailure) -> Check:
    """Why there is no answer; what is CuPy's fault has been said with CuPy."""
    said = failure.reason == "no-cupy" or failure.driver
    sets = sorted(subject.sets.values(), key=lambda each: (-len(subject.blocks(each)), each.name))
    assumed = [f"gatepatch apply {s.name} --assume {min(s.archs).name}" for s in sets[:1]]
    return Check(
        name="devices",
        outcome="note" if failure.reason in ("no-cupy", "no-driver", "no-device") else "problem",
        found="not asked: they are asked through CuPy" if said else failure.message,
        next=f"to apply a set without asking them: {assumed[0]}" if assumed else None,
    )
