"""The line of a bar that is written again within a run, so seldom that the run does not notice.

A tick costs the lab one wake-up and one write of a line: some hundredths of a millisecond of a processor, at most once a
second and at most TICK_SHARE_MAX of the time.  It is the same under every allocator.  The write never waits: a terminal that was
stopped, or lies behind a slow line, would otherwise hold up the lab, and the end of the run would be seen late.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from loam_lab.campaign.process.execute import Watch

TICK_S = 1.0
TICK_SHARE_MAX = 1 / 2000
_STDERR = 2


class Terminal:
    """The terminal of standard error, opened anew, because whether a write waits holds for all who share a descriptor.

    Use as a context manager; where there is no terminal, nothing is written
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def __enter__(self) -> Terminal:
        with contextlib.suppress(OSError):
            self._descriptor = os.open(os.ttyname(_STDERR), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def write(self, line: str) -> None:
        """Put a line in the place of the one that the cursor is in; it stays away where the terminal takes nothing now."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, f"\r{line}\x1b[K".encode(errors="replace"))


class Ticks:
    """Calls once a second while a process runs; give `look` to execute().

    tick: given the seconds that it has run; other: who watches it besides, None for nobody
    """

    def __init__(self, tick: Callable[[float], None], other: Watch | None = None) -> None:
        self._tick = tick
        self._other = other
        self._began_s = time.monotonic()
        self._next_s = self._began_s + TICK_S

    def look(self, pid: int) -> float:
        """Tick if it is time; returns the seconds until the next look."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            used_s = time.thread_time()
            self._tick(now_s - self._began_s)
            cost_s = time.thread_time() - used_s
            self._next_s = now_s + max(TICK_S, cost_s / TICK_SHARE_MAX)
        rest_s = self._next_s - now_s
        return rest_s if self._other is None else min(rest_s, self._other(pid))
