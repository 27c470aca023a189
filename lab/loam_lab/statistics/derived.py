"""What several cells give together: geometric means over workloads, and how sure it is which allocator is the best."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loam_lab.statistics import bootstrap, contrasts, intervals, verdicts
from loam_lab.statistics.intervals import Array

if TYPE_CHECKING:
    from loam_lab.model.cell import Cell
    from loam_lab.statistics.data import Campaign


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
    found = [_family(campaign, cells) for cells in contrasts.families(campaign)]
    return [family for family in found if family is not None]


def _family(campaign: Campaign, cells: list[Cell]) -> Family | None:
    from loam_lab.statistics.summarise import state_of

    metric, baseline = campaign.primary(cells[0]), campaign.baseline(cells[0])
    values = {
        cell.allocator: {block: value for block, value in campaign.values(cell, 0, metric).items() if value > 0}
        for cell in cells
        if state_of(campaign.runs(cell)) == "ok"
    }
    values = {name: found for name, found in values.items() if found}
    if baseline not in values or len(values) < 2 or metric.better == "neither":
        return None
    blocks = sorted(set.intersection(*(set(found) for found in values.values())))
    if len(blocks) < intervals.BLOCKS_MIN:
        return None
    sign = -1 if metric.better == "lower" else 1
    logs = {name: sign * np.log([of_block[block] for block in blocks]) for name, of_block in values.items()}
    against = {name: found - logs[baseline] for name, found in logs.items()}
    return Family(cells[0], campaign.stratum(cells[0]), tuple(blocks), against)


def geomeans(campaign: Campaign, found: list[Family]) -> list[dict[str, Any]]:
    """Per allocator: how many times it is as good as the baseline, in the geometric mean of its families.

    Of blocks that all of them have: block b of each was run in the same turn of the plan.
    Families of another baseline and those with more threads than the machine has are left out; one alone has no mean.
    """
    study, cores = campaign.study, int(campaign.manifest["machine"].get("cores", 0))
    usable = [f for f in found if campaign.baseline(f.cell) == study.baseline and f.cell.threads <= cores]
    lines = []
    for name in dict.fromkeys(name for family in usable for name in family.logs):
        own = [family for family in usable if name in family.logs]
        turns = sorted(set.intersection(*(set(family.blocks) for family in own)))
        if name == study.baseline or len(own) < 2 or not turns:
            continue
        rows = [np.searchsorted(family.blocks, turns) for family in own]
        ratio = intervals.geometric_mean([family.logs[name][row] for family, row in zip(own, rows, strict=True)])
        lines.append({
            "what": f"{name}: times as good as {study.baseline}, geometric mean of {len(own)} cases",
            "allocator": name, "cases": len(own), "estimate": ratio.estimate, "low": ratio.low, "high": ratio.high,
            "n": ratio.n, "verdict": verdicts.decide(ratio, "higher", margin=study.margin, width_max=study.width_max),
        })  # fmt: skip
    return lines


def best(campaign: Campaign, found: list[Family]) -> list[dict[str, Any]]:
    """Per family and allocator: in which share of the draws it is the best; equals share.

    Blocks are drawn again (cluster bootstrap), and the allocators stay paired in them.
    """
    lines = []
    for family in found:
        cell = family.cell
        drawn = bootstrap.draws(len(family.blocks), zlib.crc32(repr(family.stratum).encode()))
        # Whoever is behind the leader's worst block in its own best one is never the best.
        floor = max(float(logs.min()) for logs in family.logs.values())
        rivals = [name for name, logs in family.logs.items() if logs.max() >= floor]
        samples = np.stack([_centres(family.logs[name], drawn) for name in rivals])
        first = samples == samples.max(axis=0)
        shares = dict(zip(rivals, (first / first.sum(axis=0)).mean(axis=1), strict=True))
        where = {
            "group": cell.group, "label": contrasts.place(campaign, cell), "workload": cell.workload, "sync": cell.sync,
            "threads": cell.threads, "parameters": campaign.varied(cell),
        }  # fmt: skip
        lines += [{**where, "allocator": name, "probability": float(shares.get(name, 0.0))} for name in family.logs]
    return lines


def _centres(logs: Array, drawn: bootstrap.Counts) -> Array:
    """Those of the baseline against itself are known."""
    return bootstrap.centres(logs, drawn) if logs.any() else np.zeros(drawn.shape[1])
