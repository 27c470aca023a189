"""docs/performance/gc.md: what logs cost the collector, placement by placement, as one Markdown page.

    ./loam study run gc
    ./loam page gc [RESULT] [--page FILE]

RESULT is the folder of that study's result.  Ratios are of runs that shared a block; shares are medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

RATE, SHARE = "transactions_per_s", "gc_cpu_share"
# Of dedicated logs, next to a run with the same enlistments and no log of reads and undo.
CONTROL, JUDGED = "gc-unlogged", "gc-dedicated"
SHARE_LIMIT, RATE_LIMIT = 0.03, 0.95
IN_HEAP = "gc-heap"
# Without transactions, in the group of this name: ours, and the peer.
ROOM, OURS, PEER = "headroom", "gc-raw", "gc-boehm"

_BOUNDS = (
    "## What bounds dedicated logs", "",
    "A traversal of GCBench reads each object about once, so no filter shortens its log. Three costs remain that the",
    "control does not have:", "",
    "| cost | why it stays |", "| --- | --- |",
    "| full collections | memory that the logs of a running transaction use is missing in the old generation, which is"
    " full earlier. Unused memory of logs is returned before a full collection |",
    "| visiting log entries | a full collection accesses the object of each entry; a minor one only young objects |",
    "| appending | a store of 4 bytes for each object that is read (`-p entries=long`: 16) |", "",
    "`-p account=heap` leaves out the first one, as the paper does.",
)  # fmt: skip


def cases(result: Result, group: str, metric: str) -> list[Case]:
    """A group's values by synchronisation; a case for each thread count and parameters."""
    by_place: dict[tuple[int, str], Case] = {}
    for cell in result.cells:
        if cell.copy or cell.group != group or metric not in cell.metrics:
            continue
        factors = cell.factors
        name = ", ".join(f"{key} {value}" for key, value in _varied(result, group, cell.parameters))
        case = by_place.setdefault((factors.threads, name), Case(name, factors.threads))
        case.values[factors.sync] = paired.by_block(cell, metric)
    return [by_place[key] for key in sorted(by_place, key=lambda key: (key[1], key[0]))]


