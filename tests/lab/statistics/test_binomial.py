"""The exact interval of a share, against values of the literature and by what it promises."""

from __future__ import annotations

import math

import pytest

from loam_lab.judging.statistics import binomial


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        # R: binom.test(hits, trials)$conf.int
        (0, 10, 0.0, 0.3084971),
        (10, 10, 0.6915029, 1.0),
        (5, 10, 0.1870860, 0.8129140),
        (56, 206, 0.2123847, 0.3380590),
        (4, 96, 0.0114560, 0.1033038),
    ],
)
def test_the_interval_is_that_of_clopper_and_pearson(hits: int, trials: int, low: float, high: float) -> None:
    share = binomial.share(hits, trials)
    assert share[0] == hits / trials
    assert share[1:] == pytest.approx((low, high), abs=2e-4)


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.97])
def test_it_misses_at_most_as_often_as_it_says(trials: int, p: float) -> None:
    missed = sum(
        math.comb(trials, k) * p**k * (1 - p) ** (trials - k)
        for k in range(trials + 1)
        if not binomial.share(k, trials)[1] <= p <= binomial.share(k, trials)[2]
    )
    assert missed <= 0.05 + 1e-9


def test_many_trials_are_no_trouble() -> None:
    _, low, high = binomial.share(3, 1_000_000)
    assert 0 < low < 3e-6 < high < 1e-5


@pytest.mark.parametrize(("hits", "trials"), [(1, 0), (-1, 4), (5, 4)])
def test_what_is_no_share_is_refused(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match="of"):
        binomial.share(hits, trials)
