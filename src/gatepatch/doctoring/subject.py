"""What the checks look at: an environment and the sets, each read once and never trusted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from gatepatch import catalog, inspector, jitcache
from gatepatch.arch import Arch
from gatepatch.blocks import candidates
from gatepatch.errors import (
    GatepatchError,
    PendingError,
    Problem,
    RefusedError,
    SpecError,
    TargetError,
)
from gatepatch.probing.device_probe import Probe, ProbeFailure, probe
from gatepatch.results import SetResult
from gatepatch.settle import HINTS
from gatepatch.spec import PatchSet, TargetSpec
from gatepatch.state import AppliedSet, State
from gatepatch.target import Root, Target
from gatepatch.workspace import Workspace


class Subject:
    """What one call of ``doctor`` sees.

    Args:
        workspace: The environment.
        patches: Folders of the user's own sets.
        assume: Architectures that stand in for the probe.
        jit_roots: More JIT cache roots.

    Raises:
        UsageError: A folder that was named is not there.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        patches: Sequence[Path] = (),
        assume: Sequence[Arch] = (),
        jit_roots: Sequence[Path] = (),
    ):
        catalog.demand(patches)
        self.workspace = workspace
        self.assume = tuple(assume)
        self.caches = jitcache.cache_roots(extra=jit_roots)
        self.folders = tuple(dict.fromkeys((*patches, *catalog.from_variable(), catalog.shipped())))

    @cached_property
    def listed(self) -> Mapping[str, tuple[Path, ...]]:
        """Every set's name to its files; the first one counts, as ``catalog.files`` has it."""
        found: dict[str, list[Path]] = {}
        for folder in self.folders:
            if os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK):  # noqa: PTH112
                for name, path in reversed(tuple(catalog.sets_in(folder))):
                    found.setdefault(name, []).append(path)
        return {name: tuple(found[name]) for name in sorted(found)}

    @cached_property
    def read(self) -> tuple[Mapping[str, PatchSet], Mapping[str, SpecError]]:
        """The sets that can be read, and why the others cannot."""
        return catalog.load_each({name: paths[0] for name, paths in self.listed.items()})

    @property
    def sets(self) -> Mapping[str, PatchSet]:
        """The sets that can be read."""
        return self.read[0]

    @cached_property
    def distributions(self) -> Mapping[str, Target | TargetError | None]:
        """Every distribution that a set names: what is installed, nothing, or why it is unknown."""
        names = {spec.distribution for each in self.sets.values() for spec in each.targets}
        return {name: self.find(name) for name in sorted(names)}

    def find(self, name: str) -> Target | TargetError | None:
        """A distribution that is installed, or why it cannot be read."""
        try:
            return self.workspace.target(name)
        except TargetError as error:
            return error
        except OSError as error:
            where = error.filename and os.fsdecode(error.filename)
            hint = HINTS.get(error.errno or 0)
            return TargetError(
                Problem(message=error.strerror or str(error), where=where, hint=hint)
            )

    @cached_property
    def targets(self) -> Mapping[str, Target]:
        """What is installed of them."""
        return {name: t for name, t in self.distributions.items() if isinstance(t, Target)}

    def reinstall(self, distribution: str, path: str) -> str | None:
        """What puts a file back; None where its distribution is not there."""
        target = self.find(distribution)
        return target.reinstall_command(path) if isinstance(target, Target) else None

    def blocks(self, patch_set: PatchSet) -> tuple[tuple[Target, TargetSpec], ...]:
        """What is installed, with the set's block for it."""
        found = []
        for name in dict.fromkeys(spec.distribution for spec in patch_set.targets):
            specs = [spec for spec in patch_set.targets if spec.distribution == name]
            if (target := self.targets.get(name)) is not None:
                try:
                    found.append((target, next(iter(candidates(target, specs)))))
                except RefusedError:
                    continue
        return tuple(found)

    def gaps(self, patch_set: PatchSet) -> tuple[str, ...]:
        """What a set needs and has no block for, in words."""
        covered = {target.distribution for target, _ in self.blocks(patch_set)}
        needed = {spec.distribution for spec in patch_set.targets if not spec.optional}
        words = []
        for name in sorted({*needed, *self.targets} & {s.distribution for s in patch_set.targets}):
            if name in covered:
                continue
            match self.distributions[name]:
                case Target() as target:
                    words.append(f"no range of it has {name} {target.version}")
                case TargetError():
                    words.append(f"{name} cannot be read")
                case None:
                    words.append(f"{name} is not installed")
        return tuple(words)

    @cached_property
    def unsettled(self) -> str | None:
        """Why nobody can say what the files are; None where all is settled."""
        try:
            if self.workspace.pending():
                return "an interrupted change is to be settled first"
        except PendingError:
            return "an interrupted change is to be settled first"
        return "a state cannot be read" if len(self.states) < len(self.workspace.roots()) else None

    @cached_property
    def states(self) -> Mapping[Root, State]:
        """The roots' states that can be read."""
        found = {}
        for root in self.workspace.roots():
            with contextlib.suppress(PendingError, OSError):  # its own check says so
                found[root] = self.workspace.state(root)
        return found

    @cached_property
    def status(self) -> tuple[Mapping[str, SetResult], Mapping[str, GatepatchError]]:
        """What each set is, as ``gatepatch status`` has it, and why some are unknown.

        Raises:
            PendingError: A state cannot be read.
        """
        return inspector.look(self.workspace, self.sets)

    @cached_property
    def applied(self) -> tuple[AppliedSet, ...]:
        """The sets that the states have, in all roots."""
        return tuple(value for state in self.states.values() for value in state.sets.values())

    @cached_property
    def probe(self) -> Probe | ProbeFailure:
        """The devices' answer."""
        return probe()
