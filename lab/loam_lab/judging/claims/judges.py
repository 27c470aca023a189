"""What an interval says of a limit: a comparison holds, fails, or is open.

Each judge takes two intervals of one value: the comparison's own, by which it holds, and the wider one that all comparisons of
its claim need together, by which it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loam_lab.judging.statistics.intervals import Interval

HOLDS, FAILS, OPEN = "holds", "fails", "open"
# What a comparison of an interval with a limit says: holds, fails, or open.
Judge = Callable[["Interval", "Interval"], str]


def above(limit: float, margin: float = 0.0) -> Judge:
    """Whether a value is above a limit. margin: how far from 1 a ratio may be and still count as 1"""
    return lambda one, apart: (
        HOLDS if one.low is not None and one.low > limit
        else FAILS if (apart.high is not None and apart.high <= limit) or _even(limit, apart, margin) else OPEN
    )  # fmt: skip


def under(limit: float, margin: float = 0.0) -> Judge:
    """Whether a value is below a limit. margin: as of above()"""
    return lambda one, apart: (
        HOLDS if one.high is not None and one.high < limit
        else FAILS if (apart.low is not None and apart.low >= limit) or _even(limit, apart, margin) else OPEN
    )  # fmt: skip


def _even(limit: float, apart: Interval, margin: float) -> bool:
    """Whether a ratio that is said to be above or below 1 was shown to be 1, as far as the study tells values apart."""
    if limit != 1.0 or apart.low is None or apart.high is None:
        return False
    return 1 - margin <= apart.low and apart.high <= 1 + margin


def within(low: float, high: float) -> Judge:
    """Whether a value lies in a band, to which its ends belong."""

    def judge(one: Interval, apart: Interval) -> str:
        if one.low is not None and one.high is not None and low <= one.low and one.high <= high:
            return HOLDS
        outside = apart.low is not None and apart.high is not None and (apart.high < low or apart.low > high)
        return FAILS if outside else OPEN

    return judge
