"""What others took from a run: the three sources, their limits, and what is the run's own doing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loam_lab.base import paths
from loam_lab.campaign.measure import disturbance
from loam_lab.campaign.measure.disturbance import Load, judge
from loam_lab.campaign.process.execute import execute
from loam_lab.model.records import parse

QUIET = Load(1.0, 1.0)


def run(after: Load = QUIET, **changed: Any) -> disturbance.Disturbance:
    given: dict[str, Any] = {
        "wall_s": 1.0, "cpu_s": 1.0, "main_delay_s": 0.0, "records": [], "threads": 1, "cores": 2, **changed
    }  # fmt: skip
    return judge(QUIET, after, **given)


def handovers(delay_s: float) -> list[dict[str, Any]]:
    return [{"kind": "iteration", "run_delay_s": 0.0, "handover_delay_s": delay_s}]


def workers(delay_s: float) -> list[dict[str, Any]]:
    return [{"kind": "iteration", "run_delay_s": delay_s}]


@pytest.mark.parametrize(
    ("changed", "why", "share"),
    [
        ({}, (), 0.0),
        ({"main_delay_s": 0.019}, (), 0.019),
        ({"main_delay_s": 0.021}, ("run_delay",), 0.021),
        ({"main_delay_s": None}, (), 0.0),
        # The workers' waiting, which nobody sees from outside, is shared by all threads.
        ({"records": workers(0.03), "threads": 2}, (), 0.015),
        ({"records": workers(0.05), "threads": 2}, ("run_delay",), 0.025),
        ({"records": workers(0.03), "threads": 2, "main_delay_s": 0.02}, ("run_delay",), 0.025),
        # Four threads on two cores wait half of the time; only what goes beyond it is somebody else's.
        ({"records": workers(2.0), "threads": 4}, (), 0.5),
        ({"records": workers(2.2), "threads": 4}, ("run_delay",), 0.55),
        # A run of milliseconds: starting it costs more than two percent of it.
        ({"wall_s": 0.005, "main_delay_s": 0.0009}, (), 0.18),
        ({"wall_s": 0.005, "main_delay_s": 0.0011}, ("run_delay",), 0.22),
        # A command that fills the machine may wait for itself.
        ({"threads": None, "cpu_s": 1.95, "main_delay_s": 0.3}, (), 0.3),
        ({"threads": None, "cpu_s": 1.0, "main_delay_s": 0.3}, ("run_delay",), 0.3),
    ],
)
def test_run_delay(changed: dict[str, Any], why: tuple[str, ...], share: float) -> None:
    lost = run(**changed)
    assert (lost.why, lost.contaminated) == (why, bool(why))
    assert lost.share == pytest.approx(share)


def sliced(rated_by: str, delay_s: float) -> list[dict[str, Any]]:
    return [{"kind": "iteration", "run_delay_s": delay_s, "rated_by": rated_by, "slices": 100, "slices_kept": 40}]


@pytest.mark.parametrize(
    ("after", "rated_by", "why"),
    [
        (Load(1.0, 1.6), "slices", ()),  # what was waited is in slices that are left out
        (Load(1.5, 1.6), "slices", ("steal",)),  # which no thread sees
        (Load(1.0, 1.6), "own slices", ("run_delay", "pressure")),
        (Load(1.0, 1.6), "run", ("run_delay", "pressure")),
    ],
)
def test_a_run_rated_by_slices_is_disturbed_only_if_too_few_are_left(
    after: Load, rated_by: str, why: tuple[str, ...]
) -> None:
    lost = run(after, records=sliced(rated_by, 0.6), threads=2)
    assert lost.why == why
    assert (lost.as_json()["slices"], lost.as_json()["slices_kept"]) == (100, 40)


@pytest.mark.parametrize(
    ("after", "changed", "why"),
    [
        (Load(1.01, 1.0), {"wall_s": 0.1}, ()),  # one tick may belong to the time before
        (Load(1.03, 1.0), {}, ("steal",)),
        (Load(1.03, 1.0), {"threads": 2}, ()),  # 1.5 % of two processors
        (Load(1.03, 1.0), {"wall_s": 2.0}, ()),
        (Load(None, None), {}, ()),
        (Load(0.5, 1.0), {}, ()),
        (Load(1.0, 1.09), {}, ()),
        (Load(1.0, 1.11), {}, ("pressure",)),
        (Load(1.0, 1.9), {"threads": 3}, ()),  # its own threads wait for one another
        (Load(1.0, 1.9), {"threads": None, "cpu_s": 1.5}, ()),
        (Load(1.0, 1.9), {"threads": None, "cpu_s": 0.9}, ("pressure",)),
        (Load(1.5, 1.9), {"main_delay_s": 0.5}, ("run_delay", "steal", "pressure")),
        # Threads that end wait for those that they make: the workload's own doing.
        (Load(1.0, 1.15), {"records": handovers(0.06)}, ()),
        (Load(1.0, 1.15), {"records": handovers(0.04)}, ("pressure",)),
    ],
)
def test_steal_and_pressure(after: Load, changed: dict[str, Any], why: tuple[str, ...]) -> None:
    assert run(after, **changed).why == why


OTHERS = Load(1.0, 1.0, 10.0)


def shared(busy_s: float, pressure_s: float = 0.0, **changed: Any) -> disturbance.Disturbance:
    """A server of one busy thread and its load, together 1.9 s in a second, on a machine that was busy for so long."""
    given: dict[str, Any] = {
        "wall_s": 1.0, "cpu_s": 0.9, "main_delay_s": 0.0, "records": [], "threads": None, "cores": 2, "all_cpu_s": 1.9, **changed
    }  # fmt: skip
    return judge(OTHERS, Load(1.0, 1.0 + pressure_s, 10.0 + busy_s), **given)


@pytest.mark.parametrize(
    ("busy_s", "changed", "why", "own"),
    [
        (1.91, {"main_delay_s": 0.3}, (), 0.3),  # nobody else ran: it waited for its load
        (1.91, {"main_delay_s": 0.3, "pressure_s": 0.8}, (), 0.3),
        (1.91, {"main_delay_s": 0.3, "cpu_s": 1.6}, (), 0.1875),  # of two busy threads
        (1.939, {"main_delay_s": 0.3}, (), 0.281),
        (1.95, {"main_delay_s": 0.3}, ("run_delay",), 0.27),  # others ran for 3 %, and may have kept it waiting as long
        (2.0, {"main_delay_s": 0.03}, ("run_delay",), 0.0),
        (2.0, {"main_delay_s": 0.01}, (), 0.0),
        (2.5, {"pressure_s": 0.2}, ("pressure",), 0.0),  # threads whose waiting nobody counts
        (2.0, {"pressure_s": 0.8}, (), 0.0),
        (1.91, {"main_delay_s": 0.3, "cpu_s": 1.95}, (), 0.15384615),
        # As before where the machine's busy time does not tell.
        (0.1, {"main_delay_s": 0.03, "wall_s": 0.4, "cpu_s": 0.3, "all_cpu_s": 0.2}, ("run_delay",), 0.0),
        (1.91, {"main_delay_s": 0.3, "all_cpu_s": None}, ("run_delay",), 0.0),
        (1.91, {"main_delay_s": 0.3, "threads": 1}, ("run_delay",), 0.0),
    ],
)
def test_waiting_for_itself_is_no_disturbance(
    busy_s: float, changed: dict[str, Any], why: tuple[str, ...], own: float
) -> None:
    lost = shared(busy_s, **changed)
    assert lost.why == why
    assert lost.own_share == pytest.approx(own)
    assert lost.as_json().get("own_share", 0.0) == pytest.approx(own, abs=1e-6)


def test_counters_are_read_and_missing_ones_are_unknown(tmp_path: Path) -> None:
    assert disturbance.read(tmp_path) == Load(None, None)
    (tmp_path / "pressure").mkdir()
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 250 9 0\ncpu0 1 2 3 4 5 6 7 250 9 0\n")
    text = "some avg10=5.32 avg60=9.42 avg300=6.86 total=2500000\nfull avg10=0 avg60=0 avg300=0 total=1\n"
    (tmp_path / "pressure" / "cpu").write_text(text)
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert disturbance.read(tmp_path) == Load(250 * tick_s, 2.5, pytest.approx((1 + 2 + 3 + 6 + 7) * tick_s))
    (tmp_path / "stat").write_text("cpu  1 2\n")
    (tmp_path / "pressure" / "cpu").write_text("none\n")
    assert disturbance.read(tmp_path) == Load(None, None)


def test_the_own_control_group_tells_more_than_the_machine(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "pressure").mkdir()
    (proc / "pressure" / "cpu").write_text("some avg10=0 avg60=0 avg300=0 total=9000000\n")
    (proc / "self" / "cgroup").write_text("4:memory:/x\n0::/user/lab\n")
    assert disturbance.read(proc, groups).pressure_s == 9.0
    other = tmp_path / "other"
    (other / "user" / "lab").mkdir(parents=True)
    (other / "user" / "lab" / "cpu.pressure").write_text("some avg10=0 avg60=0 avg300=0 total=2000000\n")
    assert disturbance.read(proc, other).pressure_s == 2.0


def test_run_delay_of_the_main_thread_is_what_the_kernel_counted() -> None:
    """Two processes on one processor: each waits for about half of the time."""
    cpu = str(min(os.sched_getaffinity(0)))
    busy = "print(flush=True)\nwhile True: pass"
    hog = subprocess.Popen(["taskset", "-c", cpu, sys.executable, "-c", busy], stdout=subprocess.PIPE)
    try:
        assert hog.stdout is not None and hog.stdout.readline()
        command = ["/usr/bin/taskset", "-c", cpu, sys.executable, "-c", "sum(range(4_000_000))"]
        outcome = execute(command, {"PATH": "/usr/bin:/bin"}, timeout_s=60)
    finally:
        hog.kill()
        hog.communicate()
    if outcome.run_delay_s is None:
        pytest.skip("this kernel does not count run delay")
    assert 0.2 * outcome.wall_s < outcome.run_delay_s < outcome.wall_s


def test_run_delay_of_workers_comes_with_the_records() -> None:
    """Two workers on one processor wait for each other; the main thread, which sleeps, waits for nobody."""
    program = paths.load_paths()["executables"]["none"]["argv"][0]
    cpu = str(min(os.sched_getaffinity(0)))
    argv = [program, "threadtest", "--threads", "2", "--cpus", cpu, "--records", "3", "-p", "duration_ms=100"]
    outcome = execute(argv, {"LOAM_STACK_OFFSET": "2064"}, timeout_s=60, records=True)
    assert outcome.exit_code == 0, outcome.stderr_tail
    iteration = parse(outcome.records).first("iteration")
    assert iteration is not None
    assert 0.3 < iteration["run_delay_s"] / iteration["elapsed_s"] < 2
    lost = run(records=parse(outcome.records).lines, threads=2, cores=2, wall_s=outcome.wall_s)
    assert "run_delay" in lost.why
