"""docs/performance/delegation.md: allocators and schemes of delegation over one queue, as one Markdown page.

    ./loam study run delegation
    ./loam page delegation RESULT [--page FILE]

RESULT is the folder of that study's result.  Schemes are compared under each allocator, allocators under each scheme, in
the same blocks; then what the paper left out: how long one thread executes at a time, how much the least served thread did,
latency; what a cache line costs; and the limits that ours has to keep.  Ratios are of paired blocks, with signed-rank
intervals of 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from loam_lab.model.result import Cell, Result
from loam_lab.presenting.pages.parts import limits, paired
from loam_lab.presenting.pages.parts.cells import by_machine
from loam_lab.presenting.pages.parts.limits import Limit
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding
from loam_lab.subjects.machines import HOST

METRIC = "ops_per_s"
QUEUE, LINES = "queue", "lines"
# Groups of the study whose cells are judged, and their limits: a round trip through one line over two passes of a line
# between two threads; what takes the place of a mutex over it, where nobody contends; CROWD threads over FEW; MANY
# requests in flight over one.
ROUND_TRIP, ALONE, CROWDED = "round-trip", "alone", "crowd"
ROUND_TRIP_MAX, OVER_MUTEX_MAX, CROWD_MIN, IN_FLIGHT_MIN = 1.15, 1.2, 0.5, 3.0
MUTEX, FEW, CROWD, MANY = "mutex", 2, 8, 16
# What a run reports beside its rate: the metric, the title of its column, and its unit.
BESIDE = (
    ("run_length", "operations in a row", ""),
    ("least_share", "least share", ""),
    ("enqueue_p50_ns", "enqueue, median", " ns"),
    ("enqueue_p99_ns", "enqueue, 99 %", " ns"),
    ("dequeue_p50_ns", "dequeue, median", " ns"),
    ("dequeue_p99_ns", "dequeue, 99 %", " ns"),
)


def _cells(cells: Sequence[Cell], workload: str) -> list[Cell]:
    return [cell for cell in cells if cell.factors.workload == workload]


def cases(cells: Sequence[Cell], column: str, row: str) -> list[Case]:
    """Cells as cases: one for each level of the factor `column` and thread count; names in a case are levels of `row`."""
    by_place: dict[tuple[str, int], Case] = {}
    for cell in cells:
        if METRIC in cell.metrics:
            factors = cell.factors
            key = getattr(factors, column), factors.threads
            by_place.setdefault(key, Case(*key)).values[getattr(factors, row)] = paired.by_block(cell, METRIC)
    return list(by_place.values())


def page(result: Result) -> str:
    """The page.

    raises: ValueError if the result has no queue under several synchronisations
    """
    machines = by_machine(result)
    queues = {name: own for name, cells in machines.items() if (own := _cells(cells, QUEUE))}
    if len({cell.factors.sync for queue in queues.values() for cell in queue}) < 2:
        raise ValueError("this result has no queue under several schemes; ./loam study run delegation makes one")
    machine = result.machine
    lines = [
        "# Delegation: schemes and allocators", "",
        "```", "./loam study run delegation     measures",
        "./loam page delegation          writes this page from the result", "```", "",
        "The first row of a table has rates. Every other row has its rate over that one, with a 95 % interval: above 1 is",
        "faster. **Bold**: the fastest of a column.", "",
        f"Runs were interleaved in {result.blocks} paired blocks. {machine['cpu']}, {machine['cores']} cores, kernel",
        f"{machine['kernel']}, {result.created_utc[:10]}. A server keeps one core for itself: with as many threads as cores",
        "its rates describe the scheduler. A title that ends in `sim:NAME` is of a simulated machine: a call of its",
        "allocators costs a fixed time or what a table says, so that its tables compare schemes.", "",
    ]  # fmt: skip
    for name, queue in queues.items():
        lines += _machine(queue, result.baseline, "" if name == HOST else f", {name}")
    lines += _lines(_cells(machines.get(HOST, []), LINES))
    lines += _limits(machines.get(HOST, []))
    return "\n".join(lines).rstrip("\n") + "\n"


def _machine(queue: Sequence[Cell], baseline: str, where: str) -> list[str]:
    """The tables of one machine's cells; where: what ends their titles. Machines never meet in one table."""
    by_allocator, by_sync = cases(queue, "allocator", "sync"), cases(queue, "sync", "allocator")
    syncs = list(dict.fromkeys(cell.factors.sync for cell in queue))
    allocators = list(dict.fromkeys(cell.allocator for cell in queue))
    lines = []
    for threads in sorted({case.threads for case in by_allocator}):
        count = f"{threads} thread{'s' * (threads > 1)}{where}"
        for title, of_column, names in (
            ("Schemes under each allocator", by_allocator, syncs),
            ("Allocators under each scheme", by_sync, allocators),
        ):
            own = [case for case in of_column if case.threads == threads]
            shown = [name for name in names if any(name in case.values for case in own)]
            if len(shown) > 1:
                lines += [f"## {title}, {count}", "", *paired.table(own, shown, shown[0], shown), ""]
        lines += _beside(queue, baseline, threads, f"## Turns, shares and latency, {count}")
    return lines


