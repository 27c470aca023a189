"""Processor time beside wall time, for commands that had to wait for a processor.

A command that waits behind other work takes longer, and by how much is chance; its user and system time stay nearly what
they were.  So where enough blocks were disturbed, user + system is compared too, block by block like wall time, and decides
what is recommended.  It says nothing of waiting that the allocator itself causes, on its locks or on the disk: on a quiet
machine wall time decides.  Waiting for threads of its own, or of a server for its load, disturbs no block: it is part of
what is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loam_lab.judging.result import diagnostics
from loam_lab.judging.statistics import contrasts, multiplicity, verdicts
from loam_lab.judging.statistics.data import PROCESSOR_TIME, process_metric, state_of
from loam_lab.model.result import ProcessorRatio, Waiting

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.judging.statistics.intervals import Interval
    from loam_lab.model.cell import Cell

# Share of disturbed blocks from which on wall time does not decide; fewer of them hardly move a signed-rank interval.
DISTURBED_SHARE = 0.25
# Share of its thread time from which on a run waited for itself in a way that is worth a word.
OWN_SHARE = 0.10
# Loads of a fixed number of requests differ by more than this where anything disturbs them.
FIXED_SPREAD = 1.02


def waiting(campaign: Campaign) -> Waiting | None:
    """How many blocks hold a run that waited for a processor, and which metric decides; None where that is not judged.

    It is for commands and servers.  Processor time decides of servers only whose load has a fixed number of requests: one
    that lasts a fixed time keeps a server as busy as it can be, and its processor time says nothing.
    """
    primary = campaign.primary(campaign.cells[0]).name
    if any(campaign.workload(cell).metric(PROCESSOR_TIME.name) is None for cell in campaign.cells):
        return None
    counts = diagnostics.disturbed(campaign)
    blocks, disturbed = counts.blocks, counts.contaminated
    asked = (
        bool(blocks) and disturbed >= DISTURBED_SHARE * blocks and not (primary != "wall_s" and _fixed_time(campaign))
    )
    decides = PROCESSOR_TIME.name if asked else primary
    timed = [run for runs in campaign.timed.values() for run in runs]
    own = {campaign.block_of(run) for run in timed if float(run.disturbance.get("own_share", 0.0)) > OWN_SHARE}
    return Waiting(blocks, disturbed, len(own), decides)


def crowded(waits: Waiting | None) -> bool:
    """Whether what was measured waited for itself so often that it is worth a word."""
    return waits is not None and waits.own > 0 and waits.own >= DISTURBED_SHARE * waits.blocks


def _fixed_time(campaign: Campaign) -> bool:
    times = [time for cell in campaign.cells for time in campaign.values(cell, 0, process_metric("wall_s")).values()]
    return bool(times) and max(times) < FIXED_SPREAD * min(times)


def ratios(campaign: Campaign) -> dict[Cell, ProcessorRatio]:
    """By cell its ratio of processor time to the baseline's and the verdict on it, where processor time decides."""
    waits = waiting(campaign)
    if waits is None or waits.decides != "processor_s":
        return {}
    known: dict[Cell, Interval] = {}
    for cell in campaign.cells:
        good = state_of(campaign.runs(cell)) == "ok"
        ratio = contrasts.to_baseline(campaign, cell, metric=PROCESSOR_TIME) if good else None
        if ratio is not None:
            known[cell] = ratio
    adjusted = multiplicity.benjamini_hochberg([1.0 if ratio.p is None else ratio.p for ratio in known.values()])
    margin, width_max = campaign.study.margin, campaign.study.width_max
    return {
        cell: ProcessorRatio(
            *ratio.ends, PROCESSOR_TIME.name, ratio.n, ratio.p, q,
            verdicts.decide(ratio, "lower", margin=margin, adjusted=q), verdicts.rough(ratio, width_max),
        )
        for (cell, ratio), q in zip(known.items(), adjusted, strict=True)
    }  # fmt: skip
