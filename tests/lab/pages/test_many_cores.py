"""docs/performance/many-cores.md: the default and the best safe one beside what is not safe, and what scales."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from typed import typed

from loam_lab.model.result import Result
from loam_lab.presenting.pages import many_cores

BLOCKS = 3


def cell(
    workload: str, sync: str, threads: int, rate: float, metric: str = "ops_per_s", **parameters: Any
) -> dict[str, Any]:
    return {
        "copy": 0, "parameters": parameters, "metrics": {metric: {"estimate": 0.0, "values": [rate] * BLOCKS}},
        "factors": {
            "workload": workload, "allocator": "loam", "sync": sync, "threads": threads, "machine": "sim:many-128"
        },
    }  # fmt: skip


def sets(sync: str, rates: dict[int, float], percent: int = 20, **parameters: Any) -> list[dict[str, Any]]:
    return [
        cell("intset", sync, threads, rate, structure="hash", update_percent=percent, **parameters)
        for threads, rate in rates.items()
    ]


def made(cells: list[dict[str, Any]]) -> Result:
    return typed({
        "syncs": [{"name": name, "kind": "transactional"} for name in ("auto", "dctl", "two-phase")], "cells": cells,
        "baseline": "loam", "blocks": BLOCKS, "created_utc": "2026-01-02T03:04:05Z", "commands": ["./loam run it"],
        "machine": {"cpu": "made up", "cores": 2, "kernel": "6.1"},
    })  # fmt: skip


CELLS = [
    *sets("auto", {1: 10e6, 16: 40e6, 64: 12e6}),
    *sets("dctl", {1: 12e6, 16: 80e6, 64: 100e6}, privatization="none"),
    *sets("dctl", {1: 9e6, 16: 30e6, 64: 55e6}, privatization="shared"),
    *sets("two-phase", {1: 9e6, 16: 50e6, 64: 60e6}),
    *sets("auto", {1: 11e6, 64: 50e6}, percent=60),
    *sets("dctl", {1: 12e6, 64: 100e6}, percent=60, privatization="none"),
    cell("intset", "auto", 1, 3e6, structure="tree", update_percent=20),
    cell("threadtest", "none", 1, 2e6, "pairs_per_s"), cell("threadtest", "none", 64, 64e6, "pairs_per_s"),
    cell("xmalloc", "none", 2, 2e6), cell("xmalloc", "none", 64, 48e6),
    cell("queue", "mcs", 2, 9e6), cell("queue", "mcs", 64, 3e6), cell("queue", "cc-synch", 64, 5e6),
]  # fmt: skip


def test_levels_that_all_sets_have_are_said_once() -> None:
    others = [
        one
        for one in CELLS
        if one["parameters"].get("structure") == "tree" or one["parameters"].get("update_percent") == 60
    ]
    alone = [one for one in CELLS if one not in others]
    assert "All sets are of `structure=hash` and `update_percent=20`." in many_cores.page(made(alone))
    assert "All sets are of" not in many_cores.page(made(CELLS))


def test_a_limit_knows_the_levels_that_all_sets_have() -> None:
    def of_hash(percent: int) -> list[dict[str, Any]]:
        modes = {"none": 100e6, "shared": 20e6}
        unsafe = [one for mode, rate in modes.items() for one in sets("dctl", {64: rate}, percent, privatization=mode)]
        return [*sets("auto", {64: 40e6}, percent), *unsafe]

    assert "| intset | 64 | **0.40** (0.45) |" in many_cores.page(made(of_hash(20)))
    assert "| intset | 64 | 0.40 (0.35) |" in many_cores.page(made(of_hash(60)))
    assert "| intset 60 % | 64 | 0.40 (0.35) |" in many_cores.page(made([*of_hash(20), *of_hash(60)]))


def test_the_page_says_over_how_many_seeds() -> None:
    assert "operations a second, medians over 3 seeds. *Unsafe*" in many_cores.page(made(CELLS))
    rarely = copy.deepcopy(CELLS)
    for one in rarely:
        if one["factors"]["workload"] == "intset":
            one["metrics"]["ops_per_s"]["values"] = one["metrics"]["ops_per_s"]["values"][:1]
    assert "operations a second, of sets medians over 1 seed, of the rest over 3. *Unsafe*" in many_cores.page(
        made(rarely)
    )


def test_the_fastest_safe_one_is_bold_and_the_unsafe_one_never() -> None:
    text = many_cores.page(made(CELLS))
    table = text.split("### intset hash 20 %")[1].split("###")[0]
    assert "| auto | **10.0** | 40.0 | 12.0 |" in table
    assert "| two-phase | 9.00 | **50.0** | **60.0** |" in table
    assert "| dctl (none) | 12.0 | 80.0 | 100 |" in table


def test_the_default_is_held_against_what_is_asked_of_it() -> None:
    text = many_cores.page(made(CELLS))
    assert "| intset hash 20 % | 16 | 0.50 (0.5) | two-phase | 0.62 | dctl (none) |" in text
    assert "| intset hash 20 % | 64 | **0.12** (0.45) | two-phase | 0.60 | dctl (none) |" in text
    assert "| intset hash 60 % | 64 | 0.50 (0.35) | auto | 0.50 | dctl (none) |" in text
    assert "| intset hash 20 % | **0.30** | 64 |" in text
    assert "64 threads: the default, auto, has 0.12 times the rate of the best unsafe one, dctl (none)" in text


def test_allocation_is_set_against_a_linear_course() -> None:
    text = many_cores.page(made(CELLS))
    assert "| threadtest | 2.00 M/s | 1.0 | – | **0.50** |" in text
    assert "| xmalloc | 2.00 M/s | – | 1.0 | 0.75 |" in text
    assert "at least 0.50 of a linear course (threadtest)" in text
    assert "| mcs | **9.00** | 3.00 |" in text and "| cc-synch | – | **5.00** |" in text


def test_the_picture_has_a_panel_for_each_set_with_some_updates() -> None:
    picture = many_cores.picture(made(CELLS))
    assert "intset hash 20 %" in picture and "intset hash 60 %" not in picture
    assert "two-phase, threads 64: 60.0 M/s" in picture
    alone = many_cores.picture(made([one for one in CELLS if one["parameters"].get("update_percent") == 20]))
    assert "dctl (none), threads 64: 100 M/s" in alone, "a share of updates that is not varied is no part of the name"


def test_a_result_without_unsafe_sets_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no sets under auto and without safety"):
        many_cores.page(made(CELLS[:3]))
