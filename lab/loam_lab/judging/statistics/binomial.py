"""Shares of so many trials: the exact interval of Clopper and Pearson."""

from __future__ import annotations

import functools
import math

from loam_lab.judging.statistics.intervals import CONFIDENCE

_HALVINGS = 60


def share(hits: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """The share of trials that hit, with the ends of its interval.

    returns: estimate, low, high, each in [0, 1]; whatever the true share is, the interval misses it in at most
    1 - confidence of all experiments
    raises: ValueError unless 0 <= hits <= trials and trials >= 1
    """
    if trials < 1 or not 0 <= hits <= trials:
        raise ValueError(f"{hits} of {trials} trials")
    tail = (1 - confidence) / 2
    # Both ends by the same search: the low end of the misses is the high end of the hits, seen from the other side.
    return hits / trials, _low(hits, trials, tail), 1 - _low(trials - hits, trials, tail)


@functools.cache
def _low(hits: int, trials: int, tail: float) -> float:
    """The share at which so many hits or more have the probability `tail`."""
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / trials
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_least(hits, trials, middle) < tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_least(hits: int, trials: int, p: float) -> float:
    """P(X >= hits), X binomial; p is below hits / trials, so that the terms fall from the first on."""
    if p <= 0:
        return 0.0
    log_first = (
        math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
        + hits * math.log(p) + (trials - hits) * math.log1p(-p)
    )  # fmt: skip
    total = term = math.exp(log_first)
    for k in range(hits, trials):
        term *= (trials - k) / (k + 1) * p / (1 - p)
        total += term
        if term < total * 1e-16:
            break
    return total
