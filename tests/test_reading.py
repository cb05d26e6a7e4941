"""The pins against an independent reading of the releases, which was made without gatepatch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatepatch import catalog, pins

READING = json.loads((Path(__file__).parent / "data" / "gates.json").read_text())["gates"]
PINS = {
    (pin.distribution, pin.version): pin
    for path in sorted((catalog.shipped() / "sm120-allreduce" / "pins").glob("*.json"))
    for pin in [pins.load(path)]
}


def opened(distribution: str, version: str) -> dict[str, list[int]]:
    """The lines that the reading says are to be opened, by path."""
    found: dict[str, list[int]] = {}
    for entry in READING[distribution]:
        if entry["action"] == "open" and version in entry["lines"]:
            found.setdefault(entry["path"], []).extend(entry["lines"][version])
    return found


@pytest.mark.parametrize("key", PINS, ids="-".join)
def test_the_pin_opens_what_the_reading_says_and_nothing_else(key: tuple[str, str]) -> None:
    wanted = opened(*key)
    places = {
        file.path: [place for place in file.places if place.verdict_before and file.edits]
        for file in PINS[key].files
    }
    for path, lines in wanted.items():
        for line in lines:
            assert any(p.line <= line <= p.end_line for p in places[path]), (path, line)
    for path, found in places.items():
        for place in found:
            lines = wanted.get(path, [])
            assert any(place.line <= line <= place.end_line for line in lines), (path, place.line)
