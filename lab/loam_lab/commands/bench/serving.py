"""A server for as long as its load runs: started, found ready, seen to listen on the loopback only, loaded and stopped."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from loam_lab.base import processes
from loam_lab.base.processes import Used
from loam_lab.commands.bench import children, percentiles
from loam_lab.commands.bench.children import Failed
from loam_lab.commands.bench.job import Job

LOOPBACK = "127.0.0.1"
POLL_S = 0.005
STOP_S = 30.0
TAIL_BYTES = 2000
_LISTENS = "0A"
_BACKGROUND = (
    "the server went into the background: its first process ended and others go on; start it in the foreground"
)


@contextmanager
def server(
    job: Job, environment: Mapping[str, str], total: Used, group: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:  # fmt: skip
    """The server of a job, in a control group if one is given, for as long as the block lasts; what it used is added to total.

    raises: Failed if its port is taken, it does not get ready, listens to other machines, or does not stop when asked to
    """
    port = int(job.ready) if job.ready.isdigit() else None
    if port is not None and _answers(port):
        raise Failed(f"port {port} is taken: a program listens there already; end it, or give the server another port")
    with tempfile.TemporaryFile() as log:
        process = children.start(job.server, environment, log, job.limits, group=group)
        well = False
        try:
            _wait_ready(process, job, port, log)
            if open_to := elsewhere(processes.tree(process.pid)):
                raise Failed(
                    f"the server listens on {open_to}, which other machines can reach; bind it to {LOOPBACK}, as "
                    f"redis-server does with --bind {LOOPBACK}"
                )
            yield process
            well = True
        finally:
            problem = _stop(process, total, job.stop)
            if well and problem:
                raise Failed(problem + tail(log))


def fill(job: Job, environment: Mapping[str, str], process: subprocess.Popen[bytes]) -> None:
    """Fill a server that is ready with data; raises: Failed as load()"""
    if job.fill:
        _against(process, ["/bin/sh", "-c", job.fill], environment, job.timeout_s, "--fill")


def load(job: Job, environment: Mapping[str, str], process: subprocess.Popen[bytes]) -> tuple[str, float]:
    """Run the load against a server that is ready; returns what it printed, and its seconds.

    raises: Failed if it ends badly or not in time, or the server ends before it
    """
    return _against(process, job.load, environment, job.timeout_s, "the load")


def _against(
    process: subprocess.Popen[bytes], command: Sequence[str], environment: Mapping[str, str], timeout_s: float, what: str
) -> tuple[str, float]:  # fmt: skip
    """Run a command against a server; what: it is called in messages."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        loading = children.start(command, environment, out, {})
        first = children.ended([process, loading], timeout_s)
        took_s = time.monotonic() - began
        # Where its child answers before it has ended, it was taken for ready. Whom the load started is not its child.
        in_background = first is process and bool(_beside(process) - processes.tree(loading.pid))
        if first is not loading:
            os.killpg(loading.pid, signal.SIGKILL)
        status = children.reap(loading, Used())
        # A load may notice a server's end first.
        if first is process or (status != 0 and children.ended([process], 0.2)):
            where = "under load" if what == "the load" else f"during {what}"
            how = _how(process)
            raise Failed(
                _BACKGROUND if in_background and how == "status 0" else f"the server ended {where}, with {how}"
            )
        if first is None:
            raise Failed(f"{what} did not end within {timeout_s:g} s{tail(out)}")
        if status != 0:
            how = f"status {status}" if status > 0 else signal.Signals(-status).name
            raise Failed(f"{what} ended with {how}{tail(out)}")
        return written(out).decode(errors="replace"), took_s


def values(job: Job, printed: str) -> dict[str, float]:
    """The metric that a load printed, of several matches the geometric mean, and its latencies; nothing without a metric.

    raises: Failed where nothing matches, or what matches is no number above 0
    """
    if not job.metric:
        return {}
    numbers = []
    pattern = re.compile(job.metric)
    for match in pattern.finditer(printed):
        text = match[job.named()] if pattern.groupindex else match[1]
        try:
            number = float(str(text).replace(",", ""))
        except ValueError:
            number = 0.0
        if not 0 < number < math.inf:
            raise Failed(
                f"--metric matched {match[0][:80]!r}, but {text!r} is no number above 0; put the number in the group"
            )
        numbers.append(number)
    if not numbers:
        last = printed.strip().splitlines()[-1:] or ["nothing"]
        raise Failed(f"--metric {job.metric} matches nothing that the load prints; its last line: {last[0][:200]}")
    geometric = math.exp(sum(map(math.log, numbers)) / len(numbers))
    latencies = {f"latency_{name}_s": seconds for name, seconds in percentiles.find(printed).items()}
    return {job.named(): geometric, "matches": len(numbers), **latencies}


