"""Figures where something is missing: a gap ends no table, a metric that is not the first, all that an entry holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import claimed
import pytest
from test_paper_figures import FIVE, figure, made, speed, table

from loam_lab.judging.claims import figures
from loam_lab.judging.claims.values import Evidence, names
from loam_lab.judging.statistics.data import Campaign
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Ours, Selection
from loam_lab.model.result import Value

Made = Callable[[Cell, int], dict[str, float] | None]


def three(values: Made, threads: tuple[int, ...] = (1, 2, 4)) -> Evidence:
    """A campaign of allocators a, b and c on a machine of four cores."""
    groups = [
        {"name": "list", "workload": "intset", "sync": ["stm"], "threads": threads, "parameters": {"shift": [5, 4]}}
    ]
    study = claimed.study([], groups=groups, allocators=["a", "b", "c"])
    return Evidence(claimed.campaign(study, values, cores=4))


def rows(make: Any, evidence: Evidence, **ours: Any) -> list[list[Any]]:
    grid = make(evidence, {}, Ours.model_validate({"select": FIVE, "rows": "threads", **ours}))[1]
    return [[one.estimate if isinstance(one, Value) else one for one in row] for row in grid]


# ---- entries


def test_an_entry_holds_the_papers_table_and_ours() -> None:
    campaign = made({"select": {**FIVE, "threads": 1}}, kind="bar")
    assert claimed.ledger(campaign, claimed.entries(campaign))["paper_figures"] == [{
        "id": "table 9", "title": "t", "kind": "bar", "paper": {"columns": ["a"], "rows": [[1]], "note": "n"},
        "ours": {"columns": ["allocator", "value"], "rows": [["a", 200], ["b", 100]]}, "groups": ["list"],
    }]  # fmt: skip


def test_a_picture_is_no_table_and_a_table_no_picture() -> None:
    both = [{"kind": "records", "select": {**FIVE, "threads": 2}}, {"select": {**FIVE, "threads": 1}}]
    campaign = made(*both, kind="placement")
    row = {"kind": "series", "name": "blocks", "columns": ["record", "usable_bytes", "address", "thread"],
           "rows": [[9, 16, 4096, 1]]}  # fmt: skip
    for runs in campaign.timed.values():
        runs[0].others = ({"kind": "site"}, {"kind": "series", "name": "other"}, row)
    ledger = claimed.ledger(campaign, claimed.entries(campaign))
    assert ledger["paper_figures"][0]["ours"]["columns"] == ["allocator", "value"]
    assert ledger["placements"] == [
        {
            "allocator": allocator, "kind": "records", "title": "t", "figure": "table 9", "threads": 2,
            "bytes_per_line": 64, "shift": 5, "blocks": [{"thread": 1, "address": 4096, "bytes": 16, "record": 9}],
        }
        for allocator in "ab"
    ]  # fmt: skip


# ---- gaps


def test_a_level_without_two_allocators_or_without_a_ratio_ends_no_table() -> None:
    def values(cell: Cell, block: int) -> dict[str, float] | None:
        if cell.threads == 1 and cell.allocator != "b":
            return None
        return {"operations": 0 if cell.threads == 2 else {"a": 4, "b": 1, "c": 2}[cell.allocator]}

    assert rows(figures._extremes, three(values)) == [[4, "a", "b", pytest.approx(4)]]


def test_an_allocator_that_failed_hides_none_behind_it() -> None:
    def values(cell: Cell, block: int) -> dict[str, float] | None:
        return None if cell.allocator == "a" else {"operations": {"b": 3, "c": 6}[cell.allocator] / cell.threads}

    evidence = three(values)
    best = rows(figures._extremes, evidence)
    assert best == [[threads, "c", "b", pytest.approx(2)] for threads in (1, 2, 4)]
    assert rows(figures._reach, evidence) == [["a", None], ["b", 2], ["c", 2]]
    assert rows(figures._extremes, evidence, select={**FIVE, "allocator": ["a", "b"]}) == [], "one alone has no rival"


def test_reach_is_by_the_first_metric_that_is_named() -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": 100, "room_bytes": 4096 // cell.threads**2}

    evidence = three(values)
    assert rows(figures._reach, evidence) == [[name, 4] for name in "abc"], "the workload's own without one"
    by_room = rows(figures._reach, evidence, metrics=["room_bytes", "ops_per_s"])
    assert by_room == [[name, 1] for name in "abc"]
    assert rows(figures._reach, evidence, metrics=["ops_per_s", "room_bytes"])[0] == ["a", 4]
    columns, _ = figures._reach(evidence, {}, Ours.model_validate({"select": FIVE, "rows": "threads", "share": 0.25}))
    assert columns == ["allocator", "threads up to which 25 % of the rate is kept"]
    assert rows(figures._reach, evidence, metrics=["room_bytes"], share=0.25) == [[name, 2] for name in "abc"]


def test_over_a_parameter_what_failed_everywhere_is_a_gap() -> None:
    over = {"select": {"group": "list", "threads": 1, "over": "shift"}}

    def values(cell: Cell, block: int) -> dict[str, float] | None:
        return speed(cell, block) if cell.allocator == "a" else None

    assert table(over, values=values)[1] == [["a", 150], ["b", None]]
    assert table(over, values=lambda cell, block: None)[1] == [["a", None], ["b", None]]


def test_of_several_levels_that_nothing_chooses_among_the_first_is_shown() -> None:
    ours = Ours.model_validate({"select": {"group": "list", "threads": 1}})
    campaign = made({"select": FIVE, "rows": "threads"})
    grid = figures._grid(Evidence(campaign), claimed.entries(campaign), ours)
    assert grid == (["allocator", "value"], [["a", 200], ["b", 100]])


def test_the_columns_of_a_table_without_any_run_are_there() -> None:
    campaign: Campaign = made({"kind": "extremes", "select": FIVE, "rows": "threads"}, values=lambda cell, block: None)
    (shown,) = claimed.ledger(campaign, claimed.entries(campaign))["paper_figures"]
    assert shown["ours"] == {"columns": ["threads", "best", "worst", "times better"], "rows": []}
    assert figure()["ours"] == [] and figures._joined([(["x"], [])]) == (["x"], [])


# ---- which cells a selection names


@pytest.mark.parametrize(
    ("select", "named"),
    [
        ({}, True), ({"group": "other"}, False), ({"threads": 2}, True), ({"threads": 1}, False),
        ({"sync": "stm"}, True), ({"sync": "stm@far"}, True), ({"sync": "far"}, False), ({"sync": "st"}, False),
        ({"machine": "host"}, True), ({"machine": "twin"}, False), ({"allocator": ["b"]}, True),
        ({"parameters": {"shift": 5}}, True), ({"parameters": {"shift": "5"}}, True), ({"parameters": {"shift": 4}}, False),
        ({"parameters": {"size": 5}}, False), ({"parameters": {"shift": 5, "size": 1}}, False),
    ],
)  # fmt: skip
def test_a_cell_is_named_by_all_that_a_selection_fixes(select: dict[str, Any], named: bool) -> None:
    cell = Cell("list", "intset", "stm@far", "a", 2, (("shift", 5),), 0)
    assert names(Selection.model_validate({"group": "list", **select}), cell) == named
