"""Runs side by side: those of deterministic machines, whose results other processes cannot change.

What is measured on a machine that exists runs alone: a campaign settles what is under way before it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from loam_lab.campaign.process.execute import Watch
from loam_lab.model.cell import PlannedRun

Line = dict[str, Any]
# How soon a process is ended after the campaign was.
LOOK_S = 0.25


def processors() -> int:
    """How many runs may be under way at once."""
    return len(os.sched_getaffinity(0))


class SideBySide:
    """Runs under way, each waited for by a thread of its own. Use as a context manager: whatever still runs is ended then.

    lanes: how many at once
    """

    def __init__(self, lanes: int) -> None:
        self._pool = ThreadPoolExecutor(lanes, thread_name_prefix="loam-lane")
        self._under_way: dict[Future[Line], PlannedRun] = {}
        self._over = threading.Event()

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.shutdown(cancel_futures=True)

    def watch(self, other: Watch | None) -> Watch:
        """What ends a process with the campaign; other: who watches it besides."""

        def look(pid: int) -> float:
            if self._over.is_set():
                raise KeyboardInterrupt
            return LOOK_S if other is None else min(LOOK_S, other(pid))

        return look

    def start(self, run: PlannedRun, work: Callable[[], Line]) -> None:
        """Begin one more; work: makes the run and returns its line of the journal."""
        self._under_way[self._pool.submit(work)] = run

    def settle(self, at_most: int) -> Iterator[tuple[PlannedRun, Line]]:
        """Wait until so many are under way, and give those that ended, each with its line."""
        while self._under_way:
            ready = len(self._under_way) <= at_most
            ended, _ = wait(self._under_way, timeout=0 if ready else None, return_when=FIRST_COMPLETED)
            if ready and not ended:
                return
            for future in ended:
                yield self._under_way.pop(future), future.result()
