"""docs/performance/tm.md: ratios of paired blocks, the fastest of each row, and ours against the published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.model.schema import SCHEMA
from loam_lab.presenting.pages import tm


def cell(sync: str, structure: str, threads: int, values: list[float | None], **parameters: Any) -> dict[str, Any]:
    return {
        "copy": 0, "factors": {"workload": "intset", "allocator": "glibc", "sync": sync, "threads": threads},
        "parameters": {"structure": structure, "update_percent": 20, **parameters},
        "metrics": {"ops_per_s": {"estimate": 0.0, "values": values}},
    }  # fmt: skip


def made(cells: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = {cell["factors"]["sync"]: "transactional" for cell in cells} | {"sequential": "none"}
    return {
        "syncs": [{"name": name, "kind": kind} for name, kind in kinds.items()], "cells": cells,
        "baseline": "glibc", "blocks": 10, "created_utc": "2026-01-02T03:04:05Z",
        "commands": ["./loam run intset --sync etl-wb,/opt/peers/tiny --threads 1"],
        "machine": {"cpu": "made up", "cores": 2, "kernel": "6.1"},
    }  # fmt: skip


DAY = [1e6 * (1 + 0.01 * block) for block in range(10)]


def scaled(factor: float) -> list[float | None]:
    return [factor * value for value in DAY]


def test_ratios_are_of_the_same_blocks_and_the_fastest_is_bold() -> None:
    cells = [
        cell("etl-wb", "list", 1, scaled(1)), cell("norec", "list", 1, scaled(1.25)), cell("tiny", "list", 1, scaled(0.8)),
        cell("sequential", "list", 1, scaled(2)),
        cell("etl-wb", "tree", 1, scaled(1)), cell("norec", "tree", 1, scaled(0.5)), cell("tiny", "tree", 1, scaled(0.8)),
        cell("sequential", "tree", 1, scaled(2)),
    ]  # fmt: skip
    page = tm.page(typed(made(cells)), ["tiny"])
    assert "| | intset list | intset tree | geometric mean |" in page
    assert "| etl-wb | 1.04 M/s | **1.04 M/s** | 1 |" in page
    assert "| norec | **1.250 [1.250, 1.250]** | 0.500 [0.500, 0.500] | 0.791 [0.791, 0.791] |" in page
    assert "| tiny | 0.800 [0.800, 0.800] | 0.800 [0.800, 0.800] | 0.800 [0.800, 0.800] |" in page
    assert "| sequential | 2.000 [2.000, 2.000] | 2.000 [2.000, 2.000] |" in page
    assert "| intset list | norec | tiny | 1.562 [1.562, 1.562] |" in page, "the sequential program is no rival"
    assert "| intset tree | etl-wb | tiny | 1.250 [1.250, 1.250] |" in page
    assert "./loam run intset --sync etl-wb,PATH --threads 1" in page and "/opt" not in page


def test_one_is_set_against_one_over_all_cases() -> None:
    factors = {"etl-wb": (1, 1), "norec": (1.25, 0.5), "tiny": (0.8, 0.5), "other": (0.5, 0.4)}
    cells = [
        cell(name, structure, threads, scaled(factor))
        for threads in (1, 2)
        for name, pair in factors.items()
        for structure, factor in zip(("hash", "tree"), pair, strict=True)
    ]
    text = tm.page(typed(made(cells)), ["tiny", "other"], [("norec", "other"), ("tl2", "other")])
    table = text.split("## One against one")[1]
    assert "| | all | hash | tree | hash and tree |" in table
    assert "| etl-wb over tiny | 1.581 [1.581, 1.581] | 1.250 [1.250, 1.250] | 2.000 [2.000, 2.000] | 1.581" in table
    assert "| norec over other | 1.768 [1.768, 1.768] | 2.500" in table
    assert "tl2" not in table and "One against one" not in tm.page(typed(made(cells)))


def test_a_pair_that_was_measured_at_one_thread_alone_says_so() -> None:
    cells = [cell("etl-wb", "hash", threads, scaled(1)) for threads in (1, 2)]
    cells += [cell("tiny", "hash", threads, scaled(0.8)) for threads in (1, 2)] + [
        cell("sequential", "hash", 1, scaled(2))
    ]
    text = tm.page(typed(made(cells)), ["tiny"], [("sequential", "tiny")])
    assert "| sequential over tiny, 1 thread | 2.500 [2.500, 2.500] |" in text
    assert "| etl-wb over tiny | 1.250 [1.250, 1.250] |" in text


def test_what_is_missing_is_left_out() -> None:
    cells = [
        cell("etl-wb", "list", 1, scaled(1)), cell("etl-wb", "list", 2, scaled(2)[:9]),
        cell("norec", "list", 2, scaled(1)), cell("sequential", "list", 1, scaled(3)),
    ]  # fmt: skip
    page = tm.page(typed(made(cells)))
    first, second = page.split("## 2 threads")
    assert "norec" not in first.split("## 1 thread")[1] and "sequential" not in second
    assert "0.500 [0.500, 0.500]" in second


def test_mappings_are_columns_and_one_synchronisation_is_refused(tmp_path: Path) -> None:
    cells = [cell("etl-wb", "list", 1, scaled(f), mapping=m) for f, m in ((1, "table"), (0.99, "shadow"))]
    cases, syncs = tm.cases(typed(made(cells)))
    assert syncs == ["etl-wb (table)", "etl-wb (shadow)"] and len(cases) == 1
    (tmp_path / "result.json").write_text(json.dumps({"schema": SCHEMA, **made(cells[:1])}))
    with pytest.raises(LoamError) as refused:
        tm.main([str(tmp_path), "--page", str(tmp_path / "p.md")])
    assert "this result has one synchronisation" in refused.value.line()
    (tmp_path / "result.json").write_text(json.dumps({"schema": SCHEMA, **made(cells)}))
    assert tm.main([str(tmp_path), "--page", str(tmp_path / "p.md")]) == 0
    assert "0.990 [0.990, 0.990]" in (tmp_path / "p.md").read_text()


def test_both_modes_of_privatization_stand_side_by_side() -> None:
    factors = {("etl-wb", "none"): 1, ("etl-wb", "commit"): 0.5, ("norec", "none"): 1.05, ("norec", "commit"): 1}
    cells = [
        cell(sync, "tree", threads, scaled(factor / (threads if mode == "commit" else 1)), privatization=mode)
        for (sync, mode), factor in factors.items()
        for threads in (1, 2)
    ]
    page = tm.page(typed(made(cells)))
    assert "| etl-wb (none) | 1.04 M/s |" in page, "rates are those of the unsafe base"
    safety = page.split("## Safe for privatization")[1]
    assert "over etl-wb (none), which is not safe" in safety
    assert "| norec (commit) | 0.707 [0.707, 0.707] | 0.500: intset, 2 threads |" in safety
    assert "| etl-wb (commit) | 0.354 [0.354, 0.354] | 0.250: intset, 2 threads |" in safety
    assert "norec (none)" not in safety


def test_a_single_mode_is_named_and_has_no_table() -> None:
    cells = [cell(sync, "tree", 1, scaled(1), privatization="none") for sync in ("etl-wb", "norec")]
    page = tm.page(typed(made(cells)))
    assert "Loam's transactions ran with `privatization=none`." in page
    assert "Safe for privatization" not in page
