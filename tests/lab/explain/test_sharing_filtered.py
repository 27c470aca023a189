"""Filters of system calls: a run that the kernel let nobody watch is refused, never told as one that shares nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sampler
from interposing import compile_c
from synthetic_watches import file, process, watch

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing import document, findings, refusals, run, watches

# Executes a command under a filter that answers perf_event_open with an error's number, or kills the process, or the thread,
# that calls it.
FILTER = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char** argv) {
  const unsigned action =
      strcmp(argv[1], "kill") == 0     ? SECCOMP_RET_KILL_PROCESS
      : strcmp(argv[1], "thread") == 0 ? SECCOMP_RET_KILL_THREAD
                                       : SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1]);
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 77;
  execvp(argv[2], argv + 2);
  return 78;
}
"""
NO_SECCOMP = 77
THREADS = "import threading, time; t = threading.Thread(target=time.sleep, args=(0.2,)); t.start(); t.join()"
FORBIDS = "a seccomp filter .* forbids perf_event_open: allow that call"


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program that filters."""
    sampler.built()
    program = str(compile_c(tmp_path_factory.mktemp("filter"), "filtered", FILTER))
    if subprocess.run([program, "1", "true"], check=False).returncode == NO_SECCOMP:
        pytest.skip("not run: this kernel, or what surrounds the test, lets nobody install a seccomp filter")
    return program


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOSYS])
def test_a_program_that_may_not_be_watched_is_refused(filtered: str, number: int) -> None:
    with pytest.raises(LoamError, match=f"the kernel refused the clock: {os.strerror(number)}.*{FORBIDS}"):
        run.perform([filtered, str(number), sys.executable, "-c", THREADS], None)


def test_a_filter_that_kills_is_told(filtered: str) -> None:
    with pytest.raises(LoamError, match=r"was ended by SIGSYS, which is how seccomp filters .*allow it in the filter"):
        run.perform([filtered, "kill", sys.executable, "-c", THREADS], None)


def test_a_filter_that_kills_the_thread_alone_is_told(filtered: str) -> None:
    """The program does not notice: it ends well, and nobody has watched it."""
    with pytest.raises(LoamError, match=r"the thread that watches was killed, .* seccomp .*allow it in the filter"):
        run.perform([filtered, "thread", sys.executable, "-c", THREADS], None)


@pytest.mark.parametrize(
    "ending", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)"]
)
@pytest.mark.parametrize("answer", [str(errno.EPERM), "thread"])
def test_a_filter_is_told_of_however_the_program_ends(filtered: str, answer: str, ending: str) -> None:
    """No exit handler of the sampler's runs: what its file says at that moment has to suffice."""
    cause = (
        "the thread that watches was killed, .* seccomp" if answer == "thread" else f"refused the clock: .*{FORBIDS}"
    )
    with pytest.raises(LoamError, match=cause):
        run.perform([filtered, answer, sys.executable, "-c", f"import os, signal; {THREADS}; {ending}"], None)


def test_a_monitor_that_stood_in_a_call_was_killed_there_only_if_nobody_said_more(tmp_path: Path) -> None:
    assert watches.read(file([], ended=0, asking=1)).killed
    assert not watches.read(file([], ended=0)).killed, "it was ended in the middle of its work"
    assert not watches.read(file([], ended=1, asking=1)).killed, "the process ended by itself, and it lived"


def test_what_was_seen_before_the_thread_was_killed_counts(tmp_path: Path) -> None:
    """As where a program installs such a filter itself, once it has begun."""
    killed = watches.read(file([watch()], ended=watches.MONITOR_KILLED))
    refusals.check("p", [killed])
    words = document.of(["p"], "glibc", findings.see([killed], tmp_path))["words"]
    assert words[-1].startswith("The thread that watches was killed before the program ended, as by a seccomp filter")
    whole = document.of(["p"], "glibc", findings.see([process(watch())], tmp_path))["words"]
    assert "killed" not in " ".join(whole)


def test_a_filter_around_the_lab_is_told_before_the_command_runs(filtered: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = f"from loam_lab.cli import main; raise SystemExit(main.run(['explain', '--', 'touch', {str(mark)!r}]))"
    done = subprocess.run(
        [filtered, str(errno.EPERM), sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "the kernel refused the clock: Operation not permitted" in done.stderr
    assert not mark.exists()


def test_watchpoints_that_are_refused_in_all_threads_are_no_answer() -> None:
    """The clock samples, but no other thread is ever watched: that is not "nothing is shared"."""
    with pytest.raises(LoamError, match=r"refused the watchpoint: No space left.*does a debugger"):
        refusals.check("p", [process(f"refused watchpoint {errno.ENOSPC}", *[watch(others=0)] * 9)])
    refusals.check("p", [process(*[watch(others=0, all_others=0)] * 9)])  # the second thread had ended
    refusals.check("p", [process(f"refused watchpoint {errno.ENOSPC}", watch())])


def test_threads_that_were_not_watched_are_told_beside_the_figures(tmp_path: Path) -> None:
    """As in a program that installs a filter itself, once it has begun."""
    seen = findings.see([process(watch(), f"refused clock {errno.EPERM}", watch())], tmp_path)
    words = document.of(["p"], "glibc", seen)["words"]
    assert words[-1] == (
        "Some threads were not watched: the kernel refused the clock for them (Operation not permitted)."
    )
