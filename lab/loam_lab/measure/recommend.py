"""What `bench` makes of its Result: a recommendation in words, and one table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab import console
from loam_lab.measure import journal, tables
from loam_lab.measure.folder import RESULT
from loam_lab.statistics.intervals import Interval
from loam_lab.statistics.verdicts import MARGIN, more_runs, percent

if TYPE_CHECKING:
    from rich.text import Text

SIGNIFICANCE = 0.05
# A saving of memory smaller than this is not worth a sentence.
MEMORY_SHARE_MIN = 0.1
# Beyond this, noise is the problem and not the number of blocks.
BLOCKS_MANY = 100
USED = ("user_s", "system_s", "rss_peak_bytes", "faults_minor", "faults_major")


def add(result: dict[str, Any], command: str) -> None:
    """Put result["recommendation"]: {"allocator", "text", "command"}; the text says what was shown and what was not.

    command: as the user typed it
    """
    baseline = result["baseline"]
    rivals = [cell for cell in result["cells"] if cell["copy"] == 0 and cell["ratio_to_baseline"] is not None]
    adjusted = _holm(rivals)
    shown = [cell for cell, p in zip(rivals, adjusted, strict=True) if p < SIGNIFICANCE and _faster(cell)]
    shown.sort(key=lambda cell: float(cell["ratio_to_baseline"]["estimate"]))
    if shown:
        best = shown[0]
        name, ratio = best["factors"]["allocator"], best["ratio_to_baseline"]
        text = (
            f"Use {name}: the command takes {percent(1 - ratio['estimate'])} less time than with {baseline} "
            f"[{percent(1 - ratio['high'])}, {percent(1 - ratio['low'])}]{_memory(result, best)}."
        )
        near = [cell["factors"]["allocator"] for cell in shown[1:] if cell["ratio_to_baseline"]["low"] <= ratio["high"]]
        if near:
            text += f" {_list(near)} may do as well."
        if best["verdict"] != "better":
            text += f" By how much is not settled; --blocks {int(result['blocks']) * _more(ratio)} would narrow it."
        result["recommendation"] = {"allocator": name, "text": text, "command": use(result, name, command)}
        return
    result["recommendation"] = {"allocator": baseline, "text": _stay(result, rivals), "command": command}


def _faster(cell: Mapping[str, Any]) -> bool:
    """Whether it was shown to be faster; an interval too wide for a verdict may still lie beside the margin as a whole."""
    high = cell["ratio_to_baseline"]["high"]
    wide = cell["verdict"] == "inconclusive" and high is not None and high < 1 - MARGIN
    return cell["verdict"] == "better" or wide


def _holm(cells: list[dict[str, Any]]) -> list[float]:
    from loam_lab.statistics.multiplicity import holm

    return holm([1.0 if (p := cell["ratio_to_baseline"]["p"]) is None else p for cell in cells])


def _stay(result: Mapping[str, Any], rivals: list[dict[str, Any]]) -> str:
    baseline = result["baseline"]
    if not rivals and {cell["factors"]["allocator"] for cell in result["cells"]} == {baseline}:
        return f"{baseline} alone was measured; name others with --allocator to compare."
    if not rivals:
        return f"Nothing could be compared with {baseline}: see the failures."
    open_ones = [cell for cell in rivals if cell["verdict"] == "inconclusive"]
    promising = [cell for cell in open_ones if (low := cell["ratio_to_baseline"]["low"]) is None or low < 0.98]
    if promising:
        names = _list([cell["factors"]["allocator"] for cell in promising])
        blocks = int(result["blocks"]) * max(_more(cell["ratio_to_baseline"]) for cell in promising)
        advice = f"Repeat with --blocks {blocks}" + (", or on a quieter machine." if blocks > BLOCKS_MANY else ".")
        return f"No recommendation yet: whether {names} would be faster than {baseline} is open. {advice}"
    text = f"Stay with {baseline}: no allocator was shown to be faster by more than 2 %."
    thrifty = [
        (cell, saved)
        for cell in rivals
        if cell["verdict"] == "equivalent" and (saved := _saved(result, cell)) is not None
    ]
    if thrifty:
        cell, saved = max(thrifty, key=lambda item: item[1])
        if saved >= MEMORY_SHARE_MIN:
            text += f" {cell['factors']['allocator']} is as fast and needs {percent(saved)} less memory at its peak."
    return text


def _more(ratio: Mapping[str, Any]) -> int:
    return more_runs(Interval(ratio["estimate"], ratio["low"], ratio["high"], ratio["n"]))


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


def _list(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def use(result: Mapping[str, Any], name: str, command: str) -> str:
    """The shell line that runs the command with that allocator, without loam."""
    import shlex

    from loam_lab.allocators import registry

    try:
        allocator = registry.load(name)
    except Exception:  # a result may be read where the allocator is not installed
        return command
    words = [f"{key}={shlex.quote(value)}" for key, value in allocator.environment.items()]
    if allocator.libraries:
        words.append(f"LD_PRELOAD={shlex.quote(':'.join(allocator.libraries))}")
    return " ".join([*words, command])


def save(result: Mapping[str, Any], folder: Path) -> None:
    """Write the Result again, with its recommendation."""
    journal.write_whole(folder / RESULT, json.dumps(result, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def show(result: Mapping[str, Any]) -> None:
    """Print recommendation, table and failures on standard output."""
    from rich.text import Text

    out = console.out()
    recommendation = result["recommendation"]
    out.print(Text(recommendation["text"], style="head"), soft_wrap=True)
    if recommendation["allocator"] != result["baseline"]:
        out.print(Text(f"  {recommendation['command']}", style="command"), soft_wrap=True)
    proofs = {allocator["name"]: allocator["proof"] for allocator in result["allocators"]}
    # Two tables, because one would not fit 80 columns.
    columns = ["allocator", "wall", f"of {result['baseline']}", "interval", "in use", "verdict"]
    rows: list[list[str | Text]] = [
        [
            Text(tables.name_of(cell)),
            tables.quantity(cell["metrics"].get("wall_s"), "estimate"),
            tables.number(cell["ratio_to_baseline"], "estimate"),
            tables.span(cell["ratio_to_baseline"], 3),
            Text(proofs.get(cell["factors"]["allocator"], "")),
            tables.verdict_of(cell),
        ]
        for cell in result["cells"]
    ]
    title = f"Wall time, medians of {result['blocks']} blocks; ratios within blocks, 95 % intervals"
    out.print(console.table(columns, rows, numeric=columns[1:4], title=title))
    columns = ["allocator", "user", "system", "peak memory", "minor faults", "major faults"]
    rows = [
        [Text(tables.name_of(cell)), *(tables.quantity(cell["metrics"].get(name), "estimate") for name in USED)]
        for cell in result["cells"]
    ]
    out.print(console.table(columns, rows, numeric=columns[1:], title="What each used (medians)"))
    tables.failures(result)
