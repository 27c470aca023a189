"""How much memory what is measured needs under each allocator, and which figure says so.

The peak of a process alone is that of the largest one: it says little of a server that has several.  So the control
group's own peak is taken where a run has a group, else the PSS of all processes over time (see
loam_lab.campaign.memory.sampler), of runs of their own.  Either is compared within blocks, as time is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loam_lab.judging.statistics import contrasts, data, intervals
from loam_lab.judging.statistics.data import process_metric

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loam_lab.judging.statistics.data import Campaign, Run
    from loam_lab.judging.statistics.intervals import Interval
    from loam_lab.model.cell import Cell

LARGEST, TOGETHER, GROUP = "rss_peak_bytes", "peak_pss_bytes", "group_peak_bytes"
# What the figure is of, as an aside.
HOW = {
    LARGEST: "RSS of its largest process",
    TOGETHER: "PSS of all its processes",
    GROUP: "all that its control group held",
}


@dataclass(frozen=True)
class Footprint:
    """Peaks against the baseline's. by: the figure; ratios: by command ("" for a server) and allocator; why: none are known"""

    by: str = LARGEST
    ratios: Mapping[tuple[str, str], Interval] = field(default_factory=dict)
    why: str = ""

    def of(self, command: str | None = None) -> dict[str, Interval]:
        """The ratios of one command by allocator; of the only one where it is not named."""
        return {name: ratio for (where, name), ratio in self.ratios.items() if command is None or where == command}


def find(folder: Path) -> Footprint:
    """The memory of a campaign of bench."""
    campaign = data.load(folder)
    if grouped := _by_metric(campaign, GROUP):
        return Footprint(GROUP, grouped)
    if (
        all(campaign.workload(cell).metric(GROUP) is not None for cell in campaign.cells)
        and "memory" not in campaign.special
    ):
        return Footprint(
            GROUP, {}, "its control group ran into its limit, which says what the limit is, not what it needs"
        )
    looked = campaign.special.get("memory", {})
    together = _by_looks(campaign, looked)
    if together or not _several_processes(looked):
        return Footprint(TOGETHER, together) if together else Footprint(LARGEST, _by_metric(campaign, LARGEST))
    why = next((reason for runs in looked.values() for reason in _reasons(runs)), "its memory runs failed")
    return Footprint(TOGETHER, {}, why)


def _by_metric(campaign: Campaign, name: str) -> dict[tuple[str, str], Interval]:
    """Ratios of a metric of the timed runs; empty where they do not have it."""
    ratios = {}
    for cell in campaign.cells:
        metric = process_metric(name) if name == LARGEST else campaign.workload(cell).metric(name)
        good = metric is not None and data.state_of(campaign.runs(cell)) == "ok"
        ratio = contrasts.to_baseline(campaign, cell, metric=metric) if good else None
        if ratio is not None:
            ratios[_place(cell)] = ratio
    return ratios


def _by_looks(campaign: Campaign, looked: Mapping[str, Sequence[Run]]) -> dict[tuple[str, str], Interval]:
    """Ratios of the peak PSS of memory runs of the same blocks; empty where too few can be used."""
    ratios = {}
    for cell in campaign.cells:
        base = contrasts.sister(campaign, cell, allocator=campaign.baseline(cell))
        if base is None or base == cell or data.state_of(campaign.runs(cell)) != "ok":
            continue
        own, other = _peaks(looked.get(cell.key, ())), _peaks(looked.get(base.key, ()))
        blocks = sorted(own.keys() & other.keys())
        if blocks:
            pairs = [own[block] for block in blocks], [other[block] for block in blocks]
            ratios[_place(cell)] = intervals.paired_ratio(*pairs)
    return ratios


def _peaks(runs: Sequence[Run]) -> dict[int, float]:
    """By block the peak PSS of those memory runs that may decide something."""
    return {run.block: run.observed[TOGETHER] for run in runs if run.state == "ok" and run.observed.get("fit")}


def _reasons(runs: Sequence[Run]) -> list[str]:
    return [reason for run in runs for reason in (run.observed or {}).get("reasons", ())]


def _several_processes(looked: Mapping[str, Sequence[Run]]) -> bool:
    """Whether any run was seen to have several processes under its allocator at a time."""
    return any((run.observed or {}).get("processes", 1) > 1 for runs in looked.values() for run in runs)


def _place(cell: Cell) -> tuple[str, str]:
    return str(dict(cell.parameters).get("command", "")), cell.allocator
