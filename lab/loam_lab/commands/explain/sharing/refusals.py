"""What the kernel refused the sampler: nothing is said of a run that could not be watched, and what was missed is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing.watches import Process

CLOCK, WATCHPOINT = "clock", "watchpoint"
_FILTERED = (errno.EPERM, errno.EACCES, errno.ENOSYS)  # what seccomp filters answer in place of the kernel
# Ends a process whose filter kills what makes a call that it does not allow.
_KILLED = "SIGSYS"


def error(text: str | None, what: str, number: int) -> LoamError:
    """The refusal of an event, with what to do. text: the command, None where the lab itself was refused"""
    return LoamError(
        "explain", text, f"the kernel refused the {what}: {os.strerror(number)}", _hint(what, number), exit_code=1
    )


def _hint(what: str, number: int) -> str:
    if number == errno.EMFILE:
        return "the program's limit of open files leaves no room: ulimit -n 4096"
    if what == WATCHPOINT and number not in _FILTERED:
        return "does a debugger, or a virtual machine without debug registers, hold them? run without it"
    if number in _FILTERED:
        return (
            "a seccomp filter (of a container, a service or the program itself) forbids perf_event_open: allow that call, "
            "for example by docker run --security-opt seccomp=unconfined, or run without the filter"
        )
    return "as root, or with a smaller kernel.perf_event_paranoid, more is allowed"


def check(text: str, processes: Sequence[Process], ending: str = "") -> None:
    """Nothing if some thread could be watched, or there was none to watch; text: the command; ending: how it ended

    raises: LoamError where the kernel refused all
    """
    if any(process.unread or any(watch.others for watch in process.watches) for process in processes):
        return
    refused = [one for process in processes for one in process.refused]
    if refused:
        raise error(text, *refused[0])
    what = ""
    if _KILLED in ending:
        what = f"{ending}, which is how seccomp filters end a program that makes a call they forbid"
    elif any(process.killed for process in processes):
        what = "the thread that watches was killed, which is how some seccomp filters answer a call that they forbid"
    if what:
        hint = "the sampler calls perf_event_open: allow it in the filter, or run without the filter"
        raise LoamError("explain", text, what, hint, exit_code=1)


def words(processes: Sequence[Process]) -> list[str]:
    """What was refused in a run that was watched otherwise: threads that are missing in its figures."""
    numbers = {number for process in processes for what, number in process.refused if what != WATCHPOINT}
    points = {number for process in processes for what, number in process.refused if what == WATCHPOINT}
    sentences = []
    if numbers:
        sentences.append(f"Some threads were not watched: the kernel refused the clock for them ({_errors(numbers)}).")
    if points:
        sentences.append(
            "In some threads no word could be watched, so that what they share is missing: the kernel refused the debug "
            f"registers ({_errors(points)})."
        )
    if any(process.killed for process in processes):
        sentences.append(
            "The thread that watches was killed before the program ended, as by a seccomp filter that forbids "
            "perf_event_open: what was seen until then counts."
        )
    return sentences


def _errors(numbers: set[int]) -> str:
    return ", ".join(os.strerror(number) for number in sorted(numbers))
