"""The search of `bench --search`, as tables: what each round tried and kept, and what the final decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loam_lab.presenting.report import rounding
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.view import Study, number


def tables(study: Study) -> list[Table]:
    """The rounds of the search and its final; none for a result without a search."""
    given = study.raw.get("search") or {}
    best = str(given.get("best") or "the best allocator as it is")
    rounds = []
    for one in given.get("rounds") or []:
        for tried in sorted(one.get("candidates") or [], key=_rank):
            name = str(tried.get("allocator", ""))
            rounds.append((name, str(one.get("round", "")), *_span(tried), "kept" if tried.get("kept") else ""))
    head = (Column("Settings"), Column("Round", numeric=True), Column(f"× {best}", numeric=True))
    span = Column("95 % interval", numeric=True)
    found = []
    if given.get("final"):
        rows = tuple(
            (str(one.get("allocator", "")), *_span(one.get("to_best") or {}), *_span(one.get("to_baseline") or {}))
            for one in given["final"]
        )
        base = Column(f"× {given.get('baseline') or 'baseline'}", numeric=True)
        found.append(Table("The final, with fresh runs", (head[0], head[2], span, base, span), rows))
    if rounds:
        found.append(Table("The rounds: they select, and prove nothing", (*head, span, Column("")), tuple(rounds)))
    return found


def _rank(one: Mapping[str, Any]) -> tuple[bool, float]:
    estimate = number(one.get("estimate"))
    return estimate is None, estimate or 0.0


def _span(one: Mapping[str, Any]) -> tuple[str, str]:
    middle, low, high = (number(one.get(key)) for key in ("estimate", "low", "high"))
    return rounding.ratio(middle, low, high), rounding.interval(middle, low, high)


def commands(study: Study) -> list[str]:
    """The command with the winning settings, and the one that checks it with fresh runs."""
    given = study.raw.get("search") or {}
    winner = given.get("winner") or {}
    return [str(text) for text in (winner.get("command"), given.get("check")) if text]
