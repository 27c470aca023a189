"""Estimates with exact intervals: paired ratios (Hodges-Lehmann, signed rank), shifts of two samples, medians.

One process is one observation.  Nothing here assumes a distribution; the signed-rank interval assumes that the
log-ratios of paired runs are symmetric around the effect.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
# Above this many pairs the normal approximation of the signed-rank distribution is exact to four digits.
EXACT_MAX = 60
# From so many blocks on, blocks that follow one another are put together into about half as many batches, or fewer: all pairs
# of five thousand are more than a machine should hold for an interval that is narrow anyway.
MANY, BATCHES = 400, 200
# Fewer pairs than this have no 95 % signed-rank interval: its probabilities are at least 2 / 2^n.
BLOCKS_MIN = 6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval.

    low, high: None where so few observations allow no interval of that confidence; n: observations
    p: two-sided signed-rank probability of no difference, for paired ratios; None elsewhere
    """

    estimate: float
    low: float | None
    high: float | None
    n: int
    p: float | None = None

    @property
    def ends(self) -> tuple[float, float | None, float | None]:
        """Estimate, low and high: what begins every interval of a result."""
        return self.estimate, self.low, self.high

    @property
    def width(self) -> float:
        """high / low - 1; infinite where there is no interval or it reaches 0."""
        if self.low is None or self.high is None or self.low <= 0:
            return math.inf
        return self.high / self.low - 1


