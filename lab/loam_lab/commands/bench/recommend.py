"""What `bench` makes of its Result: a recommendation in words.

The recommendation always names an allocator.  It says what was shown, what can be told where nothing was, and what would
tell more.  Where the command waited for a processor, processor time decides (see loam_lab.judging.result.processor).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab.commands.bench import paste
from loam_lab.judging.statistics import multiplicity, verdicts
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.judging.statistics.verdicts import BLOCKS_ADVISED_MAX, MARGIN, percent
from loam_lab.model import words
from loam_lab.model.store import journal
from loam_lab.model.store.folder import RESULT

# A saving of memory smaller than this is not worth a sentence.
MEMORY_SHARE_MIN = 0.1


@dataclass(frozen=True)
class Rival:
    """An allocator against the baseline, by the time that decides. p: adjusted by Holm over all rivals"""

    name: str
    cell: Mapping[str, Any]
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


def add(result: dict[str, Any], command: str) -> None:
    """Put result["recommendation"]: {"allocator", "text", "command", "by"}; by: the metric that decided.

    command: as the user typed it
    """
    by = decides(result)
    rivals = rivals_of(result, by)
    shown = sorted((rival for rival in rivals if rival.faster), key=lambda rival: rival.ratio.estimate)
    baseline = result["baseline"]
    name = shown[0].name if shown else baseline
    text = _use(result, shown, by) if shown else _stay(result, rivals, by)
    if by == "processor_s" and rivals:
        text += _because(result)
    line = paste.shell(result, name, command) if shown else command
    result["recommendation"] = {"allocator": name, "text": text, "command": line, "by": by}


def decides(result: Mapping[str, Any]) -> str:
    """The metric by which allocators are judged: "wall_s", what a load prints, or "processor_s" where the command waited
    for a processor.
    """
    primary = next(iter(result.get("primary_metrics", {}).values()), "wall_s")
    return str((result.get("waiting") or {}).get("decides", primary))


def more_is_better(result: Mapping[str, Any], by: str) -> bool:
    """Whether a higher value of the metric is better, as rates are."""
    told = (cell["metrics"].get(by, {}).get("better", "lower") for cell in result["cells"])
    return "higher" in told


def rivals_of(result: Mapping[str, Any], by: str) -> list[Rival]:
    """Every allocator beside the baseline; the ratio of one of which more is better is turned over, so less is better."""
    key = "processor_ratio" if by == "processor_s" else "ratio_to_baseline"
    cells = [cell for cell in result["cells"] if cell["copy"] == 0 and cell.get(key) is not None]
    adjusted = multiplicity.holm([1.0 if cell[key]["p"] is None else cell[key]["p"] for cell in cells])
    over = more_is_better(result, by)
    return [
        Rival(
            cell["factors"]["allocator"], cell, _interval(cell[key], over),
            cell[key]["verdict"] if by == "processor_s" else cell["verdict"], p,
        )
        for cell, p in zip(cells, adjusted, strict=True)
    ]  # fmt: skip


def _interval(found: Mapping[str, Any], over: bool) -> Interval:
    low, high = found["low"], found["high"]
    if not over:
        return Interval(found["estimate"], low, high, found["n"], found["p"])
    turned = (None if high is None else 1 / high, None if low is None else 1 / low)
    return Interval(1 / found["estimate"], *turned, found["n"], found["p"])


def _use(result: Mapping[str, Any], shown: list[Rival], by: str) -> str:
    best = shown[0]
    roughly = words.roughly(verdicts.rough(best.ratio))
    memory = _memory(result, best.cell)
    over = more_is_better(result, by)
    text = f"Use {best.name}: {_gains(best.ratio, by, over)} than with {result['baseline']} {_span(best.ratio, over)}{roughly}"
    text += f"{',' if roughly and memory else ''}{memory}."
    near = [rival.name for rival in shown[1:] if (rival.ratio.low or 0) <= (best.ratio.high or math.inf)]
    return text + (f" {words.listing(near)} may do as well." if near else "")


def less(ratio: Interval, by: str) -> str:
    """ "takes 4.0 % less time", "needs 4.0 % more processor time"."""
    saved = 1 - ratio.estimate
    verb, noun = ("takes", "time") if by == "wall_s" else ("needs", "processor time")
    return f"{verb} {percent(abs(saved))} {'less' if saved >= 0 else 'more'} {noun}"


def _gains(ratio: Interval, by: str, over: bool) -> str:
    """ "the command takes 4.0 % less time", "requests_per_s is 4.0 % higher"."""
    if by in ("wall_s", "processor_s"):
        return f"the command {less(ratio, by)}"
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


def _stay(result: Mapping[str, Any], rivals: list[Rival], by: str) -> str:
    baseline = result["baseline"]
    if not rivals and {cell["factors"]["allocator"] for cell in result["cells"]} == {baseline}:
        return f"{baseline} alone was measured; name others with --allocator to compare."
    if not rivals:
        return f"Nothing could be compared with {baseline}: see the failures."
    still_open = [rival for rival in rivals if rival.open]
    if not still_open:
        shown = f"no allocator was shown to be faster by more than {percent(MARGIN)}"
        return f"Stay with {baseline}: {shown}.{_thrifty(result, rivals)}"
    if any(rival.ratio.low is None for rival in still_open):
        return f"Stay with {baseline}: {result['blocks']} blocks are too few to tell; use --blocks 10 or more."
    return f"Stay with {baseline}: no allocator was shown to be faster. {_told(result, rivals, by)} {_more(result, still_open)}"


def _told(result: Mapping[str, Any], rivals: list[Rival], by: str) -> str:
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
    text += f"; {whom} {'equals' if len(alike) == 1 else 'equal'} {result['baseline']} within {percent(within)}"
    return text + (
        f", while by wall time only differences above {percent(wall)} would show." if math.isfinite(wall) else "."
    )


def _more(result: Mapping[str, Any], still_open: list[Rival]) -> str:
    """What would tell more: blocks, where a number that can be measured would do, else a quieter machine."""
    blocks = int(result["blocks"])
    needed = math.ceil(max(verdicts.blocks_for(rival.ratio, MARGIN) for rival in still_open))
    quiet = "a quiet machine (./loam doctor says what disturbs this one) or a longer command"
    if decides(result) == "processor_s":
        return f"What would tell more: {quiet}."
    if needed <= BLOCKS_ADVISED_MAX:
        return f"What would tell more: --blocks {max(needed, blocks + 1)}."
    if 2 * blocks <= BLOCKS_ADVISED_MAX:
        within = max(verdicts.reach(rival.ratio) for rival in still_open) * math.sqrt(blocks / BLOCKS_ADVISED_MAX)
        few = f"--blocks {BLOCKS_ADVISED_MAX}, for differences above about {percent(within)}"
        return f"What would tell more: {few}; for smaller ones {quiet}."
    return f"What would tell more: {quiet}; further blocks hardly."


def _because(result: Mapping[str, Any]) -> str:
    """Why processor time decided."""
    found = result["waiting"]
    return (
        f" Processor time (user and system) decides here, because other work kept the command waiting for a processor in "
        f"{found['disturbed']} of {found['blocks']} blocks."
    )


def _thrifty(result: Mapping[str, Any], rivals: list[Rival]) -> str:
    """A rival that is as fast and needs clearly less memory, if there is one."""
    saved = {
        rival.name: share for rival in rivals if rival.verdict == "equivalent" and (share := _saved(result, rival.cell))
    }
    name = max(saved, key=lambda name: saved[name], default="")
    if not name or saved[name] < MEMORY_SHARE_MIN:
        return ""
    return f" {name} is as fast and needs {percent(saved[name])} less memory at its peak."


def _saved(result: Mapping[str, Any], cell: Mapping[str, Any]) -> float | None:
    """Share of the baseline's peak memory that a cell saves (negative: needs more); None where it is not known."""
    base = next(c for c in result["cells"] if c["verdict"] == "baseline")
    own, other = cell["metrics"].get("rss_peak_bytes"), base["metrics"].get("rss_peak_bytes")
    if not own or not other or not other["estimate"]:
        return None
    return 1 - float(own["estimate"]) / float(other["estimate"])


def _memory(result: Mapping[str, Any], cell: Mapping[str, Any]) -> str:
    saved = _saved(result, cell)
    if saved is None or abs(saved) < 0.02:
        return ""
    return f" and needs {percent(abs(saved))} {'less' if saved > 0 else 'more'} memory at its peak"


def save(result: Mapping[str, Any], folder: Path) -> None:
    """Write the Result again, with its recommendation."""
    journal.write_whole(folder / RESULT, json.dumps(result, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
