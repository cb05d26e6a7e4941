"""Compare what a compiler made of a set's units with what the set expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gatepatch.arch import Arch
from gatepatch.spec import Amount, Expectation, PatchSet, UnitSpec
from gatepatch.verifying.compiling import Compiled
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.ptx import Summary

Side = Literal["before", "after"]
SIDE_WORDS: Mapping[Side, str] = {"before": "without the set", "after": "as it is on disk"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a result belongs."""

    unit: UnitSpec
    arch: Arch
    side: Side


def compare(patch_set: PatchSet, results: Mapping[Place, Compiled]) -> Iterator[Finding]:
    """Everything that did not compile, or is not what the set expects."""
    for place, done in results.items():
        # What does not compile as it is on disk seldom does without the set: that is said once.
        other = results.get(Place(unit=place.unit, arch=place.arch, side="after"), done)
        if done.summary is None and (done is other or other.summary is not None):
            yield _error(place, done)
    for place in results:
        if place.arch == patch_set.like:
            if place.side == "after":
                yield from _unchanged(patch_set, place, results)
            continue
        for expectation in place.unit.expect:
            yield from _expectation(patch_set, place, expectation, results)


def _error(place: Place, done: Compiled) -> Finding:
    return Finding(
        kind="compile-error",
        where=f"{place.unit.path} (compute_{done.job.arch}, {SIDE_WORDS[place.side]})",
        expected="it compiles",
        found=done.said,
        command=done.command,
    )


def _expectation(
    patch_set: PatchSet,
    place: Place,
    expectation: Expectation,
    results: Mapping[Place, Compiled],
) -> Iterator[Finding]:
    amount = expectation.before if place.side == "before" else expectation.after
    found = _count(place, expectation, results)
    if amount is None or found is None:
        return
    like: int | None = None
    if patch_set.like is not None:
        other = Place(unit=place.unit, arch=patch_set.like, side=place.side)
        like = _count(other, expectation, results)
    if _holds(amount, found, like):
        return
    words = {
        "none": "none",
        "some": "some",
        "as-like": f"as many as for {patch_set.like}, {like}",
    }
    yield Finding(
        kind="expectation",
        where=f"{place.unit.path} ({place.arch}, {SIDE_WORDS[place.side]})",
        expected=f"{expectation.subject}: {words[amount]}",
        found=str(found),
        command=f"gatepatch plan {patch_set.name}",
    )


def _count(place: Place, expectation: Expectation, results: Mapping[Place, Compiled]) -> int | None:
    summary = _summary(place, results)
    if summary is None:
        return None
    if expectation.instruction is None:
        return len(summary.empty)
    return summary.count(expectation.instruction)


def _summary(place: Place, results: Mapping[Place, Compiled]) -> Summary | None:
    return results[place].summary if place in results else None


def _holds(amount: Amount, found: int, like: int | None) -> bool:
    match amount:
        case "none":
            return found == 0
        case "some":
            return found > 0
        case "as-like":
            return like is None or found == like  # a compile error is a finding of its own


def _unchanged(
    patch_set: PatchSet, place: Place, results: Mapping[Place, Compiled]
) -> Iterator[Finding]:
    """An architecture that a set does not name keeps its code: ``like`` is compiled anyway."""
    before = _summary(Place(unit=place.unit, arch=place.arch, side="before"), results)
    after = _summary(place, results)
    if before is None or after is None or before == after:
        return
    opcodes = sorted({*before.instructions, *after.instructions})
    changed = [
        f"{name}: {before.instructions.get(name, 0)}, now {after.instructions.get(name, 0)}"
        for name in opcodes
        if before.instructions.get(name, 0) != after.instructions.get(name, 0)
    ]
    yield Finding(
        kind="like-changed",
        where=f"{place.unit.path} ({place.arch})",
        expected=f"the same code for {place.arch} as without the set",
        found="; ".join(changed[:5])
        or f"{len(after.empty)} empty kernels, {len(before.empty)} before",
        command=f"gatepatch revert {patch_set.name}",
    )
