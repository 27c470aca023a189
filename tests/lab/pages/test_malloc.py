"""docs/performance/malloc.md: ours beside peers, limits, memory and fragmentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.model.schema import SCHEMA
from loam_lab.presenting.pages import malloc

DAY = [1e6 * (1 + 0.01 * block) for block in range(10)]


def cell(
    allocator: str, workload: str, threads: int, factor: float, rss: float = 1.0, **parameters: Any
) -> dict[str, Any]:
    metrics = {
        "ops_per_s": {"estimate": 0.0, "values": [factor * value for value in DAY]},
        "rss_peak_bytes": {"estimate": 0.0, "values": [rss * 2**20] * 10},
    }
    return {
        "copy": 0, "factors": {"workload": workload, "allocator": allocator, "sync": "etl-wb", "threads": threads},
        "parameters": parameters, "metrics": metrics,
    }  # fmt: skip


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    machine = {"cpu": "made up", "cores": 2, "kernel": "6.1"}
    return {"cells": cells, "blocks": 10, "created_utc": "2026-01-02T03:04:05Z", "machine": machine}


def test_ours_is_set_beside_the_peer_with_the_best_mean_and_beside_the_fastest_of_each_case() -> None:
    cells = [
        cell("loam", "larson", 1, 1), cell("a", "larson", 1, 0.5), cell("b", "larson", 1, 0.8),
        cell("loam", "sh6", 1, 1), cell("a", "sh6", 1, 1.25), cell("b", "sh6", 1, 0.5),
    ]  # fmt: skip
    text = malloc.page(typed(made(cells)))
    assert "best geometric mean over both thread counts is **a**: loam's rate is\n1.265" in text
    assert "| larson | 1 | 2.000 [2.000, 2.000] | b | 1.250 [1.250, 1.250] |" in text
    assert "| sh6 | 1 | 0.800 [0.800, 0.800] (over the limit) | a | 0.800 [0.800, 0.800] |" in text
    assert "| geometric mean | | 1.265 [1.265, 1.265] | | 1" in text
    assert "| a | 0.500 [0.500, 0.500] | **1.250 [1.250, 1.250]** |" in text


def test_false_sharing_passes_or_fails_and_takes_no_part_in_means() -> None:
    cells = [
        cell("loam", "larson", 2, 1), cell("a", "larson", 2, 0.5),
        cell("loam", "cache-scratch", 2, 0.97), cell("a", "cache-scratch", 2, 1),
        cell("loam", "cache-thrash", 2, 0.9), cell("a", "cache-thrash", 2, 1),
    ]  # fmt: skip
    text = malloc.page(typed(made(cells)))
    assert "| cache-scratch | 2 | a | 0.970 [0.970, 0.970] | passed |" in text
    assert "| cache-thrash | 2 | a | 0.900 [0.900, 0.900] | failed |" in text
    assert "loam's rate is\n2.000" in text


def test_memory_names_the_three_fastest_peers() -> None:
    rates = {"a": 1.0, "b": 0.9, "c": 0.8, "d": 0.7}
    cells = [
        cell("loam", "larson", 1, 1, rss=2),
        *(cell(name, "larson", 1, rate, rss=3) for name, rate in rates.items()),
    ]
    text = malloc.page(typed(made(cells)))
    assert "| a (fast) | 1.500 [1.500, 1.500] |" in text and "| c (fast) |" in text and "| d | 1.500" in text


def test_parameters_that_vary_are_in_the_name_and_fragmentation_has_a_table() -> None:
    cells = [cell(name, "malloc-loop", 1, 1, size=size, blocks=9) for name in ("loam", "a") for size in (16, 1024)]
    for name, value in (("loam", 1.5), ("a", 2.5)):
        cells.append(cell(name, "fragmentation", 1, 1))
        cells[-1]["metrics"] = {"fragmentation": {"estimate": 0.0, "values": [value] * 3}}
    text = malloc.page(typed(made(cells)))
    assert "| malloc-loop 16 | 1 |" in text and "| malloc-loop 1024 | 1 |" in text
    assert "| loam | 1.5" in text.split("## Fragmentation")[1] and "| a | 2.5" in text.split("## Fragmentation")[1]


def test_threadtests_pairs_are_a_rate_and_fragmentation_with_its_few_blocks_is_none() -> None:
    cells = [
        cell(name, workload, 1, rate) for name, rate in (("loam", 1), ("a", 0.5)) for workload in ("sh6", "threadtest")
    ]
    for one in cells:
        if one["factors"]["workload"] == "threadtest":
            one["metrics"]["pairs_per_s"] = one["metrics"].pop("ops_per_s")
    for name in ("loam", "a"):
        cells.append(cell(name, "fragmentation", 1, 1))
        cells[-1]["metrics"] = {
            metric: {"estimate": 0.0, "values": [2.0] * 3}
            for metric in ("fragmentation", "ops_per_s", "rss_peak_bytes")
        }
    text = malloc.page(typed(made(cells)))
    assert "| | sh6 | threadtest | geometric mean |" in text
    assert "| a | 0.500 [0.500, 0.500] | 0.500 [0.500, 0.500] | 0.500 [0.500, 0.500] |" in text
    assert "| geometric mean | | 2.000 [2.000, 2.000] |" in text
    assert "| a (fast) | 1.000 [1.000, 1.000] |" in text


def latency_cells(longest: dict[str, float], floor_us: float = 5) -> list[dict[str, Any]]:
    """Times of one thread that differ between allocators in the longest call of malloc only, and a rate to set beside."""
    cells = []
    for name, us in longest.items():
        cells += [cell(name, "larson", 1, 1), cell(name, "malloc-latency", 1, 7)]
        times = {f"{call}_{time}_ns": 30.0 for call in ("malloc", "free") for time in ("p50", "p99", "p999", "max")}
        known = {**times, "malloc_max_ns": us * 1e3, "free_p50_ns": 20.0}
        known |= {"clock_cost_ns": 20.03, "clock_step_ns": 10.01, "clock_max_ns": floor_us * 1e3}
        known |= {"preempted": 3, "timed_calls": 1000}
        cells[-1]["metrics"] |= {metric: {"estimate": 0.0, "values": [value] * 10} for metric, value in known.items()}
    return cells


def test_latency_has_a_table_and_ours_beside_the_second_of_the_peers() -> None:
    text = malloc.page(typed(made(latency_cells({"loam": 50, "a": 900, "b": 40, "c": 60}))))
    section = text.split("## Latency")[1].split("\n## ")[0]
    assert "| loam | 30.0 | 30.0 | 30.0 | 50.0 | 20.0 | 30.0 | 30.0 | 0.0300 |" in section
    assert "| a | 30.0 | 30.0 | 30.0 | 900 |" in section
    assert "| malloc longest, µs | 1 | 50.0 | c | 60.0 | at or below | 0.833 [0.833, 0.833] |" in section
    assert "Reading the clock takes 20.0 ns" in section and "resolution is 10.0 ns." in section
    assert "40\u202f000 calls were timed. 120 were left out" in section
    assert "No call at all, timed as often, took at most: 5.00 µs with 1 thread." in section
    assert text.count("malloc-latency") == 1, "its rate, with the clock in it, is compared nowhere"


def test_latency_over_the_second_of_the_peers_is_called_so_and_a_rounding_is_not() -> None:
    def verdict(ours: float, *peers: float, floor: float = 5) -> str:
        rows = malloc.page(typed(made(latency_cells({"loam": ours, "a": peers[0], "b": peers[1]}, floor)))).splitlines()
        return next(row for row in rows if row.startswith("| malloc longest")).split(" | ")[5]

    assert verdict(50.2, 50, 10) == "above"
    assert verdict(50.00001, 50, 10) == "at or below"
    assert verdict(30, 50, 10) == "at or below"
    assert verdict(51, 50, 10, floor=52) == "above, but so is no call at all"
    assert verdict(51, 50, 10, floor=50.5) == "above"


def test_latency_that_may_be_chance_is_called_so() -> None:
    cells = latency_cells({"loam": 60, "a": 50, "b": 10})
    ours = next(one for one in cells if one["factors"]["workload"] == "malloc-latency")
    ours["metrics"]["malloc_max_ns"]["values"] = [30e3, 61e3, 62e3, 40e3, 63e3, 64e3, 35e3, 65e3, 66e3, 45e3]
    row = next(row for row in malloc.page(typed(made(cells))).splitlines() if row.startswith("| malloc longest"))
    assert row.split(" | ")[5] == "above, not significant"


def test_latency_of_a_single_peer_has_no_second() -> None:
    text = malloc.page(typed(made(latency_cells({"loam": 50, "a": 900}))))
    assert "| a | 30.0 | 30.0 | 30.0 | 900 |" in text and "second best peer" not in text


def test_a_result_without_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"schema": SCHEMA, **made([cell("a", "larson", 1, 1)])}))
    with pytest.raises(LoamError) as refused:
        malloc.main([str(tmp_path), "--page", str(tmp_path / "p.md")])
    assert "./loam study run mallocs does" in refused.value.line()
    (tmp_path / "result.json").write_text(
        json.dumps({"schema": SCHEMA, **made([cell(name, "larson", 1, 1) for name in ("a", "loam")])})
    )
    assert malloc.main([str(tmp_path), "--page", str(tmp_path / "p.md")]) == 0
    assert (tmp_path / "p.md").read_text().startswith("# Speed and memory of malloc\n")
