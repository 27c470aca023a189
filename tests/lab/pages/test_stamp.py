"""docs/performance/stamp.md: speed-ups over two bases, best over worst, causes."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.presenting.pages import stamp

BLOCKS = 8


def cell(
    workload: str, allocator: str, sync: str, threads: int, rate: float, *, shadow: bool = False, word: int = 0,
    machine: str = "host",
) -> dict[str, Any]:  # fmt: skip
    factors = {"allocator": allocator, "sync": sync, "workload": workload, "threads": threads, "machine": machine}
    document: dict[str, Any] = {
        "copy": 0, "factors": factors,
        "parameters": {"size": "small"} | ({"mapping": "shadow"} if shadow else {}),
        "metrics": {"ops_per_s": {"estimate": 0.0, "values": [rate] * BLOCKS}},
    }  # fmt: skip
    if sync != "sequential":
        document["blame"] = {"attempts": 1000, "aborts_same_word": word, "aborts_other_block": 0}
    return document


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "abort_causes": [
            {"name": "same_word", "words": "same word"},
            {"name": "other_block", "words": "another block"},
        ],
        "cells": cells,
        "created_utc": "2026-01-02T03:04:05Z",
        "machine": {"cpu": "made up", "cores": 2, "kernel": "6"},
    }


CELLS = [
    cell("genome", "glibc", "sequential", 1, 100.0),
    cell("genome", "tbb", "sequential", 1, 200.0),
    cell("genome", "glibc", "etl-wb", 2, 150.0, word=30),
    cell("genome", "tbb", "etl-wb", 2, 180.0, word=10),
    cell("genome", "glibc", "etl-wb", 2, 150.0, shadow=True, word=500),
    cell("genome", "tbb", "etl-wb", 2, 165.0, shadow=True),
]


def test_speed_ups_are_over_the_own_and_over_the_best_sequential_rate() -> None:
    own, best = stamp.page(typed(made(CELLS))).split("over the best sequential rate")
    assert "| glibc | 1.500 " in own and "| tbb | 0.900 " in own
    assert "| glibc | 0.750 " in best and "| tbb | 0.900 " in best


def test_best_over_worst_before_and_after() -> None:
    text = stamp.page(typed(made(CELLS)))
    assert "| genome | 2 | tbb over glibc 1.200 " in text and "| tbb over glibc 1.100 " in text
    assert "| geometric mean of those with both | | 1.200 " in text


def test_causes_are_of_runs_with_shared_records() -> None:
    text = stamp.page(typed(made(CELLS)))
    assert "| application | threads | same word |" in text, "a cause that nothing aborted for is no column"
    assert "| genome | 2 | 2.00 % |" in text


def test_a_simulated_machine_has_tables_of_its_own() -> None:
    simulated = [
        cell("genome", "glibc", "sequential", 1, 10.0, machine="sim:eight"),
        cell("genome", "glibc", "etl-wb", 2, 70.0, word=900, machine="sim:eight"),
    ]
    host, other = stamp.page(typed(made([*CELLS, *simulated]))).split("sequential rate, sim:eight", 1)
    assert "| glibc | 1.500 " in host and "| glibc | 7.000 " in other
    assert "| genome | 2 | 2.00 % |" in host and "| genome | 2 | 90.0 % |" in other


def test_a_copy_takes_no_part() -> None:
    copy = cell("genome", "glibc", "etl-wb", 2, 900.0) | {"copy": 1}
    assert stamp.page(typed(made([*CELLS, copy]))) == stamp.page(typed(made(CELLS)))


def test_a_result_without_sequential_runs_is_refused() -> None:
    with pytest.raises(ValueError, match="no application with sequential runs"):
        stamp.page(typed(made(CELLS[2:])))
