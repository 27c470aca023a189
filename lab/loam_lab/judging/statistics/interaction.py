"""Does the effect of an allocator depend on the machine?  A permutation test on the blocks of two machines.

A block is one observation: a row with the logarithm of each allocator's ratio to the baseline, all measured together.  If
machines make no difference, it does not matter which of them measured a row.  So the rows are dealt to the two machines
again and again, as many to each as it really measured, and the largest difference of any column is noted each time.  The
probability of a column is how often that largest difference reaches the column's own: this takes into account that several
columns were looked at (Westfall and Young's single-step maxT, 1993).

The difference is taken between trimmed means, in units of its standard error (Yuen, The Two-Sample Trimmed t for Unequal
Population Variances, 1974).  Trimming takes the force out of a disturbed block.  Dealing is exact for machines that are equally
noisy, at every number of blocks.  Where one machine is noisier and has fewer blocks than the other, dealing alone claims too
much: 11 of 100 equal machines at a nominal 5 for 8 blocks against 24 quieter ones.  So Student's distribution with the degrees of
freedom of Welch and Yuen is asked too, and the larger probability counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loam_lab.judging.statistics import student
from loam_lab.judging.statistics.intervals import BLOCKS_MIN, CONFIDENCE, Array, Interval

# Of the values of a column, this share is left out at either end.
TRIM = 0.1
SHUFFLES = 10_000
# Dealing ends early once the largest difference was reached so often that its probability is surely not small
# (sequential Monte Carlo test: J. Besag and P. Clifford, 1991).
REACHED_MAX = 100
SEED = 1
# Numbers held at once while rows are dealt.
NUMBERS_MAX = 2_000_000
# From so many blocks on, Student's distribution is as good as dealing, and takes no time.
BLOCKS_MANY = 100
# Of a logarithm: values that repeat exactly, as a simulator's do, have no standard error to divide by.
ERROR_MIN = 1e-9


@dataclass(frozen=True)
class Interaction:
    """How two machines differ. p: probability of so large a difference in any column if there is none at all

    columns: per column how far the second machine's logarithms lie above the first's; their p is adjusted for the columns
    """

    p: float
    columns: tuple[Interval, ...]


def compare(first: ArrayLike, second: ArrayLike, shuffles: int = SHUFFLES) -> Interaction | None:
    """Compare two machines.

    first, second: (blocks, columns) of logarithms, finite, with equal numbers of columns and at least one
    shuffles: how often rows are dealt at most; no probability is below 1 / (shuffles + 1)
    returns: None where a machine has fewer blocks than an interval needs
    raises: ValueError if the shapes do not fit or a value is not finite
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or a.shape[1] == 0:
        raise ValueError(f"shapes {a.shape} and {b.shape} are not (blocks, columns) with the same columns")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("needs finite logarithms")
    if min(len(a), len(b)) < BLOCKS_MIN:
        return None
    seen = _statistic(a, b)
    if min(len(a), len(b)) > BLOCKS_MANY:
        return _interaction(a, b, _by_student(a, b))
    rows, split = np.concatenate([a, b]), len(a)
    reached, dealt = np.zeros(seen.size), 0
    for orders in _deals(len(rows), rows.shape[1], shuffles):
        mixed = rows[orders]
        largest = _statistic(mixed[:, :split], mixed[:, split:]).max(axis=-1)
        reached += np.count_nonzero(largest[:, None] >= seen[None, :] * (1 - 1e-12), axis=0)
        dealt += len(orders)
        if reached.min() >= REACHED_MAX:
            break
    by_dealing = (1 + reached) / (1 + dealt)
    return _interaction(a, b, np.maximum(by_dealing, _by_student(a, b)))


def _interaction(first: Array, second: Array, p: Array) -> Interaction:
    columns = tuple(_interval(first[:, i], second[:, i], float(p[i])) for i in range(p.size))
    return Interaction(float(p.min()), columns)


def _by_student(first: Array, second: Array) -> Array:
    """Each column's probability by Student's distribution, times how many columns there are (Bonferroni)."""
    seen, columns = _statistic(first, second), first.shape[1]
    freedoms = [_freedom(first[:, i], second[:, i]) for i in range(columns)]
    tails = [student.cumulative(-float(each), freedom) for each, freedom in zip(seen, freedoms, strict=True)]
    probabilities: Array = np.minimum(1.0, columns * 2 * np.array(tails))
    return probabilities


def _deals(rows: int, columns: int, shuffles: int) -> Iterator[np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Random orders of the rows, with a fixed seed: (some, rows) each, `shuffles` in all."""
    random = np.random.default_rng([SEED, rows])
    chunk = max(1, min(500, NUMBERS_MAX // (rows * columns)))
    for begin in range(0, shuffles, chunk):
        yield np.argsort(random.random((min(chunk, shuffles - begin), rows)), axis=1)


def _statistic(first: Array, second: Array) -> Array:
    """Yuen's statistic without its sign; (..., blocks, columns) twice, returns (..., columns)."""
    (mean, error), (other, other_error) = _trimmed(first), _trimmed(second)
    statistic: Array = np.abs(other - mean) / np.maximum(np.sqrt(error + other_error), ERROR_MIN)
    return statistic


def _trimmed(values: Array) -> tuple[Array, Array]:
    """Trimmed mean, and its squared standard error from the winsorised values, along the blocks."""
    blocks = values.shape[-2]
    cut = int(TRIM * blocks)
    kept = blocks - 2 * cut
    inner = np.sort(values, axis=-2)[..., cut : blocks - cut, :]
    low, high = inner[..., 0, :], inner[..., -1, :]
    centre = (inner.sum(axis=-2) + cut * (low + high)) / blocks
    squares = ((inner - centre[..., None, :]) ** 2).sum(axis=-2)
    squares = squares + cut * ((low - centre) ** 2 + (high - centre) ** 2)
    return inner.mean(axis=-2), squares / (kept * (kept - 1))


def _interval(first: Array, second: Array, p: float) -> Interval:
    """Difference of two columns with Student's interval, at the degrees of freedom of Yuen and Welch."""
    (mean, error), (other, other_error) = _moments(first), _moments(second)
    n = min(len(first), len(second))
    if error + other_error == 0:
        return Interval(other - mean, other - mean, other - mean, n, p)
    freedom = _freedom(first, second)
    reach = student.quantile(1 - (1 - CONFIDENCE) / 2, freedom) * math.sqrt(error + other_error)
    return Interval(other - mean, other - mean - reach, other - mean + reach, n, p)


def _moments(values: Array) -> tuple[float, float]:
    mean, error = _trimmed(values[:, None])
    return float(mean[0]), float(error[0])


def _freedom(first: Array, second: Array) -> float:
    """Degrees of freedom of Yuen and Welch."""
    errors = [_moments(values)[1] for values in (first, second)]
    kept = [len(values) - 2 * int(TRIM * len(values)) for values in (first, second)]
    below = sum(error**2 / (count - 1) for error, count in zip(errors, kept, strict=True))
    return sum(errors) ** 2 / below if below > 0 else float(min(kept) - 1)
