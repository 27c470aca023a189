"""Cluster bootstrap for quantities that have no exact interval: whole blocks are drawn again, never single runs.

Runs of a block share their minute of the machine, so the block is what was sampled.  A draw is kept as how often it
took each block: one matrix serves every allocator that shares those blocks, and keeps them paired.

Percentile intervals of few blocks are too short, by (n - 1) / n in the variance and by the normal where Student's
distribution belongs.  The ends are therefore taken further out, which for a mean repairs both exactly in its first
order ("expanded percentiles": T. Hesterberg, What Teachers Should Know About the Bootstrap, 2015, section 3.3).
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loam_lab.judging.statistics import student
from loam_lab.judging.statistics.intervals import BLOCKS_MIN, CONFIDENCE, Array, Interval

SAMPLES = 10_000
SEED = 1
# Of more blocks than MANY, so many batches of blocks that follow one another are drawn again.
MANY, BATCHES = 200, 60
# Walsh averages weighed at once: their sums stay in the nearest cache.
CHUNK = 16

Counts = NDArray[np.int16]


@functools.lru_cache(maxsize=16)
def draws(blocks: int, stratum: int = 0) -> Counts:
    """How often each block is drawn, SAMPLES times, with a fixed seed.

    blocks: n >= 1; stratum: blocks of another stratum were drawn independently
    returns: int16 array (n, SAMPLES) whose columns sum to n; do not write into it
    """
    random = np.random.default_rng([SEED, stratum, blocks])
    taken = random.integers(0, blocks, size=(SAMPLES, blocks)) + blocks * np.arange(SAMPLES)[:, None]
    counts = np.bincount(taken.ravel(), minlength=SAMPLES * blocks).reshape(SAMPLES, blocks)
    made: Counts = np.ascontiguousarray(counts.T, dtype=np.int16)
    made.setflags(write=False)
    return made


@functools.lru_cache(maxsize=4)
def _weights(blocks: int) -> Array:
    """draws() as a matrix to multiply with."""
    return draws(blocks).astype(np.float64)


def centres(differences: ArrayLike, counts: Counts) -> Array:
    """The Hodges-Lehmann estimate of every draw.

    The Walsh averages are sorted once; a draw only weighs them: (i, j) stands in it c_i c_j times, (i, i) stands
    c_i (c_i + 1) / 2 times.
    differences: (n,); counts: (n, draws); returns: float64 array (draws,)
    """
    d = np.asarray(differences, dtype=np.float64)
    n, samples = counts.shape
    if d.shape != (n,):
        raise ValueError(f"{d.shape} differences for draws of {n} blocks")
    i, j = np.triu_indices(n)
    walsh = (d[i] + d[j]) / 2
    order = np.argsort(walsh, kind="stable")
    total = n * (n + 1) // 2
    # The smallest type that holds every sum: this loop is what a summary spends its time in.
    small = np.int16 if total <= np.iinfo(np.int16).max else np.int32
    c = counts.astype(small, copy=False)
    twice = [(row * (row + 1) // 2).astype(small) for row in c]
    # The median of an even number lies between two: those that half of the weight, and one more, reach.
    halves = tuple(dict.fromkeys(((total + 1) // 2, total // 2 + 1)))
    reached = np.zeros((CHUNK, samples), dtype=small)
    work = np.empty_like(reached)
    ranks = [np.zeros(samples, dtype=small) for _ in halves]
    sign = np.iinfo(small).bits - 1
    for begin in range(0, order.size, CHUNK):
        chunk = order[begin : begin + CHUNK]
        before = reached[-1]
        for row, pair in enumerate(chunk):
            a, b = i[pair], j[pair]
            if a == b:
                np.add(before, twice[a], out=reached[row])
            else:
                np.multiply(c[a], c[b], out=work[row])
                np.add(before, work[row], out=reached[row])
            before = reached[row]
        for half, rank in zip(halves, ranks, strict=True):
            if int(before.max()) < half:
                np.add(rank, chunk.size, out=rank)
            else:
                # The sign bit, drawn out over the word, is -1 where the half is not reached yet.
                np.subtract(reached[: chunk.size], half, out=work[: chunk.size])
                np.right_shift(work[: chunk.size], sign, out=work[: chunk.size])
                np.subtract(rank, work[: chunk.size].sum(axis=0, dtype=small), out=rank)
        if int(before.min()) >= halves[-1]:
            break
    ordered = walsh[order]
    medians: Array = (ordered[ranks[0]] + ordered[ranks[-1]]) / 2
    return medians


@functools.cache
def tail(blocks: int, confidence: float = CONFIDENCE) -> float:
    """The share of draws beyond each end of an expanded percentile interval; blocks: at least 2."""
    reach = student.quantile(1 - (1 - confidence) / 2, blocks - 1)
    return NormalDist().cdf(-math.sqrt(blocks / (blocks - 1)) * reach)


def percentiles(estimate: float, samples: Array, blocks: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval of a quantity from its draws.

    samples: (draws,), not finite ones are left out; blocks: how many each was drawn from
    returns: no interval below BLOCKS_MIN blocks or where more than a tenth of the draws gave no value
    """
    good = samples[np.isfinite(samples)]
    if blocks < BLOCKS_MIN or good.size < samples.size * 0.9:
        return Interval(estimate, None, None, blocks)
    share = tail(blocks, confidence)
    low, high = np.quantile(good, [share, 1 - share])
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate), blocks)


def ratio_of_sums(above: ArrayLike, below: ArrayLike, confidence: float = CONFIDENCE) -> Interval | None:
    """Pooled ratio of counts, for example aborts per attempt.

    above, below: (n,) of the same processes; returns: None if the denominators sum to 0
    """
    a, b = _counts_of(above, below)
    if b.sum() <= 0:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        above_sums, below_sums = _sums(a, b)
        samples = above_sums / below_sums
    return percentiles(float(a.sum() / b.sum()), samples, int(a.size), confidence)


def ratio_of_rates(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """How many times the pooled rate of one cell is that of another, for example of their aborts per attempt.

    first, second: (numerators, denominators), each (n,), of the same n blocks in the same order
    returns: None if a denominator or the second numerator sums to 0
    """
    (a, b), (c, d) = _counts_of(*first), _counts_of(*second)
    if a.shape != c.shape:
        raise ValueError(f"{a.size} and {c.size} blocks do not pair")
    if min(b.sum(), c.sum(), d.sum()) <= 0:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = _sums(a, b, c, d)
        samples = (sums[0] / sums[1]) * (sums[3] / sums[2])
    estimate = float(a.sum() / b.sum() * d.sum() / c.sum())
    return percentiles(estimate, samples, int(a.size), confidence)


def _sums(*series: Array) -> Array:
    """The sum of each series in every draw: (series, draws)."""
    # Not by matrix product: its threads spin for each other, which takes ten times as long where the cores are busy.
    sums: Array = np.einsum("sn,nd->sd", np.stack(series), _weights(series[0].size))
    return sums


def _counts_of(above: ArrayLike, below: ArrayLike) -> tuple[Array, Array]:
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(f"shapes {a.shape} and {b.shape} are not two equal series")
    return _batched(a), _batched(b)


def _batched(series: Array) -> Array:
    """Of very many blocks, the sums over batches of blocks that follow one another: what is drawn again is then a batch."""
    n = int(series.size)
    if n <= MANY:
        return series
    starts = np.linspace(0, n, BATCHES, endpoint=False).astype(int)
    sums: Array = np.add.reduceat(series, starts)
    return sums
