"""Histograms added up over runs: which runs and records count, and what does not fit together."""

from __future__ import annotations

import dataclasses
from typing import Any

import claimed

from loam_lab.judging.statistics import histograms
from loam_lab.judging.statistics.data import Run
from loam_lab.model.result import Histogram

MADE = claimed.campaign(claimed.study([]), lambda cell, block: {"operations": 1}, blocks=1)
RUN = MADE.runs(MADE.cells[0])[0]
ADDED = Histogram([0, 8, 16], [1, 2, 3])


def run(*records: dict[str, Any], state: str = "ok") -> Run:
    return dataclasses.replace(RUN, others=records, state=state)


def line(counts: list[Any], bounds: list[int] | None = None, **changed: Any) -> dict[str, Any]:
    return {"kind": "histogram", "name": "sizes", "bounds": bounds or [0, 8, 16], "counts": counts, **changed}


def test_counts_of_good_runs_are_added_bar_by_bar() -> None:
    added = histograms.total([run(line([1, 2, 3])), run(line([10, 0, 5]), line([0, 0, 7]))], "sizes")
    assert added == Histogram([0, 8, 16], [11, 2, 15])
    assert histograms.total([run(line([1, 2, 3])), run(line([9, 9, 9]), state="failed")], "sizes") == ADDED


def test_without_such_a_record_there_is_none() -> None:
    assert histograms.total([], "sizes") is None
    assert histograms.total([run(), run(line([1, 2, 3]), state="failed")], "sizes") is None
    assert histograms.total([run(line([1, 2, 3], name="ages")), run(line([1, 2, 3], kind="series"))], "sizes") is None
    mixed = histograms.total([run(line([1, 2, 3], name="ages"), line([4, 5, 6]))], "sizes")
    assert mixed is not None and mixed.counts == [4, 5, 6]


def test_other_bounds_and_other_lengths_are_left_out() -> None:
    first = run(line([1, 2, 3]))
    for odd in (line([5, 5, 5], [0, 8, 32]), line([5, 5], [0, 8]), line([5, 5]), line([5, 5, 5, 5])):
        total = histograms.total([first, run(odd), first], "sizes")
        assert total == Histogram([0, 8, 16], [2, 4, 6])
    # The first one's bounds count, also where its counts do not fit them.
    assert histograms.total([run(line([5, 5])), first], "sizes") == ADDED


def test_a_count_of_a_foreign_program_may_be_text() -> None:
    assert histograms.total([run(line(["1", 2.0, 3]))], "sizes") == ADDED
