"""Which observer accompanies a run: the one that its purpose asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.campaign.process.observer import Observer

if TYPE_CHECKING:
    from loam_lab.model.cell import PlannedRun


def of_simulated(run: PlannedRun, scratch: Path, program: Path) -> Observer:
    """The observer of a run on a simulated machine: the first of each cell says which lines moved between its cores.

    program: that runs
    """
    if run.purpose == "timing" and (run.block, run.copy, run.attempt) == (0, 0, 0):
        from loam_lab.campaign.moves import MovesObserver

        return MovesObserver(scratch, program)
    return observer(run, scratch)


def observer(run: PlannedRun, scratch: Path) -> Observer:
    """The observer of a run.

    scratch: a folder for files, empty or with those of an earlier run
    """
    if run.purpose == "memory":
        from loam_lab.campaign.memory.observer import MemoryObserver

        return MemoryObserver()
    if run.purpose == "counters":
        from loam_lab.campaign.counters.observers import PerfObserver

        return PerfObserver()
    if run.purpose in ("callgrind", "cachegrind"):
        from loam_lab.campaign.counters.observers import ValgrindObserver

        return ValgrindObserver(run.purpose, run.tool, scratch)
    if run.purpose == "tlb":
        from loam_lab.campaign.counters.tlb import TlbObserver

        return TlbObserver(scratch)
    if run.purpose == "profile":
        from loam_lab.campaign.counters.profile import ProfileObserver

        return ProfileObserver(scratch)
    return Observer()
