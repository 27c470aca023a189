"""Adjusted probabilities, shifts of unpaired samples, bootstrap and what is derived from several cells."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns import cells, measure, study
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loam_lab.dev.selfcheck import coverage
from loam_lab.judging.statistics import bootstrap, intervals, multiplicity, shift, verdicts
from loam_lab.judging.statistics.intervals import Interval

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(PROBABILITIES)
def test_benjamini_hochberg_equals_scipy(probabilities: list[float]) -> None:
    expected = stats.false_discovery_control(probabilities, method="bh")
    assert multiplicity.benjamini_hochberg(probabilities) == pytest.approx(list(expected))


@given(PROBABILITIES)
def test_holm_is_never_milder_than_benjamini_hochberg_and_never_stricter_than_bonferroni(p: list[float]) -> None:
    holm, hochberg = multiplicity.holm(p), multiplicity.benjamini_hochberg(p)
    for own, strict, mild in zip(p, holm, hochberg, strict=True):
        assert own <= mild + 1e-12 <= strict + 2e-12
        assert strict <= min(1.0, own * len(p)) + 1e-12


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (4, 4), (3, 6), (5, 5)])
def test_rank_sum_distribution_equals_enumeration(m: int, n: int) -> None:
    counts = np.zeros(m * n + 1)
    for first in itertools.combinations(range(m + n), m):
        counts[sum(a > b for a in first for b in range(m + n) if b not in first)] += 1
    assert np.allclose(shift.rank_sum_cdf(m, n), np.cumsum(counts) / math.comb(m + n, m), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 3, 0), (4, 4, 1), (5, 5, 3), (6, 8, 9), (10, 10, 24), (20, 20, 128)])
def test_rank_sum_bound_equals_published_tables(m: int, n: int, k: int) -> None:
    # Tables print the critical U with P(U <= critical) <= 0.025; the bound is one more.
    assert shift.rank_sum_rank(m, n) == k


@given(
    st.lists(st.floats(-10, 10), min_size=4, max_size=12, unique=True),
    st.lists(st.floats(-10, 10), min_size=4, max_size=12, unique=True),
)
def test_the_shift_has_the_probability_of_mann_and_whitney(a: list[float], b: list[float]) -> None:
    interval = shift.shift(a, b)
    differences = np.subtract.outer(b, a)
    if (differences == 0).any():
        return
    assert interval.p == pytest.approx(float(stats.mannwhitneyu(a, b, method="exact").pvalue), rel=1e-9)
    assert interval.low is not None and interval.high is not None and interval.p is not None
    assert (interval.low > 0 or interval.high < 0) == (interval.p <= 0.05 * (1 + 1e-9))
    assert interval.estimate == pytest.approx(float(np.median(differences)))


def test_a_textbook_shift() -> None:
    # Hollander and Wolfe, example 4.1: permeability of placental membranes; p of one side 0.1272 for W = 30.
    term, early = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46], [1.15, 0.88, 0.90, 0.74, 1.21]
    interval = shift.shift(term, early)
    assert interval.p == pytest.approx(2 * 0.1272, abs=1e-3)
    assert interval.estimate == pytest.approx(-0.305, abs=1e-6)


def test_a_ratio_of_samples_that_cannot_be_is_refused() -> None:
    for first, second in (([], [1.0]), ([1.0], [math.nan])):
        with pytest.raises(ValueError):
            shift.shift(first, second)
    with pytest.raises(ValueError):
        shift.ratio([0.0], [1.0])


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=12))
def test_centres_equal_the_estimate_of_each_draw(differences: list[float]) -> None:
    drawn = bootstrap.draws(len(differences))[:, :40]
    centres = bootstrap.centres(differences, drawn)
    for k in range(drawn.shape[1]):
        again = np.repeat(differences, drawn[:, k])
        assert centres[k] == pytest.approx(intervals.hodges_lehmann(again).estimate, abs=1e-12)


def test_draws_take_each_block_as_often_as_chance_would() -> None:
    drawn = bootstrap.draws(10)
    assert drawn.shape == (10, bootstrap.SAMPLES)
    assert (drawn.sum(axis=0) == 10).all()
    assert drawn.mean(axis=1) == pytest.approx(np.ones(10), abs=0.05)
    assert drawn.var() == pytest.approx(0.9, abs=0.05)
    assert (bootstrap.draws(10, 1) != drawn).any()


def test_expanded_percentiles_give_students_interval_of_a_mean() -> None:
    values = np.random.default_rng(3).normal(5, 1, 12)
    interval = bootstrap.percentiles(float(values.mean()), values @ bootstrap.draws(12) / 12, 12)
    half = float(stats.t.ppf(0.975, 11)) * values.std(ddof=1) / math.sqrt(12)
    assert interval.low is not None and interval.high is not None
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.05)


def test_the_ratio_of_rates_is_that_of_pooled_counts() -> None:
    interval = bootstrap.ratio_of_rates(([3.0] * 8, [100.0] * 8), ([4.0] * 8, [400.0] * 8))
    assert interval is not None and interval.estimate == pytest.approx(3)
    assert interval.low == pytest.approx(3) and interval.high == pytest.approx(3)
    assert bootstrap.ratio_of_rates(([1.0], [1.0]), ([0.0], [1.0])) is None
    with pytest.raises(ValueError):
        bootstrap.ratio_of_rates(([1.0], [1.0]), ([1.0, 2.0], [1.0, 2.0]))


def test_a_geometric_mean_of_equal_ratios_is_that_ratio() -> None:
    interval = intervals.geometric_mean(np.log([[1.1] * 8, [1.21] * 8]))
    assert interval.estimate == pytest.approx(1.1**1.5)
    assert interval.n == 8


def test_a_verdict_needs_the_adjusted_probability_too() -> None:
    clear = Interval(1.1, 1.09, 1.12, 10, 0.01)
    assert verdicts.decide(clear, "higher", adjusted=0.01) == "better"
    assert verdicts.decide(clear, "higher", adjusted=0.05) == "inconclusive"
    assert "60 were compared" in verdicts.advice(clear, "inconclusive", adjusted=0.3, family=60)
    # Equivalence is asked first: it claims no difference that chance could make.
    assert verdicts.decide(Interval(1.01, 1.005, 1.015, 10), "higher", adjusted=1.0) == "equivalent"


@pytest.mark.parametrize(
    "promise", coverage.PROMISES, ids=[what.split(" ")[0] + str(n) for n, (what, *_) in enumerate(coverage.PROMISES)]
)
def test_the_method_keeps_its_promises(promise: coverage.Promise, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small form of `./loam selfcheck coverage`: 300 studies are 1.3 % standard deviation at 95 %, 150 are 1.8 %."""
    monkeypatch.setattr(coverage, "PROMISES", (promise,))
    rows = list(coverage.rows(150 * coverage.DRAWS_SHARE if promise[3] else 300, (10, 20), slack=0.03))
    assert [row for row in rows if not row.kept] == []