def elsewhere(pids: set[int]) -> str:
    """An address beyond the loopback on which one of these processes listens; "" if there is none that can be seen."""
    own = {inode for pid in pids for inode in _sockets(pid)}
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with suppress(OSError):
            for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and fields[9] in own:
                    host, port = _address(fields[1], family)
                    if not (host.startswith(("127.", "::ffff:127.")) or host == "::1"):
                        return f"[{host}]:{port}" if family is socket.AF_INET6 else f"{host}:{port}"
    return ""


def _address(text: str, family: socket.AddressFamily) -> tuple[str, int]:
    """Host and port of an entry of /proc/net/tcp: words of 32 bits in the machine's order, a port in hexadecimal."""
    words, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    return socket.inet_ntop(family, raw), int(port, 16)


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = os.readlink(entry)  # noqa: PTH115
                if target.startswith("socket:["):
                    yield target[8:-1]


def _answers(port: int) -> bool:
    for family, host in ((socket.AF_INET, LOOPBACK), (socket.AF_INET6, "::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            probe.connect((host, port))
            return True
    return False


def _wait_ready(process: subprocess.Popen[bytes], job: Job, port: int | None, log: IO[bytes]) -> None:
    deadline = time.monotonic() + job.ready_s
    while True:
        if children.ended([process], 0.0):
            if _beside(process):
                raise Failed(_BACKGROUND)
            raise Failed(f"the server ended with {_how(process)} before it was ready{tail(log)}")
        if _answers(port) if port is not None else re.search(job.ready, written(log).decode(errors="replace")):
            return
        if time.monotonic() > deadline:
            what = f"port {port} does not answer" if port is not None else f"nothing that it wrote matches {job.ready}"
            raise Failed(f"the server was not ready within {job.ready_s:g} s: {what}{tail(log)}")
        time.sleep(POLL_S)


def _beside(process: subprocess.Popen[bytes]) -> set[int]:
    """Processes that this one or its descendants started, without the server's first."""
    return processes.tree(os.getpid()) - {os.getpid(), process.pid}


def _how(process: subprocess.Popen[bytes]) -> str:
    """How an ended process ended, which stays to be reaped: "status 1", "SIGSEGV"."""
    ending = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    if ending is None or ending.si_code == os.CLD_EXITED:
        return f"status {ending.si_status if ending else 0}"
    return signal.Signals(ending.si_status).name


def _stop(process: subprocess.Popen[bytes], total: Used, by: str) -> str:
    """Ask a server to end, and wait for it; returns what went wrong, "" if nothing did. by: a signal's name, "" to find it"""
    asked = signal.Signals[f"SIG{by}"] if by else _stopping_signal(process.pid)
    running = not children.ended([process], 0.0)
    if running:
        process.send_signal(asked)
    in_time = children.ended([process], STOP_S) is not None
    if not in_time:
        os.killpg(process.pid, signal.SIGKILL)
    status = children.reap(process, total)
    if not running:
        return "the server ended by itself after the load"
    if not in_time:
        return f"the server did not end within {STOP_S:g} s of {asked.name}"
    if status not in (0, -asked, 128 + asked):
        return f"asked to end by {asked.name}, the server ended with {status}"
    return ""


def _stopping_signal(pid: int) -> signal.Signals:
    """TERM, or INT where a server catches only that: one that it catches lets it end by itself, and say who served it."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = int(next(line for line in lines if line.startswith("SigCgt:")).split()[1], 16)
        for wanted in (signal.SIGTERM, signal.SIGINT):
            if caught >> (wanted - 1) & 1:
                return wanted
    return signal.SIGTERM


def written(file: IO[bytes]) -> bytes:
    """What processes have written into a file so far; their place in it is left alone."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0)


def tail(file: IO[bytes]) -> str:
    """The last line of what was written, as the end of a sentence; "" where there is none."""
    lines = written(file)[-TAIL_BYTES:].decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:300]}" if lines else ""
