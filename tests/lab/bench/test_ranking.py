"""Rankings of a live program and of its replayed trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from campaigns import asking

from loam_lab.base import paths
from loam_lab.commands.bench import ranking, trace
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.setup import build


def around(estimate: float, half: float = 0.02) -> Interval:
    return Interval(estimate, estimate - half, estimate + half, 10)


LIVE = {"glibc": Interval(1.0, 1.0, 1.0, 10), "fast": around(0.8), "near": around(0.99), "slow": around(1.2)}


def test_only_what_the_live_intervals_tell_apart_is_compared() -> None:
    pairs = ranking.pairs(LIVE, LIVE)
    assert {(pair.faster, pair.slower) for pair in pairs} == {
        ("fast", "glibc"), ("fast", "near"), ("fast", "slow"), ("glibc", "slow"), ("near", "slow"),
    }  # fmt: skip
    assert all(pair.agrees for pair in pairs)
    assert ranking.pairs({"glibc": LIVE["glibc"], "open": Interval(0.5, None, None, 2)}, LIVE) == []


def test_another_order_is_seen_however_near_the_replay_lies() -> None:
    replayed = {"glibc": LIVE["glibc"], "fast": around(0.4), "slow": around(0.99)}
    agreements = {(pair.faster, pair.slower): pair.agrees for pair in ranking.pairs(LIVE, replayed)}
    assert agreements == {("fast", "glibc"): True, ("fast", "slow"): True, ("glibc", "slow"): False}


def test_what_was_found_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ranking.show(ranking.pairs(LIVE, {**LIVE, "slow": around(0.7)}))
    assert "ranks 2 of 5 pairs" in capsys.readouterr().out
    ranking.show([])
    assert "tells no two allocators apart" in capsys.readouterr().err


def command_of(program: str) -> list[str]:
    if program == "cfrac":
        build.ensure_built(["program-cfrac"])
        return [paths.load_paths()["libraries"]["program-cfrac"], "26"]
    return [program, str(paths.root() / "lab/programs/hashes.pl"), "60000"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", ["perl", "cfrac"])
def test_a_replayed_trace_ranks_allocators_as_its_program_does(program: str, tmp_path: Path) -> None:
    command = command_of(program)
    if shutil.which(command[0]) is None:
        pytest.skip(f"{program} is not installed")
    assert trace.record(command, out=tmp_path / "t") == 0
    request = asking(allocators=["glibc", "jemalloc", "tcmalloc"], blocks=12, out=tmp_path / "o")
    assert ranking.check(tmp_path / "t", command, request, threads="recorded") == 0
