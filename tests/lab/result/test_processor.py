"""Processor time decides for commands whose blocks stayed disturbed, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking, measure, study

from loam_lab.commands.bench import bench
from loam_lab.judging.result import diagnostics, processor
from loam_lab.judging.statistics import data, intervals
from loam_lab.model.result import Disturbed, Waiting

# Under "fast" it counts a third as far.
COUNTER = "n=4000; [ $FAKE_ALLOCATOR = fast ] && n=1300; i=0; while [ $i -lt $n ]; do i=$((i + 1)); done"


def disturbed(monkeypatch: pytest.MonkeyPatch, contaminated: int, blocks: int) -> None:
    counts = Disturbed(blocks=blocks, contaminated=contaminated)
    monkeypatch.setattr(diagnostics, "disturbed", lambda campaign: counts)


def run(folder: Path, blocks: int = 8, own_share: float = 0.0) -> dict[str, Any]:
    request = asking(allocators=["plain", "fast"], blocks=blocks, out=folder, as_json=True, report=False)
    bench.bench(["sh", "-c", COUNTER], request, FakeInstruments(own_share=own_share))
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def test_a_quarter_of_the_blocks_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, 2, 8)
    result = run(tmp_path / "o")
    assert result["waiting"] == {"blocks": 8, "disturbed": 2, "own": 0, "decides": "processor_s"}
    fast = next(cell for cell in result["cells"] if cell["factors"]["allocator"] == "fast")
    plain = next(cell for cell in result["cells"] if cell["verdict"] == "baseline")
    times = [cell["metrics"]["processor_s"]["values"] for cell in (fast, plain)]
    for cell, own in zip((fast, plain), times, strict=True):
        parts = [cell["metrics"][name]["values"] for name in ("user_s", "system_s")]
        assert own == pytest.approx([a + b for a, b in zip(*parts, strict=True)])
    expected = intervals.paired_ratio(*times)
    ratio = fast["processor_ratio"]
    assert (ratio["estimate"], ratio["low"], ratio["high"]) == pytest.approx(
        (expected.estimate, expected.low, expected.high)
    )
    assert ratio["verdict"] == "better" and ratio["q"] == ratio["p"]
    assert plain["processor_ratio"] is None
    assert result["recommendation"]["by"] == "processor_s" and result["recommendation"]["allocator"] == "fast"
    campaign = data.load(tmp_path / "o")
    disturbed(monkeypatch, 1, 8)
    assert processor.waiting(campaign) == Waiting(blocks=8, disturbed=1, decides="wall_s")
    assert processor.ratios(campaign) == {}


def test_own_waiting_leaves_wall_time_alone_and_is_told(tmp_path: Path) -> None:
    result = run(tmp_path / "o", blocks=1, own_share=0.4)
    assert result["waiting"] == {"blocks": 1, "disturbed": 0, "own": 1, "decides": "wall_s"}
    advised = result["recommendation"]
    assert advised["by"] == "wall_s"
    assert "own threads and processes waited for one another in 1 of 1 blocks" in advised["text"]


def test_workloads_that_measure_themselves_are_not_judged_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbed(monkeypatch, 6, 6)
    _, result = measure(study(blocks=6), tmp_path)
    assert result["waiting"] is None and all(cell["processor_ratio"] is None for cell in result["cells"])
