"""What the lab does beside a run that is not timed: nothing for most, else what the purpose of the run asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loam_lab.measure.execute import Outcome, Watch
    from loam_lab.model.cell import PlannedRun


class Observer:
    """Accompanies one run. This one does nothing, as timing demands; others change what they need.

    watch: for execute(); timeout_min_s: the run may take at least that long
    """

    watch: Watch | None = None
    timeout_min_s = 0.0

    def command(self, argv: Sequence[str]) -> list[str]:
        """The program and arguments to start for this command; raises: LoamError where a tool is missing."""
        return list(argv)

    def begin(self) -> None:
        """Called just before the process starts."""

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """Called once it has ended: what was observed (empty for nothing), and why that cannot be used ("" if it can)."""
        return {}, ""

    def close(self) -> None:
        """Called in every case, also where the process did not start."""


def observer(run: PlannedRun, scratch: Path) -> Observer:
    """The observer of a run.

    scratch: a folder for files, empty or with those of an earlier run
    """
    if run.purpose == "memory":
        from loam_lab.memory.observer import MemoryObserver

        return MemoryObserver()
    if run.purpose == "counters":
        from loam_lab.counters.observers import PerfObserver

        return PerfObserver()
    if run.purpose in ("callgrind", "cachegrind"):
        from loam_lab.counters.observers import ValgrindObserver

        return ValgrindObserver(run.purpose, run.tool, scratch)
    return Observer()
