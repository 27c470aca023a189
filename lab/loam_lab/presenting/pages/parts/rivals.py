"""Sections of Markdown that set ours beside peers: speed by case, and memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

# No case may take longer than this beside the best peer.
CASE_LIMIT = 1.10
FASTEST = 3


def against(timed: Sequence[Case], ours: str, peers: Sequence[str], what: str) -> list[str]:
    """Ours over the best peer and over the envelope of all, case by case.

    timed: rates; their numbers of threads are not shown where all are 0
    what: of what the best peer has the best mean, as in "over both thread counts"
    """
    best = paired.leader(timed, peers)
    if best is None:
        return []
    counted = any(case.threads for case in timed)
    lines = [
        f"## {ours} over the best peer", "",
        f"The peer with the best geometric mean {what} is **{best}**: {ours}'s rate is",
        f"{paired.text_of(paired.mean_ratio(timed, ours, best))} of its rate. The last two columns: the fastest peer of",
        "each case.",
        "",
        f"| case |{' threads |' * counted} over {best} | fastest peer | over it |",
        f"| --- |{' ---: |' * counted} ---: | --- | ---: |",
    ]  # fmt: skip
    envelope = []
    for case in timed:
        top = case.fastest(peers)
        ratio = case.ratio(ours, best)
        late = " (over the limit)" if ratio is not None and ratio.estimate < 1 / CASE_LIMIT else ""
        beside = None if top is None else case.ratio(ours, top)
        if beside is not None:
            envelope.append(float(np.log(beside.estimate)))
        threads = f" {case.threads} |" * counted
        lines.append(f"| {case.name} |{threads} {paired.text_of(ratio)}{late} | {top} | {paired.text_of(beside)} |")
    mean = rounding.significant(float(np.exp(np.mean(envelope)))) if envelope else rounding.MISSING
    whole = paired.text_of(paired.mean_ratio(timed, ours, best))
    return [*lines, f"| geometric mean |{' |' * counted} {whole} | | {mean} |", ""]


def memory(cases: Sequence[Case], ours: str, timed: Sequence[Case], peers: Sequence[str]) -> list[str]:
    """Peak memory: the geometric mean beside ours, with the three fastest peers marked."""
    keys = {(case.name, case.threads) for case in timed}
    own = [case for case in cases if (case.name, case.threads) in keys]
    if not own:
        return []
    left = list(peers)
    fast: list[str] = []
    while left and len(fast) < FASTEST:
        top = paired.leader(timed, left)
        if top is None:
            break
        fast.append(top)
        left.remove(top)
    lines = [
        "## Peak memory", "",
        f"Peak resident memory over {ours}'s, geometric mean over the cases above: above 1 needs more. The three fastest peers",
        "are marked.", "", "| allocator | ratio |", "| --- | ---: |",
    ]  # fmt: skip
    for name in peers:
        mark = " (fast)" if name in fast else ""
        lines.append(f"| {name}{mark} | {paired.text_of(paired.mean_ratio(own, name, ours))} |")
    return [*lines, ""]
