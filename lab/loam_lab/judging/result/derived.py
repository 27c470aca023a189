"""What several cells give together: geometric means over workloads, and how sure it is which allocator is the best."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from loam_lab.judging.result import headlines
from loam_lab.judging.statistics import bootstrap, intervals, multiplicity, verdicts
from loam_lab.judging.statistics.intervals import Array
from loam_lab.model.result import Best, Geomean

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.cell import Cell


@dataclass(frozen=True)
class Family:
    """Cells that differ in the allocator only, in the blocks in which all of them ran well.

    logs: allocator -> block -> logarithm of how many times it is as good as the baseline, positive is better
    stratum: families of the same one share their blocks
    """

    cell: Cell
    stratum: tuple[object, ...]
    blocks: tuple[int, ...]
    logs: dict[str, Array]


def families(campaign: Campaign) -> list[Family]:
    """Every family of groups with the role "main" that has its baseline and at least one rival."""
    candidates = [_family(campaign, cells) for cells in headlines.families(campaign)]
    return [family for family in candidates if family is not None]


def _family(campaign: Campaign, cells: list[Cell]) -> Family | None:
    metric, baseline = campaign.primary(cells[0]), campaign.baseline(cells[0])
    known, blocks, values = campaign.together(cells, metric)
    names = [cell.allocator for cell in known]
    if baseline not in names or len(names) < 2 or metric.better == "neither" or blocks.size < intervals.BLOCKS_MIN:
        return None
    sign = -1 if metric.better == "lower" else 1
    logs = sign * np.log(values)
    against = logs - logs[:, [names.index(baseline)]]
    columns = {name: against[:, place] for place, name in enumerate(names)}
    return Family(cells[0], campaign.stratum(cells[0]), tuple(blocks.tolist()), columns)


def geomeans(campaign: Campaign, all_families: list[Family]) -> list[Geomean]:
    """Per allocator: how many times it is as good as the baseline, in the geometric mean of its families.

    Of blocks that all of them have: block b of each was run in the same turn of the plan.
    Families of another baseline and those with more threads than the machine has are left out; one alone has no mean.
    """
    study = campaign.study
    fit = [
        f
        for f in all_families
        if campaign.baseline(f.cell) == study.baseline and f.cell.threads <= campaign.cores(f.cell)
    ]
    # A machine is never averaged with another one.
    machines = list(dict.fromkeys(family.cell.machine for family in fit))
    lines: list[Geomean] = []
    ratios: list[intervals.Interval] = []
    for machine, name in dict.fromkeys((family.cell.machine, name) for family in fit for name in family.logs):
        own = [family for family in fit if name in family.logs and family.cell.machine == machine]
        turns = sorted(set.intersection(*(set(family.blocks) for family in own)))
        if name == study.baseline or len(own) < 2 or not turns:
            continue
        rows = [np.searchsorted(family.blocks, turns) for family in own]
        ratio = intervals.geometric_mean([family.logs[name][row] for family, row in zip(own, rows, strict=True)])
        ratios.append(ratio)
        what = f"{name}: times as good as {study.baseline}, geometric mean of {len(own)} cases"
        what += f" on {machine}" if len(machines) > 1 else ""
        lines.append(Geomean(*ratio.ends, what, name, machine, len(own), ratio.n, ratio.p))
    adjusted = multiplicity.benjamini_hochberg([1.0 if ratio.p is None else ratio.p for ratio in ratios])
    return [
        replace(
            line, q=q, rough=verdicts.rough(ratio, study.width_max),
            verdict=verdicts.decide(ratio, "higher", margin=study.margin, adjusted=q),
        )
        for line, ratio, q in zip(lines, ratios, adjusted, strict=True)
    ]  # fmt: skip


def best(campaign: Campaign, all_families: list[Family]) -> list[Best]:
    """Per family and allocator: in which share of the draws it is the best; equals share.

    Blocks are drawn again (cluster bootstrap), and the allocators stay paired in them.
    """
    lines = []
    for family in all_families:
        cell = family.cell
        logs_of = {
            name: intervals.batched(logs, bootstrap.BATCHES, bootstrap.MANY) for name, logs in family.logs.items()
        }
        # Whoever is behind the leader's worst block in its own best one is never the best.
        floor = max(float(logs.min()) for logs in logs_of.values())
        rivals = [name for name, logs in logs_of.items() if logs.max() >= floor]
        shares = _shares({name: logs_of[name] for name in rivals}, zlib.crc32(repr(family.stratum).encode()))
        label, varied = headlines.place(campaign, cell), campaign.varied(cell)
        where = cell.group, label, cell.workload, cell.sync, cell.machine, cell.threads, varied
        lines += [Best(*where, name, shares.get(name, 0.0)) for name in family.logs]
    return lines


def _shares(rivals: dict[str, Array], stratum: int) -> dict[str, float]:
    """In which share of the draws each is the best. rivals: logarithms by allocator; stratum: seeds the draws"""
    if len(rivals) == 1:
        return dict.fromkeys(rivals, 1.0)
    drawn = bootstrap.draws(len(next(iter(rivals.values()))), stratum)
    samples = np.stack([_centres(logs, drawn) for logs in rivals.values()])
    first = samples == samples.max(axis=0)
    return dict(zip(rivals, (first / first.sum(axis=0)).mean(axis=1).tolist(), strict=True))


def _centres(logs: Array, drawn: bootstrap.Counts) -> Array:
    """Those of the baseline against itself are known."""
    return bootstrap.centres(logs, drawn) if logs.any() else np.zeros(drawn.shape[1])
