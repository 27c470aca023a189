"""Counts and memory on the console: every value beside its source, nothing where nothing was counted."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.base import console
from loam_lab.commands.run import special_tables

MEMORY = {
    "peak_pss_bytes": 5 << 20, "mean_pss_bytes": 3 << 20, "live_peak_bytes": None, "faults_minor": 321, "fit": False,
}  # fmt: skip
COUNTED = [
    {"source": "callgrind", "per": "operation", "instructions": 152.26},
    {"source": "cachegrind", "per": "operation", "instructions": 151.0, "l1d_misses": 1.25, "l1d_miss_ratio": 0.134,
     "llc_misses": 0.0},
]  # fmt: skip


def cell(**more: Any) -> dict[str, Any]:
    factors = {"workload": "intset", "allocator": "glibc", "sync": "plain", "threads": 1}
    return {"copy": 0, "factors": factors, "parameters": {"structure": "list"}, **more}


def test_counts_and_memory_are_printed_with_their_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    special_tables.show(typed({"cells": [cell(counters=COUNTED, memory=MEMORY), cell(counters=[], memory=None)]}))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "glibc callgrind operation 152" in lines
    assert "glibc cachegrind operation 151 1.25 13.4 % 0" in lines
    assert "Counts · intset structure=list plain 1T" in lines
    assert "allocator source per instructions L1D misses ratio LLC misses" in lines
    assert "glibc 5.0 MiB 3.0 MiB 321 no" in lines


def test_what_is_wider_than_the_screen_goes_on_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    console.out.cache_clear()
    counted = {
        "source": "simulator", "per": "operation", "l1d_misses": 0.000101, "l1d_miss_ratio": 0.1, "dtlb_misses": 2.8e-05,
        "transfers": 1.57e-05, "false_sharing_misses": 1.74e-05, "true_sharing_misses": 2.5e-05,
    }  # fmt: skip
    special_tables.show(typed({"cells": [cell(counters=[counted])]}))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    heads = [line for line in lines if line.startswith("allocator source per")]
    assert len(heads) == 2 and heads[0].startswith("allocator source per L1D misses ratio TLB misses")
    assert heads[1].endswith("true sharing") and any(line.endswith("2.5e-05") for line in lines)
    console.out.cache_clear()


def test_nothing_is_printed_where_nothing_was_counted(capsys: pytest.CaptureFixture[str]) -> None:
    special_tables.show(typed({"cells": [cell(counters=[], memory=None), cell(), {**cell(memory=MEMORY), "copy": 1}]}))
    assert capsys.readouterr().out == ""
