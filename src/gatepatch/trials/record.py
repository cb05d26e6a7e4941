"""The record of a trial: what it found, as JSON beside the state, and the list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from gatepatch.files import write_new
from gatepatch.report import document
from gatepatch.results import Outcome
from gatepatch.target import Root
from gatepatch.trials.decide import Decision
from gatepatch.trials.power import Sample, Spin, Use
from gatepatch.trials.schedule import Side

FOLDER = "trials"
"""In the state folder of the first root that the trial touches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Args:
        number: From 1, warm-ups included.
        counted: False for a warm-up.
        began: In UTC, as ISO 8601.
        seconds: How long the command ran.
        how: ``exit``, ``timeout`` (ended at the limit) or ``not-started``.
        code: Exit code, or the negative number of a signal.
        metric: None where it could not be had.
        problem: Why the run counts as failed; empty if it does not.
        notes: What a person should know, such as processes that it left behind.
        last_lines: Of its output; only of a run that failed.
        uses: What the devices did.
        spins: Which devices look as if they spun.
        samples: In the order of time.
    """

    number: int
    side: Side
    counted: bool
    began: str
    seconds: float
    how: Literal["exit", "timeout", "not-started"]
    code: int | None
    metric: float | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    spins: tuple[Spin, ...] = ()
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What going from one side to the other costs.

    Args:
        seconds: For each switch, how long putting the set in or out took.
        warm_up: For each switch, by how many seconds the first run after it was longer than the
            side's median counted run: mostly what compiling kernels again took.
        through: What the runs compiled through, for a person; empty if nothing was put before
            the compiler.
    """

    seconds: tuple[float, ...]
    warm_up: tuple[float, ...]
    through: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a trial found.

    Args:
        id: Its name.
        outcome: ``applied``: the set stays. ``reverted``: it does not pay, and is out.
            ``refused``: the baseline failed. ``interrupted``: a signal came. In these two the
            environment is as it was before.
        applied_before: Whether the set was applied before the trial.
        metric: What runs are judged by, in words.
        higher: Whether a higher metric is better.
        decision: None where the trial did not come to one.
        environment: The environment's folder.
        versions: Distributions of the set, and gatepatch's own, to their versions.
        others: Sets that were applied on both sides.
        devices: Name and UUID of each device, if they could be asked.
        warnings: What a person should know.
        repeat: The command line that repeats the trial.
        record: Where this is written.
        page: The report for a person.
    """

    id: str
    set: str
    outcome: Outcome
    applied_before: bool
    began: str
    ended: str
    command_line: tuple[str, ...]
    folder: str
    metric: str
    higher: bool
    decision: Decision | None
    runs: tuple[Run, ...]
    switches: Switches
    environment: str
    versions: Mapping[str, str]
    others: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    problem: str = ""
    repeat: str = ""
    record: str = ""
    page: str = ""


def metrics(runs: Iterable[Run], side: Side) -> list[float]:
    """The metrics of one side's counted runs."""
    return [
        run.metric for run in runs if run.side == side and run.counted and run.metric is not None
    ]


def to_json(trial: Trial) -> str:
    """The JSON document of a trial."""
    return document("trial", **{f.name: getattr(trial, f.name) for f in fields(trial)})


def write(trial: Trial, places: Iterable[Path]) -> None:
    """Write the record to some files.

    Raises:
        OSError: One cannot be written.
    """
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, to_json(trial).encode() + b"\n")


def history(roots: Iterable[Root]) -> tuple[dict[str, Any], ...]:
    """The records of an environment, oldest first; one that cannot be read is left out."""
    found = []
    for root in roots:
        for path in (root.state_dir / FOLDER).glob("*.json"):
            try:
                entry = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            if isinstance(entry, dict) and entry.get("command") == "trial":
                found.append(entry)
    return tuple(sorted(found, key=lambda entry: str(entry.get("began"))))
