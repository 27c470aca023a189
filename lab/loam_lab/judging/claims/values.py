"""Measured values that a Selection names, keyed by what pairs them: the block, or the level of a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loam_lab.judging import reasons
from loam_lab.judging.reasons import NoMetric, NotGood, NotMeasured, NoValue, Oversubscribed, Reason
from loam_lab.judging.statistics import simulator
from loam_lab.model.claim import BLOCKS, EXACT, SIMULATOR, Selection
from loam_lab.model.result import CounterSource, Counts

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.cell import Cell
    from loam_lab.model.description import Metric


class Undecided(Exception):
    """Values cannot decide; the words of the reason go into the ledger."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return reasons.words(self.reason)


@dataclass(frozen=True)
class Evidence:
    """All that claims are decided by.

    counters: of each cell key, its entries of `counters` in the result; counter_sources: as the result has them
    """

    campaign: Campaign
    counters: Mapping[str, Sequence[Counts]] = field(default_factory=dict)
    counter_sources: Sequence[CounterSource] = ()


@dataclass(frozen=True)
class Observed:
    """Values of one allocator under one selection.

    values: by block, or by the level of the parameter that `over` names; counts: (numerator, denominator) by the same
    keys where the metric is a ratio of counts, else empty; exact: whether one value says all
    """

    what: str
    values: dict[object, float]
    counts: dict[object, tuple[float, float]]
    unit: str
    exact: bool = False


def names(selection: Selection, cell: Cell) -> bool:
    """Whether a selection names a cell, whatever the allocator."""
    return (
        cell.group == selection.group
        and (selection.threads is None or cell.threads == selection.threads)
        and (not selection.sync or selection.sync in (cell.sync, cell.sync.partition("@")[0]))
        and (not selection.machine or selection.machine == cell.machine)
        and all(str(dict(cell.parameters).get(name)) == str(level) for name, level in selection.parameters.items())
    )


def cells_of(campaign: Campaign, selection: Selection, allocator: str) -> list[Cell]:
    """The cells that a selection names for one allocator, in the order of the plan."""
    return [cell for cell in campaign.cells if cell.allocator == allocator and names(selection, cell)]


def measured(campaign: Campaign, group: str = "") -> dict[str, str]:
    """By each allocator of the study the one whose cells stand for it: itself, the paper's version, or its look-alike.

    group: the one whose cells are meant, in which that one has to be; "" for any
    """
    present = {cell.allocator for cell in campaign.cells}
    there = {cell.allocator for cell in campaign.cells if cell.group == group} if group else present
    study = campaign.study
    stand_ins = {name: other for name, other in study.lookalikes.items() if other in there}
    versions = {name: other for name, other in study.versions.items() if other in there}
    return {**stand_ins, **{name: name for name in present}, **versions}


def read(evidence: Evidence, selection: Selection, allocator: str) -> Observed:
    """Values of one allocator.

    allocator: name of an allocator that was measured (see measured())
    raises: Undecided with the reason if there is no cell, it failed, or it had more threads than the machine
    """
    campaign = evidence.campaign
    cells = cells_of(campaign, selection, allocator)
    where = selection.model_copy(update={"allocator": (allocator,)}).words()
    if not cells:
        raise Undecided(NotMeasured(where))
    for cell in cells:
        if cell.threads > campaign.cores(cell):
            raise Undecided(Oversubscribed(where, cell.threads, campaign.cores(cell)))
    metric = _metric(campaign, selection, cells[0])
    values: dict[object, float] = {}
    counts: dict[object, tuple[float, float]] = {}
    for cell in cells:
        if selection.source == SIMULATOR:
            _check_state(campaign, cell, where)
            counts.update(simulator.of_blocks(campaign, cell, selection.metric))
            values.update({block: above / below for block, (above, below) in counts.items()})
            continue
        if selection.source != "timing":
            value = _counted(evidence, cell, selection)
            if value is not None:
                values[_key(selection, cell, 0)] = value
            continue
        _check_state(campaign, cell, where)
        assert metric is not None
        by_block = campaign.values(cell, 0, metric)
        pairs = _pairs(campaign, cell, metric)
        if selection.over == BLOCKS:
            values.update(by_block.items())
            counts.update(pairs)
        elif by_block:
            from statistics import median

            values[_key(selection, cell, 0)] = median(by_block.values())
    if not values:
        raise Undecided(NoValue(where, selection.metric, "" if selection.source == "timing" else selection.source))
    name = selection.metric or (metric.name if metric is not None else "")
    unit = metric.unit if metric is not None else "1"
    return Observed(f"{name} of {where}", values, counts, unit, selection.source in EXACT)


def _key(selection: Selection, cell: Cell, block: int) -> object:
    return block if selection.over == BLOCKS else str(dict(cell.parameters).get(selection.over))


def _metric(campaign: Campaign, selection: Selection, cell: Cell) -> Metric | None:
    from loam_lab.judging.statistics.data import PROCESS_METRICS

    if selection.source != "timing":
        return None
    if not selection.metric:
        return campaign.primary(cell)
    known = {metric.name: metric for metric in (*PROCESS_METRICS, *campaign.workload(cell).metrics)}
    if selection.metric not in known:
        raise Undecided(NoMetric(cell.workload, cell.sync, selection.metric))
    return known[selection.metric]


def _check_state(campaign: Campaign, cell: Cell, where: str) -> None:
    from loam_lab.judging.statistics.data import state_of

    runs = campaign.runs(cell)
    state = state_of(runs)
    if state != "ok":
        raise Undecided(NotGood(where, state, next((run.detail for run in runs if run.state != "ok"), "")))


def _pairs(campaign: Campaign, cell: Cell, metric: Metric) -> dict[object, tuple[float, float]]:
    """Numerator and denominator by block of a ratio of two counts; empty for every other metric."""
    if metric.kind != "ratio" or metric.of is None:
        return {}
    kinds = {other.name: other.kind for other in campaign.workload(cell).metrics}
    if any(kinds.get(part) != "count" for part in metric.of):
        return {}
    by_block: dict[object, tuple[float, float]] = {}
    for run in campaign.runs(cell):
        if run.state == "ok" and all(part in run.sums for part in metric.of):
            by_block[run.block] = (run.sums[metric.of[0]], run.sums[metric.of[1]])
    return by_block


def _counted(evidence: Evidence, cell: Cell, selection: Selection) -> float | None:
    """A value of the cell's counter runs; None where there is none."""
    wanted = {"counters": "perf_event", "tlb": "lackey"}.get(selection.source, selection.source)
    for counted in evidence.counters.get(cell.key, ()):
        if counted.source == wanted and (count := counted.numbers().get(selection.metric)) is not None:
            return count
    return None
