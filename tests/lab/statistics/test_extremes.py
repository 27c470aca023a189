"""The best against the worst of several: picked as they should be, and claimed among equals as rarely as promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loam_lab.judging.statistics import extremes, intervals


def test_best_and_worst_with_the_ratio_between_them() -> None:
    random = np.random.default_rng(3)
    logs = np.log([1.0, 1.3, 0.7, 1.0]) + random.normal(0, 0.01, (10, 4)) + random.normal(0, 0.2, (10, 1))
    pick = extremes.pick(logs)
    assert (pick.best, pick.worst) == (1, 2)
    expected = intervals.paired_ratio(np.exp(logs[:, 1]), np.exp(logs[:, 2]))
    assert (pick.ratio.low, pick.ratio.high) == pytest.approx((expected.low, expected.high))
    assert pick.p == pytest.approx(1 / (extremes.SHUFFLES + 1)), (
        "no shuffle reaches what the block's noise hides from none"
    )


def test_equals_differ_by_chance_only() -> None:
    assert extremes.pick(np.zeros((10, 3))).p == 1
    assert extremes.SHUFFLES % extremes.CHUNK == 0, "every shuffle is looked at, and none twice"
    assert extremes.pick(np.zeros((10, 3))).best != extremes.pick(np.zeros((10, 3))).worst
    assert extremes.probability(np.arange(10.0).reshape(5, 2), 0, 1) == 1, "five blocks are too few"


def test_of_two_the_probability_is_that_of_all_exchanges() -> None:
    """Seven blocks of two: 128 ways in which they could have come, counted."""
    logs = np.array([[0.0, d] for d in (0.1, 0.25, -0.05, 0.31, 0.12, 0.4, 0.22)])
    ranks = extremes._ranks(logs - np.median(logs, axis=1, keepdims=True))
    seen = abs(ranks.sum(axis=0)[0] - ranks.sum(axis=0)[1])
    ways = [
        abs(sum(row[0] - row[1] if keep else row[1] - row[0] for row, keep in zip(ranks, kept, strict=True)))
        for kept in itertools.product((True, False), repeat=7)
    ]
    exact = sum(way >= seen - 1e-9 for way in ways) / len(ways)
    assert extremes.probability(logs, 0, 1) == pytest.approx(exact, abs=0.01)


def test_an_outlier_counts_as_one_run() -> None:
    random = np.random.default_rng(4)
    logs = random.normal(0, 0.02, (10, 5))
    logs[:, 4] += 0.1
    before = extremes.probability(logs, 4, 0)
    logs[3, 0] += 3.0
    assert before < 0.01 and extremes.probability(logs, 4, 0) < 0.05


def test_picking_best_and_worst_is_taken_into_account() -> None:
    """Among six equals the picked pair looks different in a quarter of the families; it is claimed in one of twenty."""
    random = np.random.default_rng(6)
    families = [random.normal(0, 0.02, (10, 6)) for _ in range(200)]
    assert sum(extremes.pick(logs).p < 0.05 for logs in families) <= 18
    assert sum((extremes.pick(logs).ratio.p or 1) < 0.05 for logs in families) >= 40


def test_what_differs_elsewhere_makes_no_false_claim() -> None:
    """One allocator far off: the difference of two others that are equal is not taken for one."""
    random = np.random.default_rng(5)
    false = 0
    for _ in range(200):
        logs = random.normal(0, 0.02, (10, 4))
        logs[:, 3] -= 1.0
        false += extremes.probability(logs, 0, 1) < 0.05
    assert false <= 10


def test_ranks_of_equal_values_are_shared() -> None:
    assert extremes._ranks(np.array([[3.0, 1.0], [3.0, 2.0]])).tolist() == [[3.5, 1.0], [3.5, 2.0]]


@pytest.mark.parametrize("order", list(itertools.permutations([0.0, 1.0, 3.0])))
def test_the_best_and_the_worst_are_found_in_whatever_column(order: tuple[float, ...]) -> None:
    pick = extremes.pick([list(order)] * 6)
    assert (pick.best, pick.worst) == (order.index(3.0), order.index(0.0))
    assert pick.ratio.estimate == pytest.approx(np.exp(3.0)) and pick.ratio.n == 6
    assert pick.p == pytest.approx(6 * (1 / 6) ** 6, abs=1e-3), "only if all blocks have one order by chance"


def test_of_equals_the_first_is_best_and_the_next_is_worst() -> None:
    for columns in (2, 3, 5):
        pick = extremes.pick(np.ones((6, columns)))
        assert (pick.best, pick.worst, pick.p) == (0, 1, 1.0)
        assert (pick.ratio.estimate, pick.ratio.low, pick.ratio.high) == (1.0, 1.0, 1.0)


def test_one_block_is_picked_from_and_nothing_is_shown() -> None:
    one = extremes.pick([[0.0, 1.0]])
    assert one == extremes.Pick(1, 0, one.ratio, 1.0) and (one.ratio.n, one.ratio.low) == (1, None)


def test_six_blocks_have_a_probability_and_five_have_none() -> None:
    logs = [[0.0, 0.1 * i] for i in range(1, 7)]
    assert extremes.probability(logs, 0, 1) == pytest.approx(2 / 64, abs=0.01)
    assert extremes.probability(logs, 1, 0) == extremes.probability(logs, 0, 1)
    assert extremes.probability(logs[:5], 0, 1) == 1.0


def test_shuffles_end_early_where_many_reach_the_difference_and_no_sooner() -> None:
    # All reach it: one chunk is looked at.  None does: all are, and one more is counted, so that p is never 0.
    assert extremes.probability([[0.0, 0.0]] * 6, 0, 1) == (1 + extremes.CHUNK) / (1 + extremes.CHUNK)
    apart = [[0.0, i + 1.0] for i in range(30)]
    assert extremes.probability(apart, 0, 1) == 1 / (1 + extremes.SHUFFLES)
    # A third reach it, in the first chunk more than enough: it alone is looked at.
    few = extremes.probability([[0.0, d] for d in (0.1, -0.2, 0.3, -0.05, 0.6, -0.15, 0.7)], 0, 1)
    assert round(few * (1 + extremes.CHUNK)) == pytest.approx(few * (1 + extremes.CHUNK), abs=1e-9)
    assert few == pytest.approx(42 / 128, abs=0.06)


def test_shuffles_hold_every_order_alike_and_are_the_same_in_every_process() -> None:
    made = extremes._shuffles(6, 3)
    assert made.shape == (6, extremes.SHUFFLES, 3) and made.dtype == np.int8 and not made.flags.writeable
    assert extremes._shuffles(6, 3) is made
    assert (np.sort(made, axis=2) == [0, 1, 2]).all()
    for order in itertools.permutations(range(3)):
        assert (made == order).all(axis=2).mean() == pytest.approx(1 / 6, abs=0.01)
    again = np.random.default_rng([extremes.SEED, 6, 3]).random((6, extremes.SHUFFLES, 3), dtype=np.float32)
    assert (np.argsort(again, axis=2) == made).all()


def test_ranks_begin_at_one_and_follow_the_values() -> None:
    assert extremes._ranks(np.array([[7.0]])).tolist() == [[1.0]]
    assert extremes._ranks(np.array([[2.0, -1.0, 5.0]])).tolist() == [[2.0, 1.0, 3.0]]
    assert extremes._ranks(np.zeros((2, 3))).tolist() == [[3.5] * 3] * 2
