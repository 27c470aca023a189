"""docs/performance/record-sharing.md: shares of attempts by cause, and the limit for ours."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.presenting.pages import record_sharing


def cell(allocator: str, sync: str, structure: str, other_stripe: int, other_block: int = 0) -> dict[str, Any]:
    return {
        "copy": 0, "factors": {"allocator": allocator, "sync": sync, "workload": "intset", "threads": 2},
        "parameters": {"structure": structure},
        "blame": {"attempts": 1000000, "aborts_other_stripe": other_stripe, "aborts_other_block": other_block},
    }  # fmt: skip


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    words = {"other_stripe": "another stripe, same record", "other_block": "another block, same stripe"}
    causes = [{"name": name, "words": text} for name, text in words.items()]
    return {
        "abort_causes": causes,
        "cells": cells,
        "created_utc": "2026-01-02T03:04:05Z",
        "machine": {"cpu": "made up"},
    }


def test_shares_are_of_all_attempts_and_the_worst_algorithm_is_named_beside_them() -> None:
    cells = [cell("glibc", "a", "list", 3000), cell("glibc", "b", "list", 1000), cell("loam", "a", "list", 0, 500)]
    text = record_sharing.page(typed(made(cells)))
    assert "| glibc | 0.00200 (worst 0.00300) |" in text
    assert "| loam | 0 |" in text and "| loam | 0.000500 (worst 0.000500) |" in text
    assert "loam: at most 0 on another stripe; the limit is 0.0001: passed." in text


def test_one_algorithm_over_the_limit_fails() -> None:
    text = record_sharing.page(typed(made([cell("loam", "a", "list", 0), cell("loam", "b", "list", 101)])))
    assert "at most 0.000101 on another stripe; the limit is 0.0001: failed." in text


def test_copies_and_cells_without_explained_runs_take_no_part() -> None:
    copy, silent = cell("loam", "a", "list", 900) | {"copy": 1}, cell("loam", "a", "tree", 900)
    del silent["blame"]
    text = record_sharing.page(typed(made([cell("loam", "a", "list", 0), copy, silent])))
    assert "passed" in text and "tree" not in text


def test_a_result_without_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="no explained runs of loam"):
        record_sharing.page(typed(made([cell("glibc", "a", "list", 0)])))
