"""Threads, locks, time and thread-local storage under the simulator, and programs that it must refuse or name."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulating import MACHINE, start, statistics


@pytest.mark.parametrize("engine", ["fibers", "threads"])
@pytest.mark.parametrize("cores", [1, 8])
def test_programs_with_threads_run(cores: int, engine: str) -> None:
    machine = MACHINE if cores == 8 else {**MACHINE, "cores": "1", "nodes": "1", "l2.shared_by": "1"}
    done = start("simulated-threads", "all", machine=machine, environment={"LOAM_SIM_ENGINE": engine})
    assert done.stdout == "done\n", done.stdout + done.stderr
    assert done.returncode == 0


def test_a_deadlock_is_named_with_who_waits_for_whom() -> None:
    done = start("simulated-threads", "deadlock")
    assert done.returncode == 2
    assert "deadlock" in done.stderr
    assert "thread 1 on core 1 waits for the mutex at" in done.stderr
    assert "which thread 2 holds" in done.stderr
    assert "which thread 1 holds" in done.stderr
    assert "thread 0 on core 0 waits for the end of the thread" in done.stderr


def test_a_livelock_ends_with_a_message() -> None:
    done = start("simulated-threads", "livelock", environment={"LOAM_SIM_CYCLES_MAX": "10000000"})
    assert done.returncode == 2
    assert "did not end within" in done.stderr
    assert "LOAM_SIM_CYCLES_MAX=10000000" in done.stderr


def test_a_loop_without_accesses_is_named() -> None:
    done = start("simulated-threads", "computes")
    assert done.returncode == 2
    assert "without one simulated access" in done.stderr
    assert "simulated-threads" in done.stderr


def test_a_call_that_would_wait_outside_is_refused() -> None:
    done = start("simulated-threads", "polls")
    assert done.returncode == 2
    assert "thread 0 calls poll" in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("l1.bytes", "5000", "l1.bytes=5000"), ("cores", "129", "cores=129"), ("l1.wasy", "8", "l1.wasy=8")],
)
def test_an_impossible_machine_is_refused(key: str, value: str, message: str) -> None:
    done = start("simulated-threads", machine={**MACHINE, key: value})
    assert done.returncode == 2
    assert message in done.stderr


def test_an_unknown_setting_is_refused() -> None:
    done = start("simulated-threads", environment={"LOAM_SIM_QUANTUMM": "1"})
    assert done.returncode == 2
    assert "LOAM_SIM_QUANTUMM: no such setting" in done.stderr


def test_how_long_cores_share_a_line_is_counted_where_it_is_asked_for(tmp_path: Path) -> None:
    """Two cores pass a word back and forth: they are at its line nearly all the time. Counting changes nothing."""
    plain, timed = (
        statistics(tmp_path, "simulated-memory", "ping-pong", 2000, environment=environment)
        for environment in ({}, {"LOAM_SIM_LINE_TIMES": "200000"})
    )
    line = timed["lines"][0]
    assert line["shared_cycles"] > timed["cycles"] / 2
    assert timed["cycles"] == plain["cycles"] and timed["total"] == plain["total"]
    assert "shared_cycles" not in plain["lines"][0]
