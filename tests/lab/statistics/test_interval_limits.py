"""Estimates and intervals at their limits: one value, ties, equality with a limit, no value at all, too many for tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from loam_lab.judging.statistics import intervals
from loam_lab.judging.statistics.intervals import EXACT_MAX, Interval

# ---- the distribution of the signed rank


def exact_cdf(n: int) -> list[float]:
    """P(W <= w) for any n, counted in whole numbers."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = [*ways, *[0] * rank]
        for w, count in enumerate(ways):
            longer[w + rank] += count
        ways = longer
    return [total / 2**n for total in itertools.accumulate(ways)]


def test_the_exact_distribution_begins_at_one_pair_and_ends_where_it_says() -> None:
    assert intervals.signed_rank_cdf(1).tolist() == [0.5, 1.0]
    assert intervals.signed_rank_cdf(EXACT_MAX).tolist() == pytest.approx(exact_cdf(EXACT_MAX), abs=1e-12)
    for wrong in (0, -1, EXACT_MAX + 1):
        with pytest.raises(ValueError, match=rf"^n={wrong}: exact from 1 to {EXACT_MAX} pairs$"):
            intervals.signed_rank_cdf(wrong)


@pytest.mark.parametrize("n", [EXACT_MAX, EXACT_MAX + 1, 80, 150])
def test_beyond_it_the_normal_distribution_is_as_good(n: int) -> None:
    exact = exact_cdf(n)
    for share in (0.001, 0.01, 0.025, 0.2, 0.5, 0.9):
        w = next(w for w, probability in enumerate(exact) if probability >= share)
        assert intervals._probability(n, w) == pytest.approx(exact[w], abs=2e-3)
        assert intervals._probability(n, -1) == 0.0
    k = intervals.signed_rank_rank(n)
    expected = sum(probability <= 0.025 for probability in exact)
    assert abs(k - expected) <= (0 if n <= EXACT_MAX else 1)


@pytest.mark.parametrize("n", [EXACT_MAX + 1, 90])
def test_the_probability_of_many_pairs_is_scipys(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.2, 1, n)
    expected = stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert intervals.hodges_lehmann(differences).p == pytest.approx(float(expected), rel=1e-9)
    interval = intervals.hodges_lehmann(differences)
    k, walsh = intervals.signed_rank_rank(n), intervals.walsh_averages(differences)
    assert (interval.low, interval.high) == (walsh[k - 1], walsh[-k])


@pytest.mark.parametrize(("n", "miss"), [(1, 1.0), (5, 2 / 32), (6, 2 / 64), (7, 2 / 128)])
def test_an_interval_that_misses_exactly_as_often_as_it_may_is_allowed(n: int, miss: float) -> None:
    assert intervals.signed_rank_rank(n, 1 - miss) == 1
    assert intervals.signed_rank_rank(n, 1 - miss + 1e-6) == 0
    assert intervals.median_rank(n, 1 - miss) == 1
    assert intervals.median_rank(n, 1 - miss + 1e-6) == 0


# ---- Walsh averages and their probability


def test_walsh_averages_are_sorted_and_hold_each_value_itself() -> None:
    assert intervals.walsh_averages([7]).tolist() == [7]
    assert intervals.walsh_averages([3, 1]).tolist() == [1, 2, 3]
    assert intervals.walsh_averages([5, -1, 2]).tolist() == [-1, 0.5, 2, 2, 3.5, 5]


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0], 1.0),
        ([0.0], 1.0),
        ([1.0, -1.0], 1.0),
        ([0.0] * 6, 1.0),
        ([1.0] * 5, 2 / 32),
        ([1.0] * 6, 2 / 64),
        ([-1.0] * 6, 2 / 64),
        # Fifteen sums above 0, one below, five of 0, which count half: 3.5 of 21 are on the smaller side.
        ([1.0, 1.0, 1.0, 1.0, 1.0, -1.0], 2 * 5 / 64),
        ([-1.0, -1.0, -1.0, -1.0, -1.0, 1.0], 2 * 5 / 64),
    ],
)
def test_ties_and_zeros_count_half_in_either_direction(differences: list[float], p: float) -> None:
    assert intervals.hodges_lehmann(differences).p == p


