"""Runs of the same work whose results differ: which is the rule, which are marked, and what is no comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from loam_lab.judging.statistics import agreement
from loam_lab.model.cell import Cell

CELL = Cell("one", "kmeans", "stm", "base", 2, (("points", 5),), 0)
OTHER = replace(CELL, allocator="other")


@dataclass
class Made:
    """What agreement asks of a run."""

    cell: str
    block: int
    state: str = "ok"
    failure: str = ""
    detail: str = ""
    result: str | None = None


def made(cell: Cell, block: int, result: object, **changed: Any) -> Made:
    return Made(cell.key, block, result=str(result), **changed)


def judged(*runs: agreement.Judged, cells: tuple[Cell, ...] = (CELL, OTHER)) -> list[str]:
    agreement.judge(runs, {cell.key: cell for cell in cells}, {cell.group: "base" for cell in cells})
    return [run.state for run in runs]


def test_equal_results_are_left_alone_and_another_one_fails() -> None:
    runs = [made(OTHER, 0, "abc"), made(CELL, 0, "abc"), made(CELL, 1, "abc"), made(OTHER, 1, "abd")]
    assert judged(*runs) == ["ok", "ok", "ok", "failed"]
    assert (runs[3].failure, runs[3].detail) == ("verification", "its result differs from that under base in block 1")
    assert [(run.failure, run.detail) for run in runs[:3]] == [("", "")] * 3


def test_the_first_good_run_under_the_baseline_is_the_rule() -> None:
    # The first of all differs from it, and so does a later one of the baseline itself.
    assert judged(made(OTHER, 0, 1), made(CELL, 3, 2), made(CELL, 4, 1), made(OTHER, 4, 2)) == [
        "failed", "ok", "failed", "ok",
    ]  # fmt: skip
    later = [made(CELL, 0, 1, state="failed", failure="exit"), made(CELL, 1, 2), made(OTHER, 1, 1)]
    assert judged(*later) == ["failed", "ok", "failed"]
    assert later[0].failure == "exit", "what has failed is not judged"
    assert later[2].detail.endswith("under base in block 2")


def test_without_a_run_under_the_baseline_the_first_of_all_is_the_rule() -> None:
    third = replace(CELL, allocator="third")
    runs = [made(OTHER, 2, "x"), made(third, 2, "y"), made(third, 3, "x")]
    assert judged(*runs, cells=(CELL, OTHER, third)) == ["ok", "failed", "ok"]
    assert runs[1].detail == "its result differs from that under other in block 3"


def test_what_says_no_result_is_no_part_of_it() -> None:
    assert judged(made(CELL, 0, "x"), Made(OTHER.key, 0), Made(OTHER.key, 1)) == ["ok"] * 3
    assert judged(made(CELL, 0, "x"), made(replace(CELL, threads=9), 0, "y")) == ["ok", "ok"], "of no cell of the plan"


@pytest.mark.parametrize(
    "changed",
    [
        {"group": "two"}, {"machine": "sim:a"}, {"workload": "yada"}, {"sync": "lock"}, {"threads": 1},
        {"parameters": (("points", 6),)},
    ],
)  # fmt: skip
def test_other_work_may_have_another_result(changed: dict[str, Any]) -> None:
    other = replace(CELL, **changed)
    assert judged(made(CELL, 0, "x"), made(other, 0, "y"), cells=(CELL, other)) == ["ok", "ok"]


@pytest.mark.parametrize("changed", [{"allocator": "other"}, {"warmup_ms": 5}])
def test_an_allocator_and_a_warm_up_change_no_result(changed: dict[str, Any]) -> None:
    other = replace(CELL, **changed)
    assert judged(made(CELL, 0, "x"), made(other, 0, "y"), cells=(CELL, other)) == ["ok", "failed"]
    assert judged(made(CELL, 0, 7), made(other, 0, "7"), cells=(CELL, other)) == ["ok", "ok"], "compared as text"