def _median(cell: Cell, metric: str) -> float | None:
    values = cell.values(metric)
    return float(np.median(values)) if values else None


def _beside(queue: Sequence[Cell], allocator: str, threads: int, title: str) -> list[str]:
    """What runs report beside their rates, under one allocator."""
    own = [c for c in queue if c.allocator == allocator and c.factors.threads == threads]
    shown = [one for one in BESIDE if any(_median(cell, one[0]) is not None for cell in own)]
    if not shown:
        return []
    lines = [
        title, "", f"Medians over the blocks, allocator {allocator}. *Operations in a row*: that one thread executes before",
        "another one does. *Least share*: what the least served thread did, of the mean.", "",
        "| | " + " | ".join(words for _, words, _ in shown) + " |", "| --- |" + " ---: |" * len(shown),
    ]  # fmt: skip
    for cell in own:
        medians = [(_median(cell, metric), unit) for metric, _, unit in shown]
        texts = [
            rounding.MISSING if value is None else f"{rounding.significant(value)}{unit}" for value, unit in medians
        ]
        lines.append(f"| {cell.factors.sync} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def _lines(cells: Sequence[Cell]) -> list[str]:
    """What a cache line costs, by who writes it."""
    rows = [(str(cell.parameters["pattern"]), time) for cell in cells if (time := _median(cell, "op_ns")) is not None]
    if not rows:
        return []
    return [
        "## A cache line", "",
        "`own`: its owner reads it. `pass`: two threads write it in turn; twice this is the shortest round trip. `same`,",
        "`apart`: two threads write words of their own, in one line and in two.", "",
        "| pattern | one operation |", "| --- | ---: |",
        *(f"| {pattern} | {rounding.significant(time)} ns |" for pattern, time in rows), "",
    ]  # fmt: skip


def _limits(cells: Sequence[Cell]) -> list[str]:
    """The limits that were measured; none where the result has not their groups."""
    measured = [*_round_trip(cells), *_alone(cells), *_crowd(cells)]
    if not measured:
        return []
    return [
        "## Limits", "",
        "Each ratio is of the blocks of one run, with its interval; the whole interval decides. *Two passes*: the line of",
        f"`pass` there and back. *{CROWD} threads* describe the scheduler as well, so that no claim rests on them.", "",
        *limits.table(measured), "",
    ]  # fmt: skip


def _rates(cells: Sequence[Cell], group: str, name: Callable[[Cell], str]) -> Case:
    """The rates of a group's cells as one case."""
    case = Case(group, 0)
    for cell in cells:
        if cell.group == group and METRIC in cell.metrics:
            case.values[name(cell)] = paired.by_block(cell, METRIC)
    return case


def _round_trip(cells: Sequence[Cell]) -> list[Limit]:
    """Of one request in flight, and of many over one."""
    case = _rates(cells, ROUND_TRIP, lambda cell: str(cell.parameters.get("in_flight")))
    for cell in _cells(cells, LINES):
        if str(cell.parameters["pattern"]) == "pass" and METRIC in cell.metrics:
            case.values["two passes"] = [value and value / 2 for value in paired.by_block(cell, METRIC)]
    measured = []
    if {"1", "two passes"} <= case.values.keys():
        ratio = case.ratio("two passes", "1")
        measured.append(Limit("a round trip through one line over two passes", ratio, high=ROUND_TRIP_MAX))
    if {"1", str(MANY)} <= case.values.keys():
        ratio = case.ratio(str(MANY), "1")
        measured.append(Limit(f"rate with {MANY} requests in flight over one", ratio, low=IN_FLIGHT_MIN))
    return measured


def _alone(cells: Sequence[Cell]) -> list[Limit]:
    """Time of an operation over that under a mutex, where nobody contends."""
    case = _rates(cells, ALONE, lambda cell: cell.factors.sync)
    return [
        Limit(f"`{name}` over a mutex, uncontended", case.ratio(MUTEX, name), high=OVER_MUTEX_MAX)
        for name in case.values
        if name != MUTEX and MUTEX in case.values
    ]


def _crowd(cells: Sequence[Cell]) -> list[Limit]:
    """Rate of many threads over that of few, by scheme."""
    case = _rates(cells, CROWDED, lambda cell: f"{cell.factors.sync} {cell.factors.threads}")
    syncs = dict.fromkeys(cell.factors.sync for cell in cells if cell.group == CROWDED)
    return [
        Limit(f"`{sync}`: rate of {CROWD} threads over {FEW}", ratio, low=CROWD_MIN)
        for sync in syncs
        if (ratio := case.ratio(f"{sync} {CROWD}", f"{sync} {FEW}")) is not None
    ]


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    options = paired.page_parser("delegation", __doc__).parse_args(arguments)
    return paired.write_page(options.result, options.page, page)
