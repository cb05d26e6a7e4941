"""Student's t distribution, for which the standard library has nothing."""

from __future__ import annotations

import math

_TINY = 1e-300


def quantile(probability: float, freedom: float) -> float:
    """The t that is not exceeded with a probability.

    Args:
        probability: At least 0.5, below 1.
        freedom: Degrees of freedom, above 0; need not be whole.
    """
    low, high = 0.0, 1.0
    while cumulative(high, freedom) < probability:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if cumulative(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def cumulative(t: float, freedom: float) -> float:
    """The probability of a value up to t, for t from 0 on. Source: DLMF 8.17, Abramowitz 26.7.1."""
    return 1 - _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function; source: DLMF 8.17.22, 8.17.4."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # there the fraction converges slowly
        return 1 - _incomplete_beta(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log + a * math.log(x) + b * math.log1p(-x)) / a
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, by Lentz's method."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


def _away(value: float) -> float:
    """A value that can be divided by."""
    return value if abs(value) > _TINY else _TINY
