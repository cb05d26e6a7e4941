"""Several processes apply and revert at once: none is refused, and the end is as it should be."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

import gatepatch
from crashing import SignalAt, result_of, start_child
from gatepatch import applier, carried
from gatepatch.environment import find_environment
from gatepatch.results import Result
from gatepatch.workspace import Workspace
from trees import make_distribution, make_environment, site_of

NEVER = SignalAt(0)
FILES = {f"thing/file{n}.py": f"x = {n}\ny = 0\n" for n in range(6)}
FIRST, SECOND = list(FILES)[:4], list(FILES)[2:]


def _set(name: str, edits: Mapping[str, tuple[str, str]]) -> str:
    files = "".join(
        f"      - path: {path}\n        edits:\n          - text: {{find: {find!r}, "
        f"replace: {new!r}, count: 1, unproved: a test}}\n"
        for path, (find, new) in edits.items()
    )
    return (
        f"schema: 1\nname: {name}\nsummary: a test\nwhy: a test\nadmit: [sm_120]\n"
        f"like: sm_100\ntargets:\n  - distribution: thing\n    versions: '>=1'\n    files:\n{files}"
    )


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    """Two sets that share two files."""
    folder = tmp_path / "patches"
    folder.mkdir()
    first = dict.fromkeys(FIRST, ("x = ", "x = 9"))
    second = dict.fromkeys(SECOND, ("y = 0", "y = 7"))
    (folder / "first.yaml").write_text(_set("first", first))
    (folder / "second.yaml").write_text(_set("second", second))
    return folder


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "thing", "1.0", FILES)
    return prefix


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


def test_of_sixteen_one_applies_and_the_others_find_it_done(
    tmp_path: Path, prefix: Path, patches: Path
) -> None:
    def work() -> None:
        _wait_for(tmp_path / "ready")
        result = gatepatch.apply("first", prefix=prefix, patches=[patches], assume="sm_120")
        (tmp_path / f"outcome{os.getpid()}").write_text(result.outcome)

    children = [start_child(work, NEVER) for _ in range(16)]
    (tmp_path / "ready").touch()
    assert [result_of(child)[0] for child in children] == [0] * 16
    outcomes = [path.read_text() for path in tmp_path.glob("outcome*")]
    assert sorted(outcomes) == ["already-applied"] * 15 + ["applied"]
    for path, text in FILES.items():
        expected = text.replace("x = ", "x = 9") if path in FIRST else text
        assert (site_of(prefix) / path).read_text() == expected


def test_nothing_is_refused_or_lost_while_others_come_and_go(
    tmp_path: Path, prefix: Path, patches: Path
) -> None:
    def work(seed: int) -> None:
        pick = random.Random(seed)
        _wait_for(tmp_path / "ready")
        for _ in range(12):
            name = pick.choice(["first", "second"])
            if pick.random() < 0.5:
                gatepatch.apply(name, prefix=prefix, patches=[patches], assume="sm_120")
            else:
                gatepatch.revert(name, prefix=prefix, patches=[patches])

    children = [start_child(lambda seed=seed: work(seed), NEVER) for seed in range(5)]  # type: ignore[misc]
    (tmp_path / "ready").touch()
    assert [result_of(child)[0] for child in children] == [0] * 5
    gatepatch.apply("first", prefix=prefix, patches=[patches], assume="sm_120")
    gatepatch.apply("second", prefix=prefix, patches=[patches], assume="sm_120")
    for path, text in FILES.items():
        expected = text.replace("x = ", "x = 9") if path in FIRST else text
        expected = expected.replace("y = 0", "y = 7") if path in SECOND else expected
        assert (site_of(prefix) / path).read_text() == expected
    gatepatch.revert(prefix=prefix)
    assert {p: (site_of(prefix) / p).read_text() for p in FILES} == FILES
    assert not (site_of(prefix) / ".gatepatch").exists()


def test_what_is_changed_after_the_first_look_is_seen(
    prefix: Path, patches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quick look whether a set is applied reads a state that the plan must not go by."""
    gatepatch.apply("second", prefix=prefix, patches=[patches], assume="sm_120")
    look = carried.already_applied

    def then_another_applies(*arguments: Any) -> Result | None:
        found = look(*arguments)
        monkeypatch.setattr(carried, "already_applied", look)
        gatepatch.apply("first", prefix=prefix, patches=[patches], assume="sm_120")
        return found

    monkeypatch.setattr(carried, "already_applied", then_another_applies)
    result = gatepatch.apply("first", prefix=prefix, patches=[patches], assume="sm_120")
    assert result.outcome == "already-applied"


def test_a_set_that_went_and_came_back_within_a_second_is_noticed(
    prefix: Path, patches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever planned in between saw files that were neither the one nor the other."""

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stopped:
            return cls(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr(applier, "datetime", Stopped)
    for name in ("second", "first"):
        gatepatch.apply(name, prefix=prefix, patches=[patches], assume="sm_120")
    state = site_of(prefix) / ".gatepatch" / "state.json"
    document, seen = state.read_bytes(), _stamp(prefix)
    assert _stamp(prefix) == seen
    gatepatch.revert("first", prefix=prefix)
    gatepatch.apply("first", prefix=prefix, patches=[patches], assume="sm_120")
    assert state.read_bytes() == document
    assert _stamp(prefix) != seen


def _stamp(prefix: Path) -> object:
    return Workspace(find_environment(prefix=prefix)).stamp()
