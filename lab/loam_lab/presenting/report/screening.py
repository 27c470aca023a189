"""The screening of `explain --factors` as tables: every factor with its changes, the one that decides first."""

from __future__ import annotations

from loam_lab.model import words
from loam_lab.model.result import Screening
from loam_lab.presenting.report import rounding
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.rounding import MISSING
from loam_lab.presenting.report.view import Study


def tables(study: Study) -> list[Table]:
    """A table for each case; none for a result that is no screening."""
    return [_table(case) for case in study.raw.factors or ()]


def sentences(study: Study) -> list[str]:
    """What each case comes to, in words."""
    return [text for case in study.raw.factors or () for text in case.text]


def _table(case: Screening) -> Table:
    rows = []
    for factor in case.factors:
        for level in factor.levels:
            rows.append((
                f"{factor.factor}={level.value}", factor.was or MISSING, *rounding.spread(level),
                words.marked(level.verdict or MISSING, level.rough),
            ))  # fmt: skip
    baseline = case.baseline or "the base"
    columns = (
        Column("Changed"), Column("Was"), Column(f"× {baseline}", numeric=True), Column("95 % interval", numeric=True),
        Column("Verdict"),
    )  # fmt: skip
    metric = words.metric(case.metric)
    return Table(f"{case.title}: {metric} with one factor changed", columns, tuple(rows))
