"""Estimates, intervals and verdicts against brute force, against scipy, and by simulated coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loam_lab.judging.statistics import bootstrap, intervals, multiplicity, verdicts
from loam_lab.judging.statistics.intervals import Interval

FINITE = st.floats(-100, 100, allow_nan=False)


@pytest.mark.parametrize("n", range(1, 13))
def test_signed_rank_distribution_equals_enumeration(n: int) -> None:
    counts = np.zeros(n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(rank for rank, sign in enumerate(signs, 1) if sign)] += 1
    assert np.allclose(intervals.signed_rank_cdf(n), np.cumsum(counts) / 2**n, rtol=0, atol=1e-15)


@pytest.mark.parametrize("n", range(1, 13))
def test_signed_rank_bound_is_the_tightest_that_keeps_95_percent(n: int) -> None:
    sums = [sum(r for r, s in enumerate(signs, 1) if s) for signs in itertools.product((0, 1), repeat=n)]

    def miss(k: int) -> float:
        return 2 * sum(w <= k - 1 for w in sums) / 2**n

    k = intervals.signed_rank_rank(n)
    assert k == 0 or miss(k) <= 0.05
    assert miss(k + 1) > 0.05
    assert (k == 0) == (n < 6)


@pytest.mark.parametrize(("n", "k"), [(6, 1), (8, 4), (10, 9), (15, 26), (20, 53), (30, 138)])
def test_signed_rank_bound_equals_published_tables(n: int, k: int) -> None:
    # Tables print the critical value W with P(W <= critical) <= 0.025; the bound is one more.
    assert intervals.signed_rank_rank(n) == k


@given(st.lists(FINITE, min_size=1, max_size=25, unique=True).filter(lambda d: 0 not in d))
def test_p_equals_scipy_without_ties(differences: list[float]) -> None:
    magnitudes = np.abs(differences)
    if len(np.unique(magnitudes)) < len(magnitudes):
        return
    walsh = intervals.walsh_averages(differences)
    if (walsh == 0).any():  # rounding of a sum can make a tie
        return
    ours = intervals.hodges_lehmann(differences).p
    assert ours == pytest.approx(float(stats.wilcoxon(differences, method="exact").pvalue), rel=1e-9)


@given(st.lists(FINITE, min_size=6, max_size=20))
def test_interval_excludes_zero_exactly_when_p_is_small(differences: list[float]) -> None:
    interval = intervals.hodges_lehmann(differences)
    assert interval.low is not None and interval.high is not None and interval.p is not None
    assert interval.low <= interval.estimate <= interval.high
    if 0 not in intervals.walsh_averages(differences):
        assert (interval.low > 0 or interval.high < 0) == (interval.p <= 0.05 * (1 + 1e-9))


@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=15), st.floats(0.5, 2))
def test_a_constant_ratio_is_found_exactly(values: list[float], factor: float) -> None:
    interval = intervals.paired_ratio([factor * v for v in values], values)
    assert interval.low is not None and interval.high is not None
    assert interval.estimate == pytest.approx(factor)
    assert interval.width == pytest.approx(0, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=6, max_size=15))
def test_the_inverse_ratio_has_the_inverse_interval(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    one, other = intervals.paired_ratio(a, b), intervals.paired_ratio(b, a)
    assert one.low is not None and other.high is not None
    assert one.estimate == pytest.approx(1 / other.estimate)
    assert one.low == pytest.approx(1 / other.high)


@pytest.mark.parametrize("n", [6, 10, 15, 20])
@pytest.mark.parametrize("drift", [0.0, 0.03])
def test_coverage_of_the_paired_interval(n: int, drift: float) -> None:
    """Log-normal noise with spikes and a common drift: nominal 95 % must be 93 to 98.5 % (96.9 % at n = 6 is exact)."""
    random = np.random.default_rng(7)
    trials, hits, effect = 1500, 0, math.log(1.05)
    for _ in range(trials):
        common = np.cumsum(random.normal(0, drift, n))
        noise = random.normal(0, 0.02, (2, n)) + 0.3 * (random.random((2, n)) < 0.05)
        interval = intervals.hodges_lehmann(common + effect + noise[0] - (common + noise[1]))
        assert interval.low is not None and interval.high is not None
        hits += interval.low <= effect <= interval.high
    assert 0.93 <= hits / trials <= 0.985


def test_median_interval_equals_binomial_counting() -> None:
    for n in range(1, 40):
        k = intervals.median_rank(n)
        miss = [2 * sum(math.comb(n, i) for i in range(j)) / 2**n for j in range(n)]
        assert k == 0 or miss[k] <= 0.05
        assert miss[k + 1] > 0.05 if k + 1 < n else True
        assert (k == 0) == (n < 6)


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_median_lies_in_its_interval(values: list[float]) -> None:
    interval = intervals.median(values)
    assert interval.estimate == pytest.approx(float(np.median(values)))
    if interval.low is not None and interval.high is not None:
        assert interval.low <= interval.estimate <= interval.high


def test_counts_are_pooled_as_ratio_of_sums() -> None:
    interval = bootstrap.ratio_of_sums([1] * 5 + [100], [10] * 5 + [200])
    assert interval is not None and interval.low is not None and interval.high is not None
    assert interval.estimate == pytest.approx(105 / 250)
    assert interval.low <= interval.estimate <= interval.high
    assert bootstrap.ratio_of_sums([0, 0], [0, 0]) is None
    few = bootstrap.ratio_of_sums([1, 2], [4, 4])
    assert few is not None and few.low is None


def test_holm_equals_its_definition() -> None:
    assert multiplicity.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert multiplicity.holm([]) == []
    assert multiplicity.holm([0.9, 0.9]) == [1.0, 1.0]


def test_large_samples_continue_the_exact_ones() -> None:
    last, first = intervals.signed_rank_rank(intervals.EXACT_MAX), intervals.signed_rank_rank(intervals.EXACT_MAX + 1)
    assert last < first < last + intervals.EXACT_MAX


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in ([], [math.nan], [math.inf]):
        with pytest.raises(ValueError):
            intervals.hodges_lehmann(wrong)
    with pytest.raises(ValueError):
        intervals.paired_ratio([1, 2], [1])
    with pytest.raises(ValueError):
        intervals.paired_ratio([0.0], [1.0])


@pytest.mark.parametrize(
    ("low", "high", "better", "verdict"),
    [
        (0.99, 1.01, "higher", "equivalent"),
        (0.98, 1.02, "higher", "equivalent"),
        (1.001, 1.015, "higher", "equivalent"),  # asked first: a real but tiny difference
        (1.01, 1.03, "higher", "better"),
        (1.01, 1.03, "lower", "worse"),
        (0.95, 0.97, "higher", "worse"),
        (0.95, 0.97, "lower", "better"),
        (0.99, 1.03, "higher", "inconclusive"),
        (3.2, 3.4, "lower", "worse"),  # how wide it is decides nothing
        (1.001, 9.0, "higher", "better"),
        (1.10, 1.15, "higher", "better"),
        (1.10, 1.15, "neither", "inconclusive"),
        (None, None, "higher", "inconclusive"),
    ],
)
def test_verdicts(low: float | None, high: float | None, better: verdicts.Better, verdict: str) -> None:
    estimate = 1.0 if low is None or high is None else (low + high) / 2
    ratio = Interval(estimate, low, high, 10)
    assert verdicts.decide(ratio, better) == verdict
    advice = verdicts.advice(ratio, verdicts.decide(ratio, better))
    assert bool(advice) == (verdict == "inconclusive")
    if advice and better != "neither":
        assert "--blocks" in advice


def test_the_width_is_said_beside_the_verdict() -> None:
    wide = Interval(3.3, 3.2, 3.4, 10)
    assert verdicts.rough(wide) and not verdicts.rough(wide, 0.07)
    assert not verdicts.rough(Interval(3.3, 3.28, 3.32, 10))
    assert not verdicts.rough(Interval(3.3, None, None, 4)), "without an interval there is no size to tell"


def test_advice_names_blocks_only_where_so_many_can_be_measured() -> None:
    assert "about 24 blocks would tell (--blocks 24)" in verdicts.advice(Interval(1.0, 0.97, 1.03, 10), "inconclusive")
    noisy = verdicts.advice(Interval(1.0, 0.8, 1.25, 10), "inconclusive")
    assert "none above 25.0 % is there" in noisy and "--blocks" not in noisy and "quieter machine" in noisy
    unjudged = verdicts.advice(Interval(1.1, 1.05, 1.15, 10), "inconclusive", better="neither")
    assert "no direction of this metric is good" in unjudged
