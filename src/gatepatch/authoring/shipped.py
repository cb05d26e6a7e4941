"""What the sets that ship know of the packages that others write sets for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from gatepatch import catalog
from gatepatch.arch import Arch
from gatepatch.authoring.edited import Edited
from gatepatch.loader import load
from gatepatch.spec import PatchSet


@lru_cache(maxsize=1)
def _shipped() -> tuple[PatchSet, ...]:
    return tuple(map(load, catalog.files_in(catalog.shipped()).values()))


def known_jit(distribution: str, paths: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The JIT modules that derive from files of a distribution, as far as they are known."""
    found: dict[str, tuple[str, ...]] = {}
    for target in (target for patch_set in _shipped() for target in patch_set.targets):
        same = target.distribution == distribution
        if same and any(file.path in paths for file in target.files):
            for kind, modules in target.jit.items():
                found[kind] = tuple(dict.fromkeys([*found.get(kind, ()), *modules]))
    return found


def known_predicates(edited: Sequence[Edited]) -> dict[str, frozenset[Arch]]:
    """The predicates that edited files use and whose meaning cannot be read from the package."""
    found: dict[str, frozenset[Arch]] = {}
    for patch_set in _shipped():
        for item in edited:
            covered = any(
                target.distribution == item.target.distribution
                and target.versions.contains(item.target.version, prereleases=True)
                for target in patch_set.targets
            )
            if covered:
                text = item.before + item.after
                found |= {n: a for n, a in patch_set.predicates.items() if n.encode() in text}
    return found
