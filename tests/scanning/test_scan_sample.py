"""What a scan finds, against gates that were found and judged by eye: docs/scan-sample.md."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gatepatch
from gatepatch.scanning.records import Finding
from trees import make_environment, site_of
from wheels import fetch

SAMPLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "scan_sample.json").read_text()
)
ARCHS = ("9.0", "10.0", "12.0")
FOUND = {1: 0.98, 2: 0.97, 3: 0.97, 4: 0.98, 5: 0.97, 6: 0.94, 7: 0.95, 8: 0.96, 9: 0.95}
"""The least share found of each reading's gates, those left out that a reader may not count."""
RIGHT = {1: 0.97, 2: 0.98, 3: 0.97, 4: 0.95, 5: 0.96, 6: 0.97, 7: 0.96, 8: 0.97}
"""The least share right of each draw's findings that are still there."""
ANSWERS = {"admits", "shuts", "depends", "unknown"}


def _place(entry: dict[str, Any]) -> str:
    return f"{entry['path']}:{entry['line']}"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _environment(folder: Path) -> Path:
    prefix = make_environment(folder)
    for distribution, version in SAMPLE["releases"].items():
        tree = fetch(distribution, version)
        shutil.copytree(
            tree, site_of(prefix), symlinks=True, dirs_exist_ok=True, copy_function=_link
        )
    return prefix


def _missed(found: dict[str, list[Finding]], reading: int) -> Iterator[str]:
    """A line for each gate of a reading that is counted: empty where it is found."""
    for gate in SAMPLE["recall"]:
        if gate["reading"] != reading or gate.get("doubtful"):
            continue
        here = any(f.line <= gate["line"] <= f.end_line for f in found[gate["path"]])
        yield "" if here else f"{_place(gate)} is not found ({gate['shape']})"


def _judged(found: dict[str, list[Finding]], draw: int) -> Iterator[str]:
    """A line for each finding of a draw that is still there: empty where it is right."""
    for entry in SAMPLE["precision"]:
        here = [
            {arch: f.verdict[arch] for arch in ARCHS}
            for f in found[entry["path"]]
            if (f.line, f.end_line, f.kind) == (entry["line"], entry["end_line"], entry["kind"])
        ]
        if not here or entry["draw"] != draw:
            continue
        right = entry.get("right", entry["verdict"])
        if entry["judgement"] == "not a gate":
            yield f"{_place(entry)} is no gate: {entry['note']}"
        else:
            yield (
                "" if right in here else f"{_place(entry)} is {here}, and {right} was judged right"
            )


def test_the_sample_is_whole() -> None:
    recall, precision = SAMPLE["recall"], SAMPLE["precision"]
    assert len({_place(gate) for gate in recall}) == len(recall)
    assert Counter(entry["draw"] for entry in precision) == dict.fromkeys(RIGHT, 200)
    assert min(Counter(gate["reading"] for gate in recall).values()) >= 200
    assert {gate["reading"] for gate in recall} == set(FOUND)
    assert {gate["at_12.0"] for gate in recall} == {"true", "false", "depends", "unknown"}
    for entry in precision:
        assert set(entry["verdict"]) == set(ARCHS)
        assert set(entry["verdict"].values()) <= ANSWERS
        known = {"path", "line", "end_line", "kind", "verdict", "judgement", "draw", "doubtful"}
        keys = set(entry) - known
        match entry["judgement"]:
            case "right":
                assert keys in (set(), {"note", "right"})  # judged anew where it can be told now
            case "not a gate":
                assert keys == {"cause", "note"}
            case other:
                assert other == "wrong"
                assert keys == {"cause", "note", "right"}
                assert entry["right"] != entry["verdict"]


@pytest.mark.slow
def test_finds_what_was_read_and_says_what_was_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = _environment(tmp_path)
    result = gatepatch.scan(
        list(SAMPLE["releases"]), sm="120", prefix=prefix, everything=True, cached=False
    )
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        found[finding.path].append(finding)
    short: list[str] = []
    for what, floors, lines in (("found", FOUND, _missed), ("right", RIGHT, _judged)):
        for number, floor in floors.items():
            told = list(lines(found, number))
            bad = [line for line in told if line]
            share = 1 - len(bad) / len(told)
            with capsys.disabled():
                print(f"\n{what} {share:.1%} of {len(told)} of sample {number}", end="")
            assert len(told) >= 150, "too few are still there: judge a new sample"
            short += bad if share < floor else []
    assert not short, "\n".join(short)
