"""docs/performance/gc.md: placements beside the control, its limits, and gains over logs in the heap."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.presenting.pages import gc


def cell(group: str, sync: str, rate: float, share: float, threads: int = 1, **parameters: Any) -> dict[str, Any]:
    metrics = {
        "transactions_per_s": {"estimate": 0.0, "values": [rate] * 6},
        "gc_cpu_share": {"estimate": 0.0, "values": [share] * 6},
    }
    return {
        "copy": 0, "group": group, "factors": {"workload": "gcbench", "allocator": "glibc", "sync": sync, "threads": threads},
        "parameters": {"size": 400} | parameters, "metrics": metrics,
    }  # fmt: skip


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    groups = [{"name": name, "title": f"The group {name}"} for name in dict.fromkeys(c["group"] for c in cells)]
    return {
        "cells": cells, "groups": groups, "blocks": 6, "created_utc": "2026-01-02T03:04:05Z",
        "machine": {"cpu": "made up", "cores": 2},
    }  # fmt: skip


EQUAL = [cell("equal", "gc-unlogged", 100, 0.57), cell("equal", "gc-dedicated", 97, 0.59)]


def test_the_control_is_one_and_dedicated_logs_are_held_to_both_limits() -> None:
    text = gc.page(typed(made(EQUAL)))
    assert "| gc-unlogged | 57 % | 1 |" in text
    assert "gc-dedicated: 2.0 points more than gc-unlogged; the limit is 3: passed." in text
    assert "0.970 of its rate; the limit is 0.95: passed." in text
    slow = [EQUAL[0], cell("equal", "gc-dedicated", 80, 0.61)]
    assert gc.page(typed(made(slow))).count("failed.") == 2


def test_the_work_of_the_collector_is_counted_beside_the_control() -> None:
    cells = [dict(one) for one in EQUAL]
    for one, full, copied in zip(cells, (5, 6), (10 << 20, 11 << 20), strict=True):
        counts = {
            "gc_full": {"estimate": 0.0, "values": [full] * 6},
            "gc_copied_bytes": {"estimate": 0.0, "values": [copied] * 6},
        }
        counts["log_memory_returned_bytes"] = {"estimate": 0.0, "values": [full << 20] * 6}
        one["metrics"] = one["metrics"] | counts
    text = gc.page(typed(made(cells)))
    assert "| full collections | 6.00 | 5.00 |" in text
    assert "| MiB copied | 11.0 | 10.0 |" in text
    assert "| MiB that logs gave back around full collections | 6.00 | 5.00 |" in text
    assert "minor" not in text.split("## What bounds")[0]
    assert "counted in a run" not in gc.page(typed(made(EQUAL)))


def test_gains_are_by_threads_and_by_the_parameters_that_differ() -> None:
    cells = [
        cell("bench7", sync, rate, share, threads, long=long)
        for long in ("on", "off")
        for threads in (1, 2)
        for sync, rate, share in (("gc-heap", 50, 0.6), ("gc-dedicated", 100, 0.3))
    ]
    text = gc.page(typed(made([*EQUAL, *cells])))
    assert "## The group bench7" in text
    rows = [line for line in text.splitlines() if line.startswith("| long ")]
    assert [row.split(" | ")[:4] for row in rows] == [
        [f"| long {long}", str(threads), "60 %", "30 %"] for long in ("off", "on") for threads in (1, 2)
    ]
    assert all(row.split(" | ")[4].startswith("2.0") for row in rows)
    assert "size" not in "".join(rows)


def test_copies_take_no_part_and_another_result_is_refused() -> None:
    assert "copied" not in gc.page(typed(made([*EQUAL, cell("equal", "copied", 1, 0.9) | {"copy": 1}])))
    with pytest.raises(ValueError, match="no GCBench with and without logs"):
        gc.page(typed(made([EQUAL[0]])))


def test_room_without_transactions_is_in_the_order_of_the_room() -> None:
    cells = [
        cell("headroom", sync, rate * percent, share, heap_percent=percent)
        for percent in (1000, 200)
        for sync, rate, share in (("gc-raw", 2, 0.7), ("gc-boehm", 1, 0.3))
    ]
    text = gc.page(typed(made([*EQUAL, *cells])))
    rows = [line for line in text.splitlines() if " | 70 % | 30 % | 2.0" in line]
    assert [row.split(" | ")[0] for row in rows] == ["| 2", "| 10"]
    assert "Room" not in gc.page(typed(made(EQUAL)))
