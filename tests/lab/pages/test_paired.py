"""Values of cells side by side: of the same blocks, also where a run failed."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed_cell

from loam_lab.model.result import Cell
from loam_lab.presenting.pages import stamp
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts.paired import Case


def cell(values: list[float], blocks: list[int], **others: list[float]) -> Cell:
    metrics: dict[str, Any] = {"ops_per_s": {"estimate": 0.0, "values": values, "blocks": blocks}}
    return typed_cell({"metrics": {**{name: {"values": of_metric} for name, of_metric in others.items()}, **metrics}})


def test_a_value_stands_at_its_block() -> None:
    one = cell([5.0, 7.0, 8.0], [0, 2, 3], rss_peak_bytes=[1.0, 2.0, 3.0], run_length=[4.0, 6.0])
    assert paired.by_block(one, "ops_per_s") == [5.0, None, 7.0, 8.0]
    assert paired.by_block(one, "rss_peak_bytes") == [1.0, None, 2.0, 3.0]
    assert paired.by_block(one, "run_length") == [4.0, 6.0], "of fewer runs, whose blocks nothing tells"
    assert paired.by_block(cell([], []), "ops_per_s") == []


def test_a_failed_run_does_not_shift_the_blocks_after_it() -> None:
    """The machine is twice as slow from block 3 on, which no pair of one block sees."""
    speed = [8.0, 8.0, 8.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    failed = [0, 2, 3, 4, 5, 6, 7]
    case = Case("x", 1)
    case.values["all"] = paired.by_block(cell(speed, list(range(8))), "ops_per_s")
    case.values["some"] = paired.by_block(cell([3 * speed[block] for block in failed], failed), "ops_per_s")
    ratio = case.ratio("some", "all")
    assert ratio is not None and (ratio.estimate, ratio.low, ratio.high) == pytest.approx((3, 3, 3))


def test_a_page_pairs_blocks_by_their_numbers() -> None:
    def of(sync: str, threads: int, values: list[float], blocks: list[int]) -> Cell:
        factors = {"workload": "genome", "sync": sync, "allocator": "glibc", "threads": threads}
        return typed_cell({**cell(values, blocks).as_json(), "factors": factors})

    (application,) = stamp.applications([of("sequential", 1, [1.0, 9.0], [0, 1]), of("etl-wb", 2, [18.0], [1])])
    both = Case(
        "genome", 2, {"alone": application.alone.values["glibc"], "shared": application.shared[2].values["glibc"]}
    )
    assert both.logs("shared", "alone") == pytest.approx([0.693], abs=0.001)
