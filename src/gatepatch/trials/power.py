"""What the devices did during a run, and whether that looks like spinning."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BUSY = 90.0
"""Per cent of utilisation from which on a device counts as busy."""

FAR_BELOW = 0.7
"""Of the baseline's power. The case in hand: 125 W for 250 W, at 100 % utilisation both times."""

MIN_SAMPLES = 3
"""A spike says nothing."""

KEPT = 200
"""Samples of one device and run in a record, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at one device; None for what it does not tell.

    Args:
        second: Since the run's start.
        device: Its UUID.
        watts: Power drawn.
        busy: Utilisation in per cent: whether any kernel ran, not how much of the device it used.
        clock: SM clock in MHz.
        memory: Used memory in MiB.
    """

    second: float
    device: str
    watts: float | None
    busy: float | None
    clock: float | None
    memory: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A device over one run.

    Args:
        samples: How many looks there were.
        watts: Median power while it was busy; over the whole run where it never was.
        busy: Mean utilisation in per cent.
        busy_share: Share of the looks at which it was busy.
        clock: Median SM clock in MHz.
        memory: Most used memory in MiB.
    """

    device: str
    samples: int
    watts: float | None
    busy: float | None
    busy_share: float
    clock: float | None
    memory: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """A device that looks as if it spun during a run, in words."""

    device: str
    words: str


def use(samples: Sequence[Sample]) -> tuple[Use, ...]:
    """Sum up each device's samples of one run."""
    devices = dict.fromkeys(sample.device for sample in samples)
    return tuple(_use(device, [s for s in samples if s.device == device]) for device in devices)


def thinned(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Few enough samples for a record: means over equal stretches of time."""
    found: list[Sample] = []
    for device in dict.fromkeys(sample.device for sample in samples):
        own = [sample for sample in samples if sample.device == device]
        size = -(-len(own) // KEPT)
        found += [_mean(own[first : first + size]) for first in range(0, len(own), size)]
    return tuple(sorted(found, key=lambda sample: sample.second))


def spinning(run: Sequence[Use], baseline: Sequence[Use]) -> tuple[Spin, ...]:
    """Say which devices look as if they waited in a loop: busy, far below the baseline's power.

    Args:
        run: The devices over one run.
        baseline: The devices over the counted runs of the baseline.
    """
    found = []
    for each in run:
        drawn = [b.watts for b in baseline if b.device == each.device and b.watts is not None]
        if each.watts is None or not drawn or each.samples < MIN_SAMPLES:
            continue
        usual = statistics.median(drawn)
        if each.busy_share >= 0.5 and each.watts <= FAR_BELOW * usual:
            words = (
                f"{each.device}: busy by utilisation ({each.busy:.0f} %) at {each.watts:.0f} W, "
                f"where the baseline draws {usual:.0f} W: it waits in a loop rather than works"
            )
            found.append(Spin(device=each.device, words=words))
    return tuple(found)


def _use(device: str, samples: Sequence[Sample]) -> Use:
    busy = [s for s in samples if s.busy is not None and s.busy >= BUSY]
    told = [s.busy for s in samples if s.busy is not None]
    return Use(
        device=device,
        samples=len(samples),
        watts=_median(s.watts for s in (busy if len(busy) >= MIN_SAMPLES else samples)),
        busy=statistics.fmean(told) if told else None,
        busy_share=len(busy) / len(samples),
        clock=_median(s.clock for s in samples),
        memory=max((s.memory for s in samples if s.memory is not None), default=None),
    )


def _mean(samples: Sequence[Sample]) -> Sample:
    def mean(values: Iterable[float | None]) -> float | None:
        told = [value for value in values if value is not None]
        return round(statistics.fmean(told), 2) if told else None

    return Sample(
        second=samples[len(samples) // 2].second,
        device=samples[0].device,
        watts=mean(s.watts for s in samples),
        busy=mean(s.busy for s in samples),
        clock=mean(s.clock for s in samples),
        memory=mean(s.memory for s in samples),
    )


def _median(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return statistics.median(told) if told else None
