"""What a campaign met on its way: disturbed blocks, the order of its runs, and whether it became precise enough."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from loam_lab.judging.statistics import contrasts
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Disturbed, Stopping, TimelineRun

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign, Run
    from loam_lab.model.cell import Cell

SOURCES = ("run_delay", "steal", "pressure")
# A picture of the order shows less; all of a million runs would be most of the result's file.
TIMELINE_MAX = 50_000


def disturbed(campaign: Campaign) -> Disturbed:
    """How many blocks were measured, run again, and stayed disturbed; by: blocks in which a source was beyond its limit.

    A block counts for a source if any of its attempts met it.  slices, slices_left_out: of the runs that count, together
    """
    timed = [run for runs in campaign.timed.values() for run in runs]
    met: dict[str, set[object]] = {source: set() for source in SOURCES}
    every = [*timed, *campaign.superseded]
    for run in (run for run in every if run.disturbance.get("why")):
        for source in run.disturbance["why"]:
            met.setdefault(str(source), set()).add(campaign.block_of(run))
    slices = sum(int(run.disturbance.get("slices") or 0) for run in timed)
    return Disturbed(
        blocks=len(set(map(campaign.block_of, timed))),
        repeated=len({campaign.block_of(run) for run in every if run.attempt > 0}),
        contaminated=len(campaign.contaminated),
        by={source: len(blocks) for source, blocks in met.items()},
        slices=slices,
        slices_left_out=slices - sum(int(run.disturbance.get("slices_kept") or 0) for run in timed),
    )


def contaminated(campaign: Campaign, cell: Cell, copy: int) -> set[int]:
    """Numbers of the blocks of a cell that stayed disturbed."""
    if not campaign.contaminated:
        return set()
    return {run.block for run in campaign.runs(cell, copy) if campaign.block_of(run) in campaign.contaminated}


def without_contaminated(campaign: Campaign, cell: Cell, copy: int) -> Interval | None:
    """The ratio to the baseline of undisturbed blocks only; None where no block is disturbed or none is left."""
    bad = contaminated(campaign, cell, copy)
    return contrasts.to_baseline(campaign, cell, copy, without=bad) if bad else None


def timeline(campaign: Campaign, index: dict[tuple[str, int], int]) -> list[TimelineRun]:
    """Every timed run in the order in which it ran, those of superseded attempts included; of very many, every n-th.

    index: place in the result's cells by cell key and copy
    """
    cells = {cell.key: cell for cell in campaign.cells}
    every = (*(run for of_cell in campaign.timed.values() for run in of_cell), *campaign.superseded)
    runs = [run for run in every if (run.cell, run.copy) in index]
    times = _times(runs)
    timed = all(time is not None for time in times)
    keys = [(time or 0.0) if timed else float(run.order) for time, run in zip(times, runs, strict=True)]
    places = np.argsort(np.array(keys), kind="stable").tolist()
    return [
        TimelineRun(
            order=run.order, t_s=times[at], cell=index[run.cell, run.copy], block=run.block, copy=run.copy,
            attempt=run.attempt, value=run.value(campaign.primary(cells[run.cell])) if run.state == "ok" else None,
            share=run.disturbance.get("share"),
        )
        for at in places[:: max(1, -(-len(runs) // TIMELINE_MAX))] for run in (runs[at],)
    ]  # fmt: skip


def _times(runs: Sequence[Run]) -> list[float | None]:
    """When each run started, in seconds; None where its journal does not tell."""
    # Journals of older labs have the time of day only, which may have been set back meanwhile.
    moments = {at: moment for at, run in enumerate(runs) if run.t_s is None and (moment := _moment(run)) is not None}
    first = min(moments.values(), default=None)
    times = [None if run.t_s is None else round(run.t_s, 3) for run in runs]
    for at, moment in moments.items():
        assert first is not None, "one of them is the first"
        times[at] = round(max(0.0, (moment - first).total_seconds()), 3)
    return times


def _moment(run: Run) -> datetime | None:
    try:
        return datetime.fromisoformat(run.started_utc)
    except ValueError:
        return None


def stopping(campaign: Campaign, ratios: list[Interval]) -> Stopping | None:
    """Whether every ratio became as narrow as the study asks; None where it asks for none.

    ratios: of all cells to their baselines
    """
    from loam_lab.judging.statistics.intervals import half_width

    study = campaign.study
    if study.target_width is None:
        return None
    return Stopping(
        study.target_width,
        reached=bool(ratios) and all(half_width(ratio.low, ratio.high) <= study.target_width for ratio in ratios),
        cap_blocks=max(study.cap_of(group) for group in study.groups),
        blocks=max((len(runs) for runs in campaign.timed.values()), default=0),
    )
