"""Which allocator to take for speed, for memory, and for both, with how sure that is.

Speed is judged by what decides the recommendation, memory by the largest process's peak in the same blocks.  For both,
an allocator counts that no other one beats in one without losing in the other (Pareto); of those the one with the
smallest product of the two ratios is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from loam_lab.commands.bench import recommend
from loam_lab.judging.statistics import contrasts, data, multiplicity
from loam_lab.judging.statistics.data import process_metric
from loam_lab.judging.statistics.verdicts import MARGIN, percent
from loam_lab.model import words
from loam_lab.model.result import Choice, Recommendation, Result

if TYPE_CHECKING:
    from pathlib import Path

    from loam_lab.judging.statistics.intervals import Interval

# Two allocators this near to each other are not told apart.
NEAR = 1 + MARGIN


def memory_ratios(folder: Path) -> dict[tuple[str, str], Interval]:
    """Peak memory against the baseline's in the same blocks, by command (empty for a server) and allocator."""
    campaign = data.load(folder)
    metric = process_metric("rss_peak_bytes")
    found = {}
    for cell in campaign.cells:
        ratio = (
            contrasts.to_baseline(campaign, cell, metric=metric) if data.state_of(campaign.runs(cell)) == "ok" else None
        )
        if ratio is not None:
            found[str(dict(cell.parameters).get("command", "")), cell.allocator] = ratio
    return found


def add(result: Result, memory: Mapping[str, Interval]) -> Result:
    """The result, which has a recommendation, with the choices of one command.

    memory: ratios of the peak by allocator
    """
    by = recommend.decides(result)
    speed = {rival.name: rival for rival in recommend.rivals_of(result, by)}
    baseline, advised = result.baseline, result.recommendation or Recommendation()
    lines = [Choice("speed", advised.allocator, _speed(result, advised.allocator))]
    names = [name for name in memory if name in speed]
    if names:
        lines.append(_thrifty(baseline, {name: memory[name] for name in names}))
        points = {baseline: (1.0, 1.0)} | {name: (speed[name].ratio.estimate, memory[name].estimate) for name in names}
        lines.append(_both(result, by, points))
    return replace(result, recommendation=replace(advised, choices=lines))


def _speed(result: Result, chosen: str) -> str:
    share = next((line.probability for line in result.best if line.allocator == chosen), None)
    sure = "" if share is None else f", the best in {percent(share)} of the draws from these blocks"
    return f"{chosen}{sure}"


def _thrifty(baseline: str, memory: Mapping[str, Interval]) -> Choice:
    adjusted = dict(
        zip(memory, multiplicity.holm([1.0 if one.p is None else one.p for one in memory.values()]), strict=True)
    )
    shown = [
        name for name, ratio in memory.items()
        if ratio.high is not None and ratio.high < 1 / NEAR and adjusted[name] < multiplicity.SIGNIFICANCE
    ]  # fmt: skip
    if not shown:
        text = f"{baseline}; no other was shown to need less by more than {percent(MARGIN)}"
        return Choice("memory", baseline, text)
    best = min(shown, key=lambda name: memory[name].estimate)
    ratio = memory[best]
    assert ratio.low is not None and ratio.high is not None
    span = f"[{percent(1 - ratio.high)}, {percent(1 - ratio.low)}]"
    return Choice("memory", best, f"{best}, {percent(1 - ratio.estimate)} less than {baseline} at its peak {span}")


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other one beats: nearer than NEAR counts as equal. Less is better in both; best product first."""

    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        no_worse = all(a <= b * NEAR for a, b in zip(one, other, strict=True))
        return no_worse and any(a * NEAR < b for a, b in zip(one, other, strict=True))

    front = [name for name, own in points.items() if not any(beats(other, own) for other in points.values())]
    return sorted(front or points, key=lambda name: math.prod(points[name]))


def _both(result: Result, by: str, points: Mapping[str, tuple[float, float]]) -> Choice:
    front = pareto(points)
    best = front[0]
    over = recommend.more_is_better(result, by)
    time, memory = points[best]
    what = {"wall_s": "time", "processor_s": "processor time"}.get(by, by)
    shares = f"{1 / time if over else time:.3f} of the {what} and {memory:.3f} of the peak memory"
    text = f"{best}, with {shares} of {result.baseline}"
    others = front[1:]
    if others:
        text += f"; {words.listing(others)} {'is' if len(others) == 1 else 'are'} not beaten in both either"
    return Choice("both", best, text)
