"""The headlines of a result: in each family of cells that differ in the allocator only, the best against the worst.

Best and worst are picked after the fact, in every family: a headline is claimed where its interval excludes 1, and its
probability, which takes the picking into account (judging/statistics/extremes.py), stays below 5 % after Holm over all headlines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from loam_lab.judging.statistics import extremes, multiplicity, verdicts
from loam_lab.model import result, words
from loam_lab.model.result import Headline

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.judging.statistics.intervals import Interval
    from loam_lab.model.cell import Cell


def families(campaign: Campaign) -> list[list[Cell]]:
    """The cells of groups with the role "main", those together that differ in the allocator only."""
    by_rest: dict[str, list[Cell]] = {}
    for cell in campaign.cells:
        if campaign.group(cell).role == "main":
            by_rest.setdefault(repr(replace(cell, allocator="")), []).append(cell)
    return list(by_rest.values())


def headlines(campaign: Campaign) -> list[Headline]:
    """For each family the best, the worst, and whether that is shown."""
    picks = [pick for cells in families(campaign) if (pick := _pick(campaign, cells)) is not None]
    adjusted = multiplicity.holm([pick.p for _, pick in picks])
    return [_line(campaign, cells, pick, p, len(picks)) for (cells, pick), p in zip(picks, adjusted, strict=True)]


def _pick(campaign: Campaign, cells: list[Cell]) -> tuple[list[Cell], extremes.Pick] | None:
    """The cells that ran well, and best and worst among them, over the blocks in which all of them did."""
    metric = campaign.primary(cells[0])
    known, blocks, values = campaign.together(cells, metric)
    if len(known) < 2 or not blocks.size:
        return None
    sign = -1 if metric.better == "lower" else 1
    return known, extremes.pick(sign * np.log(values))


def _line(campaign: Campaign, cells: list[Cell], pick: extremes.Pick, p: float, count: int) -> Headline:
    cell, worst, ratio = cells[pick.best], cells[pick.worst], pick.ratio
    verdict = verdicts.decide(ratio, "higher", margin=campaign.study.margin, adjusted=p)
    return Headline(
        group=cell.group,
        workload=cell.workload,
        parameters=campaign.varied(cell),
        sync=cell.sync,
        machine=cell.machine,
        threads=cell.threads,
        metric=campaign.primary(cell).name,
        best=cell.allocator,
        worst=worst.allocator,
        ratio=result.Interval(*ratio.ends),
        p=pick.p,
        p_holm=p,
        comparisons=count,
        verdict=verdict,
        rough=verdicts.rough(ratio, campaign.study.width_max),
        text=_sentence(campaign, cell, worst.allocator, ratio, verdict, p, count),
    )


def place(campaign: Campaign, cell: Cell) -> str:
    """Where a family was measured, in words: workload, what varies, synchronisation, threads; the machine if of many."""
    parameters = campaign.varied(cell) or {k: v for k, v in cell.parameters if k != "duration_ms"}
    machine = cell.machine if len(campaign.manifest["machines"]) > 1 else ""
    parts = (
        cell.workload,
        words.parameters(parameters, campaign.units(cell)),
        cell.sync,
        words.threads(cell.threads),
        machine,
    )
    return ", ".join(part for part in parts if part)


def _sentence(campaign: Campaign, best: Cell, worst: str, ratio: Interval, verdict: str, p: float, count: int) -> str:
    where, name = place(campaign, best), best.allocator
    size = f"{ratio.estimate:.2f} times as {words.good(campaign.primary(best).unit)}"
    span = "" if ratio.low is None else f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    if verdict == "equivalent":
        margin = verdicts.percent(campaign.study.margin)
        return f"{where}: the allocator makes no difference above {margin} ({name} is {size} as {worst}{span})."
    if verdict == "better":
        roughly = words.roughly(verdicts.rough(ratio, campaign.study.width_max))
        return f"{where}: {name} is best, {size} as {worst}, the worst{span}{roughly}."
    if f"{ratio.estimate:.2f}" == "1.00" and ratio.low is None:
        return f"{where}: no difference was seen, but this is inconclusive: {_too_few(ratio.n)}."
    if ratio.low is None:
        why = _too_few(ratio.n)
    elif p >= multiplicity.SIGNIFICANCE:
        why = f"chance is not excluded among {count} cases; more blocks would tell"
    else:
        why = "the interval holds 1"
    return f"{where}: {name} looks best and {worst} worst, {size}{span}, but this is inconclusive: {why}."


def _too_few(blocks: int) -> str:
    return f"{blocks} block{' is' if blocks == 1 else 's are'} too few for an interval"
