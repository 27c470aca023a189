"""docs/performance/malloc.md: allocators over workloads that do nothing but allocate, as one Markdown page.

    ./loam study run mallocs
    ./loam page malloc RESULT [--page FILE] [--ours NAME]

RESULT is the folder of that study's result.  The page shows each allocator's rate beside ours in every case, the peer
with the best geometric mean and ours over it, the fastest of all peers in each case (their envelope), false sharing by
itself, the times of single calls, peak memory, and fragmentation.  Ratios are of paired blocks, with signed-rank
intervals of 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import latency, opening, paired, rivals
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

# The first two are the same of different workloads.
RATES, MEMORY, FRAGMENTATION = ("ops_per_s", "pairs_per_s"), "rss_peak_bytes", "fragmentation"
# What they are run for is no rate, nor do they have as many blocks as the others, without which there is no mean.
NO_RATE = ("fragmentation", latency.WORKLOAD)
# Pass or fail: within this factor of the fastest; they take no part in means.
SHARING = ("cache-scratch", "cache-thrash")
SHARING_LIMIT = 1.05


def cases(result: Result, metric: str) -> list[Case]:
    """The cases of a Result that have this metric, with its values by allocator."""
    by_place: dict[tuple[str, int], Case] = {}
    relevant = [cell for cell in result.cells if cell.copy == 0 and metric in cell.metrics]
    for cell in relevant:
        factors = cell.factors
        alike = [other for other in relevant if other.factors.workload == factors.workload]
        words = [factors.workload] + [
            str(value)
            for name, value in cell.parameters.items()
            if len({str(other.parameters.get(name)) for other in alike}) > 1
        ]
        key = " ".join(words), factors.threads
        by_place.setdefault(key, Case(*key)).values[factors.allocator] = paired.by_block(cell, metric)
    return sorted(by_place.values(), key=lambda case: (case.threads, case.name))


def page(result: Result, ours: str = "loam") -> str:
    """The page.

    raises: ValueError if the result lacks our allocator or any other
    """
    rates = _rates(result, ours)
    names = list(dict.fromkeys(name for case in rates for name in case.values))
    peers = [name for name in names if name != ours]
    if not rates or not peers:
        raise ValueError(f"this result does not compare {ours} with another allocator; ./loam study run mallocs does")
    timed = [case for case in rates if _workload(case) not in SHARING]
    caption = f"Rate over that of {ours}, geometric mean over the cases with 95 % interval: right of the line is faster"
    lines = [
        *opening.lines("Speed and memory of malloc", "malloc", _opening(result, timed, ours, peers), caption),
        "```", "./loam study run mallocs     measures",
        "./loam page malloc           writes this page from the result", "```", "",
        f"The row of {ours} has rates. Every other row has its rate over {ours}'s, with a 95 % interval: above 1 is faster.",
        "**Bold**: the fastest of a column.", "",
        f"Runs were interleaved in paired blocks, up to {result.blocks} of them.", "",
    ]  # fmt: skip
    for threads in sorted({case.threads for case in rates}):
        own = [case for case in timed if case.threads == threads]
        if own:
            lines += [f"## {threads} thread{'s' * (threads > 1)}", "", *paired.table(own, names, ours, names), ""]
    lines += rivals.against(timed, ours, peers, "over both thread counts")
    lines += _sharing([case for case in rates if _workload(case) in SHARING], ours, names)
    lines += latency.section(
        lambda metric: [case for case in cases(result, metric) if _workload(case) == latency.WORKLOAD], ours, names
    )
    lines += rivals.memory(cases(result, MEMORY), ours, timed, peers)
    lines += _fragmentation(cases(result, FRAGMENTATION), names)
    return "\n".join(lines).rstrip("\n") + "\n"


def picture(result: Result, ours: str = "loam") -> str:
    """The picture of the page: every allocator over ours."""
    timed = [case for case in _rates(result, ours) if _workload(case) not in SHARING]
    names = dict.fromkeys(name for case in timed for name in case.values if name != ours)
    rows = {name: row for name in names if (row := opening.by_threads(timed, name, ours))}
    return opening.picture(f"Rate over that of {ours}", "geometric mean over the cases", rows)


def _opening(result: Result, timed: Sequence[Case], ours: str, peers: Sequence[str]) -> list[str]:
    """What the page begins with."""
    sentences = [f"{opening.counted(timed)}, up to {result.blocks} paired blocks each."]
    best = paired.leader(timed, peers)
    if best is not None:
        ratio = paired.text_of(paired.mean_ratio(timed, ours, best))
        sentences.append(
            f"Over all cases {ours} has {ratio} times the rate of {best}, the best of {len(peers)} others."
        )
    sentences.append(opening.slower(timed, [ours], peers))
    keys = {(case.name, case.threads) for case in timed}
    peaks = [case for case in cases(result, MEMORY) if (case.name, case.threads) in keys]
    if best is not None and (peak := paired.mean_ratio(peaks, best, ours)) is not None:
        sentences.append(f"Peak memory of {best} over {ours}'s: {paired.text_of(peak)}.")
    return [*sentences, opening.machine(result)]


def _rates(result: Result, ours: str) -> list[Case]:
    """The cases in which rates are compared, in the order of their names."""
    all_cases = [case for metric in RATES for case in cases(result, metric)]
    kept = [case for case in all_cases if ours in case.values and _workload(case) not in NO_RATE]
    return sorted(kept, key=lambda case: (case.threads, case.name))


def _workload(case: Case) -> str:
    return case.name.split()[0]


def _sharing(all_cases: Sequence[Case], ours: str, names: Sequence[str]) -> list[str]:
    if not all_cases:
        return []
    lines = [
        "## False sharing", "",
        f"The rate of {ours} over that of the fastest. A case passes if they differ by at most a factor of {SHARING_LIMIT}.", "",
        "| case | threads | fastest | ratio | |", "| --- | ---: | --- | ---: | --- |",
    ]  # fmt: skip
    for case in all_cases:
        top = case.fastest(names)
        ratio = None if top is None else case.ratio(ours, top)
        verdict = "passed" if ratio is not None and (ratio.high or ratio.estimate) >= 1 / SHARING_LIMIT else "failed"
        lines.append(f"| {case.name} | {case.threads} | {top} | {paired.text_of(ratio)} | {verdict} |")
    return [*lines, ""]


def _fragmentation(all_cases: Sequence[Case], names: Sequence[str]) -> list[str]:
    if not all_cases:
        return []
    lines = [
        "## Fragmentation", "",
        "Peak resident memory over live memory when the block sizes change and change back, medians. 1 is ideal.", "",
        "| allocator | " + " | ".join(f"{case.threads} thread{'s' * (case.threads > 1)}" for case in all_cases) + " |",
        "| --- |" + " ---: |" * len(all_cases),
    ]  # fmt: skip
    for name in names:
        medians = [[value for value in case.values.get(name, ()) if value] for case in all_cases]
        cells = [rounding.significant(float(np.median(values))) if values else rounding.MISSING for values in medians]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("malloc", __doc__)
    return paired.write_page_of_ours(parser, arguments, "the allocator that the others are set beside", page, picture)
