"""docs/performance/privatization.md: safe modes over the unsafe one, a section for each result."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.presenting.pages import privatization

BLOCKS = 8


def cell(workload: str, sync: str, mode: str, rate: float) -> dict[str, Any]:
    return {
        "copy": 0, "factors": {"workload": workload, "allocator": "glibc", "sync": sync, "threads": 2},
        "parameters": {"privatization": mode}, "metrics": {"ops_per_s": {"estimate": 0.0, "values": [rate] * BLOCKS}},
    }  # fmt: skip


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "syncs": [{"name": name, "kind": "transactional"} for name in ("etl-wb", "norec")], "cells": cells,
        "baseline": "glibc", "blocks": BLOCKS, "created_utc": "2026-01-02T03:04:05Z", "commands": ["./loam run it"],
        "machine": {"cpu": "made up", "cores": 2, "kernel": "6.1"},
    }  # fmt: skip


def both(workload: str, safe: float) -> dict[str, Any]:
    return made(
        [
            cell(workload, "etl-wb", "none", 10e6), cell(workload, "etl-wb", "commit", 4e6),
            cell(workload, "norec", "none", 9e6 * safe), cell(workload, "norec", "commit", 10e6 * safe),
        ]
    )  # fmt: skip


def test_each_result_has_its_section_and_ratios_are_over_the_unsafe_one() -> None:
    text = privatization.page([typed(both("tree", 0.9)), typed(both("genome", 1.2))])
    first, second = text.split("## genome")
    assert "## tree" in first
    assert "| etl-wb (none) | **10.0 M/s** | 1 |" in first and "| norec (commit) | 0.900 " in first
    assert "| norec (commit) | **1.200 [1.200, 1.200]** " in second
    assert "| etl-wb (commit) | 0.400 [0.400, 0.400] | 0.400: genome, 2 threads |" in second


def test_a_result_with_one_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="has not both modes of privatization"):
        privatization.page([typed(made([cell("tree", "etl-wb", "none", 1e6), cell("tree", "norec", "none", 1e6)]))])
