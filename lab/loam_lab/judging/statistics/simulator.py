"""What the cores of a simulated machine count in its timed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loam_lab.model.records import COUNTED

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.cell import Cell

# As the workload's records have them, and as the result has them.
SHOWN = {
    "misses": "l1d_misses", "false_sharing": "false_sharing_misses", "true_sharing": "true_sharing_misses",
    "transfers": "transfers", "upgrades": "upgrades", "accesses": "accesses", "from_memory": "memory_reads",
    "tlb_misses": "dtlb_misses",
}  # fmt: skip
RATIO = "l1d_miss_ratio"


def of_blocks(campaign: Campaign, cell: Cell, metric: str) -> dict[object, tuple[float, float]]:
    """What the simulated cores counted in each block, and what it is divided by: accesses of a ratio, else operations."""
    names = {shown: name for name, shown in SHOWN.items()}
    counted, divisor = COUNTED + names.get(metric, ""), (campaign.primary(cell).of or ("",))[0]
    if metric == RATIO:
        counted, divisor = COUNTED + "misses", COUNTED + "accesses"
    runs = [run for run in campaign.runs(cell, 0) if run.state == "ok" and counted in run.sums]
    return {run.block: (run.sums[counted], of) for run in runs if (of := run.sums.get(divisor, 0.0)) > 0}
