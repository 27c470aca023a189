"""How much of a run other work and the hypervisor took, and when that spoils the block it belongs to.

Three sources, each of which sees what the others miss:

- run delay: time that the process's own threads were ready and waited for a CPU.  Exact, per thread, from schedstat:
  the main thread's is read after it ended; that of a workload's workers comes with its records (`run_delay_s` of an
  iteration), because the kernel forgets a thread that has ended.  Comparing CPU time with wall time would not do: a
  thread that sleeps in its allocator's lock is no disturbance, it is what is measured
- steal: time that the hypervisor gave to somebody else, of all CPUs, in ticks of the kernel
- pressure: time in which any task waited for a CPU (PSI "some"), of the lab's own control group where that has a
  counter, else of the machine.  It says that there was other work, not whom it cost, so it takes more of it to spoil a
  run; it is the only source for threads of commands

A command, or a server and its load, may wait for its own processes: that is part of what is measured.  Others cannot make
it wait longer than they had processors, which is the machine's busy time beyond that of the run's processes.  What was
waited beyond that is the run's own waiting.

A workload that runs for a time is measured in slices (workloads/harness/slices.hpp): its rate is that of the slices in which
none of its threads waited.  Run delay and pressure then cost slices and spoil nothing; only where too few slices are left
is the rate another one, and the run is judged as a whole.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab.model.records import rated_by_slices, totals

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
# Share of the time of a run's threads that may be lost before the block is run again.
SHARE_MAX = 0.02
# Pressure counts the waiting of everybody: kernel threads that wait behind a busy workload are part of each run.
PRESSURE_SHARE_MAX = 0.10
# A command that uses more CPU time than this has several threads, which may wait for one another; and one that uses
# this share of all cores surely makes somebody wait.
ONE_THREAD_SHARE = 1.1
FULL_SHARE = 0.9
# Starting and ending a process costs about this much waiting on an idle machine; runs of milliseconds consist of it.
RUN_DELAY_FLOOR_S = 0.001
PRESSURE_FLOOR_S = 0.005
# Steal is told in whole ticks, so that one may belong to the time before the run.
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STEAL_FLOOR_S = 2 * TICK_S
# The machine's busy time is counted in ticks: of runs with fewer of them it tells nothing.
BUSY_TICKS_MIN = 50


@dataclass(frozen=True)
class Load:
    """Counters of the whole machine at one moment, in seconds since boot; None where the kernel does not say.

    busy_s: in which its processors ran anything
    """

    steal_s: float | None
    pressure_s: float | None
    busy_s: float | None = None


def read(proc: Path = PROC, groups: Path = GROUPS) -> Load:
    """The counters now; two small reads, so that it may be asked before and after each run."""
    steal_s, busy_s = _processors(proc / "stat")
    return Load(steal_s, _pressure_s(_pressure_file(proc, groups)), busy_s)


@functools.cache
def _pressure_file(proc: Path, groups: Path) -> Path:
    """The pressure counter that tells most of the lab's own processes: its control group's, if it counts."""
    with contextlib.suppress(OSError):
        for line in (proc / "self" / "cgroup").read_text().splitlines():
            # 0::/path is the unified hierarchy, the only one with pressure.
            number, _, path = line.split(":", 2)
            own = groups / path.lstrip("/") / "cpu.pressure"
            if number == "0" and _pressure_s(own) is not None:
                return own
    return proc / "pressure" / "cpu"


def _processors(file: Path) -> tuple[float | None, float | None]:
    """Seconds that the hypervisor took, and that the processors were busy."""
    try:
        with file.open() as lines:
            # cpu user nice system idle iowait irq softirq steal ...; guests are part of user
            user, nice, system, _, _, irq, softirq, steal = (int(field) for field in lines.readline().split()[1:9])
            return steal * TICK_S, (user + nice + system + irq + softirq) * TICK_S
    except (OSError, ValueError):
        return None, None


def _pressure_s(file: Path) -> float | None:
    try:
        with file.open() as lines:
            kind, *fields = lines.readline().split()
            values = dict(field.split("=", 1) for field in fields)
            return int(values["total"]) / 1e6 if kind == "some" else None
    except (OSError, KeyError, ValueError):
        return None


@dataclass(frozen=True)
class Disturbance:
    """What was taken from one run.

    run_delay_s: of all threads that could be asked, None where the kernel does not say; steal_s, pressure_s: of the
    machine while the run lasted; share: the largest part of the run's thread time that one of run delay and steal took
    why: the sources beyond their limit, of "run_delay", "steal", "pressure"; the run is contaminated if there is one
    slices, slices_kept: of the run, and those in which no thread waited; 0 where it has none
    own_share: part of the run's thread time in which it waited for its own processes; 0 where that is not known
    """

    run_delay_s: float | None
    steal_s: float | None
    pressure_s: float | None
    share: float
    why: tuple[str, ...]
    slices: int = 0
    slices_kept: int = 0
    own_share: float = 0.0

    @property
    def contaminated(self) -> bool:
        """Whether the run's block has to be run again."""
        return bool(self.why)

    def as_json(self) -> dict[str, Any]:
        """As the journal has it."""
        return {
            "run_delay_s": self.run_delay_s, "steal_s": self.steal_s, "pressure_s": self.pressure_s,
            "share": round(self.share, 6), "contaminated": self.contaminated, "why": list(self.why),
            "slices": self.slices, "slices_kept": self.slices_kept,
            **({"own_share": round(self.own_share, 6)} if self.own_share else {}),
        }  # fmt: skip


