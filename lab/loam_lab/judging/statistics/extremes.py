"""Is the best of several really better than the worst, though both were picked because they look so?

The logarithms of each block are shuffled within it, as they could have come if all were equal: the order of a block's
runs is random, so this is exact for any noise that its runs share.  The difference of the picked pair is compared with
the largest difference among all pairs of each shuffle, which takes the picking into account.  Ranks of the values around
their block's median stand for the values, so that an outlier counts as one run.

Aligned ranks: J. L. Hodges and E. L. Lehmann, Rank Methods for Combination of Independent Experiments, 1962.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loam_lab.judging.statistics import intervals
from loam_lab.judging.statistics.intervals import BLOCKS_MIN, Array, Interval

# Shuffles are looked at by the chunk, until so many reached the difference that its probability is surely not small
# (sequential Monte Carlo test: J. Besag and P. Clifford, 1991).
SHUFFLES, CHUNK, REACHED_MAX = 10_000, 1_000, 100
SEED = 1


@dataclass(frozen=True)
class Pick:
    """Best and worst of a family, as columns. ratio: how many times better the best is

    p: probability that the best and the worst of so many equals differ so much
    """

    best: int
    worst: int
    ratio: Interval
    p: float


def pick(logs: ArrayLike) -> Pick:
    """The best and the worst column by how each does against all others, in pairs: the same blocks decide rank and ratio.

    logs: (blocks, columns) of what was measured together, at least one block and two columns, larger is better
    """
    values = np.asarray(logs, dtype=np.float64)
    blocks, values = len(values), intervals.batched(values)
    columns = values.shape[1]
    score = np.zeros(columns)
    for i, j in itertools.combinations(range(columns), 2):
        centre = intervals.centre(values[:, i] - values[:, j])
        score[i] += centre
        score[j] -= centre
    best = int(np.argmax(score))
    # Also where all are exactly alike two are compared: that there is no difference is an answer.
    worst = min((column for column in range(columns) if column != best), key=lambda column: float(score[column]))
    difference = intervals.hodges_lehmann(values[:, best] - values[:, worst])
    ratio = intervals.exponential(replace(difference, n=blocks))
    return Pick(best, worst, ratio, probability(values, best, worst))


def probability(logs: ArrayLike, first: int, second: int) -> float:
    """Probability that the largest difference among equals is at least that of two columns.

    logs: (blocks, columns), of what was measured together; first, second: the picked columns
    returns: 1 for fewer blocks than an interval needs; never less than 1 / (SHUFFLES + 1)
    """
    values = np.asarray(logs, dtype=np.float64)
    blocks, columns = values.shape
    if blocks < BLOCKS_MIN:
        return 1.0
    ranks = _ranks(values - np.median(values, axis=1, keepdims=True))
    sums = ranks.sum(axis=0)
    seen = abs(sums[first] - sums[second])
    orders, reached, looked_at = _shuffles(blocks, columns), 0, 0
    while looked_at < SHUFFLES and reached < REACHED_MAX:
        shuffled = np.zeros((CHUNK, columns))
        for own, order in zip(ranks, orders[:, looked_at : looked_at + CHUNK], strict=True):
            shuffled += own[order]
        reached += int(np.count_nonzero(np.ptp(shuffled, axis=1) >= seen - 1e-9))
        looked_at += CHUNK
    return (1 + reached) / (1 + looked_at)


@functools.lru_cache(maxsize=8)
def _shuffles(blocks: int, columns: int) -> NDArray[np.int8]:
    """Orders of each block's columns, with a fixed seed: (blocks, SHUFFLES, columns); do not write into it."""
    random = np.random.default_rng([SEED, blocks, columns])
    made = np.argsort(random.random((blocks, SHUFFLES, columns), dtype=np.float32), axis=2).astype(np.int8)
    made.setflags(write=False)
    return made


def _ranks(values: Array) -> Array:
    """Ranks over all values, 1 for the smallest; equal ones share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks: Array = middle[place].reshape(values.shape)
    return ranks
