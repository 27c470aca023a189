"""Progress between runs, never during one: no thread, no timer; drawn at most twice a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable
from typing import TYPE_CHECKING

from loam_lab import console

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as Bar

REDRAW_S = 0.5


class Remaining:
    """An honest estimate of the remaining time: what runs of the same kind took so far, else their plan's guess."""

    def __init__(self, kinds: list[tuple[Hashable, float]]) -> None:
        """kinds: (kind, guess in seconds) of every run still to do."""
        self._left: dict[Hashable, int] = {}
        self._guess: dict[Hashable, float] = {}
        for kind, guess in kinds:
            self._left[kind] = self._left.get(kind, 0) + 1
            self._guess[kind] = guess
        self._taken: dict[Hashable, tuple[int, float]] = {}

    def done(self, kind: Hashable, seconds: float | None) -> None:
        """A run of that kind ended after `seconds`, the lab's own part included; None if it was skipped."""
        self._left[kind] -= 1
        if seconds is not None:
            runs, total = self._taken.get(kind, (0, 0.0))
            self._taken[kind] = (runs + 1, total + seconds)

    def seconds(self) -> float:
        """Estimate for all runs still to do."""
        guessed = sum(runs * self._guess[kind] for kind, (runs, _) in self._taken.items())
        taken = sum(total for _, total in self._taken.values())
        scale = taken / guessed if guessed > 0 else 1.0
        rest = 0.0
        for kind, left in self._left.items():
            runs, total = self._taken.get(kind, (0, 0.0))
            rest += left * (total / runs if runs else self._guess[kind] * scale)
        return rest


class Progress:
    """One line on standard error: a bar on a terminal, else a line per quarter.  Use as a context manager."""

    def __init__(self, title: str, total: int, remaining: Remaining) -> None:
        self._title, self._total, self._remaining = title, total, remaining
        self._count = 0
        self._drawn = 0.0
        self._quarter = 0
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            # auto_refresh would start a thread that draws while a measured process runs.
            self._bar = Bar(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"),
                console=console.err(), auto_refresh=False, transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._total, left=self._left())
            self._bar.refresh()
        elif self._total:
            console.note(f"{self._title}: {self._total} runs, {self._left()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self) -> None:
        """One more run is done."""
        self._count += 1
        if self._bar is not None:
            now = time.monotonic()
            if now - self._drawn >= REDRAW_S or self._count == self._total:
                self._drawn = now
                self._bar.update(self._task, completed=self._count, left=self._left())
                self._bar.refresh()
        elif 4 * self._count // self._total > self._quarter and self._count < self._total:
            self._quarter = 4 * self._count // self._total
            console.note(f"{self._title}: {self._count} of {self._total} runs, {self._left()}")

    def _left(self) -> str:
        return f"{duration(self._remaining.seconds())} left"


def duration(seconds: float) -> str:
    """0.4 -> "0 s", 75 -> "1 min 15 s", 7300 -> "2 h 2 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
