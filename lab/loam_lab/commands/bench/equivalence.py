"""Which allocators a campaign of bench does not tell apart by what decides: compared with each other, in the same blocks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.judging.statistics import contrasts, data
from loam_lab.judging.statistics.data import PROCESS_METRICS, process_metric

if TYPE_CHECKING:
    from loam_lab.commands.bench.rule import Alike
    from loam_lab.model.cell import Cell


def find(folder: Path, by: str) -> dict[str, Alike]:
    """The pairs whose ratio may be 1, by command ("" for a server). by: the metric that decides"""
    campaign = data.load(folder)
    own = process_metric(by) if by in {metric.name for metric in PROCESS_METRICS} else None
    families: dict[str, list[Cell]] = {}
    for cell in campaign.cells:
        families.setdefault(str(dict(cell.parameters).get("command", "")), []).append(cell)
    by_command: dict[str, Alike] = {}
    for command, cells in families.items():
        pairs = set()
        for one, other in itertools.combinations(cells, 2):
            ratio = contrasts.paired(campaign, (one, 0), (other, 0), metric=own)
            if ratio is None or ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
                pairs.add(frozenset((one.allocator, other.allocator)))
        by_command[command] = pairs
    return by_command
