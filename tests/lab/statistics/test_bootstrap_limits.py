"""The bootstrap at its limits: one block, draws that give no value, sums of zero, more blocks than a small integer counts."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from loam_lab.judging.statistics import bootstrap, intervals
from loam_lab.judging.statistics.bootstrap import SAMPLES
from loam_lab.judging.statistics.intervals import Interval


def test_draws_are_the_same_in_every_process_and_cannot_be_written_to() -> None:
    drawn = bootstrap.draws(7)
    assert drawn.dtype == np.int16 and drawn.flags.c_contiguous and not drawn.flags.writeable
    assert bootstrap.draws(7) is drawn
    for stratum, counts in ((0, drawn), (3, bootstrap.draws(7, 3))):
        taken = np.random.default_rng([1, stratum, 7]).integers(0, 7, size=(SAMPLES, 7))
        for sample in (0, 1, SAMPLES - 1):
            assert counts[:, sample].tolist() == np.bincount(taken[sample], minlength=7).tolist()
    assert (bootstrap.draws(1) == 1).all() and bootstrap.draws(1).shape == (1, SAMPLES)


# ---- centres of draws


def test_a_single_block_is_its_own_centre() -> None:
    assert bootstrap.centres([5.0], np.array([[1, 1]], dtype=np.int16)).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("n", [1, 2, 5, 6, 40, 255, 256])
def test_centres_of_few_and_of_many_blocks(n: int) -> None:
    """Of 256 blocks the weights of all pairs sum to more than 16 bits hold."""
    differences = np.random.default_rng(n).normal(0, 1, n).round(1)
    drawn = bootstrap.draws(n)[:, :6]
    centres = bootstrap.centres(differences, drawn)
    for k in range(drawn.shape[1]):
        walsh = intervals.walsh_averages(np.repeat(differences, drawn[:, k]))
        assert centres[k] == pytest.approx(float(np.median(walsh)), abs=1e-12)


def test_a_draw_that_took_one_block_alone_is_that_block() -> None:
    counts = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3]], dtype=np.int16)
    assert bootstrap.centres([2.0, -1.0, 7.0], counts).tolist() == [2.0, -1.0, 7.0]


def test_centres_need_a_difference_for_each_block() -> None:
    with pytest.raises(ValueError, match=r"^\(2,\) differences for draws of 3 blocks$"):
        bootstrap.centres([1.0, 2.0], bootstrap.draws(3))
    with pytest.raises(ValueError, match="differences for draws of 2 blocks"):
        bootstrap.centres([[1.0, 2.0]], bootstrap.draws(2))


# ---- percentiles


@pytest.mark.parametrize("blocks", [2, 6, 30])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_tail_is_students_at_the_width_of_n(blocks: int, confidence: float) -> None:
    reach = float(stats.t.ppf(1 - (1 - confidence) / 2, blocks - 1)) * math.sqrt(blocks / (blocks - 1))
    assert bootstrap.tail(blocks, confidence) == pytest.approx(float(stats.norm.cdf(-reach)), rel=1e-9)
    assert bootstrap.tail(blocks) == bootstrap.tail(blocks, 0.95)


def test_the_ends_are_the_quantiles_of_the_tail() -> None:
    samples = np.linspace(0, 1, 1001)
    for confidence in (0.8, 0.95):
        share = bootstrap.tail(10, confidence)
        interval = bootstrap.percentiles(0.5, samples, 10, confidence)
        assert (interval.low, interval.high, interval.n) == (pytest.approx(share), pytest.approx(1 - share), 10)
        assert interval.estimate == 0.5 and interval.p is None


def test_five_blocks_have_no_interval_and_six_have_one() -> None:
    samples = np.linspace(0, 1, 100)
    assert bootstrap.percentiles(0.5, samples, 5) == Interval(0.5, None, None, 5)
    six = bootstrap.percentiles(0.5, samples, 6)
    assert six.low is not None and six.high is not None and six.n == 6


def test_a_tenth_of_the_draws_may_give_no_value() -> None:
    samples = np.ones(100)
    for nothing in (math.nan, math.inf):
        samples[:10] = nothing
        assert bootstrap.percentiles(1.0, samples, 10) == Interval(1.0, 1.0, 1.0, 10)
    samples[10] = math.nan
    assert bootstrap.percentiles(1.0, samples, 10) == Interval(1.0, None, None, 10)


def test_an_estimate_beyond_all_draws_is_in_its_interval() -> None:
    samples = np.linspace(1, 2, 100)
    below, above = bootstrap.percentiles(0.5, samples, 10), bootstrap.percentiles(2.5, samples, 10)
    assert below.low == 0.5 and below.high is not None and below.high < 2
    assert above.high == 2.5 and above.low is not None and above.low > 1


# ---- ratios of counts


def test_a_pooled_rate_and_its_interval_are_those_of_its_draws() -> None:
    above, below = np.array([1.0, 2, 3, 4, 5, 6, 7, 9]), np.array([10.0, 30, 20, 40, 80, 50, 60, 100])
    drawn = bootstrap.draws(8)
    for confidence in (0.8, 0.95):
        expected = bootstrap.percentiles(37 / 390, (above @ drawn) / (below @ drawn), 8, confidence)
        interval = bootstrap.ratio_of_sums(above, below, confidence)
        assert interval is not None
        assert (interval.estimate, interval.low, interval.high) == pytest.approx(
            (37 / 390, expected.low, expected.high)
        )
        assert interval.n == 8
    assert bootstrap.ratio_of_sums(above, below) == bootstrap.ratio_of_sums(above, below, 0.95)


def test_a_rate_of_one_block_of_nothing_and_of_no_chance() -> None:
    assert bootstrap.ratio_of_sums([3], [4]) == Interval(0.75, None, None, 1)
    assert bootstrap.ratio_of_sums([0], [1]) == Interval(0.0, None, None, 1)
    assert bootstrap.ratio_of_sums([0] * 8, [5] * 8) == Interval(0.0, 0.0, 0.0, 8)
    assert bootstrap.ratio_of_sums([1], [0]) is None
    # All in one block of eight: a third of the draws have no attempt at all, which is nothing to warn of.
    once = [1] + [0] * 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rare in (bootstrap.ratio_of_sums(once, once), bootstrap.ratio_of_rates((once, once), (once, once))):
            assert rare == Interval(1.0, None, None, 8)
        assert bootstrap.ratio_of_sums([1] * 8, once) == Interval(8.0, None, None, 8)


@pytest.mark.parametrize(("above", "below"), [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]])])
def test_counts_that_are_no_two_equal_series_are_refused(above: list[float], below: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^shapes \(.*\) and \(.*\) are not two equal series$"):
        bootstrap.ratio_of_sums(above, below)
    with pytest.raises(ValueError, match="are not two equal series"):
        bootstrap.ratio_of_rates((above, below), ([1.0], [1.0]))
    with pytest.raises(ValueError, match="are not two equal series"):
        bootstrap.ratio_of_rates(([1.0], [1.0]), (above, below))


def test_the_ratio_of_two_rates_keeps_the_blocks_paired() -> None:
    a, b = np.array([1.0, 2, 3, 4, 5, 6]), np.array([10.0, 30, 20, 40, 80, 50])
    c, d = np.array([3.0, 1, 2, 8, 1, 5]), np.array([20.0, 10, 70, 40, 30, 90])
    drawn = bootstrap.draws(6)
    samples = (a @ drawn) / (b @ drawn) / ((c @ drawn) / (d @ drawn))
    for confidence in (0.8, 0.95):
        expected = bootstrap.percentiles(21 / 230 / (20 / 260), samples, 6, confidence)
        interval = bootstrap.ratio_of_rates((a, b), (c, d), confidence)
        assert interval is not None
        values = (expected.estimate, expected.low, expected.high)
        assert (interval.estimate, interval.low, interval.high) == pytest.approx(values)
        assert interval.n == 6
    assert bootstrap.ratio_of_rates((a, b), (c, d)) == bootstrap.ratio_of_rates((a, b), (c, d), 0.95)


def test_a_ratio_of_rates_needs_chances_on_both_sides_and_events_below() -> None:
    one, none = [1.0] * 6, [0.0] * 6
    assert bootstrap.ratio_of_rates((one, none), (one, one)) is None
    assert bootstrap.ratio_of_rates((one, one), (none, one)) is None
    assert bootstrap.ratio_of_rates((one, one), (one, none)) is None
    assert bootstrap.ratio_of_rates((none, one), (one, one)) == Interval(0.0, 0.0, 0.0, 6)
    part = [0.125] * 6
    assert bootstrap.ratio_of_rates((one, part), (part, one)) == Interval(64.0, 64.0, 64.0, 6), "sums below 1 are sums"
    with pytest.raises(ValueError, match=r"^1 and 2 blocks do not pair$"):
        bootstrap.ratio_of_rates(([1.0], [1.0]), ([1.0, 2.0], [1.0, 2.0]))
