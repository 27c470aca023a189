"""loam top: what it says of a campaign is what the journal holds, and it touches nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from campaigns import FakeInstruments, forked, measure, runner, study

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.live_view import Watched
from loam_lab.campaign.measure.top import headline, top
from loam_lab.cli import main
from loam_lab.judging.statistics import contrasts, data
from loam_lab.model.store import journal


def watched(folder: Path) -> Watched:
    view = Watched(folder)
    view.poll()
    return view


def test_the_intervals_are_those_of_the_result(tmp_path: Path) -> None:
    measure(study(parameters={"structure": ["list", "tree"]}, blocks=8), tmp_path)
    campaign_data = data.load(tmp_path)
    rows = watched(tmp_path).intervals()
    assert len(rows) == 4, "two structures, each with the other allocator and the baseline's second copy"
    for row in rows:
        cell = next(
            cell for cell in campaign_data.cells
            if cell.allocator == row["allocator"] and dict(cell.parameters) == row["parameters"]
        )  # fmt: skip
        ratio = contrasts.to_baseline(campaign_data, cell, row["copy"])
        assert ratio is not None
        assert (row["estimate"], row["low"], row["high"], row["n"]) == (ratio.estimate, ratio.low, ratio.high, 8)


def test_only_what_was_appended_is_read_and_torn_lines_wait(tmp_path: Path) -> None:
    measure(study(), tmp_path)
    file = tmp_path / "journal" / "local.jsonl"
    whole = file.read_bytes()
    cut = whole.index(b"\n", len(whole) // 2) + 20
    file.write_bytes(whole[:cut])
    view = watched(tmp_path)
    before = view.done
    assert before == whole[:cut].count(b"\n")
    assert not view.poll()
    file.write_bytes(whole)
    assert view.poll()
    assert view.done == whole.count(b"\n")


def test_the_last_attempt_counts_and_disturbances_are_told(tmp_path: Path) -> None:
    measure(study(blocks=8), tmp_path, FakeInstruments(disturbed=lambda number: number == 1))
    view = watched(tmp_path)
    assert (view.disturbed, view.repeated, view.planned, view.done) == (1, 3, 27, 27)
    assert view.by == {"run_delay": 1, "steal": 0, "pressure": 0}
    assert "1 disturbed (worst 50%), 3 repeated" in headline(view)
    assert {row["n"] for row in view.intervals()} == {8}


def test_a_running_campaign_is_told_from_one_that_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    child = forked(runner(study(blocks=1000), tmp_path / "o").run)
    try:
        patience = time.monotonic() + 60
        while len(journal.read(tmp_path / "o")) < 10 and time.monotonic() < patience:
            time.sleep(0.01)
        assert main.run(["top", str(tmp_path / "o"), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["running"]
        assert 10 <= document["done"] < document["planned"] == 3000
        assert document["left_s"] > 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert main.run(["top", str(tmp_path / "o"), "--once"]) == 0
    assert "tiny: " in (shown := capsys.readouterr().out)
    assert "not running" in shown


def test_it_leaves_the_folder_as_it_was_and_makes_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], niceness: list[int]
) -> None:
    measure(study(), tmp_path)
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in tmp_path.rglob("*")}
    assert top(tmp_path, once=True) == 0
    assert {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in tmp_path.rglob("*")} == before
    assert "12 of 12 runs" in capsys.readouterr().out
    assert niceness == [19]


def test_it_refuses_to_look_too_often_and_where_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoamError, match=r"--every=0\.5: must be at least 1 second"):
        top(tmp_path, every_s=0.5)
    with pytest.raises(LoamError):
        top(None, once=True)
    with pytest.raises(LoamError, match="cannot be read"):
        top(tmp_path, once=True)
