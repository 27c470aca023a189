"""Progress of a campaign: on a terminal the medians and intervals so far and a bar, else a line for each quarter.

It is drawn between runs, by no thread and no timer, at most twice a second.  Within a run of seconds the line of the bar alone
is written again, at most once a second (see ticks.py), so that one sees that it goes on and how long yet.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.campaign.measure.schedule import REPEATS_SHARE_MAX
from loam_lab.campaign.measure.ticks import Terminal, Ticks
from loam_lab.model import words

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import RenderableType
    from rich.live import Live

    from loam_lab.campaign.measure.live_view import Watched
    from loam_lab.campaign.process.execute import Watch

REDRAW_S = 0.5
# Intervals cost some milliseconds for a large study; more often than this nobody reads them.
INTERVALS_S = 2.0
ROWS_MAX = 14
# The title, the head and the empty lines of the table, and the bar.
AROUND_ROWS = 6
CELLS = 40
# Within shorter runs nothing moves: the next one begins soon.
LONG_S = 3.0


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

    def expected(self, kind: Hashable) -> float:
        """What a run of that kind will take, in seconds."""
        runs, total = self._taken.get(kind, (0, 0.0))
        if runs:
            return total / runs
        guessed = sum(runs * self._guess[kind] for kind, (runs, _) in self._taken.items())
        taken = sum(total for _, total in self._taken.values())
        return self._guess[kind] * (taken / guessed if guessed > 0 else 1.0)

    def seconds(self) -> float:
        """Estimate for all runs still to do, with repetitions: as many as there were so far, or as are allowed."""
        rest = sum(left * self.expected(kind) for kind, left in self._left.items())
        runs_done = sum(runs for runs, _ in self._taken.values())
        planned_done = max(1, runs_done - self._added)
        so_far = min(self._added / planned_done, REPEATS_SHARE_MAX)
        return rest * (1 + (REPEATS_SHARE_MAX if self._at_most else so_far))

    def words(self, gone_s: float = 0.0) -> str:
        """ "3 min 5 s left", or "at most ..." where measuring ends as soon as the intervals are narrow enough.

        gone_s: of the run that goes on
        """
        return f"{'at most ' if self._at_most else ''}{duration(max(0.0, self.seconds() - gone_s))} left"


class Progress:
    """On standard error: the intervals so far and a bar on a terminal, else a line per quarter.

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
        self._terminal: Terminal | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.live import Live

            # auto_refresh would start a thread that draws while a measured process runs.
            self._live = Live(self._frame(), console=console.err(), auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        elif self._total:
            console.note(f"{self._title}: {self._total} runs, {self._remaining.words()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if self._live is not None:
            self._live.stop()

    def within(self, kind: Hashable) -> Callable[[Watch | None], Watch] | None:
        """What moves the bar while a run of that kind goes on, given who watches it besides; None if the bar stands still.

        It does in short runs, and where there is no bar
        """
        expected_s = self._remaining.expected(kind)
        if self._live is None or expected_s < LONG_S:
            return None
        if self._terminal is None:
            self._terminal = self._stack.enter_context(Terminal())
        terminal = self._terminal
        return lambda other: Ticks(lambda gone_s: terminal.write(self._line(gone_s, expected_s)), other).look

    def grow(self, runs: int) -> None:
        """So many more runs are to be done; negative where some turned out not to be needed."""
        self._total += runs

    def step(self) -> None:
        """One more run is done."""
        self._count += 1
        if self._live is not None:
            now = time.monotonic()
            if now - self._drawn >= REDRAW_S or self._count == self._total:
                self._drawn = now
                self._live.update(self._frame(), refresh=True)
        elif 4 * self._count // self._total > self._quarter and self._count < self._total:
            self._quarter = 4 * self._count // self._total
            console.note(f"{self._title}: {self._count} of {self._total} runs, {self._remaining.words()}")

    def _frame(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        now = time.monotonic()
        if self._watched is not None and now - self._looked >= INTERVALS_S:
            self._looked = now
            if self._watched.poll():
                # The bar below it must not be what a low terminal has no room for.
                self._intervals = table(self._watched, max(1, min(ROWS_MAX, console.err().height - AROUND_ROWS)))
        # The line is the last one: it can be written again where it stands.
        line = Text(self._line(), no_wrap=True, overflow="crop")
        return Group(self._intervals, line) if self._intervals else line

    def _line(self, gone_s: float = 0.0, expected_s: float = 0.0) -> str:
        """The bar, how many runs are done, what is left; gone_s, expected_s: of the run that goes on"""
        counted_s = min(gone_s, expected_s)
        tail = f" {self._count}/{self._total} {self._remaining.words(counted_s)}"
        if expected_s:
            tail += f", {duration(gone_s)} of about {duration(expected_s)} in this run"
        width = console.err().width - 1
        share = (self._count + (min(counted_s / expected_s, 0.99) if expected_s else 0.0)) / max(1, self._total)
        room = min(CELLS, width - len(self._title) - 1 - len(tail))
        return f"{self._title} {_bar(share, max(0, room), plain=console.err().options.ascii_only)}{tail}"[:width]


def _bar(share: float, cells: int, *, plain: bool) -> str:
    """A bar of so many cells, in halves; plain: of ASCII alone"""
    halves = min(2 * cells, int(2 * cells * share))
    full, half, rest = "==-" if plain else "━╸─"
    done = full * (halves // 2) + half * (halves % 2)
    return done + rest * (cells - len(done))


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
            _where(row), row["allocator"] + (" (again)" if row["copy"] else ""), words.quantity(row["value"], row["unit"]),
            f"{row['estimate']:.3f}",
            "" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}", str(row["n"]),
        ]
        for row in shown
    ]  # fmt: skip
    title = "Medians and ratios to the baseline so far" + (
        f", the {len(shown)} widest" if len(shown) < len(intervals) else ""
    )
    heads = ["cells", "allocator", "median", "ratio", "interval", "blocks"]
    return console.table(heads, rows, numeric=heads[2:], title=title)


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