@functools.cache
def signed_rank_cdf(n: int) -> Array:
    """P(W <= w) for w = 0 ... n(n+1)/2, where W is the sum of the ranks of positive differences.

    n: number of pairs, 1 to EXACT_MAX; returns: float64 array of n(n+1)/2 + 1 probabilities
    """
    if not 1 <= n <= EXACT_MAX:
        raise ValueError(f"n={n}: exact from 1 to {EXACT_MAX} pairs")
    probabilities = np.zeros(n * (n + 1) // 2 + 1)
    probabilities[0] = 1.0
    for rank in range(1, n + 1):
        # Each rank is positive or not with probability one half.
        shifted = np.zeros_like(probabilities)
        shifted[rank:] = probabilities[:-rank]
        probabilities = (probabilities + shifted) / 2
    cdf: Array = np.minimum(np.cumsum(probabilities), 1.0)
    return cdf


def _probability(n: int, w: float) -> float:
    """P(W <= w) for n pairs."""
    if w < 0:
        return 0.0
    if n <= EXACT_MAX:
        return float(signed_rank_cdf(n)[math.floor(w)])
    mean, deviation = n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return 0.5 * math.erfc(-(w + 0.5 - mean) / deviation / math.sqrt(2))


@functools.cache
def signed_rank_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """Which Walsh average from each end bounds the interval: 1 is the outermost; 0 means that n is too small.

    The interval from the k-th smallest to the k-th largest Walsh average misses the centre with probability
    2 P(W <= k - 1); returns: the largest k for which that is at most 1 - confidence
    """
    tail = (1 - confidence) / 2
    if n <= EXACT_MAX:
        return int(np.searchsorted(signed_rank_cdf(n), tail * (1 + 1e-12), side="right"))
    k = 0
    while _probability(n, k) <= tail:
        k += 1
    return k


def batched(values: Array, count: int = BATCHES, many: int = MANY) -> Array:
    """Of more than `many` rows, the medians of about `count` batches of rows that follow one another; else the rows themselves.

    The median of a batch has the same centre as its values if they are symmetric around it, and no force of outliers.
    values: (n, ...)
    """
    n = len(values)
    if n <= many:
        return values
    size = -(-n // count)
    whole = n // size
    parts = values[: whole * size].reshape(whole, size, *values.shape[1:])
    medians: Array = np.median(parts, axis=1)
    # What is left over belongs to the last batch.
    medians[-1] = np.median(values[(whole - 1) * size :], axis=0)
    return medians


def walsh_averages(differences: ArrayLike) -> Array:
    """All (d_i + d_j) / 2 with i <= j, sorted.

    differences: (n,); returns: float64 array (n(n+1)/2,)
    """
    averages: Array = np.sort(_walsh_averages(np.asarray(differences, dtype=np.float64)))
    return averages


def _walsh_averages(d: Array) -> Array:
    i, j = _pairs(int(d.size))
    return (d[i] + d[j]) / 2


@functools.lru_cache(maxsize=8)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All i <= j below n; do not write into them."""
    i, j = np.triu_indices(n)
    i.setflags(write=False)
    j.setflags(write=False)
    return i, j


def centre(differences: ArrayLike) -> float:
    """The median of the Walsh averages alone: what hodges_lehmann() estimates."""
    return float(np.median(_walsh_averages(np.asarray(differences, dtype=np.float64))))


def _signed_rank_p(walsh: Array, n: int) -> float:
    """Two-sided probability of a signed rank sum this extreme if the centre were 0; ties and zeros count half. walsh: sorted"""
    below, up_to = np.searchsorted(walsh, 0, side="left"), np.searchsorted(walsh, 0, side="right")
    positive = float(walsh.size - up_to + 0.5 * (up_to - below))
    return min(1.0, 2 * _probability(n, min(positive, walsh.size - positive)))


def hodges_lehmann(differences: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Centre of paired differences: the median of the Walsh averages, with the exact signed-rank interval.

    differences: (n,) with n >= 1; raises: ValueError if empty or not finite
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or d.size == 0 or not np.isfinite(d).all():
        raise ValueError("needs at least one finite difference")
    n, d = int(d.size), batched(d)
    walsh = walsh_averages(d)
    k = signed_rank_rank(int(d.size), confidence)
    low, high = (float(walsh[k - 1]), float(walsh[-k])) if k > 0 else (None, None)
    middle = (walsh[(walsh.size - 1) // 2] + walsh[walsh.size // 2]) / 2
    return Interval(float(middle), low, high, n, _signed_rank_p(walsh, int(d.size)))


def paired_ratio(above: ArrayLike, below: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Ratio above / below from pairs that shared a block.

    above, below: (n,) positive values of the same unit; returns: Interval on the ratio scale
    raises: ValueError if the shapes differ or a value is not positive
    """
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} differ")
    if (a <= 0).any() or (b <= 0).any():
        raise ValueError("ratios need positive values")
    return exponential(hodges_lehmann(np.log(a) - np.log(b), confidence))


def geometric_mean(logs: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Geometric mean of the ratios of several cases that were run in turns, with the exact signed-rank interval.

    A turn gives one observation: the mean of its cases' log-ratios.  Turns are what was sampled, so no correlation
    between cases of a turn can make the interval too short.
    logs: (cases, n) logarithms of paired ratios; returns: Interval on the ratio scale
    """
    return exponential(hodges_lehmann(np.mean(np.asarray(logs, dtype=np.float64), axis=0), confidence))


def exponential(log: Interval) -> Interval:
    """An interval of a logarithm on the ratio scale."""
    low, high = (None, None) if log.low is None or log.high is None else (math.exp(log.low), math.exp(log.high))
    return Interval(math.exp(log.estimate), low, high, log.n, log.p)


def median(values: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Median with the interval between two order statistics.

    values: (n,) with n >= 1; raises: ValueError if empty or not finite
    """
    v = np.sort(np.asarray(values, dtype=np.float64))
    if v.ndim != 1 or v.size == 0 or not np.isfinite(v).all():
        raise ValueError("needs at least one finite value")
    k = median_rank(int(v.size), confidence)
    low, high = (float(v[k - 1]), float(v[-k])) if k > 0 else (None, None)
    return Interval(float(np.median(v)), low, high, int(v.size))


@functools.cache
def median_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """Which order statistic from each end bounds the median; 0 means that n is too small (below 6 for 95 %)."""
    tail, below, k = (1 - confidence) / 2, 0.0, 0
    # The interval from the k-th to the k-th last value misses with 2 P(X <= k - 1), X binomial with one half.
    while k < n and (below := below + math.comb(n, k) / 2**n) <= tail * (1 + 1e-12):
        k += 1
    return k


def half_width(low: float | None, high: float | None) -> float:
    """How far a ratio may lie from its interval's middle, as a fraction; infinite without an interval.

    low, high: of a ratio; 0.98 and 1.02 give 0.02
    """
    if low is None or high is None or low <= 0:
        return math.inf
    return math.sqrt(high / low) - 1
