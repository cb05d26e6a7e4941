"""Decide from the runs whether a set pays.

Runs are compared by the ratio of their metrics, so on logarithms: a machine's disturbances
multiply, and a gain of 2 % is a ratio. The difference of the two sides' means gets the 95 %
confidence interval of Welch's t test (Welch, Biometrika 34, 1947), which takes each side's own
spread: a set may well change the noise too. An interval of this kind is what Georges et al.,
"Statistically rigorous Java performance evaluation" (OOPSLA 2007), advise for few runs. A rank or
permutation test cannot reach 5 % with three runs a side (its least two-sided p is 2/20), and the
bootstrap's intervals are too narrow with so few.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gatepatch.trials.student import quantile

CONFIDENCE = 0.95

Verdict = Literal[
    "gain",
    "small-gain",
    "no-difference",
    "loss",
    "within-max-loss",
    "failed",
    "hung",
]
"""``small-gain``: real, and less than --min-gain. ``within-max-loss``: surely no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a set pays.

    Args:
        higher: Whether a higher metric is better.
        min_gain: Least gain, as a fraction; None where nobody has said.
        max_loss: Keep it without a gain too, if it surely loses no more than this fraction.
    """

    higher: bool
    min_gain: float | None = None
    max_loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided, and why.

    Args:
        keep: Whether the set stays.
        reason: One or two sentences.
        gain: By which fraction the set is better (worse if negative), by the means.
        low: Lower end of the gain's confidence interval; None where the spread is unknown.
        high: Upper end.
    """

    verdict: Verdict
    keep: bool
    reason: str
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = CONFIDENCE


def decide(without: Sequence[float], having: Sequence[float], rule: Rule) -> Decision:
    """Decide.

    Args:
        without: The metrics of the baseline's runs, at least one, all above 0.
        having: Those of the runs with the set.
        rule: When it pays.
    """
    sign = 1 if rule.higher else -1
    logs = [[sign * math.log(value) for value in side] for side in (without, having)]
    means = [statistics.fmean(side) for side in logs]
    difference = means[1] - means[0]
    if min(len(without), len(having)) < 2:
        return _unknown_spread(math.expm1(difference), rule)
    half = _half_width(logs[0], logs[1])
    gain, low, high = (math.expm1(difference + shift) for shift in (0.0, -half, half))
    verdict, keep, reason = _judge(gain, low, high, rule)
    return Decision(verdict=verdict, keep=keep, reason=reason, gain=gain, low=low, high=high)


def _half_width(first: Sequence[float], second: Sequence[float]) -> float:
    """Half the width of the confidence interval of the difference of two means."""
    parts = [statistics.variance(side) / len(side) for side in (first, second)]
    error = sum(parts)
    if error == 0:  # runs that do not differ at all, as counts may not
        return 0.0
    sides = zip(parts, (first, second), strict=True)
    freedom = error**2 / sum(part**2 / (len(side) - 1) for part, side in sides)
    return quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(error)


def _judge(gain: float, low: float, high: float, rule: Rule) -> tuple[Verdict, bool, str]:
    span = f"(between {percent(low)} and {percent(high)} with {CONFIDENCE:.0%} confidence)"
    tolerated = rule.max_loss is not None and low >= -rule.max_loss
    if low > 0:
        if gain >= (rule.min_gain or 0):
            return "gain", True, f"a gain of {percent(gain)} {span}"
        if rule.max_loss is None:
            asked = f"less than the {percent(rule.min_gain or 0)} asked for"
            return "small-gain", False, f"a gain of {percent(gain)} {span}, {asked}"
    if tolerated:
        within = f"no more than the loss of {rule.max_loss:.2%} that --max-loss allows"
        return "within-max-loss", True, f"{percent(gain)} {span}, {within}"
    if high < 0:
        return "loss", False, f"a loss of {percent(-gain, sign=False)} {span}"
    seen = percent((high - low) / 2, sign=False)
    reason = (
        f"no difference: {percent(gain)} {span} is inside the noise; these runs can tell "
        f"differences of about {seen} and more, and a higher --repeat makes that finer"
    )
    return "no-difference", False, reason


def _unknown_spread(gain: float, rule: Rule) -> Decision:
    """One run a side: there is no spread to hold the difference against."""
    unknown = "the spread is unknown with one run a side"
    keep, verdict = False, "no-difference"
    if rule.min_gain is not None and gain >= rule.min_gain:
        keep, verdict = True, "gain"
        reason = f"{percent(gain)}, which meets --min-gain; {unknown}, so noise may have done it"
    elif rule.max_loss is not None and gain >= -rule.max_loss:
        keep, verdict = True, "within-max-loss"
        reason = f"{percent(gain)}, which --max-loss allows; {unknown}, so noise may have done it"
    elif rule.min_gain is None and rule.max_loss is None:
        reason = (
            f"{percent(gain)}, and {unknown}: without --min-gain nothing can be told from it; "
            "use --repeat 3 or more"
        )
    else:
        reason = f"{percent(gain)}, less than what was asked for; {unknown}"
        verdict = "loss" if gain < 0 else "small-gain"
    return Decision(verdict=verdict, keep=keep, reason=reason, gain=gain)  # type: ignore[arg-type]


def percent(fraction: float, *, sign: bool = True) -> str:
    """A fraction as a percentage."""
    return f"{fraction:+.2%}" if sign else f"{fraction:.2%}"
