"""Times of single calls of malloc and free, as a section of docs/performance/malloc.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

# Reading the clock is part of its run, so its rate is none to compare.
WORKLOAD = "malloc-latency"
CALLS = ("malloc", "free")
# By the end of a metric's name: what it is called, and how many nanoseconds it is shown in.
TIMES = {"p50": ("p50, ns", 1.0), "p99": ("p99, ns", 1.0), "p999": ("p99.9, ns", 1.0), "max": ("longest, µs", 1e3)}
FLOOR = "clock_max_ns"
# In these ours is to be no worse than the second of the peers.
TAILS = ("p999", "max")

CasesOf = Callable[[str], list[Case]]


def section(cases_of: CasesOf, ours: str, names: Sequence[str]) -> list[str]:
    """A table per thread count, and ours beside the second of the peers; nothing where there are no such runs.

    cases_of: the cases of the workload that have a metric, by its name
    """
    threads = [case.threads for case in cases_of(_metric(CALLS[0], TAILS[0]))]
    if not threads:
        return []
    lines = ["## Latency", "", *_introduction(cases_of), ""]
    columns = [(call, time) for call in CALLS for time in TIMES]
    for count in threads:
        own = [_case(cases_of, call, time, count) for call, time in columns]
        lines += [
            f"| {count} thread{'s' * (count > 1)} | " + " | ".join(_head(*column) for column in columns) + " |",
            "| --- |" + " ---: |" * len(columns),
        ]
        for name in [ours, *(other for other in names if other != ours)]:
            cells = [_shown(_median(case, name), time) for case, (_, time) in zip(own, columns, strict=True)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    peers = [name for name in names if name != ours]
    beside = [
        row
        for call, time in [(call, time) for call in CALLS for time in TAILS]
        for count in threads
        for row in _beside(_case(cases_of, call, time, count), call, time, ours, peers, _floor(cases_of, time, count))
    ]
    if beside:
        lines += [
            f"Is {ours} at or below the second best peer? The medians decide; the ratio is of paired blocks. *Not significant*:",
            "the interval of the ratio contains 1. A longest call that is no longer than the longest time of no call at all may",
            "be due to the machine.", "",
            f"| | threads | {ours} | that peer | | | ratio |", "| --- | ---: | ---: | --- | ---: | --- | ---: |", *beside, "",
        ]  # fmt: skip
    return lines


def _introduction(cases_of: CasesOf) -> list[str]:
    """What a time holds beside the call, and which calls are left out."""
    cost, step = (
        rounding.significant(float(np.median(_all(cases_of(name))))) for name in ("clock_cost_ns", "clock_step_ns")
    )
    preempted, timed = (rounding.count(sum(_all(cases_of(name)))) for name in ("preempted", "timed_calls"))
    floors = [
        f"{_shown(floor, 'max')} µs with {case.threads} thread{'s' * (case.threads > 1)}"
        for case in cases_of(FLOOR)
        if (floor := _floor(cases_of, "max", case.threads)) is not None
    ]
    longest = [f"No call at all, timed as often, took at most: {', '.join(floors)}."] if floors else []
    return [
        f"Times of single calls of `{WORKLOAD}`, medians over the blocks. The longest call of a run is the longest pause",
        f"among the timed calls. Reading the clock takes {cost} ns, which is part of every time.",
        f"The clock's resolution is {step} ns. {timed} calls were timed. {preempted} were left out,",
        "because the kernel let other threads run meanwhile.",
        *longest,
    ]  # fmt: skip


def _beside(case: Case | None, call: str, time: str, ours: str, peers: Sequence[str], floor: float | None) -> list[str]:
    """Ours beside the second of the peers in one time; nothing where there are not that many.

    floor: what no call at all takes, ns; None: not known, or not what this time is to be held against
    """
    own = _median(case, ours)
    ranked = sorted((value, name) for name in peers if (value := _median(case, name)) is not None)
    if case is None or own is None or len(ranked) < 2:
        return []
    limit, peer = ranked[1]
    ratio = case.ratio(ours, peer)
    if _rounded(own) <= _rounded(limit):
        verdict = "at or below"
    elif floor is not None and own <= floor:
        verdict = "above, but so is no call at all"
    elif ratio is not None and ratio.low is not None and ratio.low <= 1:
        verdict = "above, not significant"
    else:
        verdict = "above"
    return [
        f"| {_head(call, time)} | {case.threads} | {_shown(own, time)} | {peer} | {_shown(limit, time)} | {verdict} "
        f"| {paired.text_of(ratio)} |"
    ]


def _floor(cases_of: CasesOf, time: str, threads: int) -> float | None:
    """The longest time of no call at all, ns, median over every allocator and block; None for other times."""
    times = _all([case for case in cases_of(FLOOR) if case.threads == threads]) if time == "max" else []
    return float(np.median(times)) if times else None


def _metric(call: str, time: str) -> str:
    return f"{call}_{time}_ns"


def _head(call: str, time: str) -> str:
    return f"{call} {TIMES[time][0]}"


def _case(cases_of: CasesOf, call: str, time: str, threads: int) -> Case | None:
    return next((case for case in cases_of(_metric(call, time)) if case.threads == threads), None)


def _all(cases: Sequence[Case]) -> list[float]:
    """Every value of every allocator and block."""
    return [value for case in cases for values in case.values.values() for value in values if value is not None]


def _median(case: Case | None, name: str) -> float | None:
    values = [value for value in (case.values.get(name, ()) if case else ()) if value is not None]
    return float(np.median(values)) if values else None


def _shown(value: float | None, time: str) -> str:
    return rounding.significant(None if value is None else value / TIMES[time][1])


def _rounded(value: float) -> float:
    """As it is shown: what a tick of the clock is taken for differs by millionths from run to run."""
    return float(f"{value:.3g}")
