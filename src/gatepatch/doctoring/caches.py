"""JIT caches, and prebuilt binaries that would be loaded instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gatepatch import cachecheck, jitcache
from gatepatch.doctoring.check import Check, some
from gatepatch.doctoring.subject import Subject
from gatepatch.report import counted
from gatepatch.verifying.obstacles import binaries

_MOST = 3
"""Findings of one kind that are told; ``cache --check`` has all."""

CHECK = "gatepatch cache --check"


def jit_caches(subject: Subject) -> Iterator[Check]:
    """The caches that are known, the sets' modules in them, and what is stale."""
    if not subject.caches:
        yield Check(name="jit-cache", outcome="ok", found="no JIT cache is there yet")
        return
    modules = [m for m in jitcache.list_modules(subject.caches) if m.newest_output]
    named = {name for names in _named(subject).values() for name in names}
    built = [f"{m.name} ({m.architectures})" for m in modules if m.name in named]
    roots = some(list(map(str, subject.caches)))
    ours = f", of a set: {some(built)}" if built else ""
    found = f"{roots}: {counted(len(modules), 'module')} built{ours}"
    yield Check(name="jit-cache", outcome="ok", found=found)
    yield from _stale(subject)


def _named(subject: Subject) -> dict[str, tuple[str, ...]]:
    """The modules that derive from what sets edit here."""
    blocks = (spec for s in subject.sets.values() for _, spec in subject.blocks(s))
    return jitcache.union(spec.jit for spec in blocks)


def _stale(subject: Subject) -> Iterator[Check]:
    packages = cachecheck.packages_of(subject.workspace)
    stale: dict[Path, cachecheck.Finding] = {}
    outdated: dict[Path, str] = {}
    for finding in cachecheck.check(subject.caches, packages):
        if finding.command is None:
            outdated[finding.folder] = finding.module
        else:
            stale.setdefault(finding.folder, finding)
    for finding in list(stale.values())[:_MOST]:
        yield Check(
            name="jit-cache",
            outcome="problem",
            found=f"{finding.module}: {finding.message}",
            next=f"once no server uses it: {finding.command}",
        )
    if len(stale) > _MOST:
        found = f"{len(stale) - _MOST} more modules do not derive from the sources on disk"
        yield Check(name="jit-cache", outcome="problem", found=found, next=CHECK)
    if again := [module for folder, module in outdated.items() if folder not in stale]:
        found = f"older than their sources, so the next load builds them again: {some(again)}"
        yield Check(name="jit-cache", outcome="note", found=found)


def prebuilt(subject: Subject) -> Iterator[Check]:
    """Binaries that would be loaded instead of a set's sources; they keep it from its effect."""
    if subject.unsettled:
        return
    for name, result in subject.status[0].items():
        patch_set = subject.sets.get(name)
        if patch_set is None or result.outcome not in ("applied", "pristine"):
            continue
        jit = jitcache.union(spec.jit for _, spec in subject.blocks(patch_set))
        for finding in binaries(subject.workspace, name, jit) if jit else ():
            yield Check(
                name="prebuilt",
                outcome="problem" if result.outcome == "applied" else "note",
                found=f"{finding.where}: {finding.found}",
                next=finding.command,
            )
