"""Threads, locks, time and thread-local storage under the simulator, and programs that it must refuse or name."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulating import MACHINE, start, statistics

# Without them two threads that give way to each other in step, as in std::scoped_lock of two locks, may do so without end.
INTERRUPTED = {"interrupt.every_cycles": "1000000", "interrupt.cycles": "5000"}


@pytest.mark.parametrize("engine", ["fibers", "threads"])
@pytest.mark.parametrize("cores", [1, 8])
def test_programs_with_threads_run(cores: int, engine: str) -> None:
    machine = {**MACHINE, **INTERRUPTED}
    if cores == 1:
        machine |= {"cores": "1", "nodes": "1", "l2.shared_by": "1"}
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
    assert "this machine has no interrupts (interrupt.every_cycles, interrupt.cycles)" in done.stderr
    machine = {**MACHINE, **INTERRUPTED}
    done = start("simulated-threads", "livelock", machine=machine, environment={"LOAM_SIM_CYCLES_MAX": "10000000"})
    assert "did not end within" in done.stderr and "interrupt" not in done.stderr


def test_an_interrupt_takes_time_of_its_core(tmp_path: Path) -> None:
    """One thread: each time that 10 000 cycles have passed 300 more do, so that one in 9700 of its own cycles is met."""
    plain, interrupted = (
        statistics(tmp_path, "simulated-memory", "stores", 1, 64, 100_000, machine={**MACHINE, **own})["cycles"]
        for own in ({}, {"interrupt.every_cycles": "10000", "interrupt.cycles": "300"})
    )
    met, rest = divmod(interrupted - plain, 300)
    assert rest == 0
    assert met == pytest.approx(plain / 9700, abs=4)


def test_a_seed_moves_the_interrupts(tmp_path: Path) -> None:
    """Where interrupts are twice as far apart as the run is long, it meets one with some seeds and none with others."""

    def cycles(seed: int, **own: str) -> int:
        machine = {**MACHINE, **own}
        return int(
            statistics(tmp_path, "simulated-memory", "stores", 1, 64, 100_000, machine=machine, seed=seed)["cycles"]
        )

    plain = cycles(1)
    apart = {"interrupt.every_cycles": str(2 * plain), "interrupt.cycles": "300"}
    assert {cycles(seed, **apart) - cycles(seed) for seed in range(1, 11)} == {0, 300}


def test_an_interrupt_of_no_cycles_changes_no_time(tmp_path: Path) -> None:
    plain, interrupted = (
        statistics(tmp_path, "simulated-memory", "ping-pong", 500, machine={**MACHINE, **own})["cycles"]
        for own in ({}, {"interrupt.every_cycles": "10000"})
    )
    assert plain == interrupted


def test_threads_that_give_way_to_each_other_in_step_end_where_interrupts_disturb_them() -> None:
    """Eight threads take two locks by std::scoped_lock. Without interrupts one seed in ten or so never ends."""
    for seed in range(1, 13):
        done = start("simulated-threads", "all", machine={**MACHINE, **INTERRUPTED}, seed=seed)
        assert done.stdout == "done\n", (seed, done.stdout + done.stderr)


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