def test_the_simulation_sees_intervals_that_are_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: intervals of 80 % must break the promise, in the small form too."""
    monkeypatch.setattr(coverage, "PROMISES", coverage.PROMISES[:1])
    whole = intervals.paired_ratio
    monkeypatch.setattr(intervals, "paired_ratio", lambda above, below: whole(above, below, 0.8))
    assert not any(row.kept for row in coverage.rows(300, (10, 20), slack=0.03))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = study(
        parameters={"structure": ["list", "tree"], "spread": 5}, allocators=["plain", "fast", "slow", "same"], blocks=8
    )
    return measure(made, tmp_path_factory.mktemp("derived"))[1]


def test_cells_carry_their_probability_adjusted_for_the_whole_heat_map(result: dict[str, Any]) -> None:
    compared = [cell for cell in cells(result, copy=0) if cell["ratio_to_baseline"]]
    assert result["multiplicity"]["cells"] == {"method": "Benjamini-Hochberg", "size": 6} and len(compared) == 6
    expected = multiplicity.benjamini_hochberg([cell["ratio_to_baseline"]["p"] for cell in compared])
    assert [cell["ratio_to_baseline"]["q"] for cell in compared] == expected
    assert all(cell["ratio_to_baseline"]["q"] is None for cell in cells(result, copy=1))
    assert result["multiplicity"]["headlines"] == {"method": "Holm", "size": 2}


def test_geometric_means_and_the_best_have_the_planted_values(result: dict[str, Any]) -> None:
    means = {line["allocator"]: line for line in result["geomeans"]}
    assert set(means) == {"fast", "slow", "same"}
    for name, truth, verdict in (("fast", 1.3, "better"), ("slow", 0.7, "worse"), ("same", 1.0, "equivalent")):
        assert means[name]["estimate"] == pytest.approx(truth, rel=0.01)
        assert (means[name]["verdict"], means[name]["cases"], means[name]["n"]) == (verdict, 2, 8)
    shares = {(line["label"], line["allocator"]): line["probability"] for line in result["best"]}
    assert len(shares) == 8
    assert all(share == (name == "fast") for (_, name), share in shares.items())


def test_one_case_has_no_geometric_mean(tmp_path: Path) -> None:
    _, alone = measure(study(blocks=6), tmp_path)
    assert alone["geomeans"] == []
    assert sum(line["probability"] for line in alone["best"]) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_whole_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main([]) == 0, capsys.readouterr().out
