"""The shift between two samples: its probability and rank at the ends and beyond the exact sizes, and as a ratio."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from loam_lab.judging.statistics import intervals, shift


@pytest.mark.parametrize(("m", "n"), [(3, 3), (4, 4), (6, 8)])
def test_samples_wholly_apart_have_the_smallest_probability(m: int, n: int) -> None:
    low, high = list(range(m)), [100.0 + i for i in range(n)]
    for first, second in ((low, high), (high, low)):
        assert shift.shift(first, second).p == pytest.approx(2 / math.comb(m + n, m))
    assert shift.shift([1.0], [1.0]).p == 1.0, "equal values are no difference"


def test_large_samples_have_the_normal_probability_and_rank() -> None:
    random = np.random.default_rng(5)
    for m, n in ((intervals.EXACT_MAX + 1, intervals.EXACT_MAX + 1), (70, 20), (20, 90)):
        first, second = random.normal(0, 1, m), random.normal(0.3, 1, n)
        interval = shift.shift(first, second)
        expected = stats.mannwhitneyu(second, first, method="asymptotic", use_continuity=True).pvalue
        assert interval.p == pytest.approx(expected)
        k, mean, deviation = shift.rank_sum_rank(m, n), m * n / 2, math.sqrt(m * n * (m + n + 1) / 12)
        inside, outside = (2 * stats.norm.cdf((u + 0.5 - mean) / deviation) for u in (k - 1, k))
        assert inside <= 0.05 < outside
        differences = np.sort((second[None, :] - first[:, None]).ravel())
        assert (interval.low, interval.high) == (differences[k - 1], differences[-k])
        assert interval.n == min(m, n)


def test_a_ratio_takes_positive_values_of_any_size() -> None:
    first, second = [0.1, 0.2, 0.4, 0.5, 0.8], [0.3, 0.6, 1.2, 1.5, 2.4]
    assert shift.ratio(first, second).estimate == pytest.approx(3.0)
    assert shift.ratio(second, first).estimate == pytest.approx(1 / 3)
    there, back = shift.ratio(first, second), shift.ratio(second, first)
    assert there.low is not None and there.high is not None and back.low is not None and back.high is not None
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low))
    assert shift.ratio([1, 2], [2, 4]).estimate == pytest.approx(2.0)
    for bad in ([0.0, 1.0], [-1.0, 1.0]):
        for pair in ((bad, first), (first, bad)):
            with pytest.raises(ValueError, match=r"^ratios need positive values$"):
                shift.ratio(*pair)


def test_the_exact_distribution_begins_at_one_value_each() -> None:
    assert shift.rank_sum_cdf(1, 1).tolist() == [0.5, 1.0]
    most = intervals.EXACT_MAX
    for m, n in ((1, most), (most, 1)):
        assert shift.rank_sum_cdf(m, n) == pytest.approx(np.arange(1, most + 2) / (most + 1))
    for m, n in ((0, 1), (1, 0), (most + 1, 1), (1, most + 1)):
        with pytest.raises(ValueError, match=rf"^m={m}, n={n}: exact from 1 to {most} values$"):
            shift.rank_sum_cdf(m, n)


@pytest.mark.parametrize(("m", "n"), [(intervals.EXACT_MAX, 40), (40, intervals.EXACT_MAX), (30, 20)])
def test_the_largest_exact_samples_are_exact(m: int, n: int) -> None:
    random = np.random.default_rng(m)
    first, second = random.normal(0, 1, m), random.normal(0.3, 1, n)
    expected = stats.mannwhitneyu(first, second, method="exact").pvalue
    assert shift.shift(first, second).p == pytest.approx(float(expected), rel=1e-9)
    assert shift._probability(m, n, -1) == 0.0


def test_samples_that_miss_exactly_as_often_as_they_may_have_an_interval() -> None:
    """Three and three: 2 of 20 orders."""
    assert (shift.rank_sum_rank(3, 3, 0.9), shift.rank_sum_rank(3, 3, 0.9 + 1e-6)) == (1, 0)
    interval = shift.shift([1.0, 2.0, 3.0], [11.0, 12.0, 13.0], 0.9)
    assert (interval.estimate, interval.low, interval.high, interval.n) == (10.0, 8.0, 12.0, 3)
    assert shift.shift([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]).low is None
    assert shift.ratio([1.0, 2.0, 3.0], [11.0, 12.0, 13.0], 0.9).low == pytest.approx(11 / 3)


def test_one_value_each_and_ties_in_either_direction() -> None:
    one = shift.shift([1.0], [3.0])
    assert (one.estimate, one.low, one.high, one.n, one.p) == (2.0, None, None, 1, 1.0)
    # Differences 0, 1, 1, 2: three and a half of four are above 0.
    there, back = shift.shift([1.0, 2.0], [2.0, 3.0]), shift.shift([2.0, 3.0], [1.0, 2.0])
    assert (there.estimate, back.estimate) == (1.0, -1.0)
    assert there.p == back.p == pytest.approx(2 / 6)
    assert shift.shift([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert shift.shift([0.0] * 8, [1.0] * 3).n == 3 and shift.shift([0.0] * 3, [1.0] * 8).n == 3


@pytest.mark.parametrize("bad", [[], [math.nan], [1.0, math.inf], [[1.0, 2.0]]])
def test_what_is_no_series_of_finite_values_is_refused_on_either_side(bad: list[float]) -> None:
    for pair in ((bad, [1.0]), ([1.0], bad)):
        with pytest.raises(ValueError, match=r"^needs two series of finite values$"):
            shift.shift(*pair)
