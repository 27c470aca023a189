"""What a campaign met on its way: disturbed blocks, the order of its runs, and whether it became precise enough."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from loam_lab.statistics import contrasts
from loam_lab.statistics.intervals import Interval

if TYPE_CHECKING:
    from loam_lab.model.cell import Cell
    from loam_lab.statistics.data import Campaign, Run

SOURCES = ("run_delay", "steal", "pressure")


def disturbed(campaign: Campaign) -> dict[str, Any]:
    """How many blocks were measured, run again, and stayed disturbed; by: blocks in which a source was beyond its limit.

    A block counts for a source if any of its attempts met it.
    """
    timed = [run for runs in campaign.timed.values() for run in runs]
    met: dict[str, set[object]] = {source: set() for source in SOURCES}
    for run in (*timed, *campaign.superseded):
        for source in run.disturbance.get("why") or ():
            met.setdefault(str(source), set()).add(campaign.block_of(run))
    return {
        "blocks": len({campaign.block_of(run) for run in timed}),
        "repeated": len({campaign.block_of(run) for run in (*timed, *campaign.superseded) if run.attempt > 0}),
        "contaminated": len(campaign.contaminated),
        "by": {source: len(blocks) for source, blocks in met.items()},
    }


def contaminated(campaign: Campaign, cell: Cell, copy: int) -> set[int]:
    """Numbers of the blocks of a cell that stayed disturbed."""
    return {run.block for run in campaign.runs(cell, copy) if campaign.block_of(run) in campaign.contaminated}


def without_contaminated(campaign: Campaign, cell: Cell, copy: int) -> Interval | None:
    """The ratio to the baseline of undisturbed blocks only; None where no block is disturbed or none is left."""
    bad = contaminated(campaign, cell, copy)
    return contrasts.to_baseline(campaign, cell, copy, without=bad) if bad else None


def timeline(campaign: Campaign, index: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    """Every timed run in the order in which it ran, those of superseded attempts included.

    index: place in the result's cells by cell key and copy
    """
    cells = {cell.key: cell for cell in campaign.cells}
    runs = [run for found in campaign.timed.values() for run in found] + campaign.superseded
    started = {id(run): moment for run in runs if (moment := _moment(run)) is not None}
    first = min(started.values(), default=None)
    lines = []
    for run in runs:
        if (run.cell, run.copy) not in index:
            continue
        t_s = run.t_s
        if t_s is None and first is not None and id(run) in started:
            # Journals of older labs have the time of day only, which may have been set back meanwhile.
            t_s = max(0.0, (started[id(run)] - first).total_seconds())
        value = run.value(campaign.primary(cells[run.cell])) if run.state == "ok" else None
        lines.append({
            "order": run.order, "t_s": None if t_s is None else round(t_s, 3), "cell": index[run.cell, run.copy],
            "block": run.block, "copy": run.copy, "attempt": run.attempt, "value": value,
            "share": run.disturbance.get("share"),
        })  # fmt: skip
    timed = all(line["t_s"] is not None for line in lines)
    return sorted(lines, key=lambda line: line["t_s"] if timed else line["order"])


def _moment(run: Run) -> datetime | None:
    try:
        return datetime.fromisoformat(run.started_utc)
    except ValueError:
        return None


def stopping(campaign: Campaign, ratios: list[Interval]) -> dict[str, Any] | None:
    """Whether every ratio became as narrow as the study asks; None where it asks for none.

    ratios: of all cells to their baselines
    """
    from loam_lab.measure.stopping import half_width

    study = campaign.study
    if study.target_width is None:
        return None
    return {
        "target_width": study.target_width,
        "reached": bool(ratios) and all(half_width(ratio.low, ratio.high) <= study.target_width for ratio in ratios),
        "cap_blocks": max(study.cap_of(group) for group in study.groups),
        "blocks": max((len(runs) for runs in campaign.timed.values()), default=0),
    }
