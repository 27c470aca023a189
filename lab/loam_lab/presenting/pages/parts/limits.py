"""A table of limits: ratios that a page's subject has to keep, each judged by its whole interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loam_lab.judging.statistics.intervals import Interval
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.report import rounding


@dataclass(frozen=True)
class Limit:
    """A ratio and what it has to be.

    what: in words; low, high: the least, or the most, that it may be
    """

    what: str
    ratio: Interval | None
    low: float | None = None
    high: float | None = None

    def row(self) -> str:
        """Of the table."""
        words = f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"
        return f"| {self.what} | {paired.text_of(self.ratio)} | {words} | {self.verdict()} |"

    def verdict(self) -> str:
        """Of the whole interval: a part of it on either side decides nothing."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None:
            return rounding.MISSING
        if self.low is not None:
            return "met" if self.ratio.low >= self.low else "missed" if self.ratio.high < self.low else "undecided"
        assert self.high is not None
        return "met" if self.ratio.high <= self.high else "missed" if self.ratio.low > self.high else "undecided"


def table(limits: Sequence[Limit]) -> list[str]:
    """The table's lines."""
    return ["| | measured | limit | |", "| --- | ---: | --- | --- |", *(limit.row() for limit in limits)]
