"""Figures of the runs, and the few lines that a terminal shows at the end."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from gatepatch.trials.record import Run, Trial, metrics
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


def of_run(run: Run) -> list[str]:
    """What one run did."""
    found = [*run.notes, *(f"looks like spinning, {spin.words}" for spin in run.spins)]
    if run.problem:
        return [*found, run.problem]
    time = f"{run.seconds:.2f} s"
    return [*found, time if run.metric is None else f"{run.metric:.5g} (run time {time})"]


def figures(trial: Trial) -> list[str]:
    """Each side's mean, spread and values."""
    sides: tuple[Side, Side] = ("without", "with")
    return [
        f"{f'{side} {trial.set}':{len(trial.set) + 8}}  {_spread(values)}"
        for side in sides
        if (values := metrics(trial.runs, side))
    ]


def switches(trial: Trial) -> dict[str, str]:
    """What the switches cost, in words."""
    changes = ", ".join(f"{value:.2f} s" for value in trial.switches.seconds)
    first = ", ".join(f"{value:+.1f} s" for value in trial.switches.warm_up)
    return {
        "putting the set in or out": changes,
        "first run after it, against the side's median run": first or "not known",
        "compiled through": trial.switches.through or "the compiler itself",
    }


def lines(trial: Trial) -> list[str]:
    """The summary."""
    found = figures(trial)
    if trial.decision:
        found.append(trial.decision.reason)
    found += [f"{name}: {value}" for name, value in switches(trial).items() if value]
    found += spins(trial)
    if trial.page:
        found.append(f"report: {trial.page}")
    if trial.record:
        found.append(f"record: {trial.record}")
    return [f"  {line}" for line in found]


def spins(trial: Trial) -> list[str]:
    """Which runs look like spinning, and how, once a device."""
    found: dict[str, list[tuple[int, str]]] = {}
    for run in trial.runs:
        for spin in run.spins:
            found.setdefault(spin.device, []).append((run.number, spin.words))
    return [
        f"{'run' if len(group) == 1 else 'runs'} {', '.join(str(number) for number, _ in group)} "
        f"{'looks' if len(group) == 1 else 'look'} like spinning, {group[-1][1]}"
        for group in found.values()
    ]


def _spread(values: Sequence[float]) -> str:
    told = ", ".join(f"{value:.4g}" for value in values)
    if len(values) < 2:
        return told
    deviation = statistics.stdev(values) / statistics.fmean(values)
    return f"mean {statistics.fmean(values):.4g}, spread {deviation:.2%} ({told})"
