"""Figures of the runs, and the few lines that a terminal shows at the end."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from gatepatch.trials.record import Run, Trial
from gatepatch.trials.schedule import Side


def costs(runs: Sequence[Run]) -> tuple[float, ...]:
    """Seconds by which the first run after each switch was longer than its side's median run."""
    usual: dict[Side, float] = {}
    for side in {run.side for run in runs}:
        counted = [r.seconds for r in runs if r.side == side and r.counted and not r.problem]
        if counted:
            usual[side] = statistics.median(counted)
    first = [
        run
        for before, run in itertools.pairwise(runs)
        if before.side != run.side and not run.counted and not run.problem
    ]
    return tuple(round(run.seconds - usual[run.side], 3) for run in first if run.side in usual)


def lines(trial: Trial) -> list[str]:
    """The summary."""
    found = []
    sides: tuple[Side, Side] = ("without", "with")
    for side in sides:
        if values := trial.metrics(side):
            name = f"{side} {trial.set}"
            found.append(f"  {name:{len(trial.set) + 8}}  {_spread(values)}")
    if trial.decision:
        found.append(f"  {trial.decision.reason}")
    if any(cost > 0 for cost in trial.switches.warm_up):
        told = ", ".join(f"{cost:+.1f} s" for cost in trial.switches.warm_up)
        found.append(f"  first runs after a switch, against the median run: {told}")
    found += [f"  {line}" for line in dict.fromkeys(_spins(trial))]
    if trial.page:
        found.append(f"  report: {trial.page}")
    if trial.record:
        found.append(f"  record: {trial.record}")
    return found


def _spins(trial: Trial) -> list[str]:
    return [
        f"run {run.number} {note}"
        for run in trial.runs
        for note in run.notes
        if note.startswith("looks like")
    ]


def _spread(values: Sequence[float]) -> str:
    told = ", ".join(f"{value:.4g}" for value in values)
    if len(values) < 2:
        return told
    deviation = statistics.stdev(values) / statistics.fmean(values)
    return f"mean {statistics.fmean(values):.4g}, spread {deviation:.2%} ({told})"
