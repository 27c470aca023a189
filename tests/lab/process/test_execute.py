"""One process from start to end: what it gets, what it leaves, how it is stopped, what is said about it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from loam_lab.campaign.process.execute import Outcome, execute
from loam_lab.campaign.process.output import TAIL_BYTES

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def shell(text: str, *, timeout_s: float = 20.0, records: bool = True, keep_stdout: bool = True) -> Outcome:
    return execute(["/bin/sh", "-c", text], ENVIRONMENT, timeout_s=timeout_s, records=records, keep_stdout=keep_stdout)


def test_records_output_and_status() -> None:
    outcome = shell("echo '{}' >&3; echo diagnostics; echo more >&2; exit 3")
    assert outcome.records == b"{}\n"
    assert outcome.stderr_tail == "diagnostics\nmore\n"
    assert (outcome.exit_code, outcome.signal, outcome.timed_out) == (3, None, False)
    assert outcome.wall_s > 0
    assert outcome.faults_minor > 0


def test_output_of_a_command_is_discarded_and_long_output_cut() -> None:
    assert shell("echo noise", keep_stdout=False).stderr_tail == ""
    outcome = shell("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2")
    assert len(outcome.stderr_tail) == TAIL_BYTES
    assert outcome.stderr_tail.endswith("end\n")


def test_many_records_are_read_whole() -> None:
    assert len(shell("head -c 3000000 /dev/zero >&3").records) == 3_000_000


def test_standard_input_is_empty_and_no_descriptor_leaks() -> None:
    leak = os.open("/dev/null", os.O_RDONLY)  # close-on-exec, as everything Python opens
    try:
        assert shell("cat; ls /proc/self/fd | tr '\\n' ' '").stderr_tail.split() == [
            "0",
            "1",
            "2",
            "3",
            "4",
        ]  # 4: ls's own
    finally:
        os.close(leak)


def test_own_process_group_and_default_signals() -> None:
    outcome = shell("ps -o pgid= -p $$; echo $$; grep SigIgn /proc/$$/status")
    group, pid, _, ignored = outcome.stderr_tail.split()
    assert group == pid
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_a_signal_is_told_from_a_status() -> None:
    outcome = shell("kill -SEGV $$")
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGSEGV)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pid: int) -> bool:
    for _ in range(2000):
        if not alive(pid):
            return True
        time.sleep(0.01)
    return False


def test_timeout_ends_the_process() -> None:
    outcome = shell("sleep 30", timeout_s=0.2)
    assert outcome.timed_out
    assert 0.2 <= outcome.wall_s < 20, "it would sleep for 30 seconds"
    assert outcome.signal == signal.SIGTERM


def test_timeout_kills_what_ignores_term_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loam_lab.campaign.process.execute.GRACE_S", 0.2)
    outcome = shell("trap '' TERM; sleep 30 & echo $!; while :; do wait; done", timeout_s=0.2)
    assert outcome.timed_out
    assert outcome.signal == signal.SIGKILL
    assert gone(int(outcome.stderr_tail.split()[0]))


def test_nothing_that_a_command_leaves_behind_lives_on() -> None:
    outcome = shell("sleep 30 & echo $!")
    assert outcome.exit_code == 0
    assert gone(int(outcome.stderr_tail.split()[0]))


def test_interrupt_ends_the_process_and_is_passed_on() -> None:
    marker = f"17.{os.getpid()}"
    # Ignored where the tests run in the background.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            shell(f"exec sleep {marker}")
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert subprocess.run(["pgrep", "-f", f"sleep {marker}"], capture_output=True, check=False).stdout == b""


def test_what_does_not_start_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        execute(["/nowhere/program"], ENVIRONMENT, timeout_s=1)


def test_cpu_time_is_of_the_whole_tree() -> None:
    burn = f"{sys.executable} -c 'sum(range(6000000))'"
    outcome = shell(f"{burn}; {burn}")
    assert outcome.user_s > 0.05
    assert outcome.run_delay_s is None or outcome.run_delay_s >= 0


def test_peak_memory_is_never_the_labs_own() -> None:
    """The kernel counts memory before exec; a small program must not be said to use as much as the lab."""
    assert shell("true").rss_peak_bytes is None
    large = execute([sys.executable, "-c", "b = bytearray(600 << 20)"], ENVIRONMENT, timeout_s=20)
    assert large.rss_peak_bytes is not None
    assert large.rss_peak_bytes > 600 << 20


def test_waiting_costs_nothing() -> None:
    before = os.times()
    shell("sleep 1")
    after = os.times()
    assert after.user + after.system - before.user - before.system < 0.1
