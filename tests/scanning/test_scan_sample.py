"""What a scan finds, against gates that were found and judged by eye: docs/scan-sample.md."""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
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


def _missed(found: dict[str, list[Finding]]) -> Iterator[str]:
    for gate in SAMPLE["recall"]:
        if not any(f.line <= gate["line"] <= f.end_line for f in found[gate["path"]]):
            yield f"{_place(gate)} is not found ({gate['shape']})"


def _judged(found: dict[str, list[Finding]]) -> Iterator[str]:
    """A line for each finding of the sample that is still there: empty where it is right."""
    for entry in SAMPLE["precision"]:
        here = [
            {arch: f.verdict[arch] for arch in ARCHS}
            for f in found[entry["path"]]
            if (f.line, f.end_line, f.kind) == (entry["line"], entry["end_line"], entry["kind"])
        ]
        if not here:
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
    assert len({_place(gate) for gate in recall}) == len(recall) >= 200
    assert len(precision) == 200
    assert {gate["at_12.0"] for gate in recall} == {"true", "false", "depends", "unknown"}
    for entry in precision:
        assert set(entry["verdict"]) == set(ARCHS)
        assert set(entry["verdict"].values()) <= ANSWERS
        keys = set(entry) - {"path", "line", "end_line", "kind", "verdict", "judgement"}
        match entry["judgement"]:
            case "right":
                assert not keys
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
        if finding.tree == "own":
            found[finding.path].append(finding)
    missed = list(_missed(found))
    judged = list(_judged(found))
    wrong = [line for line in judged if line]
    share_found = 1 - len(missed) / len(SAMPLE["recall"])
    share_right = 1 - len(wrong) / len(judged)
    with capsys.disabled():
        print(f"\nfound {share_found:.1%} of {len(SAMPLE['recall'])} gates that were read")
        print(f"right {share_right:.1%} of {len(judged)} findings that are still there")
    assert len(judged) >= 150, "too few of the findings are still there: judge a new sample"
    reached = share_found >= 0.95 and share_right >= 0.97
    assert reached, "\n".join([*missed, *wrong])
