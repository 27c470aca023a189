"""Memory of what is measured: of all processes of a server together, by the figure that says so, and in how many blocks."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from campaigns import FAKES, STM, FakeInstruments, asking, study
from typed import typed

from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.memory import fitness
from loam_lab.campaign.memory.observer import MemoryObserver
from loam_lab.campaign.memory.sampler import Sampler
from loam_lab.commands.bench import bench, choices, footprint, job_options, recommend
from loam_lab.judging.statistics import data, multiplicity
from loam_lab.judging.statistics.intervals import Interval, paired_ratio
from loam_lab.model.result import read

# What the sampler knows measured processes by; the made-up instruments preload no probe.
SEEN = FakeInstruments(variables={"LOAM_PROBE": "made-up"})


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads begin when all processes of their server were looked at, where somebody looks: the busiest machine is no excuse."""
    seen = tmp_path / "looked"
    monkeypatch.setenv("FAKE_LOOKED", str(seen))
    look, begin = Sampler.look, MemoryObserver.begin

    def looked(self: Sampler, pid: int) -> float:
        pause_s = look(self, pid)
        if self.processes >= 4 and len(self._kept) >= 3:
            seen.touch()
        return pause_s

    def begun(self: MemoryObserver) -> None:
        seen.unlink()
        begin(self)

    monkeypatch.setattr(Sampler, "look", looked)
    monkeypatch.setattr(MemoryObserver, "begin", begun)


def served(folder: Path, mode: str, *, blocks: int = 2, **options: Any) -> footprint.Footprint:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    name = FAKES / "fake-server"
    what = job_options.what(
        (), server=f"{sys.executable} {name} {port} {mode}", ready=str(port), better=None, commands=(), command_file=None,
        load=f"{sys.executable} {name} load {port} 10", metric=r"([\d.]+) requests per second", prepare="", cleanup="",
        checks=(), warmup=0, limits=(), timeout_s=20.0,
    )  # fmt: skip
    given = {"allocators": ["plain", "fast"], "blocks": blocks, "as_json": True, "report": False, **options}
    bench.bench(what, asking(out=folder, **given), SEEN)
    return footprint.find(folder)


@pytest.mark.usefixtures("patient")
def test_all_processes_of_a_server_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest process is as large under both allocators; its workers are not."""
    monkeypatch.setattr(fitness, "reclaimable", lambda root: [])
    monkeypatch.setattr(fitness, "taken", lambda before, after: [])
    used = served(tmp_path / "o", "workers")
    assert used.by == footprint.TOGETHER
    assert used.of()["fast"].estimate > 1.2
    campaign = data.load(tmp_path / "o")
    largest = footprint._by_metric(campaign, footprint.LARGEST)
    assert largest["", "fast"].estimate == pytest.approx(1.0, abs=0.05), "what one process says"
    assert {len(runs) for runs in campaign.special["memory"].values()} == {2}
    result = read((tmp_path / "o" / "result.json").read_bytes(), "o")
    assert result.recommendation is not None and result.recommendation.memory_by == footprint.TOGETHER


def test_a_server_of_one_process_has_no_memory_runs(tmp_path: Path) -> None:
    used = served(tmp_path / "o", "", blocks=1)
    assert used.by == footprint.LARGEST and used.of()["fast"].n == 1
    assert "memory" not in data.load(tmp_path / "o").special


@pytest.mark.usefixtures("patient")
def test_without_fit_memory_runs_nothing_is_said_of_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitness, "reclaimable", lambda root: ["/dev/vdb is in use as swap"])
    used = served(tmp_path / "o", "workers", blocks=1)
    assert used == footprint.Footprint(footprint.TOGETHER, {}, "/dev/vdb is in use as swap")
    result = read((tmp_path / "o" / "result.json").read_bytes(), "o")
    assert result.recommendation is not None
    assert result.recommendation.text.endswith(" Memory decides nothing: /dev/vdb is in use as swap.")
    assert result.recommendation.memory_by is None


@pytest.mark.parametrize("rivals", range(1, 16))
def test_the_fewest_blocks_can_tell_something(rivals: int) -> None:
    """One of the rivals is better in every block, the others are as the baseline: that is enough, one block less is not."""

    def shown(blocks: int) -> bool:
        ratio = paired_ratio([0.5 + 0.01 * at for at in range(blocks)], [1.0] * blocks)
        assert ratio.p is not None
        return min(multiplicity.holm([ratio.p, *[1.0] * (rivals - 1)])) < multiplicity.SIGNIFICANCE

    blocks = bench.telling(rivals)
    assert shown(blocks)
    assert blocks == bench.telling(1) or not shown(blocks - 1)


def test_memory_runs_come_in_blocks() -> None:
    made = study(memory=True, memory_runs=3, sync=[STM])
    runs = [run for run in plans.make(made).runs if run.purpose == "memory"]
    cells = {run.cell for run in runs}
    assert [run.block - plans.SPECIAL_BLOCK for run in runs] == [0] * len(cells) + [1] * len(cells) + [2] * len(cells)
    for block in range(3):
        of_block = [run for run in runs if run.block == plans.SPECIAL_BLOCK + block]
        assert {run.cell for run in of_block} == cells
        assert len({run.seed for run in of_block}) == 1, "the same work under each allocator"
    assert len({run.seed for run in runs}) == 3


def test_time_for_memory_runs_is_planned() -> None:
    assert bench._limits(90, 3, None, 6, 60) == {"blocks": 10, "budget_s": 90}
    assert bench._limits(90, 10, None, 6, 60) == {"blocks": 6, "budget_s": pytest.approx(126)}


RATIO = Interval(0.7, 0.65, 0.75, 8, 0.001)


@pytest.mark.parametrize("figure", footprint.HOW)
def test_the_figure_that_decided_is_named(figure: str) -> None:
    ratio = {"metric": "wall_s", "estimate": 0.8, "low": 0.79, "high": 0.81, "n": 10, "p": 0.001}
    cells = [
        {"factors": {"allocator": "g"}, "verdict": "baseline"},
        {"factors": {"allocator": "a"}, "verdict": "better", "ratio_to_baseline": ratio},
    ]
    result = typed({"baseline": "g", "blocks": 10, "cells": cells})
    advised = choices.add(recommend.add(result, "cmd", {"a": RATIO}, figure), {"a": RATIO}, figure).recommendation
    assert advised is not None and advised.memory_by == figure
    thrifty = next(choice for choice in advised.choices or () if choice.purpose == "memory")
    assert thrifty.text == f"a, 30.0 % less than g at its peak [25.0 %, 35.0 %] ({footprint.HOW[figure]})"
    aside = "" if figure == footprint.LARGEST else f" ({footprint.HOW[figure]})"
    assert f"and needs 30.0 % less memory at its peak{aside}." in advised.text