# On a machine where the same run takes the same time each time.
NONE = Disturbance(None, None, None, 0.0, ())


def judge(
    before: Load, after: Load, *, wall_s: float, cpu_s: float, main_delay_s: float | None,
    records: Iterable[Mapping[str, Any]], threads: int | None, cores: int, all_cpu_s: float | None = None,
) -> Disturbance:  # fmt: skip
    """What a run lost.

    wall_s, cpu_s: of the process; main_delay_s: run delay of its main thread, or of all that could be asked
    threads: that it keeps busy, None where nobody knows (a command); cores: hardware threads that it may use
    More threads than cores wait for one another: that share is allowed for.  A command that fills the cores may do the
    same without anybody knowing how much, so that only the hypervisor can be told from itself; unless the machine's busy
    time tells it.
    all_cpu_s: CPU time of all processes between the two loads that are part of the run, also of a load
    """
    lines = list(records)
    sums = totals(lines)
    workers_s = sums.get("run_delay_s")
    # The main thread of a workload sleeps while its workers run, and waits for none of them.
    known = [delay for delay in (main_delay_s, workers_s) if delay is not None]
    run_delay_s = sum(known) if known else None
    steal_s = _grown(before.steal_s, after.steal_s)
    pressure_s = _grown(before.pressure_s, after.pressure_s)
    # Threads that make way for their successors do it on purpose: part of the pressure, and of no run delay.
    others_s = None if pressure_s is None else pressure_s - sums.get("handover_delay_s", 0.0)
    wall_s = max(wall_s, 1e-9)
    busy = cpu_s / wall_s
    own = max(0.0, 1 - cores / threads) if threads is not None else float(busy > FULL_SHARE * cores)
    lanes = min(threads if threads is not None else max(1.0, busy), cores)
    # No process loses more to the hypervisor than the CPUs it can be on.
    steal_share = (steal_s or 0.0) / (wall_s * lanes)
    delay_share = (run_delay_s or 0.0) / (wall_s * (threads or 1))
    # What was waited is in slices that are left out.
    by_slices = rated_by_slices(lines)
    own_share = 0.0
    busy_s = _grown(before.busy_s, after.busy_s)
    by_busy_time = (
        threads is None and busy_s is not None and all_cpu_s is not None and wall_s >= BUSY_TICKS_MIN * TICK_S
    )
    if by_busy_time and busy_s is not None and all_cpu_s is not None:
        most_s = max(0.0, busy_s - all_cpu_s - STEAL_FLOOR_S)  # others had processors for no longer
        delay_s, own = min(run_delay_s or 0.0, most_s), 0.0
        own_share = max(0.0, (run_delay_s or 0.0) - delay_s) / (wall_s * lanes)
        delay_share = delay_s / wall_s
        others_s = None if others_s is None else min(others_s, most_s)
    why = []
    if not by_slices and run_delay_s is not None and run_delay_s > RUN_DELAY_FLOOR_S and delay_share > SHARE_MAX + own:
        why.append("run_delay")
    if steal_s is not None and steal_s > STEAL_FLOOR_S and steal_share > SHARE_MAX:
        why.append("steal")
    # With more threads than CPUs somebody always waits: pressure then says nothing about others.
    alone = not by_slices and own == 0.0 and (threads is not None or busy <= ONE_THREAD_SHARE or by_busy_time)
    if alone and others_s is not None and others_s > max(PRESSURE_FLOOR_S, PRESSURE_SHARE_MAX * wall_s):
        why.append("pressure")
    share = max(delay_share, min(steal_share, 1.0))
    slices, kept = (int(sums.get(name, 0.0)) for name in ("slices", "slices_kept"))
    return Disturbance(run_delay_s, steal_s, pressure_s, share, tuple(why), slices, kept, own_share)


def _grown(before: float | None, after: float | None) -> float | None:
    # Steal of virtual machines has been seen to run backwards after a migration.
    return None if before is None or after is None else max(0.0, round(after - before, 6))
