"""A run that does not count, which may be long: how long it has taken so far, and when it is ended.

On a terminal it is one line that changes every second, elsewhere a line every ten seconds.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from loam_lab.base import console
from loam_lab.campaign.measure.progress import duration
from loam_lab.campaign.measure.ticks import Terminal

if TYPE_CHECKING:
    from types import TracebackType

    from loam_lab.campaign.memory.sampler import Sampler

# How often it is spoken of.
TOLD_S, DRAWN_S = 10.0, 1.0
FIRST = "the first run, which does not count,"


class Trial:
    """Use as a context manager, and give `look` to execute().

    limit_s: when the run is ended; sampler: looks at its processes, too; None where nobody asks for them
    what: the run is called
    """

    def __init__(self, limit_s: float, sampler: Sampler | None = None, what: str = FIRST) -> None:
        self._limit_s = limit_s
        self._sampler = sampler
        self._what = what
        self._stack = ExitStack()
        self._terminal: Terminal | None = None

    def __enter__(self) -> Trial:
        self._began_s = self._reported_s = time.monotonic()
        if sys.stderr.isatty():
            self._terminal = self._stack.enter_context(Terminal())
            self._stack.callback(self._terminal.write, "")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def look(self, pid: int) -> float:
        """Say it unless the run has just begun; returns the seconds until the next look."""
        every_s = TOLD_S if self._terminal is None else DRAWN_S
        now_s = time.monotonic()
        if now_s - self._reported_s >= every_s:
            self._reported_s = now_s
            self._say(now_s - self._began_s)
        rest_s = max(0.0, every_s - (now_s - self._reported_s))
        return rest_s if self._sampler is None else min(rest_s, self._sampler.look(pid))

    def _say(self, gone_s: float) -> None:
        text = (
            f"{self._what} has taken {duration(gone_s)} so far; it is ended after {duration(self._limit_s)} (--timeout)"
        )
        if self._terminal is None:
            console.note(text)
        else:
            self._terminal.write(text[: console.err().width - 1])
