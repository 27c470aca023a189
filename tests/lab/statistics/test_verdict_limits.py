"""Adjusted probabilities, verdicts and advice at their limits: equal to a margin, to 5 %, to 1, to the most that is advised."""

from __future__ import annotations

import math

import pytest

from loam_lab.judging.statistics import multiplicity, verdicts
from loam_lab.judging.statistics.intervals import Interval

# ---- adjusted probabilities


@pytest.mark.parametrize(
    ("probabilities", "holm", "hochberg"),
    [
        ([], [], []),
        ([0.05], [0.05], [0.05]),
        ([1.0], [1.0], [1.0]),
        ([0.0, 1.0], [0.0, 1.0], [0.0, 1.0]),
        ([0.05, 0.05], [0.1, 0.1], [0.05, 0.05]),
        ([0.025, 0.05], [0.05, 0.05], [0.05, 0.05]),
        ([0.05, 0.025], [0.05, 0.05], [0.05, 0.05]),
        # Down the steps of Holm never milder than the one before, up those of Hochberg never stricter than the next.
        ([0.5, 0.010, 0.011], [0.5, 0.03, 0.03], [0.5, 0.0165, 0.0165]),
        ([0.04, 0.02, 0.03], [0.06, 0.06, 0.06], [0.04, 0.04, 0.04]),
        ([0.6, 0.5, 0.9], [1.0, 1.0, 1.0], [0.9, 0.9, 0.9]),
    ],
)
def test_known_families(probabilities: list[float], holm: list[float], hochberg: list[float]) -> None:
    assert multiplicity.holm(probabilities) == pytest.approx(holm)
    assert multiplicity.benjamini_hochberg(probabilities) == pytest.approx(hochberg)


# ---- verdicts

CLEAR = Interval(1.1, 1.09, 1.12, 10)


@pytest.mark.parametrize(
    ("adjusted", "verdict"),
    [
        (None, "better"),
        (0.0, "better"),
        (math.nextafter(0.05, 0), "better"),
        (0.05, "inconclusive"),
        (1.0, "inconclusive"),
    ],
)
def test_five_percent_itself_shows_nothing(adjusted: float | None, verdict: str) -> None:
    assert verdicts.decide(CLEAR, "higher", adjusted=adjusted) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.95, 1.05, "equivalent"),
        (math.nextafter(0.95, 0), 1.05, "inconclusive"),
        (0.95, math.nextafter(1.05, 2), "inconclusive"),
        (0.90, 0.94, "worse"),
        (1.06, 1.10, "better"),
        # 1 itself is no difference, and a hair beside it is one.
        (1.0, 1.10, "inconclusive"),
        (math.nextafter(1.0, 2), 1.10, "better"),
        (0.90, 1.0, "inconclusive"),
        (0.90, math.nextafter(1.0, 0), "worse"),
        (None, 1.0, "inconclusive"),
        (1.0, None, "inconclusive"),
    ],
)
def test_the_margin_and_one_are_limits(low: float | None, high: float | None, verdict: str) -> None:
    assert verdicts.decide(Interval(1.0, low, high, 10), "higher", margin=0.05) == verdict
    opposite = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert verdicts.decide(Interval(1.0, low, high, 10), "lower", margin=0.05) == opposite
    unjudged = verdict if verdict == "equivalent" else "inconclusive"
    assert verdicts.decide(Interval(1.0, low, high, 10), "neither", margin=0.05) == unjudged


def test_a_width_equal_to_the_limit_is_not_rough() -> None:
    quarter = Interval(1.1, 1.0, 1.25, 10)
    assert not verdicts.rough(quarter, 0.25)
    assert verdicts.rough(quarter, math.nextafter(0.25, 0))
    assert (verdicts.rough(Interval(1.0, 1.0, 1.04, 10)), verdicts.rough(Interval(1.0, 1.0, 1.06, 10))) == (False, True)
    assert verdicts.rough(Interval(1.0, 0.0, 1.0, 10)), "an interval that reaches 0 is as wide as can be"
    assert not verdicts.rough(Interval(1.0, None, None, 10))


