"""Hardware counters through perf_event_open(2), without a library: what is asked for, opened, read and scaled.

A workload opens its counters itself, around its work.  For any other program a counter is opened on the calling thread,
disabled, to be inherited and enabled at exec: it counts the next program that this thread starts, with all its threads and
children, and nothing of the lab, which never executes another program.
Only user mode is counted: a kernel's share would need rights that a user does not have.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loam_lab.model.records import COUNTED

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES_BYTES = 64  # the first version of struct perf_event_attr: every kernel knows it
_TIMES = 0b11  # read format: total time enabled, total time running
_DISABLED, _INHERIT, _WITHOUT_KERNEL, _WITHOUT_HYPERVISOR, _ENABLE_ON_EXEC = 1 << 0, 1 << 1, 1 << 5, 1 << 6, 1 << 12
_CLOSE_ON_EXEC = 8

HARDWARE, SOFTWARE, CACHE, RAW = 0, 1, 3, 4


@dataclass(frozen=True)
class Event:
    """One thing to count. kind, config: as perf_event_attr has them (type, config)"""

    name: str
    kind: int
    config: int


def _cache(which: int, result: int) -> int:
    """The config of reads of a cache (0 L1D, 2 last level, 3 data TLB). result: 0 accesses, 1 misses"""
    return which | result << 16


INSTRUCTIONS = Event("instructions", HARDWARE, 1)
EVENTS = (
    INSTRUCTIONS,
    Event("cycles", HARDWARE, 0),
    Event("l1d_loads", CACHE, _cache(0, 0)),
    Event("l1d_misses", CACHE, _cache(0, 1)),
    Event("llc_loads", CACHE, _cache(2, 0)),
    Event("llc_misses", CACHE, _cache(2, 1)),
    Event("dtlb_misses", CACHE, _cache(3, 1)),
)
# Loads that another core's modified line served (MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM, XSNP_FWD on newer ones): the same
# number since Haswell on Intel's large cores.  AMD has no event of that meaning.
HITM = Event("hitm", RAW, 0x04D2)


def events(vendor: str | None = None) -> tuple[Event, ...]:
    """What to count on this processor. vendor: of the processor, None to look it up"""
    if vendor is None:
        vendor = _vendor()
    return (*EVENTS, HITM) if vendor == "GenuineIntel" else EVENTS


def _vendor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "")


@dataclass(frozen=True)
class Count:
    """What a counter read. value: scaled to the whole time; share: of the time in which it really counted, 0 to 1"""

    value: float
    share: float


def as_text(wanted: Iterable[Event]) -> str:
    """What a workload is to count itself, as it reads it from its environment (workloads/harness/event_counts.hpp)."""
    return ",".join(f"{event.name}:{event.kind}:{event.config}" for event in wanted)


def counts_of(sums: Mapping[str, float]) -> dict[str, Count]:
    """The counts of a workload that counted itself, by name. sums: totals of its records"""
    share = sums.get(f"{COUNTED}share", 1.0)
    names = (name.removeprefix(COUNTED) for name in sums if name.startswith(COUNTED))
    return {name: Count(sums[COUNTED + name], share) for name in names if name != "share"}


class Counting:
    """Counters of the next program that this thread executes.  Open right before, read once it was waited for."""

    def __init__(self, wanted: Iterable[Event]) -> None:
        """Open what can be opened; `refused` says why the others could not, by name."""
        self._open: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        for event in wanted:
            descriptor, problem = _opened(event)
            if descriptor >= 0:
                self._open[event.name] = descriptor
            else:
                self.refused[event.name] = problem

    def read(self) -> dict[str, Count]:
        """What was counted so far, by name; a counter that never had a turn on the processor is left out."""
        counts = {}
        for name, descriptor in self._open.items():
            value, enabled, running = struct.unpack("3Q", os.read(descriptor, 24))
            count = scaled(value, enabled, running)
            if count is not None:
                counts[name] = count
        return counts

    def close(self) -> None:
        """Give the counters back."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open = {}


def scaled(value: int, enabled: int, running: int) -> Count | None:
    """A count as if it had not shared its register with others; times in ns. None if it never ran."""
    if running == 0:
        return None
    return Count(value * enabled / running, running / enabled)


def clock_refused() -> int:
    """Why this process may not even count by the kernel's software clock: the error's number; 0 if it may.

    No hardware is needed for that, so what refuses it is a rule: a filter of system calls, or kernel.perf_event_paranoid.
    """
    descriptor, number = _tried(Event("clock", SOFTWARE, 0))
    if descriptor >= 0:
        os.close(descriptor)
    return number


def _opened(event: Event) -> tuple[int, str]:
    """(descriptor, "") or (-1, why not)."""
    if platform.machine() not in _PERF_EVENT_OPEN:
        return -1, f"not known how to on {platform.machine()}"
    descriptor, number = _tried(event)
    return descriptor, refusal(number) if number else ""


def _tried(event: Event) -> tuple[int, int]:
    """(descriptor, 0) or (-1, the error's number)."""
    call = _PERF_EVENT_OPEN.get(platform.machine())
    if call is None:
        return -1, errno.ENOSYS
    flags = _DISABLED | _INHERIT | _WITHOUT_KERNEL | _WITHOUT_HYPERVISOR | _ENABLE_ON_EXEC
    attributes = struct.pack("=IIQQQQQ", event.kind, _ATTRIBUTES_BYTES, event.config, 0, 0, _TIMES, flags)
    buffer = ctypes.create_string_buffer(attributes, max(_ATTRIBUTES_BYTES, len(attributes)))
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.syscall(call, buffer, 0, -1, -1, _CLOSE_ON_EXEC))
    return (descriptor, 0) if descriptor >= 0 else (-1, ctypes.get_errno())


def refusal(number: int) -> str:
    """Why the kernel refused a counter, from errno."""
    if number in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this machine offers no such counter"
    if number in (errno.EACCES, errno.EPERM):
        return f"kernel.perf_event_paranoid={_paranoid()} or the container forbids it"
    if number == errno.ENOSYS:
        return "the kernel was built without perf events, or the container forbids the call"
    return os.strerror(number)


def _paranoid() -> str:
    try:
        return Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    except OSError:
        return "?"
