"""Progress between runs, never during one: no thread, no timer; drawn at most twice a second.

On a terminal the current intervals stand below the bar, computed from what the journal got since the last look.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.campaign.measure.schedule import REPEATS_SHARE_MAX

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import RenderableType
    from rich.live import Live
    from rich.progress import Progress as Bar

    from loam_lab.campaign.measure.live_view import Watched

REDRAW_S = 0.5
# Intervals cost some milliseconds for a large study; more often than this nobody reads them.
INTERVALS_S = 2.0
ROWS_MAX = 14


class Remaining:
    """An honest estimate of the remaining time: what runs of the same kind took so far, else their plan's guess."""

    def __init__(self, kinds: list[tuple[Hashable, float]], *, at_most: bool = False) -> None:
        """kinds: (kind, guess in seconds) of every run still to do; at_most: they may turn out not to be needed."""
        self._at_most = at_most
        self._added = 0
        self._left: dict[Hashable, int] = {}
        self._guess: dict[Hashable, float] = {}
        for kind, guess in kinds:
            self._left[kind] = self._left.get(kind, 0) + 1
            self._guess[kind] = guess
        self._taken: dict[Hashable, tuple[int, float]] = {}

    def add(self, kind: Hashable, guess: float) -> None:
        """One more run is to be done that was not planned: a disturbed block is repeated."""
        self._left[kind] = self._left.get(kind, 0) + 1
        self._guess.setdefault(kind, guess)
        self._added += 1

    def done(self, kind: Hashable, seconds: float | None) -> None:
        """A run of that kind ended after `seconds`, the lab's own part included; None if it was skipped."""
        self._left[kind] -= 1
        if seconds is not None:
            runs, total = self._taken.get(kind, (0, 0.0))
            self._taken[kind] = (runs + 1, total + seconds)

    def seconds(self) -> float:
        """Estimate for all runs still to do, with repetitions: as many as there were so far, or as are allowed."""
        guessed = sum(runs * self._guess[kind] for kind, (runs, _) in self._taken.items())
        taken = sum(total for _, total in self._taken.values())
        scale = taken / guessed if guessed > 0 else 1.0
        rest = 0.0
        for kind, left in self._left.items():
            runs, total = self._taken.get(kind, (0, 0.0))
            rest += left * (total / runs if runs else self._guess[kind] * scale)
        runs_done = sum(runs for runs, _ in self._taken.values())
        planned_done = max(1, runs_done - self._added)
        so_far = min(self._added / planned_done, REPEATS_SHARE_MAX)
        return rest * (1 + (REPEATS_SHARE_MAX if self._at_most else so_far))

    def words(self) -> str:
        """ "3 min 5 s left", or "at most ..." where measuring ends as soon as the intervals are narrow enough."""
        return f"{'at most ' if self._at_most else ''}{duration(self.seconds())} left"


class Progress:
    """On standard error: a bar with the intervals so far on a terminal, else a line per quarter.

    Use as a context manager.  total: runs to do; watched: where the intervals come from
    """

    def __init__(self, title: str, total: int, remaining: Remaining, watched: Watched | None = None) -> None:
        self._title, self._total, self._remaining = title, total, remaining
        self._watched = watched
        self._intervals: RenderableType = ""
        self._looked = 0.0
        self._live: Live | None = None
        self._count = 0
        self._drawn = 0.0
        self._quarter = 0
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.live import Live
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            # auto_refresh would start a thread that draws while a measured process runs.
            self._bar = Bar(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"),
                console=console.err(), auto_refresh=False,
            )  # fmt: skip
            self._task = self._bar.add_task(self._title, total=self._total, left=self._remaining.words())
            self._live = Live(self._frame(), console=console.err(), auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        elif self._total:
            console.note(f"{self._title}: {self._total} runs, {self._remaining.words()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def grow(self, runs: int) -> None:
        """So many more runs are to be done; negative where some turned out not to be needed."""
        self._total += runs

    def step(self) -> None:
        """One more run is done."""
        self._count += 1
        if self._bar is not None and self._live is not None:
            now = time.monotonic()
            if now - self._drawn >= REDRAW_S or self._count == self._total:
                self._drawn = now
                self._bar.update(
                    self._task, completed=self._count, total=self._total, left=self._remaining.words()
                )  # fmt: skip
                self._live.update(self._frame(), refresh=True)
        elif 4 * self._count // self._total > self._quarter and self._count < self._total:
            self._quarter = 4 * self._count // self._total
            console.note(f"{self._title}: {self._count} of {self._total} runs, {self._remaining.words()}")

    def _frame(self) -> RenderableType:
        from rich.console import Group

        now = time.monotonic()
        if self._watched is not None and now - self._looked >= INTERVALS_S:
            self._looked = now
            if self._watched.poll():
                self._intervals = table(self._watched, ROWS_MAX)
        assert self._bar is not None
        return Group(self._bar, self._intervals)


def table(watched: Watched, rows_max: int | None = None) -> RenderableType:
    """The intervals so far as a table; the widest first where not all of them fit, because they decide when it ends."""
    intervals = watched.intervals()
    if not intervals:
        return ""
    shown = intervals
    if rows_max is not None and len(intervals) > rows_max:
        shown = sorted(intervals, key=lambda row: -(row["half_width"] or math.inf))[:rows_max]
    rows = [
        [
            _where(row), row["allocator"] + (" (again)" if row["copy"] else ""), f"{row['estimate']:.3f}",
            "" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}", str(row["n"]),
        ]
        for row in shown
    ]  # fmt: skip
    title = "Ratio to the baseline so far" + (f", the {len(shown)} widest" if len(shown) < len(intervals) else "")
    heads = ["cells", "allocator", "ratio", "interval", "blocks"]
    return console.table(heads, rows, numeric=["ratio", "interval", "blocks"], title=title)


def _where(row: Mapping[str, Any]) -> str:
    levels = " ".join(str(value) for value in row["varied"].values())
    return " ".join(part for part in (row["workload"], levels, row["sync"], f"{row['threads']}T") if part)


def duration(seconds: float) -> str:
    """0.4 -> "0 s", 75 -> "1 min 15 s", 7300 -> "2 h 2 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
