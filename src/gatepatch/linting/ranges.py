"""Version ranges of a set that collide, or that no version is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from gatepatch.linting.finding import Finding
from gatepatch.spec import PatchSet


def range_findings(patch_set: PatchSet) -> Iterator[Finding]:
    """What is wrong with the ranges."""
    yield from _empty(patch_set)
    yield from _overlaps(patch_set)
    yield from _advisories(patch_set)


def _empty(patch_set: PatchSet) -> Iterator[Finding]:
    for index, target in enumerate(patch_set.targets):
        if not any(is_in(target.versions, v) for v in _edges([target.versions])):
            yield Finding(
                key=f"targets[{index}].versions",
                message=f"no version of {target.distribution} is in {target.versions}, "
                "so this block is never reached",
                hint="correct the range, or take the block out",
            )


def _overlaps(patch_set: PatchSet) -> Iterator[Finding]:
    """Ranges of one distribution that both hold for some version."""
    for (first, one), (second, two) in combinations(enumerate(patch_set.targets), 2):
        if one.distribution != two.distribution:
            continue
        ranges = [one.versions, two.versions]
        both = [v for v in _edges(ranges) if all(is_in(r, v) for r in ranges)]
        if both:
            yield Finding(
                key=f"targets[{second}].versions",
                message=f"two blocks are for {one.distribution} {both[0]}: "
                f"{one.versions} (targets[{first}]) and {two.versions}",
                hint="make the ranges exclude each other",
            )


def _advisories(patch_set: PatchSet) -> Iterator[Finding]:
    """Advisories that are never shown."""
    for index, advisory in enumerate(patch_set.advisories):
        for name, when in advisory.when.items():
            ranges = [t.versions for t in patch_set.targets if t.distribution == name]
            shown = any(
                is_in(when, version) and is_in(own, version)
                for own in ranges
                for version in _edges([own, when])
            )
            if not shown:
                yield Finding(
                    key=f"advisories[{index}].when.{name}",
                    message=f"no block of the set is for {name} {when}".rstrip()
                    + ", so the advisory is never shown",
                    hint="correct the range, or take the advisory out",
                )


def is_in(versions: SpecifierSet, version: Version) -> bool:
    """Whether a version is in a range; what the range says of pre-releases does not count."""
    return versions.contains(version, prereleases=True)


def _edges(ranges: Iterable[SpecifierSet]) -> list[Version]:
    """The versions at which ranges begin and end, and what lies just beside them."""
    found = {Version("0")}
    for versions in ranges:
        for specifier in versions:
            text = specifier.version.removesuffix(".*")
            for spelling in (text, f"{text}.0.1", f"{text}.post1", f"{text}.post1.dev1"):
                try:
                    found.add(Version(spelling))
                except ValueError:
                    continue
    return sorted(found)
