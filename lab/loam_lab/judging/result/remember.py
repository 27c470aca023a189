"""What a newcomer should remember of a result: one sentence on how much the allocator matters, why, and what mends it.

A second one says where the first one's figures come from.  Both say only what the result shows: the largest headline that
is claimed, and of the runs that tell causes of aborts apart, which share came from placement alone under which allocator
and mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loam_lab.judging.statistics import verdicts
from loam_lab.model import words
from loam_lab.model.result import Cell, Headline

# What leaves at most this part of the worst share of aborts is said to mend it.
MENDED = 0.25
# Shares of fewer aborts than these are chance.
ABORTS_MIN = 100
TABLE, SHADOW = "table", "shadow"
Shares = dict[str, tuple[float, float]]


def text(
    headlines: Sequence[Headline],
    cells: Iterable[Cell],
    units: Mapping[str, Mapping[str, str]],
) -> str:
    """The sentence and its places, "" for a result of fewer than two cases.

    headlines, cells, units: as the result has them
    """
    if len(headlines) < 2:
        return ""
    causes = [cell for cell in cells if cell.copy == 0 and (cell.blame or {}).get("aborts")]
    groups = {cell.group for cell in causes}
    shown = [line for line in headlines if line.verdict == "better"]
    # Of groups whose aborts are told apart, if they show anything.
    shown = [line for line in shown if line.group in groups] or shown
    top = max(shown, key=lambda line: line.ratio.estimate, default=None)
    speed = f"in none of {len(headlines)} cases was a difference in speed shown"
    places = []
    if top is not None:
        speed = f"the choice of the allocator alone makes the same program up to {top.ratio.estimate:.2f} times as fast"
        places.append(_place(top, units))
    aborts, whose = _causes(causes)
    places += [f"most aborts by placement: {whose}"] if whose else []
    sources = ". ".join(place[:1].upper() + place[1:] for place in places)
    return f"{speed[:1].upper()}{speed[1:]}{aborts}." + (f" {sources}." if sources else "")


def _place(line: Headline, units: Mapping[str, Mapping[str, str]]) -> str:
    ratio = line.ratio
    where = ", ".join(
        part for part in (line.workload, words.parameters(line.parameters, units.get(line.workload, {}))) if part
    )
    span = f"[{ratio.low:.2f}, {ratio.high:.2f}]{words.roughly(line.rough)}"
    return f"largest difference: {where}, {line.best} against {line.worst} {span}"


def _causes(cells: Sequence[Cell]) -> tuple[str, str]:
    """Which share of the aborts placement alone made, and what ends that; then under which allocator it was the largest."""
    first = _shares(cell for cell in cells if cell.parameters.get("mapping", TABLE) != SHADOW)
    if not first:
        return "", ""
    worst = max(first, key=lambda name: _share(first[name]))
    most = _share(first[worst])
    if most == 0:
        return ", and no abort came only from where blocks lie", ""
    mended = []
    second = _shares(cell for cell in cells if cell.parameters.get("mapping") == SHADOW)
    if second and (left := max(map(_share, second.values()))) <= MENDED * most:
        mended.append(f"shadow records leave {_most(left)}")
    good = [name for name, counts in first.items() if _share(counts) <= MENDED * most]
    if good:
        verb = "leaves" if len(good) == 1 else "leave"
        remedy = f"{words.listing(good)} {verb} {_most(max(_share(first[name]) for name in good))}"
        mended.append(f"{remedy} without them" if mended else remedy)
    text = f", and up to {verdicts.percent(most)} of the aborts come only from where blocks lie"
    return text + (f"; {', '.join(mended)}" if mended else ""), worst


def _shares(cells: Iterable[Cell]) -> Shares:
    """By allocator its aborts by placement, and all of its aborts."""
    by_allocator: Shares = {}
    for cell in cells:
        placed, total = by_allocator.get(cell.allocator, (0.0, 0.0))
        blame = cell.blame or {}
        placed += sum(blame.get(cause, 0) for cause in words.PLACEMENT)
        by_allocator[cell.allocator] = placed, total + blame["aborts"]
    return {name: counts for name, counts in by_allocator.items() if counts[1] >= ABORTS_MIN}


def _share(counts: tuple[float, float]) -> float:
    return counts[0] / counts[1]


def _most(share: float) -> str:
    return f"at most {verdicts.percent(share)}" if share else "none"
