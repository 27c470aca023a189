"""A table of limits: what an interval on either side of one decides."""

from __future__ import annotations

import pytest

from loam_lab.judging.statistics.intervals import Interval
from loam_lab.presenting.pages.parts import limits
from loam_lab.presenting.pages.parts.limits import Limit
from loam_lab.presenting.report import rounding


@pytest.mark.parametrize(
    ("low", "high", "at_least", "at_most"),
    [
        (1.0, 1.2, "met", "undecided"),
        (0.8, 1.0, "undecided", "met"),
        (0.8, 1.2, "undecided", "undecided"),
        (0.8, 0.9, "missed", "met"),
        (1.1, 1.2, "met", "missed"),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, at_least: str, at_most: str) -> None:
    ratio = Interval(1.0, low, high, 8)
    assert Limit("it", ratio, low=1.0).verdict() == at_least
    assert Limit("it", ratio, high=1.0).verdict() == at_most


def test_without_an_interval_nothing_is_decided() -> None:
    assert Limit("it", None, low=1.0).verdict() == rounding.MISSING
    assert Limit("it", Interval(2.0, None, None, 2), high=1.0).verdict() == rounding.MISSING


def test_the_table_says_what_was_measured_and_what_is_allowed() -> None:
    assert limits.table([Limit("speed", Interval(0.5, 0.4, 0.6, 8), low=0.95)]) == [
        "| | measured | limit | |",
        "| --- | ---: | --- | --- |",
        "| speed | 0.50 [0.40, 0.60] | at least 0.95 | missed |",
    ]
