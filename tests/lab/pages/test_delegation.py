"""docs/performance/delegation.md: schemes, allocators, turns and shares, lines."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.presenting.pages import delegation

BLOCKS = 8


def cell(allocator: str, sync: str, threads: int, rate: float, machine: str = "host", **more: float) -> dict[str, Any]:
    metrics = {"ops_per_s": rate, **more}
    factors = {"allocator": allocator, "sync": sync, "workload": "queue", "threads": threads, "machine": machine}
    return {
        "copy": 0, "factors": factors, "parameters": {},
        "metrics": {name: {"estimate": 0.0, "values": [value] * BLOCKS} for name, value in metrics.items()},
    }  # fmt: skip


def line(pattern: str, ns: float) -> dict[str, Any]:
    factors = {"allocator": "glibc", "sync": "none", "workload": "lines", "threads": 2, "machine": "host"}
    return {
        "copy": 0,
        "factors": factors,
        "parameters": {"pattern": pattern},
        "metrics": {"op_ns": {"estimate": 0.0, "values": [ns]}},
    }


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cells": cells, "baseline": "glibc", "blocks": BLOCKS, "created_utc": "2026-01-02T03:04:05Z",
        "machine": {"cpu": "made up", "cores": 2, "kernel": "6"},
    }  # fmt: skip


CELLS = [
    cell("glibc", "cc-synch", 2, 10e6, run_length=4.0, least_share=0.5, dequeue_p99_ns=900.0),
    cell("bump", "cc-synch", 2, 20e6),
    cell("glibc", "ttas", 2, 30e6, run_length=20.0, least_share=0.25),
    cell("bump", "ttas", 2, 30e6),
    line("own", 2.0),
    line("pass", 60.0),
]


def rows(text: str, title: str) -> list[str]:
    part = text.split(f"## {title}")[1].split("\n## ")[0]
    return [row for row in part.splitlines() if row.startswith("|")][2:]


def test_schemes_are_compared_under_each_allocator_and_allocators_under_each_scheme() -> None:
    text = delegation.page(typed(made(CELLS)))
    assert rows(text, "Schemes under each allocator, 2 threads")[0].startswith("| cc-synch | 10.0 M/s | 20.0 M/s |")
    assert rows(text, "Schemes under each allocator, 2 threads")[1].startswith("| ttas | **3.00")
    schemes = rows(text, "Allocators under each scheme, 2 threads")
    assert [row.split(" | ")[0] for row in schemes] == ["| glibc", "| bump"]
    assert schemes[1].startswith("| bump | **2.00")


def test_what_the_paper_left_out_is_shown_under_the_baseline() -> None:
    assert rows(delegation.page(typed(made(CELLS))), "Turns, shares and latency, 2 threads") == [
        "| cc-synch | 4.00 | 0.500 | 900 ns |",
        "| ttas | 20.0 | 0.250 | – |",
    ]


def test_a_line_has_its_time() -> None:
    assert rows(delegation.page(typed(made(CELLS))), "A cache line") == ["| own | 2.00 ns |", "| pass | 60.0 ns |"]
    assert "A cache line" not in delegation.page(typed(made(CELLS[:4])))


def test_a_simulated_machine_has_tables_of_its_own() -> None:
    simulated = [cell("glibc", "cc-synch", 2, 5e6, "sim:two"), cell("glibc", "ttas", 2, 20e6, "sim:two")]
    text = delegation.page(typed(made([*CELLS, *simulated])))
    assert rows(text, "Schemes under each allocator, 2 threads\n") == rows(
        delegation.page(typed(made(CELLS))), "Schemes under"
    )
    assert rows(text, "Schemes under each allocator, 2 threads, sim:two")[0].startswith("| cc-synch | 5.00 M/s |")
    assert rows(text, "Schemes under each allocator, 2 threads, sim:two")[1].startswith("| ttas | **4.00")


def test_repeated_runs_of_the_baseline_do_not_count() -> None:
    copy = {**cell("glibc", "ttas", 2, 1e6), "copy": 1}
    assert delegation.page(typed(made([*CELLS, copy]))) == delegation.page(typed(made(CELLS)))


def test_another_result_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\./loam study run delegation makes one"):
        delegation.page(typed(made(CELLS[:2])))


def judged(
    group: str, sync: str, threads: int, rate: float, workload: str = "counter", **parameters: Any
) -> dict[str, Any]:
    made_up = cell("glibc", sync, threads, rate)
    return {
        **made_up,
        "group": group,
        "parameters": parameters,
        "factors": {**made_up["factors"], "workload": workload},
    }


LIMITS = [
    judged("lines", "none", 2, 20e6, workload="lines", pattern="pass"),
    judged("round-trip", "server", 1, 9e6, in_flight=1),
    judged("round-trip", "server", 1, 20e6, in_flight=16),
    judged("alone", "cc-synch", 1, 30e6),
    judged("alone", "mutex", 1, 33e6),
    judged("crowd", "mcs", 2, 5e6),
    judged("crowd", "mcs", 8, 2e6),
    judged("crowd", "cc-synch", 2, 5e6),
    judged("crowd", "cc-synch", 8, 3e6),
]


def test_limits_are_judged() -> None:
    in_groups = [{**one, "group": "queue"} for one in CELLS[:4]]
    assert rows(delegation.page(typed(made([*in_groups, *LIMITS]))), "Limits") == [
        "| a round trip through one line over two passes | 1.111 [1.111, 1.111] | at most 1.15 | met |",
        "| rate with 16 requests in flight over one | 2.222 [2.222, 2.222] | at least 3 | missed |",
        "| `cc-synch` over a mutex, uncontended | 1.100 [1.100, 1.100] | at most 1.2 | met |",
        "| `mcs`: rate of 8 threads over 2 | 0.400 [0.400, 0.400] | at least 0.5 | missed |",
        "| `cc-synch`: rate of 8 threads over 2 | 0.600 [0.600, 0.600] | at least 0.5 | met |",
    ]


def test_what_was_not_measured_has_no_limit() -> None:
    assert "## Limits" not in delegation.page(typed(made(CELLS)))
    in_groups = [{**one, "group": "queue"} for one in CELLS[:4]]
    text = delegation.page(typed(made([*in_groups, *LIMITS[1:2], *LIMITS[3:4], *LIMITS[5:6]])))
    assert "## Limits" not in text
