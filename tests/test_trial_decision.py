"""What is decided from a trial's runs, and the statistics behind it."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepatch.trials.decide import Decision, Rule, decide
from gatepatch.trials.schedule import steps
from gatepatch.trials.student import cumulative, quantile

HIGHER, LOWER = Rule(higher=True), Rule(higher=False)
metrics = st.lists(st.floats(0.01, 1e6), min_size=2, max_size=6)


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [
        # From the table of t in any book, such as NIST/SEMATECH e-Handbook 1.3.6.7.2.
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.975, 10, 2.228),
        (0.95, 5, 2.015),
        (0.999, 3, 10.215),
        (0.975, 100, 1.984),
        (0.5, 7, 0.0),
    ],
)
def test_quantiles_are_those_of_the_tables(
    probability: float, freedom: float, value: float
) -> None:
    assert quantile(probability, freedom) == pytest.approx(value, abs=0.0006)


def test_with_one_degree_of_freedom_it_is_cauchys_distribution() -> None:
    for t in (0.0, 0.1, 1.0, 3.0, 50.0):
        assert cumulative(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-12)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    for t in (0.0, 0.5, 1.96, 4.0):
        assert cumulative(t, 1e7) == pytest.approx(0.5 + math.erf(t / 2**0.5) / 2, abs=1e-6)


def test_the_interval_is_welchs() -> None:
    """Worked out by hand for logarithms 0, 1 and 2 against 1, 3 and 5."""
    first, second = ([math.exp(x) for x in values] for values in ((0, 1, 2), (1, 3, 5)))
    freedom = (1 / 3 + 4 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 3) ** 2 / 2)
    half = quantile(0.975, freedom) * math.sqrt(5 / 3)
    found = decide(first, second, HIGHER)
    assert found.gain == pytest.approx(math.expm1(2))
    assert (found.low, found.high) == pytest.approx((math.expm1(2 - half), math.expm1(2 + half)))


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_equal_sides_differ_as_seldom_as_the_confidence_says(runs: int) -> None:
    source = random.Random(runs)
    draw = [[source.lognormvariate(4, 0.05) for _ in range(2 * runs)] for _ in range(500)]
    found = [decide(values[:runs], values[runs:], HIGHER).verdict for values in draw]
    wrong = sum(verdict != "no-difference" for verdict in found)
    assert wrong <= 0.08 * len(draw)


def test_a_gain_beyond_the_noise_is_seen() -> None:
    source = random.Random(1)
    draw = [[source.lognormvariate(4, 0.01) for _ in range(10)] for _ in range(200)]
    found = [decide(v[:5], [1.05 * value for value in v[5:]], HIGHER).verdict for v in draw]
    assert found.count("gain") >= 0.99 * len(draw)


@given(metrics, metrics)
def test_turning_the_metric_round_is_turning_better_round(
    first: list[float], second: list[float]
) -> None:
    told = decide(first, second, HIGHER)
    turned = decide([1 / value for value in first], [1 / value for value in second], LOWER)
    assert told.gain == pytest.approx(turned.gain, rel=1e-6, abs=1e-9)


@given(metrics, metrics, st.floats(0.001, 1000))
def test_the_unit_of_the_metric_does_not_matter(
    first: list[float], second: list[float], unit: float
) -> None:
    told = decide(first, second, HIGHER)
    other = decide([unit * v for v in first], [unit * v for v in second], HIGHER)
    assert told.gain == pytest.approx(other.gain, rel=1e-6, abs=1e-6)


@given(metrics, metrics, st.floats(0, 0.5))
def test_a_set_is_kept_for_a_gain_alone(
    first: list[float], second: list[float], least: float
) -> None:
    found = decide(first, second, Rule(higher=True, min_gain=least))
    assert found.low is not None
    assert found.gain is not None
    assert found.keep == (found.low > 0 and found.gain >= least)


@given(metrics, metrics, st.floats(0, 0.5))
def test_with_max_loss_it_is_kept_where_it_surely_loses_no_more(
    first: list[float], second: list[float], most: float
) -> None:
    found = decide(first, second, Rule(higher=True, max_loss=most))
    assert found.low is not None
    assert found.keep == (found.low > 0 or found.low >= -most)


def test_runs_that_do_not_differ_have_no_noise() -> None:
    assert decide([10, 10], [11, 11], HIGHER).verdict == "gain"
    assert decide([10, 10], [11, 11], LOWER).verdict == "loss"
    assert decide([10, 10], [10, 10], HIGHER).verdict == "no-difference"


def words(found: Decision) -> str:
    return found.reason


def test_reasons_read_well() -> None:
    without = [100.0, 101, 99]
    assert words(decide(without, [110, 111, 112], HIGHER)) == (
        "a gain of +11.00% (between +8.62% and +13.43% with 95% confidence)"
    )
    assert words(decide(without, [50, 51, 52], HIGHER)) == (
        "a loss of 49.00% (between -51.04% and -46.89% with 95% confidence)"
    )
    assert words(decide(without, [99, 101, 102], HIGHER)) == (
        "no difference: +0.66% (between -2.42% and +3.84% with 95% confidence) is inside the "
        "noise; these runs can tell differences of about 3.13% and more, and a higher --repeat "
        "makes that finer"
    )
    assert words(decide(without, [110, 111, 112], Rule(higher=True, min_gain=0.2))) == (
        "a gain of +11.00% (between +8.62% and +13.43% with 95% confidence), "
        "less than the +20.00% asked for"
    )
    assert words(decide(without, [99, 99, 100], Rule(higher=True, max_loss=0.05))) == (
        "-0.66% (between -2.68% and +1.39% with 95% confidence), "
        "no more than the loss of 5.00% that --max-loss allows"
    )


@pytest.mark.parametrize(
    ("rule", "keep", "verdict", "reason"),
    [
        (Rule(higher=True), False, "no-difference", "without --min-gain nothing can be told"),
        (Rule(higher=True, min_gain=0.1), True, "gain", "so noise may have done it"),
        (Rule(higher=True, min_gain=0.3), False, "small-gain", "less than what was asked for"),
        (Rule(higher=False, max_loss=0.3), True, "within-max-loss", "so noise may have done it"),
        (Rule(higher=False, max_loss=0.1), False, "loss", "less than what was asked for"),
    ],
)
def test_one_run_a_side(rule: Rule, keep: bool, verdict: str, reason: str) -> None:
    found = decide([100], [120], rule)
    assert (found.keep, found.verdict, found.low, found.high) == (keep, verdict, None, None)
    assert "the spread is unknown with one run a side" in found.reason
    assert reason in found.reason


@given(st.integers(1, 12), st.integers(0, 3))
def test_the_order_of_runs(repeat: int, warmup: int) -> None:
    plan = list(steps(repeat, warmup))
    counted = [step.side for step in plan if step.counted]
    assert counted == (["without", "with", "with", "without"] * repeat)[: 2 * repeat]
    assert counted.count("with") == counted.count("without") == repeat
    assert [step.number for step in plan] == list(range(1, len(plan) + 1))
    sides = [step.side for step in plan]
    changes = [n for n in range(len(plan)) if n == 0 or sides[n] != sides[n - 1]]
    assert [n for n in range(len(plan)) if plan[n].switch] == changes
    assert all(not step.counted for n in changes for step in plan[n : n + warmup])
    assert sum(not step.counted for step in plan) == warmup * len(changes)
