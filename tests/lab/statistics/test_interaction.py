"""The test of interaction: it finds what was planted, invents nothing at its rate, and says when it cannot tell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from loam_lab.judging.statistics import interaction


def blocks(
    random: np.random.Generator,
    count: int,
    columns: int = 4,
    spread: float = 0.02,
    moved: float = 0.0,
    spikes: float = 0.05,
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Log-ratios to a baseline that all columns of a block share, with spikes. moved: the first column's effect"""
    values = random.normal(0, spread, (count, columns)) + random.normal(0, spread, (count, 1))
    values += np.where(random.random((count, columns)) < spikes, random.exponential(5 * spread, (count, columns)), 0)
    values[:, 0] += moved
    return values


# Blocks of the two machines, and how noisy each is: equal, and the worst case of few noisy blocks against many quiet ones.
DESIGNS = [
    ((12, 12), (0.02, 0.02)), ((8, 24), (0.02, 0.02)), ((8, 24), (0.06, 0.02)), ((8, 24), (0.02, 0.06)), ((6, 30), (0.06, 0.02)),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "spreads"), DESIGNS)
def test_it_invents_no_interaction_at_the_stated_rate(counts: tuple[int, int], spreads: tuple[float, float]) -> None:
    """400 null comparisons have 20 with p below 5 %; 38 or more come by chance once in ten thousand times."""
    random = np.random.default_rng(5)
    false = 0
    for _ in range(400):
        a, b = (blocks(random, count, spread=spread) for count, spread in zip(counts, spreads, strict=True))
        compared = interaction.compare(a, b, 400)
        assert compared is not None
        false += compared.p < 0.05
    assert false < 38, f"{false} of 400"


@pytest.mark.parametrize(("counts", "spreads"), DESIGNS)
def test_it_finds_a_planted_interaction_in_the_column_that_has_it(
    counts: tuple[int, int], spreads: tuple[float, float]
) -> None:
    random = np.random.default_rng(6)
    detected, others, covered, moved = 0, 0, 0, 5 * max(spreads)
    for _ in range(60):
        a = blocks(random, counts[0], spread=spreads[0])
        b = blocks(random, counts[1], spread=spreads[1], moved=moved)
        seen = interaction.compare(a, b, 1000)
        assert seen is not None
        detected += (seen.columns[0].p or 0) < 0.05
        others += any((column.p or 0) < 0.05 for column in seen.columns[1:])
        first = seen.columns[0]
        assert first.low is not None and first.high is not None
        covered += first.low <= moved <= first.high
    assert detected >= 50, "an effect of five times the noise is found"
    assert others <= 9, "and not in columns without one"
    assert covered >= 50


def test_the_probability_is_that_of_all_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines of six blocks: there are 924 ways to deal them, few enough to look at each."""
    random = np.random.default_rng(7)
    a, b = blocks(random, 6, 2, spikes=0), blocks(random, 6, 2, moved=0.03, spikes=0)
    rows = np.concatenate([a, b])
    seen = interaction._statistic(a, b).max()
    reached = 0
    for chosen in itertools.combinations(range(12), 6):
        others = [row for row in range(12) if row not in chosen]
        reached += bool(interaction._statistic(rows[list(chosen)], rows[others]).max() >= seen - 1e-12)
    monkeypatch.setattr(interaction, "_by_student", lambda first, second: np.zeros(2))
    compared = interaction.compare(a, b, 20_000)
    assert compared is not None
    assert compared.p == pytest.approx(reached / math.comb(12, 6), rel=0.25, abs=0.002)


def test_many_blocks_are_judged_as_dealing_would(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(8)
    a, b = blocks(random, 120), blocks(random, 150, moved=0.006)
    quick = interaction.compare(a, b)
    monkeypatch.setattr(interaction, "BLOCKS_MANY", 1000)
    dealt = interaction.compare(a, b)
    assert quick is not None and dealt is not None
    assert [column.estimate for column in quick.columns] == [column.estimate for column in dealt.columns]
    assert quick.p == pytest.approx(dealt.p, rel=0.6, abs=0.01)


def test_yuens_statistic_is_that_of_the_textbook() -> None:
    """Trimmed mean and winsorised error of ten values by hand: one of either side is cut."""
    values = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [100.0]])
    mean, error = interaction._trimmed(values)
    assert mean[0] == pytest.approx(5.5)
    winsorised = np.array([2, 2, 3, 4, 5, 6, 7, 8, 9, 9.0])
    assert error[0] == pytest.approx(((winsorised - winsorised.mean()) ** 2).sum() / (8 * 7))


def test_values_that_repeat_exactly_are_compared_without_noise() -> None:
    same = np.full((8, 2), 0.1)
    compared = interaction.compare(same, same, 200)
    assert compared is not None and compared.p == 1
    moved = interaction.compare(same, same + np.array([0.0, 0.2]), 2000)
    assert moved is not None
    assert (moved.columns[1].p or 0) < 0.01 and moved.columns[0].p == 1
    assert moved.columns[1].estimate == pytest.approx(0.2)


def test_too_few_blocks_give_no_answer_and_odd_shapes_are_refused() -> None:
    assert interaction.compare(np.zeros((5, 2)), np.zeros((20, 2))) is None
    with pytest.raises(ValueError, match="same columns"):
        interaction.compare(np.zeros((8, 2)), np.zeros((8, 3)))
    with pytest.raises(ValueError, match="finite"):
        interaction.compare(np.full((8, 1), np.nan), np.zeros((8, 1)))