def _varied(result: Result, group: str, parameters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The parameters in which cells of the group differ."""
    own = [cell.parameters for cell in result.cells if cell.group == group]
    return [(key, value) for key, value in parameters.items() if any(other.get(key, value) != value for other in own)]


def _median(case: Case, name: str) -> float | None:
    known = [value for value in case.values.get(name, ()) if value is not None]
    return float(np.median(known)) if known else None


def _percent(share: float | None) -> str:
    return rounding.MISSING if share is None else f"{100 * share:.0f} %"


def _placements(result: Result) -> list[str]:
    """Every placement at the same memory, and what must be reached."""
    rates, shares = cases(result, "equal", RATE), cases(result, "equal", SHARE)
    if not rates or CONTROL not in rates[0].values or JUDGED not in rates[0].values or not shares:
        raise ValueError("this result has no GCBench with and without logs; ./loam study run gc measures them")
    rate, share = rates[0], shares[0]
    lines = [
        "## GCBench, size 400, one thread, memory three times the live data", "",
        f"| synchronisation | collector's share of processor time | rate over {CONTROL} |", "| --- | ---: | ---: |",
    ]  # fmt: skip
    for name in rate.values:
        ratio = "1" if name == CONTROL else paired.text_of(rate.ratio(name, CONTROL))
        lines.append(f"| {name} | {_percent(_median(share, name))} | {ratio} |")
    more = (_median(share, JUDGED) or 0.0) - (_median(share, CONTROL) or 0.0)
    reached = rate.ratio(JUDGED, CONTROL)
    if reached is not None:
        verdicts = ["passed" if good else "failed" for good in (more <= SHARE_LIMIT, reached.estimate >= RATE_LIMIT)]
        lines += [
            "",
            f"{JUDGED}: {100 * more:.1f} points more than {CONTROL}; the limit is {100 * SHARE_LIMIT:.0f}: {verdicts[0]}. "
            f"{rounding.significant(reached.estimate)} of its rate; the limit is {RATE_LIMIT:g}: {verdicts[1]}.",
        ]
    return [*lines, ""]


# Counted, not timed: the same in each run of one build.
_WORK = (
    ("gc_minor", "minor collections", 1),
    ("gc_full", "full collections", 1),
    ("gc_copied_bytes", "MiB copied", 1 << 20),
    ("gc_visited_entries", "log entries visited", 1),
    ("log_memory_bytes_max", "MiB of logs, maximum", 1 << 20),
    ("log_memory_at_full_bytes_max", "MiB of logs when a full collection begins, maximum", 1 << 20),
    ("log_memory_returned_bytes", "MiB that logs gave back around full collections", 1 << 20),
)


def _work(result: Result) -> list[str]:
    """What the collector does with dedicated logs and without; nothing if the result does not say."""
    rows = []
    for metric, name, unit in _WORK:
        counted = [(_median(case, JUDGED), _median(case, CONTROL)) for case in cases(result, "equal", metric)]
        if counted and None not in counted[0]:
            rows.append(
                f"| {name} | {' | '.join(rounding.significant((value or 0.0) / unit) for value in counted[0])} |"
            )
    if not rows:
        return []
    return [f"| counted in a run | {JUDGED} | {CONTROL} |", "| --- | ---: | ---: |", *rows, ""]


def _gain(result: Result, group: str, title: str) -> list[str]:
    """What logs outside of the heap win over logs in it, in a group; nothing if the result has no such group."""
    shares = {(case.name, case.threads): case for case in cases(result, group, SHARE)}
    rows = []
    for case in cases(result, group, RATE):
        if IN_HEAP not in case.values or JUDGED not in case.values:
            continue
        share = shares.get((case.name, case.threads), Case("", 0))
        texts = [_percent(_median(share, name)) for name in (IN_HEAP, JUDGED)]
        texts.append(paired.text_of(case.ratio(JUDGED, IN_HEAP)))
        rows.append(f"| {case.name} | {case.threads} | {' | '.join(texts)} |")
    if not rows:
        return []
    head = f"| case | threads | share, {IN_HEAP} | share, {JUDGED} | rate of {JUDGED} over {IN_HEAP} |"
    return [f"## {title}", "", head, "| --- | ---: | ---: | ---: | ---: |", *rows, ""]


def _headroom(result: Result) -> list[str]:
    """What room costs without transactions, ours beside Boehm's; nothing if the result has no such group."""
    shares = {case.name: case for case in cases(result, ROOM, SHARE)}
    rows = []
    for case in cases(result, ROOM, RATE):
        if OURS not in case.values or PEER not in case.values:
            continue
        share = shares.get(case.name, Case("", 0))
        texts = [_percent(_median(share, name)) for name in (OURS, PEER)]
        room = int(case.name.rpartition(" ")[2]) / 100
        rows.append((room, f"| {room:g} | {' | '.join(texts)} | {paired.text_of(case.ratio(OURS, PEER))} |"))
    if not rows:
        return []
    return [
        "## Room, without transactions", "",
        f"GCBench, size 400. {OURS} may take so many times what is live, and uses all of it; {PEER} sizes its heap itself,",
        "within the same limit.", "",
        f"| memory over live data | share, {OURS} | share, {PEER} | rate of {OURS} over {PEER} |",
        "| ---: | ---: | ---: | ---: |", *(row for _, row in sorted(rows)), "",
    ]  # fmt: skip


def page(result: Result) -> str:
    """The page.

    raises: ValueError if the result is not of the study gc
    """
    placements = _placements(result)
    tables = [
        line for group in result.groups if group.name != "equal" for line in _gain(result, group.name, group.title)
    ]
    return (
        "\n".join([*_head(result), *placements, *_work(result), *tables, *_headroom(result), *_BOUNDS]).rstrip("\n")
        + "\n"
    )


def _head(result: Result) -> list[str]:
    machine = result.machine
    return [
        "# What logs cost a garbage collector", "",
        "```", "./loam study run gc     measures", "./loam page gc          writes this page of the newest result", "```", "",
        f"`{IN_HEAP}` has its logs in the collected heap, `{JUDGED}` in a heap of their own. `{CONTROL}` is a control that",
        "keeps no log of reads and undo. Heap and logs have the same memory together. Ratios have 95 % intervals; above 1 is",
        "faster.", "",
        f"{result.blocks} blocks on {machine['cpu']}, {machine['cores']} cores, {result.created_utc[:10]}.", "",
    ]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    options = paired.page_parser("gc", __doc__).parse_args(arguments)
    return paired.write_page(options.result, options.page, page)