@pytest.mark.parametrize(
    ("low", "high", "reach"),
    [
        (1.0, 1.0, 0.0), (0.8, 1.1, 0.25), (0.95, 1.2, 0.2), (0.8, 1.25, 0.25),
        (0.0, 1.0, math.inf), (-0.5, 1.0, math.inf), (None, 1.0, math.inf), (1.0, None, math.inf),
    ],
)  # fmt: skip
def test_the_reach_is_the_larger_of_both_directions(low: float | None, high: float | None, reach: float) -> None:
    assert verdicts.reach(Interval(1.0, low, high, 10)) == pytest.approx(reach)


# ---- advice


def test_each_reason_for_no_verdict_is_told_in_full() -> None:
    def of(low: float | None, high: float | None, **options: object) -> str:
        return verdicts.advice(Interval(1.1, low, high, 10), "inconclusive", **options)

    few = "10 blocks; too few for a 95 % interval, which needs 6; repeat with --blocks 10 or more"
    assert of(None, None) == of(1.0, None) == of(None, 1.0) == few
    holds_one = (
        "the interval holds 1; no difference is shown, and none above {} is there; "
        "a quieter machine (loam doctor) or longer runs would tell more, further blocks hardly"
    )
    assert of(1.0, 1.5) == holds_one.format("50.0 %")
    assert of(0.5, 1.0) == holds_one.format("100.0 %")
    assert of(1.01, 1.5, better="neither") == (
        "the interval excludes 1; no direction of this metric is good, so it is not judged; look at its values"
    )
    # To tell it from chance an interval half as far from 1 would do: 10 (0.1 / 0.11)^2, so as many as there are.
    by_chance = of(1.0001, 1.10011, adjusted=0.3, family=7)
    assert by_chance == (
        "the interval excludes 1, but 7 were compared and some of them do so by chance (adjusted p 0.30); "
        "inconclusive; about 10 blocks would tell (--blocks 10)"
    )
    assert "but 1 were compared" in of(1.01, 1.1) and "(adjusted p 0.00)" in of(1.01, 1.1)
    assert "about 40 blocks would tell" in of(0.99, 1.07, margin=0.0202 + 1e-5)
    for verdict in ("equivalent", "better", "worse"):
        assert verdicts.advice(Interval(1.1, None, None, 10), verdict) == ""


@pytest.mark.parametrize(("wanted", "blocks"), [(1.0, 10), (0.25, 10), (0.125, 40), (0.2, 15.625), (0.05, 250)])
def test_the_width_falls_with_the_square_root_of_the_blocks(wanted: float, blocks: float) -> None:
    assert verdicts.blocks_for(Interval(1.2, 1.0, 1.5, 10), wanted) == pytest.approx(blocks)
    assert verdicts.blocks_for(Interval(1.2, 0.0, 1.5, 10), wanted) == math.inf


def test_sixty_blocks_are_advised_and_no_more() -> None:
    sixty, more = Interval(1.0, 1.0, 1.1, 60), Interval(1.0, 1.0, 1.1, 61)
    hardly = "a quieter machine (loam doctor) or longer runs would tell more, further blocks hardly"
    assert verdicts.more(sixty, 1.0) == "about 60 blocks would tell (--blocks 60)"
    assert verdicts.more(more, 1.0) == hardly
    assert verdicts.more(Interval(1.2, 1.0, 1.5, 10), 0.2) == "about 16 blocks would tell (--blocks 16)"
    assert verdicts.more(Interval(1.2, None, None, 10), 0.2) == hardly


def test_percent_has_one_digit() -> None:
    assert [verdicts.percent(value) for value in (0.0, 0.0523, 0.25, 1.0)] == ["0.0 %", "5.2 %", "25.0 %", "100.0 %"]
