"""The screening of `explain --factors` as tables: every factor with its changes, the one that decides first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loam_lab.model import words
from loam_lab.presenting.report import rounding
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.rounding import MISSING
from loam_lab.presenting.report.view import Study, number


def tables(study: Study) -> list[Table]:
    """A table for each case; none for a result that is no screening."""
    return [_table(case) for case in study.raw.get("factors") or []]


def sentences(study: Study) -> list[str]:
    """What each case comes to, in words."""
    return [str(text) for case in study.raw.get("factors") or [] for text in case.get("text") or []]


def _table(case: Mapping[str, Any]) -> Table:
    rows = []
    for factor in case.get("factors") or []:
        for level in factor.get("levels") or []:
            middle, low, high = (number(level.get(key)) for key in ("estimate", "low", "high"))
            rows.append((
                f"{factor.get('factor')}={level.get('value')}", str(factor.get("was") or MISSING),
                rounding.ratio(middle, low, high), rounding.interval(middle, low, high),
                words.marked(str(level.get("verdict") or MISSING), bool(level.get("rough"))),
            ))  # fmt: skip
    baseline = str(case.get("baseline") or "the base")
    columns = (
        Column("Changed"), Column("Was"), Column(f"× {baseline}", numeric=True), Column("95 % interval", numeric=True),
        Column("Verdict"),
    )  # fmt: skip
    metric = words.metric(str(case.get("metric") or ""))
    return Table(f"{case.get('title') or ''}: {metric} with one factor changed", columns, tuple(rows))
