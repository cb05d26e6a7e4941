"""Whether a set is applied already, by what state knows: what most calls of ``apply`` find.

It needs neither the set's YAML nor a plan, and takes no lock: every rank of a job may ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gatepatch import catalog, jitcache
from gatepatch.aot import find_aot
from gatepatch.arch import Arch
from gatepatch.edits import sha256
from gatepatch.results import FileResult, Result, SetResult
from gatepatch.state import AppliedSet
from gatepatch.target import Root
from gatepatch.workspace import Workspace


def already_applied(
    workspace: Workspace, name: str, patches: Sequence[Path], assume: Sequence[Arch]
) -> Result | None:
    """The result of ``apply`` where nothing is to be done; None where it has to be planned.

    Args:
        workspace: The environment.
        name: The set's name.
        patches: Folders of the user's own sets.
        assume: Architectures that stand in for the probe.

    Raises:
        UnknownSetError: No set has this name.
    """
    digest = sha256(catalog.find(name, patches).read_bytes())
    found = _carried(workspace, name, digest)
    if not found:
        return None
    modules = jitcache.union(value.jit for _, value in found)
    if find_aot(workspace.environment, workspace.target("flashinfer-python"), modules):
        return None
    from gatepatch import devices

    return Result(
        command="apply",
        outcome="already-applied",
        sets=(SetResult(name=name, outcome="already-applied", files=_files(found)),),
        assumed=tuple(map(str, assume)),
        warnings=devices.warn(found[0][1].goal.archs, assume),
    )


def _carried(workspace: Workspace, name: str, digest: str) -> list[tuple[Root, AppliedSet]]:
    """Where the set is applied, if all of it is, from this YAML, and every file stands as written."""
    found = []
    for root in workspace.roots():
        state = workspace.state(root)
        if name in state.sets:
            value = state.sets[name]
            found.append((root, value))
            for path in value.files:
                file = root.path / path
                if not file.is_file() or sha256(file.read_bytes()) != state.files[path].result:
                    return []
    names = {d for _, value in found for d in value.distributions}
    for distribution in names:
        target = workspace.target(distribution)
        recorded = {value.distributions[distribution] for _, value in found}
        if target is None or recorded != {target.version}:
            return []
    if any(value.digest != digest for _, value in found):
        return []
    if workspace.pending() or workspace.running():
        return []
    return found


def _files(found: Sequence[tuple[Root, AppliedSet]]) -> tuple[FileResult, ...]:
    return tuple(
        FileResult(
            distribution=file.distribution,
            version=file.version,
            root=str(root.path),
            path=path,
            outcome="already-applied",
            pinned=file.pinned,
            witness="state",
        )
        for root, value in found
        for path, file in value.files.items()
    )
