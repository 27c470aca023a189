"""Which allocator to take for speed, for memory, and for both, in words.

Speed is judged by what decides the recommendation, memory by the peak that footprint.py finds.  What is
chosen follows from what was told apart (see rule.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from loam_lab.commands.bench import recommend, rule
from loam_lab.commands.bench.footprint import HOW, LARGEST
from loam_lab.judging.statistics.verdicts import MARGIN, percent
from loam_lab.model import words
from loam_lab.model.result import Choice, Recommendation, Result

if TYPE_CHECKING:
    from loam_lab.commands.bench.recommend import Rival
    from loam_lab.judging.statistics.intervals import Interval

# From this share of the draws on, to be the best in them says how sure a choice is; below, it would say that it is not.
MOSTLY = 0.5


def add(
    result: Result, memory: Mapping[str, Interval], figure: str = LARGEST, alike: rule.Alike = frozenset()
) -> Result:  # fmt: skip
    """The result, which has a recommendation, with the choices of one command; without any where nothing was told apart.

    memory: ratios of the peak by allocator; figure: which peak (see footprint.py); alike: as for recommend.add()
    """
    advised = result.recommendation or Recommendation()
    if not advised.allocator:
        return result
    by = recommend.decides(result)
    rivals = {rival.name: rival for rival in recommend.rivals_of(result, by)}
    ratios = recommend.shown_ratios(rivals.values(), memory, alike)
    named = rule.advise(result.baseline, ratios)
    lines = []
    if "speed" in named:
        lines.append(Choice("speed", named["speed"], _speed(result, named["speed"])))
    if "memory" in named:
        lines.append(Choice("memory", named["memory"], _thrifty(result.baseline, named["memory"], memory, figure)))
        lines.append(_both(result, by, rivals, memory, rule.front(result.baseline, ratios)))
    return replace(result, recommendation=replace(advised, choices=lines))


def _speed(result: Result, chosen: str) -> str:
    if chosen == result.baseline:
        return f"{chosen}; no other was shown to be faster"
    share = next((line.probability for line in result.best if line.allocator == chosen), None) or 0.0
    sure = f", the best in {percent(share)} of the draws from these blocks" if share >= MOSTLY else ""
    return f"{chosen}{sure}"


def _thrifty(baseline: str, chosen: str, memory: Mapping[str, Interval], figure: str) -> str:
    if chosen == baseline:
        return f"{baseline}; no other was shown to need less by more than {percent(MARGIN)} ({HOW[figure]})"
    ratio = memory[chosen]
    assert ratio.low is not None and ratio.high is not None
    span = f"[{percent(1 - ratio.high)}, {percent(1 - ratio.low)}]"
    return f"{chosen}, {percent(1 - ratio.estimate)} less than {baseline} at its peak {span} ({HOW[figure]})"


def _both(
    result: Result, by: str, rivals: Mapping[str, Rival], memory: Mapping[str, Interval], front: list[str]
) -> Choice:  # fmt: skip
    best = front[0]
    if best == result.baseline:
        text = f"{best}; who is better in one loses as much in the other"
    else:
        time = rivals[best].ratio.estimate
        what = {"wall_s": "time", "processor_s": "processor time"}.get(by, by)
        value = 1 / time if recommend.more_is_better(result, by) else time
        shares = f"{value:.3f} of the {what} and {memory[best].estimate:.3f} of the peak memory"
        text = f"{best}, with {shares} of {result.baseline}"
    others = front[1:]
    if others:
        text += f"; {words.listing(others)} {'is' if len(others) == 1 else 'are'} not beaten in both either"
    return Choice("both", best, text)
