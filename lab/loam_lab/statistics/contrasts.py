"""Comparisons of cells that shared blocks: to the baseline, between levels of a factor, best against worst."""

from __future__ import annotations

import itertools
import math
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loam_lab.statistics import intervals, multiplicity, verdicts
from loam_lab.statistics.intervals import Interval

if TYPE_CHECKING:
    from loam_lab.model.cell import Cell
    from loam_lab.statistics.data import Campaign


def paired(
    campaign: Campaign, above: tuple[Cell, int], below: tuple[Cell, int], without: AbstractSet[int] = frozenset()
) -> Interval | None:
    """Ratio of the primary metric of two (cell, copy) over the blocks in which both ran well; None without any.

    without: numbers of blocks to leave out
    """
    metric = campaign.primary(above[0])
    a, b = campaign.values(*above, metric), campaign.values(*below, metric)
    blocks = [block for block in a if block in b and block not in without and a[block] > 0 and b[block] > 0]
    if not blocks:
        return None
    return intervals.paired_ratio([a[block] for block in blocks], [b[block] for block in blocks])


def to_baseline(
    campaign: Campaign, cell: Cell, copy: int = 0, without: AbstractSet[int] = frozenset()
) -> Interval | None:
    """Ratio of a cell to the same cell under the baseline allocator, copy 0; None for that one itself.

    without: numbers of blocks to leave out
    """
    baseline = campaign.baseline(cell)
    if copy == 0 and cell.allocator == baseline:
        return None
    other = _sister(campaign, cell, allocator=baseline)
    return None if other is None else paired(campaign, (cell, copy), (other, 0), without)


def _sister(campaign: Campaign, cell: Cell, **changed: Any) -> Cell | None:
    """The cell that differs in the given fields only; parameters=... replaces single parameters."""
    parameters = {**dict(cell.parameters), **changed.pop("parameters", {})}
    return campaign.find({**cell.as_json(), **changed, "parameters": parameters})


def contrasts(campaign: Campaign) -> list[dict[str, Any]]:
    """Levels of each factor that shares blocks, against its first level, allocator by allocator.

    A group with role "sequential" adds its allocators' ratios: what placement does without any transaction.
    """
    found = []
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
            other = _sister(campaign, cell, **change) if name != "sync" else campaign.counterpart(cell, str(first))
            ratio = paired(campaign, (cell, 0), (other, 0)) if other is not None else None
            if ratio is not None:
                what = f"{_word(name, level)} against {_word(name, first)}"
                found.append({**_contrast(campaign, cell, what, name, ratio), "level": level})
        if group.role == "sequential":
            ratio = to_baseline(campaign, cell)
            if ratio is not None:
                what = f"{cell.allocator} against {campaign.baseline(cell)}, without synchronisation"
                found.append(_contrast(campaign, cell, what, "sequential", ratio))
    return _adjusted(campaign, found)


def _word(name: str, level: Any) -> str:
    if name == "threads":
        return f"{level} thread" + ("" if level == 1 else "s")
    return f"{name} {level}" if isinstance(level, int) else str(level)


def _contrast(campaign: Campaign, cell: Cell, what: str, factor: str, ratio: Interval) -> dict[str, Any]:
    metric = campaign.primary(cell)
    parameters = {name: value for name, value in campaign.varied(cell).items() if name != factor}
    return {
        "what": what,
        "factor": factor,
        "group": cell.group,
        "workload": cell.workload,
        "sync": cell.sync,
        "threads": cell.threads,
        "parameters": parameters,
        "allocator": cell.allocator,
        "metric": metric.name,
        "better": metric.better,
        "estimate": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "n": ratio.n,
        "p": ratio.p,
    }


