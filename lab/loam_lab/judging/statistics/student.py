"""Student's t distribution for any positive degrees of freedom, without a library of 140 MB for two functions.

Its tail is an incomplete beta function, which is a continued fraction (Abramowitz and Stegun, 26.5.8 and 26.7.1). The
modified method of Lentz evaluates it from the front, to the last digit. Tests compare both functions with scipy's.
"""

from __future__ import annotations

import math

_TINY = 1e-300  # in place of a 0 that Lentz's method would divide by
_STEPS_MAX = 100_000
_EXACT = 4e-16


def cumulative(value: float, freedom: float) -> float:
    """The probability of at most `value`.

    freedom: degrees of freedom, above 0, not necessarily whole
    """
    if math.isinf(value):
        return 0.0 if value < 0 else 1.0
    square = value * value
    tail = _beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square)) / 2
    return tail if value < 0 else 1 - tail


def quantile(probability: float, freedom: float) -> float:
    """The value that is not exceeded with this probability, which is above 0 and below 1."""
    if not 0 < probability < 1:
        raise ValueError(f"probability: {probability} is not between 0 and 1")
    if probability == 0.5:
        return 0.0
    tail = min(probability, 1 - probability)
    far = 1.0
    while cumulative(-far, freedom) > tail:
        far *= 2
    near = 0.0
    while near < (middle := (near + far) / 2) < far:
        if cumulative(-middle, freedom) > tail:
            near = middle
        else:
            far = middle
    return -far if probability < 0.5 else far


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised incomplete beta function I_x(a, b); rest: 1 - x, given because a small one would be lost."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # there the fraction of the other end converges faster
        return 1 - _beta(b, a, rest, x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(logarithm) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), whose inverse the beta function needs."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, _STEPS_MAX):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d or _TINY)
        c = 1 + term / c or _TINY
        value *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return value
