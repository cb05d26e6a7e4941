"""In which order the runs go: A BB AA BB … so that a drift of the machine meets both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Side = Literal["without", "with"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One run to make.

    Args:
        number: From 1, warm-ups included.
        side: Without the set, or with it.
        counted: False for a warm-up: the first run after a switch compiles kernels.
        switch: Whether the set has to be put in or out before it.
    """

    number: int
    side: Side
    counted: bool
    switch: bool


def steps(repeat: int, warmup: int) -> Iterator[Step]:
    """The runs of a trial: ABBAABBA…, with warm-ups after each switch.

    Args:
        repeat: Counted runs of each side.
        warmup: Warm-ups after each switch, and before the first run.
    """
    order: list[Side] = []
    for pair in range(repeat):
        order += ("without", "with") if pair % 2 == 0 else ("with", "without")
    number = 0
    for side, group in groupby(order):
        counted = [False] * warmup + [True] * len(list(group))
        for place, counts in enumerate(counted):
            number += 1
            yield Step(number=number, side=side, counted=counts, switch=place == 0)