def _adjusted(campaign: Campaign, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The contrasts with their verdicts, which take into account how many there are."""
    study = campaign.study
    adjusted = multiplicity.benjamini_hochberg([1.0 if line["p"] is None else line["p"] for line in found])
    for line, q in zip(found, adjusted, strict=True):
        ratio = Interval(line["estimate"], line["low"], line["high"], line["n"], line["p"])
        line["q"] = q
        line["verdict"] = verdicts.decide(
            ratio, line["better"], margin=study.margin, width_max=study.width_max, adjusted=q
        )
    return found


def families(campaign: Campaign) -> list[list[Cell]]:
    """The cells of groups with the role "main", those together that differ in the allocator only."""
    found: dict[str, list[Cell]] = {}
    for cell in campaign.cells:
        if campaign.group(cell).role == "main":
            found.setdefault(repr(replace(cell, allocator="")), []).append(cell)
    return list(found.values())


def headlines(campaign: Campaign) -> list[dict[str, Any]]:
    """For each family of cells that differ in the allocator only: the best, the worst, and whether that is shown.

    The ratio says how many times better the best is.  Best and worst are picked after the fact from all pairs, so the
    verdict also needs Holm's adjusted probability over all pairs of the family below 5 %.
    """
    return [line for cells in families(campaign) if (line := _headline(campaign, cells)) is not None]


def _headline(campaign: Campaign, cells: list[Cell]) -> dict[str, Any] | None:
    from loam_lab.statistics.summarise import state_of

    metric, study = campaign.primary(cells[0]), campaign.study
    good = [cell for cell in cells if state_of(campaign.runs(cell)) == "ok" and campaign.values(cell, 0, metric)]
    if len(good) < 2:
        return None
    sign = -1 if metric.better == "lower" else 1
    pairs: dict[tuple[int, int], Interval] = {}
    for i, j in itertools.permutations(range(len(good)), 2):
        ratio = paired(campaign, (good[i], 0), (good[j], 0))
        if ratio is not None:
            pairs[i, j] = ratio
    # Rank by how an allocator does against all others, in pairs: the same blocks decide rank and ratio.
    score = [
        sign * sum(math.log(pairs[i, j].estimate) for j in range(len(good)) if (i, j) in pairs)
        for i in range(len(good))
    ]
    best = max(range(len(good)), key=score.__getitem__)
    # Also where all are exactly alike two are compared: that there is no difference is an answer.
    worst = min((i for i in range(len(good)) if i != best), key=score.__getitem__)
    oriented = (best, worst) if sign > 0 else (worst, best)
    if oriented not in pairs:
        return None
    unordered = [key for key in pairs if key[0] < key[1]]
    adjusted = dict(
        zip(unordered, multiplicity.holm([1.0 if (p := pairs[key].p) is None else p for key in unordered]), strict=True)
    )
    ratio = pairs[oriented]
    p = adjusted[min(oriented), max(oriented)]
    verdict = verdicts.decide(ratio, "higher", margin=study.margin, width_max=study.width_max, adjusted=p)
    return {
        "group": cells[0].group,
        "workload": cells[0].workload,
        "parameters": campaign.varied(cells[0]),
        "sync": cells[0].sync,
        "threads": cells[0].threads,
        "metric": metric.name,
        "best": good[best].allocator,
        "worst": good[worst].allocator,
        "ratio": {"estimate": ratio.estimate, "low": ratio.low, "high": ratio.high},
        "p_holm": p,
        "comparisons": len(unordered),
        "verdict": verdict,
        "text": _sentence(campaign, cells[0], good[best].allocator, good[worst].allocator, ratio, verdict, p),
    }


def place(campaign: Campaign, cell: Cell) -> str:
    """Where a family was measured, in words: workload, what varies, synchronisation, threads."""
    from loam_lab.report import words

    parameters = campaign.varied(cell) or {k: v for k, v in cell.parameters if k != "duration_ms"}
    return ", ".join(
        part for part in (cell.workload, words.parameters(parameters), cell.sync, words.threads(cell.threads)) if part
    )


def _sentence(campaign: Campaign, cell: Cell, best: str, worst: str, ratio: Interval, verdict: str, p: float) -> str:
    where = place(campaign, cell)
    size = f"{ratio.estimate:.2f} times"
    if ratio.low is not None and ratio.high is not None:
        size += f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    if verdict == "equivalent":
        margin = verdicts.percent(campaign.study.margin)
        return f"{where}: the allocator makes no difference above {margin} ({best} to {worst}: {size})."
    if verdict == "better":
        return f"{where}: {best} is best, {size} as good as {worst}, the worst."
    advice = "; ".join(verdicts.advice(ratio, "inconclusive", width_max=campaign.study.width_max).split("; ")[:2])
    if not advice or (ratio.width <= campaign.study.width_max and p >= multiplicity.SIGNIFICANCE):
        advice = "not shown beyond chance among all pairs"
    return f"{where}: {best} looks best and {worst} worst, {size}, but this is inconclusive: {advice}."
