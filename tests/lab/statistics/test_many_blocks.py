"""Very many blocks are put together into batches: none is lost, they follow one another, and a few blocks stay as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loam_lab.judging.statistics import bootstrap, extremes, intervals


def test_few_rows_stay_as_they_are_and_one_more_makes_batches() -> None:
    rows = np.arange(7.0)
    assert intervals.batched(rows[:5], count=3, many=5).tolist() == [0, 1, 2, 3, 4]
    assert intervals.batched(rows[:6], count=3, many=5).tolist() == [0.5, 2.5, 4.5]
    # Batches of three: what is left over belongs to the last one.
    assert intervals.batched(rows, count=3, many=5).tolist() == [1, 4.5]
    beside = intervals.batched(np.stack([rows, -2 * rows], axis=1), count=3, many=5)
    assert beside.tolist() == [[1, -2], [4.5, -9]], "each column by itself"
    assert intervals.batched(rows, count=2, many=5).tolist() == [3]


def test_an_interval_of_many_blocks_is_that_of_their_batches() -> None:
    limit = np.random.default_rng(1).normal(0.1, 1, intervals.MANY)
    assert intervals.batched(limit) is limit
    more = np.append(limit, 0.3)
    batches = intervals.batched(more)
    assert len(batches) == 133 and batches[0] == np.median(more[:3]) and batches[-1] == np.median(more[-5:])
    interval = intervals.hodges_lehmann(more)
    assert interval == replace(intervals.hodges_lehmann(batches), n=len(more)), "all blocks are counted"
    assert intervals.hodges_lehmann(limit).n == intervals.MANY


def test_the_best_of_many_blocks_is_picked_by_their_batches() -> None:
    random = np.random.default_rng(2)
    logs = np.array([0.0, 0.5, -0.5]) + random.normal(0, 0.3, (intervals.MANY + 1, 3))
    pick = extremes.pick(logs)
    assert (pick.best, pick.worst, pick.ratio.n) == (1, 2, intervals.MANY + 1)
    batches = intervals.batched(logs)
    assert pick.ratio.estimate == pytest.approx(extremes.pick(batches).ratio.estimate)
    assert pick.p == extremes.probability(batches, 1, 2)


def test_of_many_blocks_batches_are_drawn_again_and_no_count_is_lost() -> None:
    limit = np.arange(float(bootstrap.MANY))
    assert bootstrap._batched(limit) is limit
    more = np.arange(bootstrap.MANY + 1.0)
    sizes = bootstrap._batched(np.ones(len(more))).astype(int)
    assert len(sizes) == bootstrap.BATCHES and set(sizes) == {3, 4} and sizes.sum() == len(more)
    expected = [part.sum() for part in np.split(more, np.cumsum(sizes)[:-1])]
    assert bootstrap._batched(more).tolist() == expected
    interval = bootstrap.ratio_of_sums(more, np.full(len(more), 4.0))
    assert interval is not None and interval.estimate == pytest.approx(25.0) and interval.n == bootstrap.BATCHES
    assert interval.low is not None and interval.high is not None and interval.low < 25 < interval.high
    few = bootstrap.ratio_of_sums(limit, np.full(len(limit), 4.0))
    assert few is not None and few.n == bootstrap.MANY
