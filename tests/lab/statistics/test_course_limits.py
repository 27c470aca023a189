"""The course of iterations at its limits: the shortest series, the smallest level, the shortest steady part, long ones."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from loam_lab.judging.statistics import warmup
from loam_lab.judging.statistics.warmup import Course


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([(9, 1.0)], None),
        ([(10, 1.0)], Course("flat", 0, 10)),
        # A level has three values or more.
        ([(3, 2.0), (7, 1.0)], Course("warm-up", 3, 10)),
        ([(7, 1.0), (3, 2.0)], Course("slow-down", 7, 10)),
        ([(1, 2.0), (39, 1.0)], Course("flat", 0, 40)),
        ([(2, 2.0), (38, 1.0)], Course("warm-up", 3, 40)),
        # A quarter of the series is steady, less is not.
        ([(30, 1.0), (10, 1.5)], Course("slow-down", 30, 40)),
        ([(31, 1.0), (9, 1.5)], Course("no steady state", None, 40)),
        ([(30, 1.5), (10, 1.0)], Course("warm-up", 30, 40)),
        # Two percent.
        ([(20, 1.0), (20, 1.019)], Course("flat", 0, 40)),
        ([(20, 1.0), (20, 1.021)], Course("slow-down", 20, 40)),
        ([(20, 1.021), (20, 1.0)], Course("warm-up", 20, 40)),
        # A level that comes back is steady since its neighbours are; what lies before another one is not.
        ([(10, 1.5), (10, 1.0), (10, 1.005), (10, 1.0)], Course("warm-up", 10, 40)),
        ([(10, 1.0), (10, 1.5), (20, 1.0)], Course("warm-up", 20, 40)),
        ([(8, 1.0), (12, 0.5), (20, 1.0)], Course("slow-down", 20, 40)),
    ],
)  # fmt: skip
def test_series_without_noise(levels: list[tuple[int, float]], expected: Course | None) -> None:
    assert warmup.course([level for length, level in levels for _ in range(length)]) == expected


@pytest.mark.parametrize(
    ("count", "kind", "steady_from"),
    [
        (500, "warm-up", 100),
        (501, "warm-up", 100),
        (1000, "warm-up", 100),
        (1001, "warm-up", 99),
        (5000, "warm-up", 100),
    ],
)
def test_long_series_are_looked_at_in_parts(count: int, kind: str, steady_from: int) -> None:
    assert warmup.course([2.0] * 100 + [1.0] * (count - 100)) == Course(kind, steady_from, count)


def test_levels_that_noise_alone_may_have_made_are_one() -> None:
    """Thirty values and twenty of noise 0.1: four deviations of the difference of their levels are 0.12."""
    noise = [0.0, 0.1, -0.1, 0.05, -0.05, 0.1, 0.0, -0.1, 0.05, -0.05]
    for step, kind in ((0.11, "flat"), (2.0, "slow-down")):
        course = warmup.course([math.exp(n) for n in noise * 3] + [math.exp(n + step) for n in noise * 2])
        assert course is not None and course.kind == kind


def test_a_course_is_written_as_the_journal_has_it() -> None:
    assert Course("flat", 0, 12).as_json() == {"kind": "flat", "steady_from": 0, "iterations": 12}
    assert set(warmup.ADVICE) == {"warm-up", "slow-down", "no steady state"}


# ---- from records


def iteration(**values: Any) -> dict[str, Any]:
    return {"kind": "iteration", "elapsed_s": 1.0, **values}


def test_a_record_is_judged_by_its_time_per_operation() -> None:
    fast, slow = iteration(operations=20, elapsed_s=2.0), iteration(operations=5)
    assert warmup.of_records([fast] * 5 + [slow] * 5) == Course("slow-down", 5, 10)
    pairs = [iteration(pairs=10)] * 5 + [iteration(pairs=20)] * 5
    assert warmup.of_records(pairs) == Course("warm-up", 5, 10)
    assert warmup.of_records(
        [iteration(operations=10, pairs=1)] * 5 + [iteration(operations=10, pairs=9)] * 5
    ) == Course("flat", 0, 10)
    assert warmup.of_records([iteration()] * 5 + [iteration(elapsed_s=3.0)] * 5) == Course("slow-down", 5, 10)


def test_other_records_count_nothing_and_a_bad_one_ends_it() -> None:
    ten = [iteration(operations=4)] * 10
    other = {"kind": "series", "elapsed_s": 99.0}
    assert warmup.of_records([other, *ten[:5], other, *ten[5:]]) == Course("flat", 0, 10)
    assert (
        warmup.of_records(ten[:9]) is None and warmup.of_records([]) is None and warmup.of_records([other] * 20) is None
    )
    for bad in (
        {"elapsed_s": 0.0}, {"elapsed_s": -1.0}, {"elapsed_s": None}, {"operations": 0}, {"operations": -1},
        {"operations": "4"}, {"elapsed_s": math.nan},
    ):  # fmt: skip
        assert warmup.of_records([*ten, iteration(**{"operations": 4, **bad})]) is None
    small = [iteration(operations=0.5, elapsed_s=0.5)] * 10
    assert warmup.of_records(small) == Course("flat", 0, 10), "below one of each is as good"


# ---- where a level begins


@pytest.mark.parametrize(
    ("values", "cuts"),
    [
        ([], []),
        ([0.0], []),
        ([0.0, 1.0], []),
        ([0.0] * 5, []),
        ([0.0, 0, 0, 1, 1], []),
        ([0.0, 0, 0, 1, 1, 1], [3]),
        ([0.0] * 6, []),
        ([0.0] * 3 + [1.0] * 3 + [0.0] * 3, [3, 6]),
        ([0.0] * 4 + [1.0] * 5 + [3.0] * 3 + [2.0] * 6, [4, 9, 12]),
    ],
)
def test_a_level_has_three_values(values: list[float], cuts: list[int]) -> None:
    assert warmup.changes(values) == cuts


def test_the_noise_is_that_of_steps_and_never_nothing() -> None:
    assert warmup._noise([0.0, 0.0, 0.0]) == 1e-4
    assert warmup._noise([0.0, 0.3, 0.0, 0.3]) == pytest.approx(warmup.NORMAL * 0.3 / math.sqrt(2))
    assert warmup._noise([0.0, 0.2, 0.2, 0.2, 0.2, 5.0]) == 1e-4, "a change of level hardly touches it"


# ---- cold runs


@pytest.mark.parametrize(
    ("first", "others", "cold"),
    [
        (2.0, [1.0] * 4, False),  # five runs
        (2.0, [1.0] * 5, True),
        (1.0203, [1.0] * 5, True),  # two percent, of the logarithm
        (1.0201, [1.0] * 5, False),
        (0.5, [1.0] * 5, False),
        # A deviation of 0.01 is one of 0.0148, four of which are 0.0593.
        (math.exp(0.0594), [math.exp(x) for x in (-0.01, -0.01, 0.0, 0.01, 0.01)], True),
        (math.exp(0.0592), [math.exp(x) for x in (-0.01, -0.01, 0.0, 0.01, 0.01)], False),
    ],
)
def test_when_a_first_run_is_cold(first: float, others: list[float], cold: bool) -> None:
    assert warmup.cold([first, *others]) == cold
    for order in itertools.islice(itertools.permutations(others), 10):
        assert warmup.cold([first, *order]) == cold
