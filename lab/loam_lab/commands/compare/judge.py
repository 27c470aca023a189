"""What changed from one result to another, cell by cell, and whether that passes a gate.

Two campaigns share no blocks, so their values are compared as two samples (Hodges, Lehmann, Moses).  That interval does
not know the day: a machine that is slower today moves every value.  Where both campaigns measured the same unchanged
baseline, each block's ratio to it is compared instead, which cancels the day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loam_lab.base.errors import LoamError
from loam_lab.commands.compare.sides import SETTINGS, ComparedCell, Side
from loam_lab.judging.statistics import multiplicity, shift, verdicts
from loam_lab.judging.statistics.intervals import Interval, exponential
from loam_lab.model.result import Ends, Facts

SCHEMA = 1


@dataclass(frozen=True)
class Pair:
    """A cell of both results. plain: how many times the second's values are the first's; relative: the same of their
    ratios to their baselines; by: which of the two decides, "baseline", "values", or "" where nothing can; "day" for the
    baseline that the others are compared by"""

    first: ComparedCell
    second: ComparedCell
    plain: Interval | None
    relative: Interval | None
    by: str

    @property
    def ratio(self) -> Interval | None:
        """The interval that decides."""
        return {"baseline": self.relative, "values": self.plain}.get(self.by)


def same_machine(first: Side, second: Side) -> bool:
    """Whether machines of one name are of one kind in both: processor model and number of hardware threads."""
    both = [(first.machines[name], second.machines[name]) for name in first.machines if name in second.machines]
    return all(_alike(a, b) for a, b in both or [(first.machine, second.machine)])


def _alike(a: Facts, b: Facts) -> bool:
    if a.get("fingerprint") and b.get("fingerprint"):
        return bool(a["fingerprint"] == b["fingerprint"])
    return (a.get("cpu"), a.get("cores")) == (b.get("cpu"), b.get("cores"))


def compare(first: Side, second: Side, *, gate: float | None = None, across_machines: bool = False) -> dict[str, Any]:
    """The comparison as a document (docs/internals/comparing.md).

    gate: the second result must be at least that many times as good as the first; None for no gate
    raises: LoamError if the machines differ and that was not asked for, or if no cell is in both
    """
    same = same_machine(first, second)
    if not same and not across_machines:
        raise LoamError(
            "compare", None,
            f"the results are of two machines: {_machine(first)} and {_machine(second)}",
            "their times say nothing about the program alone; add --across-machines to compare ratios to the baseline",
        )  # fmt: skip
    common = [key for key in first.cells if key in second.cells]
    if not common:
        raise LoamError(
            "compare", None, f"no cell is in both {first.source} and {second.source}",
            "measure the same workload, parameters, allocators and threads in both",
        )  # fmt: skip
    pairs = [_pair(first, second, key, same=same) for key in common]
    # The baseline that cancels the day for others shows nothing but the day itself.
    used = {id(second.beside(key)) for key, pair in zip(common, pairs, strict=True) if pair.by == "baseline"}
    pairs = [replace(pair, by="day") if id(pair.second) in used else pair for pair in pairs]
    family = {
        place: p for place, pair in enumerate(pairs) if pair.ratio is not None and (p := pair.ratio.p) is not None
    }
    adjusted = dict(zip(family, multiplicity.benjamini_hochberg(list(family.values())), strict=True))
    cells = [_line(pair, adjusted.get(place), gate) for place, pair in enumerate(pairs)]
    return {
        "schema": SCHEMA,
        "first": first.as_json(),
        "second": second.as_json(),
        "same_machine": same,
        "changed": _changed(first, second),
        "cells": cells,
        "only_first": [cell.words() for key, cell in first.cells.items() if key not in second.cells],
        "only_second": [cell.words() for key, cell in second.cells.items() if key not in first.cells],
        "multiplicity": {"method": "Benjamini-Hochberg", "size": len(family)},
        "gate": None if gate is None else {
            "ratio": gate, **{word: [c["cell"] for c in cells if c["gate"] == word] for word in ("failed", "open")},
            "unmeasured": [pair.second.words() for pair in pairs if _unmeasured(pair)],
            "passed": sum(c["gate"] == "passed" for c in cells),
        },
        "warnings": _warnings(pairs),
    }  # fmt: skip


def _pair(first: Side, second: Side, key: str, *, same: bool) -> Pair:
    a, b = first.cells[key], second.cells[key]
    if a.metric != b.metric or a.state != "ok" or b.state != "ok":
        return Pair(a, b, None, None, "")
    good = [np.array([value for value in cell.values.values() if value > 0]) for cell in (a, b)]
    plain = shift.ratio(good[0], good[1]) if all(values.size for values in good) else None
    bases = first.beside(key), second.beside(key)
    relative = None
    if bases[0] is not None and bases[1] is not None and first.baseline == second.baseline:
        logs = [_against(cell, base) for cell, base in ((a, bases[0]), (b, bases[1]))]
        if all(values.size for values in logs):
            relative = exponential(shift.shift(logs[0], logs[1]))
    # Times of two machines are never compared, only what an allocator makes of each of them.
    if not same:
        return Pair(a, b, plain, relative, "baseline" if relative is not None else "")
    if relative is not None and bases[0] is not None and bases[1] is not None and _unchanged(first, second, bases):
        return Pair(a, b, plain, relative, "baseline")
    return Pair(a, b, plain, relative, "values" if plain is not None else "")


def _against(cell: ComparedCell, base: ComparedCell) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Logarithms of the ratios to the baseline in the blocks that both have."""
    if not (cell.paired and base.paired):
        return np.empty(0)
    blocks = [b for b in cell.values if b in base.values and cell.values[b] > 0 and base.values[b] > 0]
    return np.log([cell.values[b] for b in blocks]) - np.log([base.values[b] for b in blocks])