def test_one_pair_and_five_have_an_estimate_and_no_interval_and_six_have_one() -> None:
    assert intervals.hodges_lehmann([5.0]) == Interval(5.0, None, None, 1, 1.0)
    five = intervals.hodges_lehmann([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (five.estimate, five.low, five.high, five.n) == (3.0, None, None, 5)
    six = intervals.hodges_lehmann([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (six.estimate, six.low, six.high, six.n, six.p) == (3.5, 1.0, 6.0, 6, 2 / 64)
    assert intervals.hodges_lehmann([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.99).low is None


@pytest.mark.parametrize("wrong", [[], [math.nan], [1.0, math.inf], [[1.0, 2.0], [3.0, 4.0]]])
def test_no_series_of_finite_values_is_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^needs at least one finite difference$"):
        intervals.hodges_lehmann(wrong)
    with pytest.raises(ValueError, match=r"^needs at least one finite value$"):
        intervals.median(wrong)


# ---- ratios


def test_a_ratio_of_one_pair_is_that_ratio() -> None:
    interval = intervals.paired_ratio([3.0], [2.0])
    assert (interval.estimate, interval.low, interval.high, interval.n, interval.p) == (
        pytest.approx(1.5),
        None,
        None,
        1,
        1.0,
    )
    small = intervals.paired_ratio([0.1] * 6, [0.2] * 6)
    assert (small.estimate, small.low, small.high) == pytest.approx((0.5, 0.5, 0.5))
    assert intervals.paired_ratio([1.0] * 6, [2.0] * 6, 0.99).low is None


@pytest.mark.parametrize("pair", [([1.0], [0.0]), ([0.0], [1.0]), ([-1.0], [1.0]), ([1.0], [-1.0])])
def test_a_ratio_needs_positive_values_on_both_sides(pair: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match=r"^ratios need positive values$"):
        intervals.paired_ratio(*pair)


def test_a_ratio_needs_pairs() -> None:
    with pytest.raises(ValueError, match=r"^shapes \(2,\) and \(1,\) differ$"):
        intervals.paired_ratio([1.0, 2.0], [1.0])


def test_a_geometric_mean_is_over_cases_and_its_interval_over_turns() -> None:
    logs = np.log([[1.0, 1.1, 1.2, 1.3, 1.4, 1.5], [4.0, 4.4, 4.8, 5.2, 5.6, 6.0]])
    interval = intervals.geometric_mean(logs)
    assert (interval.low, interval.high, interval.n) == (pytest.approx(2.0), pytest.approx(3.0), 6)
    assert intervals.geometric_mean(logs, 0.99).low is None
    one = intervals.geometric_mean(logs[:, :1])
    assert (one.estimate, one.low, one.n) == (pytest.approx(2.0), None, 1)


def test_an_interval_of_a_logarithm_keeps_what_it_lacks_and_counts() -> None:
    assert intervals.exponential(Interval(0.0, -math.inf, 0.0, 9, 0.25)) == Interval(1.0, 0.0, 1.0, 9, 0.25)
    for lacking in (Interval(0.0, None, 1.0, 2), Interval(0.0, 1.0, None, 2), Interval(0.0, None, None, 2)):
        assert intervals.exponential(lacking) == Interval(1.0, None, None, 2, None)


# ---- medians


def test_the_median_of_one_two_five_and_six_values() -> None:
    assert intervals.median([7.0]) == Interval(7.0, None, None, 1)
    assert intervals.median([1.0, 2.0]) == Interval(1.5, None, None, 2)
    assert intervals.median([5.0, 1.0, 2.0, 3.0, 4.0]) == Interval(3.0, None, None, 5)
    assert intervals.median([6.0, 1.0, 2.0, 3.0, 4.0, 5.0]) == Interval(3.5, 1.0, 6.0, 6)
    assert intervals.median([6.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0.99).low is None
    nine = intervals.median(range(1, 10))
    assert (nine.low, nine.high) == (2.0, 8.0), "2 (1 + 9) / 512 is 3.9 %"
    assert intervals.median([2.0] * 6) == Interval(2.0, 2.0, 2.0, 6)


def test_the_rank_of_a_median_ends_within_the_sample() -> None:
    assert [intervals.median_rank(n, 0.0) for n in (1, 2, 3)] == [1, 1, 2]
    assert intervals.median_rank(2, -1.0) == 2, "a confidence that nobody asks for: no further than the sample"
    assert [intervals.median_rank(n) for n in (1, 5, 6, 8, 9, 20)] == [0, 0, 1, 1, 2, 6]


# ---- widths


@pytest.mark.parametrize(
    ("low", "high", "width", "half"),
    [
        (1.0, 1.0, 0.0, 0.0),
        (0.5, 1.0, 1.0, math.sqrt(2) - 1),
        (1.0, 4.0, 3.0, 1.0),
        (0.25, 1.0, 3.0, 1.0),
        (0.0, 1.0, math.inf, math.inf),
        (-1.0, 1.0, math.inf, math.inf),
        (None, 1.0, math.inf, math.inf),
        (1.0, None, math.inf, math.inf),
        (None, None, math.inf, math.inf),
    ],
)
def test_how_wide_an_interval_is(low: float | None, high: float | None, width: float, half: float) -> None:
    assert Interval(1.0, low, high, 10).width == pytest.approx(width)
    assert intervals.half_width(low, high) == pytest.approx(half)


def test_two_percent_to_either_side() -> None:
    assert intervals.half_width(0.98, 1.02) == pytest.approx(0.02, abs=3e-4)
