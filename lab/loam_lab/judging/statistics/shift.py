"""The shift between two samples that share no blocks, for example of two campaigns: Mann, Whitney, Hodges, Lehmann, Moses.

Exact for any distribution, if one sample is the other moved by the shift.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from loam_lab.judging.statistics.intervals import CONFIDENCE, EXACT_MAX, Array, Interval, batched, exponential


@functools.cache
def rank_sum_cdf(m: int, n: int) -> Array:
    """P(U <= u) for u = 0 ... m n, where U counts the pairs in which the first sample's value is larger.

    m, n: sizes of the samples, 1 to EXACT_MAX; returns: float64 array of m n + 1 probabilities
    """
    if not (1 <= m <= EXACT_MAX and 1 <= n <= EXACT_MAX):
        raise ValueError(f"m={m}, n={n}: exact from 1 to {EXACT_MAX} values")
    # By the largest of all values: of the first sample with probability a / (a + b), it then beats all b of the other.
    row = [np.ones(1) for _ in range(n + 1)]
    for a in range(1, m + 1):
        fresh = [np.ones(1)]
        for b in range(1, n + 1):
            probabilities = np.zeros(a * b + 1)
            probabilities[b:] += a / (a + b) * row[b]
            probabilities[: a * (b - 1) + 1] += b / (a + b) * fresh[b - 1]
            fresh.append(probabilities)
        row = fresh
    cdf: Array = np.minimum(np.cumsum(row[n]), 1.0)
    return cdf


def _probability(m: int, n: int, u: float) -> float:
    """P(U <= u)."""
    if u < 0:
        return 0.0
    if max(m, n) <= EXACT_MAX:
        return float(rank_sum_cdf(m, n)[math.floor(u)])
    deviation = math.sqrt(m * n * (m + n + 1) / 12)
    return 0.5 * math.erfc(-(u + 0.5 - m * n / 2) / deviation / math.sqrt(2))


@functools.cache
def rank_sum_rank(m: int, n: int, confidence: float = CONFIDENCE) -> int:
    """Which difference from each end bounds the shift: 1 is the outermost; 0 means that the samples are too small."""
    share, k = (1 - confidence) / 2, 0
    while _probability(m, n, k) <= share * (1 + 1e-12):
        k += 1
    return k


def shift(first: ArrayLike, second: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """How far the second sample lies above the first: the median of all differences, with Moses' exact interval.

    first: (m,), second: (n,), both finite and not empty; returns: n is the size of the smaller sample
    raises: ValueError
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    for sample in (a, b):
        if sample.ndim != 1 or sample.size == 0 or not np.isfinite(sample).all():
            raise ValueError("needs two series of finite values")
    n, a, b = int(min(a.size, b.size)), batched(a), batched(b)
    differences = np.sort((b[None, :] - a[:, None]).ravel())
    k = rank_sum_rank(int(a.size), int(b.size), confidence)
    low, high = (float(differences[k - 1]), float(differences[-k])) if k > 0 else (None, None)
    above = float(np.count_nonzero(differences > 0) + 0.5 * np.count_nonzero(differences == 0))
    p = min(1.0, 2 * _probability(int(a.size), int(b.size), min(above, differences.size - above)))
    return Interval(float(np.median(differences)), low, high, n, p)


def ratio(first: ArrayLike, second: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """How many times the second sample's values are those of the first.

    first: (m,), second: (n,), all above 0; raises: ValueError
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if (a <= 0).any() or (b <= 0).any():
        raise ValueError("ratios need positive values")
    return exponential(shift(np.log(a), np.log(b), confidence))
