"""A comparison as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from gatepatch.report import Printer
from gatepatch.scanning.against import Compared, Comparison
from gatepatch.scanning.matching import KINDS, Difference, Kind
from gatepatch.scanning.records import Finding
from gatepatch.scanning.table import one_line

_WIDE = 150


def against_table(result: Comparison, out: Printer) -> Iterator[str]:
    """Yield the lines: the differences by distribution and kind, and the counts."""
    for compared in result.distributions:
        own = [d for d in result.differences if d.place.distribution == compared.distribution]
        yield from _counts(result, compared)
        for kind in KINDS:
            some = [one for one in own if one.kind == kind]
            if some:
                yield f"  {_title(kind, result)}"
            for one in some:
                yield from _lines(one, result, out)
        every = sum(getattr(compared, kind) for kind in KINDS)
        if hidden := every - len(own):
            yield (
                f"  {hidden} more came, went or moved, and do not leave {result.sm} out "
                "(--all shows them)"
            )
    if not result.distributions:
        yield "no distribution is in both"


def _counts(result: Comparison, compared: Compared) -> Iterator[str]:
    before, after = compared.before, compared.after
    yield (
        f"{compared.distribution} {before.version} -> {after.version}: "
        f"{before.gates} -> {after.gates} gates; {before.leaves_out} -> {after.leaves_out} leave "
        f"{result.sm} out"
    )
    trees = "" if result.everything else "in its own code, "
    yield (
        f"  {trees}{compared.same} as they were, {compared.shifted} on another line, "
        f"{compared.rewritten} rewritten with the same verdict; {compared.changed} changed for "
        f"{result.sm}, {compared.came} came, {compared.went} went, {compared.moved} moved"
    )


def _title(kind: Kind, result: Comparison) -> str:
    return {
        "changed": f"changed for {result.sm}:",
        "came": "came:",
        "went": "went:",
        "moved": "moved:",
    }[kind]


def _lines(one: Difference, result: Comparison, out: Printer) -> Iterator[str]:
    place = one.place
    words = _word(place, result)
    if one.kind == "changed" and one.before and one.after:
        words = f"{_word(one.before, result)} -> {_word(one.after, result)}"
    within = f"  in {place.within}" if place.within else ""
    yield f"    {place.path}:{place.line}{within}"
    yield f"      {out.word(words)}  {_text(place)}"
    if one.before is None or one.after is None:
        return
    if (one.before.path, one.before.within) != (place.path, place.within):
        inside = f" in {one.before.within}" if one.before.within else ""
        yield f"      was at {one.before.path}:{one.before.line}{inside}"
    if _text(one.before) != _text(place):
        yield f"      was {_text(one.before)}"


def _word(finding: Finding, result: Comparison) -> str:
    word = "unknown" if finding.unknown else finding.verdict[result.sm]
    return f"{word}, left out" if finding.leaves_out and word == "depends" else word


def _text(finding: Finding) -> str:
    return one_line(finding.text, _WIDE)
