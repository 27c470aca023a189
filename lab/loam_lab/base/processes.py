"""What the kernel says of a process and of what it started, and what ended processes used, added up."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass
class Used:
    """What processes used that were waited for.

    wall_s: while they ran, and whoever starts them adds that
    run_delay_s: that their main threads waited for a processor; None where the kernel does not say
    rss_peak_bytes: resident, of the largest of them; None where that was smaller than this process
    """

    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    run_delay_s: float | None = 0.0
    rss_peak_bytes: int | None = None
    faults_minor: int = 0
    faults_major: int = 0
    switches_voluntary: int = 0
    switches_involuntary: int = 0

    def add(self, used: resource.struct_rusage, delay_s: float | None, own_peak_bytes: int) -> None:
        """Add one process. own_peak_bytes: the peak of this process, no earlier than when that one was started"""
        self.user_s += used.ru_utime
        self.system_s += used.ru_stime
        self.run_delay_s = None if self.run_delay_s is None or delay_s is None else self.run_delay_s + delay_s
        self.faults_minor += used.ru_minflt
        self.faults_major += used.ru_majflt
        self.switches_voluntary += used.ru_nvcsw
        self.switches_involuntary += used.ru_nivcsw
        if (peak := peak_rss(used, own_peak_bytes)) is not None:
            self.rss_peak_bytes = max(peak, self.rss_peak_bytes or 0)


def own_peak_bytes() -> int:
    """The most resident memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_rss(used: resource.struct_rusage, own_bytes: int) -> int | None:
    """Peak RSS of a child in bytes, or None.

    Until it executes the program, the child runs in its parent's memory, and Linux counts that peak as the child's:
    a figure that does not exceed the parent's own says nothing.
    """
    peak = used.ru_maxrss * 1024
    return peak if peak > own_bytes else None


def run_delay_s(pid: int) -> float | None:
    """Seconds that the main thread of an ended, not yet reaped process had waited for a processor."""
    try:
        return int((PROC / str(pid) / "schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def tree(pid: int, proc: Path = PROC) -> set[int]:
    """A process and all its descendants. (A child whose parent ended is not among them.)"""
    members: set[int] = set()
    todo = [pid]
    while todo:
        member = todo.pop()
        if member in members:
            continue
        members.add(member)
        try:
            for task in (proc / str(member) / "task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return members