def _unchanged(first: Side, second: Side, bases: tuple[ComparedCell | None, ComparedCell | None]) -> bool:
    """Whether the baseline is the same program under the same allocator and settings of the machine."""
    a, b = bases
    known = a is not None and b is not None and a.made_of is not None and a.made_of == b.made_of
    return known and all(first.machine.get(name) == second.machine.get(name) for name in SETTINGS)


def _line(pair: Pair, q: float | None, gate: float | None) -> dict[str, Any]:
    cell, ratio = pair.second, pair.ratio
    factors = cell.raw.factors
    better: Any = cell.better
    verdict: str = (
        ("baseline" if pair.by == "day" else "not compared")
        if ratio is None
        else verdicts.decide(ratio, better, adjusted=q)
    )
    if pair.second.state != "ok":
        verdict = pair.second.state
    return {
        "cell": cell.words(), "workload": factors.workload, "sync": factors.sync, "allocator": cell.allocator,
        "threads": factors.threads, "parameters": cell.raw.parameters, "metric": cell.metric,
        "better": better, "unit": cell.unit,
        "first": _value(pair.first), "second": _value(pair.second),
        "ratio": _json(pair.plain), "ratio_of_ratios": _json(pair.relative), "by": pair.by or None,
        "q": q, "verdict": verdict,
        "rough": ratio is not None and verdicts.rough(ratio), "gate": None if gate is None else _gate(pair, gate),
    }  # fmt: skip


def _value(cell: ComparedCell) -> dict[str, Any]:
    metric = cell.raw.metrics.get(cell.metric) or Ends()
    return {
        "state": cell.state,
        "n": len(cell.values),
        **{name: getattr(metric, name) for name in ("estimate", "low", "high")},
    }


def _json(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {
        "estimate": interval.estimate, "low": interval.low, "high": interval.high, "n": interval.n, "p": interval.p,
    }  # fmt: skip


def _gate(pair: Pair, gate: float) -> str:
    """passed | failed | open | not asked.

    failed: the whole interval of "times as good" lies below the gate, or a cell that ran before runs no more
    passed: none of it does; not asked: the first result has nothing to compare with, no direction is good, or it is the
    unchanged baseline
    """
    if pair.first.state != "ok" or pair.second.state == "skipped" or pair.first.better == "neither":
        return "not asked"
    if pair.second.state != "ok":
        return "failed"
    if pair.by == "day":
        return "not asked"
    if pair.ratio is None:
        return "open"
    low, high = times_as_good(pair.ratio, pair.second.better)
    if high < gate:
        return "failed"
    return "passed" if low >= gate else "open"


def _unmeasured(pair: Pair) -> bool:
    """Whether a cell that a gate could ask for has no good runs to ask; one without any says no direction either."""
    if pair.first.state != "ok":
        return pair.second.state != "ok" or pair.second.better != "neither"
    return pair.second.state == "skipped" and pair.first.better != "neither"


def times_as_good(ratio: Interval, better: str) -> tuple[float, float]:
    """The interval in the direction in which more is better; 0 and infinity where there are too few values."""
    if ratio.low is None or ratio.high is None:
        return 0.0, math.inf
    return (1 / ratio.high, 1 / ratio.low) if better == "lower" else (ratio.low, ratio.high)


def _changed(first: Side, second: Side) -> list[str]:
    """What else is different between the results, in words."""
    changes = []
    before, now = first.raw.build, second.raw.build
    if before.revision != now.revision:
        changes.append(f"revision: {before.revision[:12]}, now {now.revision[:12]}")
    for name in ("compiler", "preset", "flags"):
        if (a := getattr(before, name)) != (b := getattr(now, name)):
            changes.append(f"{name}: {a}, now {b}")
    for old, new in (
        ({one.name: one.build_id for one in first.raw.syncs}, {one.name: one.build_id for one in second.raw.syncs}),
        (
            {one.name: one.sha256 for one in first.raw.allocators},
            {one.name: one.sha256 for one in second.raw.allocators},
        ),
    ):
        changes += [f"{name}: another build" for name, mark in new.items() if old.get(name, mark) != mark]
    for name in SETTINGS:
        if first.machine.get(name) != second.machine.get(name):
            changes.append(f"{name}: {first.machine.get(name)}, now {second.machine.get(name)}")
    if first.baseline != second.baseline:
        changes.append(f"baseline: {first.baseline}, now {second.baseline}")
    return changes


def _machine(side: Side) -> str:
    return f"{side.machine.get('cpu')}, {side.machine.get('cores')} hardware threads"


def _warnings(pairs: list[Pair]) -> list[str]:
    texts = []
    plain = sum(pair.by == "values" for pair in pairs)
    if plain:
        texts.append(
            f"{plain} of {len(pairs)} cells have no unchanged baseline in both results; how the machine differed "
            "between the two days is part of their ratios; measure both versions in one campaign to tell it apart"
        )
    mixed = [pair for pair in pairs if pair.first.metric != pair.second.metric]
    if mixed:
        texts.append(
            f"{mixed[0].first.words()} was measured by {mixed[0].first.metric} and now by {mixed[0].second.metric}; "
            "not compared; measure both with one version"
        )
    small = [pair for pair in pairs if pair.ratio is not None and pair.ratio.low is None]
    if small:
        texts.append(
            f"{len(small)} cells have too few blocks for a 95 % interval; nothing is decided of them; "
            "repeat with --blocks 10 or more"
        )
    return texts
