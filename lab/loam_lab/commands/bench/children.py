"""Processes that a run starts, all of which end with it, and what a tree of them used, read from /proc.

This process adopts what its descendants leave behind (PR_SET_CHILD_SUBREAPER), so a daemon that left its group is found,
counted and ended like the rest; and what it starts ends with it even where it is killed (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from loam_lab.base import processes
from loam_lab.base.processes import Used

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TICKS = os.sysconf("SC_CLK_TCK")
ENDING_S = 10.0
NOWHERE = subprocess.DEVNULL


class Failed(Exception):
    """What the run should have done and did not, in one sentence."""


def adopt() -> None:
    """Let orphans of this process become its children."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(number: signal.Signals) -> None:
    """Let the kernel send this process a signal when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def start(
    command: Sequence[str], environment: Mapping[str, str], out: IO[bytes] | int, limits: Mapping[str, int],
    err: IO[bytes] | int | None = None, group: Path | None = None,
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Start a command in a session of its own, without a terminal, its standard input empty.

    out, err: where it writes; err None for where it writes the rest; group: the control group that it starts in
    raises: Failed if it does not start
    """
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()
    bounds = [(getattr(resource, name), value) for name, value in limits.items()]
    members = None if group is None else os.open(group / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if members is not None:
            os.write(members, b"0")
        for which, value in bounds:
            resource.setrlimit(which, (value, value))

    # Asked to end just now, this process would not know yet what it has started.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT if err is None else err,
            env=dict(environment), start_new_session=True, preexec_fn=prepare,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as problem:
        why = getattr(problem, "strerror", None) or "a limit of --limit cannot be set; it exceeds this user's own"
        raise Failed(f"{command[0]} does not start: {why}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if members is not None:
            os.close(members)


def ended(processes: Sequence[subprocess.Popen[bytes]], timeout_s: float) -> subprocess.Popen[bytes] | None:
    """The first of these processes that ends within the time, not reaped; None if none does. Sleeps in the kernel."""
    handles = {os.pidfd_open(process.pid): process for process in processes}
    poll = select.poll()
    try:
        for handle in handles:
            poll.register(handle, select.POLLIN)
        ready = poll.poll(max(0.0, timeout_s) * 1000)
        return handles[ready[0][0]] if ready else None
    finally:
        for handle in handles:
            os.close(handle)


def reap(process: subprocess.Popen[bytes], total: Used) -> int:
    """Wait for a process that ended or is ending; returns its status, negative for a signal."""
    delay_s = processes.run_delay_s(process.pid)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    total.add(used, delay_s, processes.own_peak_bytes())
    return process.returncode


def leave_nothing() -> int:
    """Kill every descendant that is left and wait for it; returns: how many there were."""
    killed: set[int] = set()
    deadline = time.monotonic() + ENDING_S
    while time.monotonic() < deadline:
        left = processes.tree(os.getpid()) - {os.getpid()}
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= left
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(killed)
        time.sleep(0.002)
    return len(killed)


def processor_s(pids: set[int]) -> float:
    """User and system time that living processes have used so far, with children that they waited for."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(value) for value in fields[11:15])
    return total / _TICKS


def waited_s(pids: set[int]) -> float | None:
    """Seconds that the living threads of these processes have waited for a processor so far; None where nobody says."""
    total, known = 0, False
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    total, known = total + int((task / "schedstat").read_text().split()[1]), True
    return total / 1e9 if known else None


def memory(pids: set[int]) -> dict[str, int]:
    """RSS and PSS of living processes in bytes; empty where they cannot be read."""
    sums: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
                name, _, rest = line.partition(":")
                if name in ("Rss", "Pss"):
                    sums[name] = sums.get(name, 0) + int(rest.split()[0]) * 1024
    return sums


def peak_bytes(pids: set[int]) -> int:
    """The most resident memory that the largest of these living processes had so far; 0 where nobody says."""
    most = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    most = max(most, int(line.split()[1]) * 1024)
    return most


def migrations(pids: set[int]) -> int | None:
    """How often the living threads of these processes were moved to another processor; None where nobody says."""
    total, known = 0, False
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                for line in (task / "sched").read_text().splitlines():
                    if line.startswith("se.nr_migrations"):
                        total, known = total + int(line.rpartition(":")[2]), True
    return total if known else None
