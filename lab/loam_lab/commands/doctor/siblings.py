"""Which hardware threads share a core: what the kernel was told, against what a measurement shows."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.commands.doctor.finding import Finding, View, plural
from loam_lab.commands.doctor.processor import reported_siblings

BUDGET_MS = 400
# Two loops that fill the multiplier keep their rate on two cores and halve it on one; frequency drops stay above 0.85.
_SHARED_BELOW = 0.7


def check(view: View) -> Iterator[Finding]:
    """Siblings by sysfs and, unless quick, by measurement."""
    reported = reported_siblings(view)
    if view.quick:
        yield from judge(reported, None, "not measured (--quick)")
        return
    try:
        meter = Path(paths.load_paths()["libraries"].get("siblings", ""))
    except LoamError:
        meter = Path()
    if not meter.is_file():
        yield from judge(reported, None, "not measured: ./loam setup builds the program that measures it")
        return
    try:
        done = subprocess.run(
            [str(meter), str(BUDGET_MS)], stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=True
        )
        measured = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        yield from judge(reported, None, "the measurement failed")
    else:
        yield from judge(reported, measured, "")


def judge(
    reported: Mapping[int, frozenset[int]], measured: Mapping[str, Any] | None, why_not: str
) -> Iterator[Finding]:
    """Findings from what sysfs tells of each processor and from the output of loam-siblings.

    measured: {"pairs": [{"a", "b", "together", "transfer_ns"}], "complete"}, or None with the reason in why_not
    """
    groups = sorted({tuple(sorted(group)) for group in reported.values() if len(group) > 1})
    listed = ", ".join("+".join(map(str, group)) for group in groups)
    fact = (
        f"{plural(len(groups), 'core')} with more than one hardware thread: {listed}"
        if groups
        else "one hardware thread per core"
    )
    fact = f"sysfs: {fact}" if reported else "sysfs: no topology"
    pairs: Sequence[Mapping[str, Any]] = measured["pairs"] if measured else ()
    judged = [pair for pair in pairs if pair["together"] is not None]
    wrong = [
        pair for pair in judged
        if pair["a"] in reported and (pair["together"] < _SHARED_BELOW) != (pair["b"] in reported[pair["a"]])
    ]  # fmt: skip
    if wrong:
        pair = max(wrong, key=lambda one: abs(one["together"] - _SHARED_BELOW))
        share = pair["together"] < _SHARED_BELOW
        yield Finding(
            "noise", "siblings", "changes results",
            f"{fact}; but {pair['a']} and {pair['b']} {'share a core' if share else 'do not share a core'}: "
            f"each keeps {100 * pair['together']:.0f} % of its rate beside the other",
            "threads are placed according to the reported topology, so curves bend where cores are shared",
            f"measure with one of each pair: taskset -c {pair['a']} for one thread"
            if share
            else "trust curves more than the reported topology",
        )  # fmt: skip
        return
    times = [pair["transfer_ns"] for pair in pairs if pair["transfer_ns"] is not None]
    if judged:
        source = f"measured: {plural(len(judged), 'pair')}" + (f" agree{'s' * (len(judged) == 1)}" if reported else "")
        if measured is not None and not measured["complete"]:
            source += ", the rest not tried"
        if times:
            source += f"; a cache line moves between them in {_range(times)} ns"
    else:
        source = why_not or ("measured: too many other programs ran" if pairs else "")
    fact += f"; {source}" if source else ""
    if groups:
        yield Finding(
            "noise", "siblings", "fine", fact, "two threads on one core compete for its caches",
            "threads are pinned one per core first; more threads than cores are marked",
        )  # fmt: skip
    else:
        yield Finding("noise", "siblings", "fine", fact)


def _range(times: Sequence[float]) -> str:
    low, high = f"{min(times):.0f}", f"{max(times):.0f}"
    return low if low == high else f"{low} to {high}"
