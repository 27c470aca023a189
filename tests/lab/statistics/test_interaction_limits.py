"""The comparison of two machines at its limits: scipy's Yuen test, columns that count, dealing that ends in time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loam_lab.judging.statistics import interaction
from loam_lab.judging.statistics.interaction import BLOCKS_MANY, BLOCKS_MIN, REACHED_MAX
from loam_lab.judging.statistics.intervals import Array


def machines(first: int, second: int, columns: int = 2, moved: float = 0.0) -> tuple[Array, Array]:
    random = np.random.default_rng([first, second])
    return random.normal(0, 0.02, (first, columns)), random.normal(moved, 0.03, (second, columns))


# ---- against scipy


@pytest.mark.parametrize(("first", "second"), [(6, 6), (9, 30), (10, 10), (20, 11), (101, 150)])
def test_students_part_is_yuens_test_of_each_column(first: int, second: int) -> None:
    a, b = machines(first, second, moved=0.01)
    expected = [stats.ttest_ind(b[:, i], a[:, i], equal_var=False, trim=interaction.TRIM) for i in range(2)]
    assert interaction._statistic(a, b) == pytest.approx([abs(float(each.statistic)) for each in expected])
    assert interaction._by_student(a, b) == pytest.approx([min(1.0, 2 * float(each.pvalue)) for each in expected])
    for i, each in enumerate(expected):
        assert interaction._freedom(a[:, i], b[:, i]) == pytest.approx(float(each.df))
        interval = interaction._interval(a[:, i], b[:, i], 0.5)
        own = stats.trim_mean(b[:, i], interaction.TRIM) - stats.trim_mean(a[:, i], interaction.TRIM)
        error = abs(own / float(each.statistic))
        reach = float(stats.t.ppf(0.975, float(each.df))) * error
        assert (interval.estimate, interval.low, interval.high) == pytest.approx((own, own - reach, own + reach))
        assert (interval.n, interval.p) == (min(first, second), 0.5)


def test_the_sign_says_which_machine_lies_above() -> None:
    a, b = machines(8, 8, columns=1, moved=1.0)
    above, below = interaction.compare(a, b, 100), interaction.compare(b, a, 100)
    assert above is not None and below is not None
    assert above.columns[0].estimate == pytest.approx(-below.columns[0].estimate) and above.columns[0].estimate > 0.9
    assert above.columns[0].low == pytest.approx(-(below.columns[0].high or 0))


def test_values_that_repeat_have_no_error_and_as_many_degrees_as_the_smaller_sample() -> None:
    same = np.full((6, 1), 0.25)
    interval = interaction._interval(same[:, 0], same[:, 0] + 0.5, 0.1)
    assert (interval.estimate, interval.low, interval.high, interval.n) == (0.5, 0.5, 0.5, 6)
    assert interaction._freedom(np.zeros(6), np.zeros(9)) == 5.0
    assert interaction._freedom(np.zeros(30), np.zeros(10)) == 7.0, "of ten one is cut at either end"
    assert interaction._statistic(same, same + 0.5).tolist() == [0.5 / interaction.ERROR_MIN]


@pytest.mark.parametrize(("blocks", "cut"), [(6, 0), (9, 0), (10, 1), (19, 1), (20, 2)])
def test_a_tenth_is_cut_at_either_end(blocks: int, cut: int) -> None:
    values = np.random.default_rng(blocks).exponential(1, (blocks, 1))
    mean, error = interaction._trimmed(values)
    inner = np.sort(values[:, 0])[cut : blocks - cut]
    assert mean[0] == pytest.approx(inner.mean())
    winsorised = np.concatenate([np.full(cut, inner[0]), inner, np.full(cut, inner[-1])])
    kept = blocks - 2 * cut
    assert error[0] == pytest.approx(((winsorised - winsorised.mean()) ** 2).sum() / (kept * (kept - 1)))
    # The same of several at once, as dealing asks.
    many = np.stack([values, 2 * values])
    means, errors = interaction._trimmed(many)
    assert means[:, 0] == pytest.approx([mean[0], 2 * mean[0]]) and errors[:, 0] == pytest.approx(
        [error[0], 4 * error[0]]
    )


# ---- dealing


def test_six_blocks_of_each_are_compared_and_five_of_either_are_not() -> None:
    assert interaction.compare(*machines(BLOCKS_MIN, BLOCKS_MIN), 50) is not None
    assert interaction.compare(*machines(BLOCKS_MIN - 1, BLOCKS_MIN), 50) is None
    assert interaction.compare(*machines(BLOCKS_MIN, BLOCKS_MIN - 1), 50) is None


@pytest.mark.parametrize(("first", "second", "deals"), [(100, 150, True), (150, 100, True), (101, 101, False)])
def test_many_blocks_of_both_are_not_dealt(
    first: int, second: int, deals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BLOCKS_MANY == 100
    dealt: list[tuple[int, ...]] = []
    real = interaction._deals

    def noted(*given: int) -> Iterator[Any]:
        dealt.append(given)
        return real(*given)

    monkeypatch.setattr(interaction, "_deals", noted)
    compared = interaction.compare(*machines(first, second), 200)
    assert compared is not None and dealt == ([(first + second, 2, 200)] if deals else [])


def test_a_probability_is_never_below_one_in_all_that_were_dealt() -> None:
    a, b = machines(20, 20, moved=5.0)
    for shuffles in (99, 1000):
        compared = interaction.compare(a, b, shuffles)
        assert compared is not None and compared.p == 1 / (shuffles + 1)
        assert [column.p for column in compared.columns] == [compared.p] * 2


def test_dealing_ends_once_the_least_column_was_reached_often_enough() -> None:
    same = np.zeros((8, 2))
    compared = interaction.compare(same, same, 10_000)
    assert compared is not None and compared.p == 1.0
    # Of columns that both are reached each time the first portion is enough: 500 rows.
    assert next(iter(interaction._deals(16, 2, 10_000))).shape == (500, 16) and REACHED_MAX <= 500
    # One column far off is never reached, however often the other is.
    apart = np.concatenate([same[:, :1], same[:, 1:] + 5.0], axis=1)
    mixed = interaction.compare(same, apart, 3000)
    assert mixed is not None and mixed.p == pytest.approx(mixed.columns[1].p)
    assert (mixed.columns[1].p or 0) < 0.005 < (mixed.columns[0].p or 0) == 1.0


@pytest.mark.parametrize(
    ("rows", "columns", "shuffles", "sizes"),
    [(16, 2, 1200, [500, 500, 200]), (16, 2, 3, [3]), (1000, 100, 45, [20, 20, 5]), (3000, 1000, 2, [1, 1])],
)
def test_deals_are_so_many_orders_of_all_rows(rows: int, columns: int, shuffles: int, sizes: list[int]) -> None:
    portions = list(interaction._deals(rows, columns, shuffles))
    assert [len(portion) for portion in portions] == sizes
    for portion in portions:
        assert portion.shape[1] == rows and (np.sort(portion, axis=1) == np.arange(rows)).all()
    again = np.random.default_rng([interaction.SEED, rows]).random((sizes[0], rows))
    assert (portions[0] == np.argsort(again, axis=1)).all(), "the same in every process"


def test_the_larger_probability_of_both_ways_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = machines(8, 8)
    dealt = interaction.compare(a, b, 400)
    monkeypatch.setattr(interaction, "_by_student", lambda first, second: np.array([1.0, 0.0]))
    compared = interaction.compare(a, b, 400)
    assert dealt is not None and compared is not None
    assert compared.columns[0].p == 1.0 and (compared.columns[1].p or 0) <= (dealt.columns[1].p or 0)
    assert compared.p == compared.columns[1].p, "of the least column"


# ---- what is refused


@pytest.mark.parametrize(
    ("first", "second"),
    [((8,), (8,)), ((8, 2), (8,)), ((8,), (8, 2)), ((8, 2), (8, 3)), ((8, 0), (8, 0)), ((2, 8, 2), (8, 2))],
)
def test_shapes_that_do_not_fit_are_told(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as caught:
        interaction.compare(np.zeros(first), np.zeros(second))
    assert str(caught.value) == f"shapes {first} and {second} are not (blocks, columns) with the same columns"


@pytest.mark.parametrize(("wrong", "which"), [*itertools.product([math.nan, math.inf, -math.inf], [0, 1])])
def test_what_is_not_finite_is_refused_on_either_side(wrong: float, which: int) -> None:
    both = list(machines(8, 8))
    both[which][3, 1] = wrong
    with pytest.raises(ValueError, match=r"^needs finite logarithms$"):
        interaction.compare(*both)
