"""What `bench` makes of its Result: a recommendation in words.

It says what was shown, what can be told where nothing was, and what would tell more.  Where it was not proven which
allocator served, it names none.  Where the command waited for a processor, processor time decides (see
loam_lab.judging.result.processor).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from loam_lab.commands.bench import paste, rule
from loam_lab.commands.bench.footprint import HOW, LARGEST
from loam_lab.judging.result import processor
from loam_lab.judging.statistics import multiplicity, verdicts
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.judging.statistics.verdicts import BLOCKS_ADVISED_MAX, MARGIN, percent
from loam_lab.model import words
from loam_lab.model.result import Cell, Ratio, Recommendation, Result, Waiting
from loam_lab.model.store import journal
from loam_lab.model.store.folder import RESULT

_NO_MEMORY: Mapping[str, Interval] = MappingProxyType({})


@dataclass(frozen=True)
class Rival:
    """An allocator against the baseline, by the time that decides. p: adjusted by Holm over all rivals"""

    name: str
    cell: Cell
    ratio: Interval
    verdict: str
    p: float

    @property
    def faster(self) -> bool:
        """Whether it was shown to be faster than the baseline."""
        return self.verdict == "better" and self.p < multiplicity.SIGNIFICANCE

    @property
    def open(self) -> bool:
        """Whether it may still be faster by more than the margin, though that was not shown."""
        low = self.ratio.low
        return not self.faster and self.verdict not in ("worse", "equivalent") and (low is None or low < 1 - MARGIN)


def add(
    result: Result, command: str, memory: Mapping[str, Interval] = _NO_MEMORY, figure: str = LARGEST,
    alike: rule.Alike = frozenset(),
) -> Result:  # fmt: skip
    """The result with its recommendation, which names no allocator where it is not proven of each which one served.

    command: as the user typed it; memory: ratios of the peak to the baseline's, by allocator; figure: which peak
    alike: pairs of allocators that were not told apart by what decides
    """
    if silent := unproven(result):
        return replace(result, recommendation=Recommendation("", silent, "", decides(result)))
    by = decides(result)
    rivals = rivals_of(result, by)
    baseline = result.baseline
    name = rule.fastest(baseline, shown_ratios(rivals, memory, alike))
    shown = sorted(
        (rival for rival in rivals if rival.faster), key=lambda rival: (rival.name != name, rival.ratio.estimate)
    )
    text = _use(result, shown, by, _memory(memory.get(shown[0].name), figure)) if shown else _stay(result, rivals, by)
    if by == "processor_s" and rivals:
        text += _because(result)
    elif processor.crowded(result.waiting):
        text += _crowded(result)
    line = paste.shell(name, command, result.before_own or ()) if shown else command
    return replace(result, recommendation=Recommendation(name, text, line, by, memory_by=figure if memory else None))


def shown_ratios(rivals: Iterable[Rival], memory: Mapping[str, Interval], alike: rule.Alike) -> dict[str, rule.Ratios]:
    """What was shown of each: the ratio by speed, and by memory where that is known."""
    named = {rival.name: rival for rival in rivals}
    known = [name for name in named if name in memory]
    adjusted = dict(
        zip(known, multiplicity.holm([1.0 if (p := memory[name].p) is None else p for name in known]), strict=True)
    )
    ratios = {
        name: rule.Ratios(
            rival.ratio.estimate if rival.faster or rival.verdict == "worse" else 1.0,
            _apart(memory[name], adjusted[name]) if name in adjusted else None,
        )
        for name, rival in named.items()
    }
    return rule.level(ratios, alike)


def _apart(ratio: Interval, p: float) -> float:
    """The ratio, where its interval lies beyond the margin on one side; else 1."""
    if ratio.low is None or ratio.high is None or p >= multiplicity.SIGNIFICANCE:
        return 1.0
    return ratio.estimate if ratio.high < 1 / rule.NEAR or ratio.low > rule.NEAR else 1.0


def unproven(result: Result) -> str:
    """Why nothing can be recommended, where it was not proven which allocator served: of which, why, what to do; else ""."""
    cells = dict.fromkeys(cell.factors.allocator for cell in result.cells if cell.verdict == "unproven")
    if not cells:
        return ""
    reasons = {one.name: one.reasons for one in result.allocators}
    why = list(dict.fromkeys(reason for name in cells for reason in reasons.get(name, [])))
    several = len(cells) > 1
    text = f"Nothing is recommended: it was not proven that {words.listing(cells)} served {_it(result)}"
    text += f" ({'; '.join(why)})." if why else "."
    if result.baseline in cells or len(cells) == len({cell.factors.allocator for cell in result.cells}):
        return text + " Every comparison needs that; docs/internals/interposition.md says what else can be in the way."
    return text + f" Or compare without {'them' if several else 'it'}: name the others with --allocator."


def decides(result: Result) -> str:
    """The metric by which allocators are judged: "wall_s", what a load prints, or "processor_s" where the command waited
    for a processor.
    """
    primary = next(iter(result.primary_metrics.values()), "wall_s")
    return primary if result.waiting is None else result.waiting.decides


def more_is_better(result: Result, by: str) -> bool:
    """Whether a higher value of the metric is better, as rates are."""
    return any(cell.metrics[by].better == "higher" for cell in result.cells if by in cell.metrics)


def rivals_of(result: Result, by: str) -> list[Rival]:
    """Every allocator beside the baseline; the ratio of one of which more is better is turned over, so less is better."""
    rows: list[tuple[Cell, Ratio, str]] = []
    for cell in result.cells:
        if cell.copy == 0 and by == "processor_s" and (judged := cell.processor_ratio) is not None:
            rows.append((cell, judged, judged.verdict))
        elif cell.copy == 0 and by != "processor_s" and (ratio := cell.ratio_to_baseline) is not None:
            rows.append((cell, ratio, cell.verdict))
    adjusted = multiplicity.holm([1.0 if ratio.p is None else ratio.p for _, ratio, _ in rows])
    over = more_is_better(result, by)
    return [
        Rival(cell.allocator, cell, _interval(ratio, over), verdict, p)
        for (cell, ratio, verdict), p in zip(rows, adjusted, strict=True)
    ]


def _interval(ratio: Ratio, over: bool) -> Interval:
    low, high = ratio.low, ratio.high
    if not over:
        return Interval(ratio.estimate, low, high, ratio.n, ratio.p)
    turned = (None if high is None else 1 / high, None if low is None else 1 / low)
    return Interval(1 / ratio.estimate, *turned, ratio.n, ratio.p)


def _use(result: Result, shown: list[Rival], by: str, memory: str) -> str:
    best = shown[0]
    roughly = words.roughly(verdicts.rough(best.ratio))
    over = more_is_better(result, by)
    gains = _gains(_it(result), best.ratio, by, over)
    text = f"Use {best.name}: {gains} than with {result.baseline} {_span(best.ratio, over)}{roughly}"
    text += f"{',' if roughly and memory else ''}{memory}."
    near = [rival.name for rival in shown[1:] if (rival.ratio.low or 0) <= (best.ratio.high or math.inf)]
    return text + (f" {words.listing(near)} may do as well." if near else "")


def less(ratio: Interval, by: str) -> str:
    """ "takes 4.0 % less time", "needs 4.0 % more processor time"."""
    saved = 1 - ratio.estimate
    verb, noun = ("takes", "time") if by == "wall_s" else ("needs", "processor time")
    return f"{verb} {percent(abs(saved))} {'less' if saved >= 0 else 'more'} {noun}"


def _serves(result: Result) -> bool:
    """Whether a server was measured, by what its load printed."""
    return next(iter(result.primary_metrics.values()), "wall_s") != "wall_s"


def _it(result: Result) -> str:
    return "the server" if _serves(result) else "the command"


def _gains(what: str, ratio: Interval, by: str, over: bool) -> str:
    """ "the command takes 4.0 % less time", "requests_per_s is 4.0 % higher"."""
    if by in ("wall_s", "processor_s"):
        return f"{what} {less(ratio, by)}"
    gain = _gain(ratio.estimate, over)
    return f"{by} is {percent(abs(gain))} {'higher' if (gain >= 0) == over else 'lower'}"


def _gain(ratio: float, over: bool) -> float:
    """How much is gained by a ratio that less is better of. over: whether it was turned over"""
    return 1 / ratio - 1 if over else 1 - ratio


def _span(ratio: Interval, over: bool) -> str:
    """The interval of what is gained: "[3.0 %, 5.0 %]"."""
    if ratio.low is None or ratio.high is None:
        return "(too few blocks for an interval)"
    return f"[{percent(_gain(ratio.high, over))}, {percent(_gain(ratio.low, over))}]"


def _stay(result: Result, rivals: list[Rival], by: str) -> str:
    baseline = result.baseline
    if not rivals and {cell.allocator for cell in result.cells} == {baseline}:
        return f"{baseline} alone was measured; name others with --allocator to compare."
    if not rivals:
        little = all(cell.state in ("ok", "skipped") for cell in result.cells)
        why = "too little was measured" if little else "see the failures"
        return f"Nothing could be compared with {baseline}: {why}."
    still_open = [rival for rival in rivals if rival.open]
    if not still_open:
        shown = f"no allocator was shown to be faster by more than {percent(MARGIN)}"
        return f"Stay with {baseline}: {shown}."
    if any(rival.ratio.low is None for rival in still_open):
        return f"Stay with {baseline}: {words.blocks(result.blocks)} can tell too little; use --blocks 10 or more."
    return f"Stay with {baseline}: no allocator was shown to be faster. {_saving(result, rivals, by)} {_more(result, still_open)}"


def _saving(result: Result, rivals: list[Rival], by: str) -> str:
    """What can be told now, though nothing was shown to be faster."""
    saved = max(1 - rival.ratio.low for rival in rivals if rival.ratio.low is not None)
    if by in ("wall_s", "processor_s"):
        noun = "time" if by == "wall_s" else "processor time"
        text = f"What can be told: no other allocator saves more than {percent(saved)} of the {noun}"
    else:
        over = more_is_better(result, by)
        text = f"What can be told: no other allocator betters {by} by more than {percent(_gain(1 - saved, over))}"
    alike = [rival for rival in rivals if rival.verdict in ("equivalent", "inconclusive")]
    if by != "processor_s" or not alike:
        return text + "."
    within = max(verdicts.reach(rival.ratio) for rival in alike)
    wall = max(verdicts.reach(rival.ratio) for rival in rivals_of(result, "wall_s"))
    whom = "all others" if len(alike) == len(rivals) > 2 else words.listing(rival.name for rival in alike)
    text += f"; {whom} {'equals' if len(alike) == 1 else 'equal'} {result.baseline} within {percent(within)}"
    other = "what the load printed" if _serves(result) else "wall time"
    return text + (
        f", while by {other} only differences above {percent(wall)} would show." if math.isfinite(wall) else "."
    )


def _more(result: Result, still_open: list[Rival]) -> str:
    """What would tell more: blocks, where a number that can be measured would do, else a quieter machine."""
    blocks = result.blocks
    needed = math.ceil(max(verdicts.blocks_for(rival.ratio, MARGIN) for rival in still_open))
    longer = "a longer load" if _serves(result) else "a longer command"
    quiet = f"a quiet machine (./loam doctor says what disturbs this one) or {longer}"
    if decides(result) == "processor_s":
        return f"What would tell more: {quiet}."
    if needed <= BLOCKS_ADVISED_MAX:
        return f"What would tell more: --blocks {max(needed, blocks + 1)}."
    if 2 * blocks <= BLOCKS_ADVISED_MAX:
        within = max(verdicts.reach(rival.ratio) for rival in still_open) * math.sqrt(blocks / BLOCKS_ADVISED_MAX)
        few = f"--blocks {BLOCKS_ADVISED_MAX}, for differences above about {percent(within)}"
        return f"What would tell more: {few}; for smaller ones {quiet}."
    return f"What would tell more: {quiet}; further blocks hardly."


def _because(result: Result) -> str:
    """Why processor time decided."""
    waiting = result.waiting or Waiting()
    return (
        f" Processor time (user and system) decides here, because other work kept {_it(result)} waiting for a processor in "
        f"{waiting.disturbed} of {waiting.blocks} blocks."
    )


def _crowded(result: Result) -> str:
    """What to do where threads of what is measured waited for one another."""
    waiting = result.waiting or Waiting()
    where = f"in {waiting.own} of {waiting.blocks} blocks"
    if not _serves(result):
        return (
            f" The command's own threads and processes waited for one another {where}: it has more of them than there are "
            "processors, so that is part of its time."
        )
    return (
        f" The server's threads waited {where} for processors that its load, or they themselves, had. No other work was in "
        "the way, so what the load printed decides. For a steadier figure give both processors of their own (taskset -c 0 "
        "before the server, taskset -c 1 before the load), or the load fewer threads."
    )


def _memory(ratio: Interval | None, figure: str) -> str:
    """ " and needs 4.0 % less memory at its peak"; "" where that is not known, or nothing to speak of."""
    saved = 0.0 if ratio is None else 1 - ratio.estimate
    if abs(saved) < MARGIN:
        return ""
    how = "" if figure == LARGEST else f" ({HOW[figure]})"
    return f" and needs {percent(abs(saved))} {'less' if saved > 0 else 'more'} memory at its peak{how}"


def save(result: Result, folder: Path) -> None:
    """Write the Result again, with its recommendation."""
    journal.write_whole(
        folder / RESULT, json.dumps(result.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    )
