"""Start one process, wait without doing anything, and say what it used.

Nothing of the lab runs while a timed process runs: the lab blocks in poll() on the process's descriptor (of a long run on a
terminal it wakes once a second and writes a line, see measure/ticks.py).  The process gets its own group (so that a timeout
ends its children too), standard input from /dev/null, a file in memory for its records, and a pipe for its diagnostics, of
which the lab keeps the end (see output.py).
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from loam_lab.base import processes
from loam_lab.campaign.process import output

RECORDS_FD = 3
GRACE_S = 2.0
LEFTOVER = "it left processes behind; they were killed, and their time and memory are not counted; make the command wait for them"

# Looks at a running process, given its number; returns the seconds until it wants to look again.
Watch = Callable[[int], float]


@dataclass(frozen=True)
class Outcome:
    """What one process did and used.

    exit_code, signal: one of them is None; timed_out: the lab ended it
    rss_peak_bytes: None where it cannot be told from the lab's own (processes.peak_rss; the interposition probe says it better)
    run_delay_s: time the main thread waited for a CPU; None where the kernel does not say
    records, stderr_tail: what it wrote, the tail limited to output.TAIL_BYTES
    leftover: a warning if it left processes behind, else ""
    """

    pid: int
    started_utc: str
    wall_s: float
    user_s: float
    system_s: float
    run_delay_s: float | None
    rss_peak_bytes: int | None
    faults_minor: int
    faults_major: int
    switches_voluntary: int
    switches_involuntary: int
    exit_code: int | None
    signal: int | None
    timed_out: bool
    records: bytes
    stderr_tail: str
    leftover: str = ""


def execute(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    records: bool = False,
    keep_stdout: bool = False,
    watch: Watch | None = None,
) -> Outcome:
    """Run a program to its end.

    argv: the program's path and arguments; with `records` the descriptor RECORDS_FD is open in it
    keep_stdout: its output counts as diagnostics (a workload); else it is discarded (a command of the user's)
    watch: called with the process's number while it runs, for runs whose times do not count
    raises: OSError if it cannot be started; KeyboardInterrupt is passed on after the process group was ended
    """
    _keep_descriptors()
    with contextlib.ExitStack() as stack:
        null = _opened(stack, os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        tail = stack.enter_context(contextlib.closing(output.Tail()))
        file = stack.enter_context(contextlib.closing(output.RecordsFile())) if records else None
        actions: list[tuple[int, int, int]] = [
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_DUP2, tail.writer if keep_stdout else null, 1),
            (os.POSIX_SPAWN_DUP2, tail.writer, 2),
        ]
        if file is not None:
            actions.append((os.POSIX_SPAWN_DUP2, file.descriptor, RECORDS_FD))
        started_utc = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        rss_before = processes.own_peak_bytes()
        started = time.monotonic()
        pid = os.posix_spawn(
            argv[0], list(argv), dict(environment), file_actions=actions, setpgroup=0, setsigmask=(),
            # Python ignores these; an ignored signal would be inherited.
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )  # fmt: skip
        handle = None
        try:
            handle = _opened(stack, os.pidfd_open(pid))
            timed_out = not (
                output.ended(handle, timeout_s, tail)
                if watch is None
                else _watched(pid, handle, timeout_s, watch, tail)
            )
            if timed_out:
                _stop(pid, handle, tail)
            wall_s = time.monotonic() - started
            run_delay_s = processes.run_delay_s(pid)
        except BaseException:
            try:
                if handle is not None:  # asked to end, a subject ends what it started in groups of their own
                    _stop(pid, handle, tail)
            finally:
                _kill_group(pid)
                os.waitpid(pid, 0)
            raise
        # The leader is not reaped yet, so its number still names the group: nothing it left behind lives on.
        _kill_group(pid)
        _, status, used = os.wait4(pid, 0)
        left_behind = _group_exists(pid)
        code = os.waitstatus_to_exitcode(status)
        tail.drain()
        written = file.content() if file is not None else b""
        tail_text = (
            tail.text()
            if written is not None
            else f"{tail.text()}\nmore than {output.RECORDS_MAX_BYTES >> 20} MiB of records"
        )
        return Outcome(
            pid=pid,
            started_utc=started_utc,
            wall_s=wall_s,
            user_s=used.ru_utime,
            system_s=used.ru_stime,
            run_delay_s=run_delay_s,
            rss_peak_bytes=processes.peak_rss(used, rss_before),
            faults_minor=used.ru_minflt,
            faults_major=used.ru_majflt,
            switches_voluntary=used.ru_nvcsw,
            switches_involuntary=used.ru_nivcsw,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=timed_out,
            records=written or b"",
            stderr_tail=tail_text,
            leftover=LEFTOVER if left_behind else "",
        )


@functools.cache
def _keep_descriptors() -> None:
    """Descriptors that the lab inherited from its own parent stay here; Python's own are closed on exec anyway."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


def _opened(stack: contextlib.ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _watched(pid: int, handle: int, timeout_s: float, watch: Watch, tail: output.Tail) -> bool:
    """As output.ended, but looks at the process whenever the one who watches wants to."""
    deadline = time.monotonic() + timeout_s
    while True:
        pause_s = watch(pid)
        left_s = deadline - time.monotonic()
        if output.ended(handle, max(0.0, min(pause_s, left_s)), tail):
            return True
        if left_s <= pause_s:
            return False


def _stop(pid: int, handle: int, tail: output.Tail) -> None:
    """TERM for the group, and KILL where it does not follow."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    if not output.ended(handle, GRACE_S, tail):
        _kill_group(pid)
        output.ended(handle, 60.0, tail)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _group_exists(pid: int) -> bool:
    """Whether the group of a reaped leader has members still; while it has, no other group gets its number.

    They were killed a moment ago and count until their new parent has reaped them
    """
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
