"""Comparisons of cells that shared blocks: to the baseline, and between levels of a factor."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from loam_lab.judging.statistics import intervals, multiplicity, verdicts
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Contrast, Level

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.cell import Cell
    from loam_lab.model.description import Metric


def paired(
    campaign: Campaign, above: tuple[Cell, int], below: tuple[Cell, int], without: AbstractSet[int] = frozenset(),
    metric: Metric | None = None,
) -> Interval | None:  # fmt: skip
    """Ratio of a metric of two (cell, copy) over the blocks in which both ran well; None without any.

    without: numbers of blocks to leave out; metric: the cells' primary one where None
    """
    metric = metric or campaign.primary(above[0])
    (blocks, a), (others, b) = campaign.series(*above, metric), campaign.series(*below, metric)
    if not np.array_equal(blocks, others):
        blocks, own, others_own = np.intersect1d(blocks, others, assume_unique=True, return_indices=True)
        a, b = a[own], b[others_own]
    good = (a > 0) & (b > 0)
    if without:
        good &= ~np.isin(blocks, list(without))
    return intervals.paired_ratio(a[good], b[good]) if good.any() else None


def to_baseline(
    campaign: Campaign, cell: Cell, copy: int = 0, without: AbstractSet[int] = frozenset(), metric: Metric | None = None
) -> Interval | None:
    """Ratio of a cell to the same cell under the baseline allocator, copy 0; None for that one itself.

    without, metric: as for paired
    """
    baseline = campaign.baseline(cell)
    if copy == 0 and cell.allocator == baseline:
        return None
    other = sister(campaign, cell, allocator=baseline)
    return None if other is None else paired(campaign, (cell, copy), (other, 0), without, metric)


def sister(campaign: Campaign, cell: Cell, **changed: Any) -> Cell | None:
    """The cell that differs in the given fields only; parameters=... replaces single parameters."""
    parameters = {**dict(cell.parameters), **changed.pop("parameters", {})}
    return campaign.find({**cell.as_json(), **changed, "parameters": parameters})


def contrasts(campaign: Campaign) -> list[Contrast]:
    """Levels of each factor that shares blocks, against its first level, allocator by allocator.

    A group with role "sequential" adds its allocators' ratios: what placement does without any transaction.
    """
    lines: list[Contrast] = []
    for cell in campaign.cells:
        group = campaign.group(cell)
        own = {parameter.name for parameter in campaign.workload(cell).parameters}
        factors: list[tuple[str, Any, Any]] = []
        factors.append(("sync", cell.sync, campaign.of_group(cell.group)[0].sync))
        factors.append(("threads", cell.threads, group.threads[0]))
        levels = group.levels()
        for name, value in cell.parameters:
            if name not in own:
                first = next((other for other in levels[name]), str(value))
                factors.append((name, value, int(first) if isinstance(value, int) else first))
        for name, level, first in factors:
            if level == first:
                continue
            change = {name: first} if name in ("sync", "threads") else {"parameters": {name: first}}
            other = sister(campaign, cell, **change) if name != "sync" else campaign.counterpart(cell, str(first))
            ratio = paired(campaign, (cell, 0), (other, 0)) if other is not None else None
            if ratio is not None:
                what = f"{_word(name, level)} against {_word(name, first)}"
                lines.append(_contrast(campaign, cell, what, name, ratio, level))
        if group.role == "sequential":
            ratio = to_baseline(campaign, cell)
            if ratio is not None:
                what = f"{cell.allocator} against {campaign.baseline(cell)}, without synchronisation"
                lines.append(_contrast(campaign, cell, what, "sequential", ratio))
    return _adjusted(campaign, lines)


def _word(name: str, level: Any) -> str:
    if name == "threads":
        return f"{level} thread" + ("" if level == 1 else "s")
    return f"{name} {level}" if isinstance(level, int) else str(level)


def _contrast(
    campaign: Campaign, cell: Cell, what: str, factor: str, ratio: Interval, level: Level | None = None
) -> Contrast:
    metric = campaign.primary(cell)
    parameters = {name: value for name, value in campaign.varied(cell).items() if name != factor}
    return Contrast(
        *ratio.ends, what, factor, cell.group, cell.workload, cell.sync, cell.machine, cell.threads, parameters,
        cell.allocator, metric.name, metric.better, ratio.n, ratio.p, level,
    )  # fmt: skip


def _adjusted(campaign: Campaign, lines: list[Contrast]) -> list[Contrast]:
    """The contrasts with their verdicts, which take into account how many there are."""
    study = campaign.study
    adjusted = multiplicity.benjamini_hochberg([1.0 if line.p is None else line.p for line in lines])
    judged = []
    for line, q in zip(lines, adjusted, strict=True):
        ratio = Interval(line.estimate, line.low, line.high, line.n, line.p)
        verdict = verdicts.decide(ratio, line.better, margin=study.margin, adjusted=q)
        judged.append(replace(line, q=q, verdict=verdict, rough=verdicts.rough(ratio, study.width_max)))
    return judged
