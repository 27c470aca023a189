"""docs/performance/stamp.md: what the allocator makes of the applications, as one Markdown page.

    ./loam study run stamp
    ./loam page stamp RESULT [--page FILE]

RESULT is the folder of that study's result.  Speed-ups are shown twice: over the sequential rate under the same allocator,
as the paper draws them, and over the best sequential rate of all allocators, because the first rewards an allocator for
being slow alone.  Then the best and worst allocator of each application, with records shared by stripes and with a record
for each 16 bytes.  Ratios are of paired blocks, with signed-rank intervals of 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from loam_lab.judging.statistics import intervals
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model import words
from loam_lab.model.result import Cell, Result
from loam_lab.presenting.pages.parts import opening, paired
from loam_lab.presenting.pages.parts.cells import by_machine
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding
from loam_lab.subjects.machines import HOST

METRIC, SEQUENTIAL, SHADOW = "ops_per_s", "sequential", "shadow"


@dataclass
class Application:
    """The cases of one application.

    alone: rates of one thread without synchronisation; shared, shadow: under transactions, by thread count, with records
    that stripes share and with a record for each 16 bytes.  Names in a case are allocators
    """

    name: str
    alone: Case
    shared: dict[int, Case] = field(default_factory=dict)
    shadow: dict[int, Case] = field(default_factory=dict)


def applications(cells: Sequence[Cell]) -> list[Application]:
    """Those of the cells of one machine, in their order."""
    by_name: dict[str, Application] = {}
    for cell in cells:
        if METRIC not in cell.metrics:
            continue
        factors = cell.factors
        name, threads = factors.workload, factors.threads
        application = by_name.setdefault(name, Application(name, Case(name, 1)))
        if factors.sync == SEQUENTIAL:
            case = application.alone
        else:
            kind = application.shadow if cell.parameters.get("mapping") == SHADOW else application.shared
            case = kind.setdefault(threads, Case(name, threads))
        case.values[factors.allocator] = paired.by_block(cell, METRIC)
    return list(by_name.values())


def page(result: Result) -> str:
    """The page.

    raises: ValueError if the result has no application both alone and under transactions
    """
    tables = {name: text for name, cells in by_machine(result).items() if (text := _machine(result, name, cells))}
    if not tables:
        raise ValueError("this result has no application with sequential runs; ./loam study run stamp makes them")
    host = [one for one in applications(by_machine(result).get(HOST, ())) if one.alone.values and one.shared]
    caption = "Best over worst allocator with 95 % interval; both are chosen by the same blocks, so equals are a little above 1"
    lines = [
        *opening.lines("Allocators and whole applications", "stamp", [*_opening(host), opening.machine(result)], caption),
        "```", "./loam study run stamp     measures", "./loam page stamp          writes this page from the result", "```", "",
        "A ratio has its 95 % interval beside it.", "",
    ]  # fmt: skip
    if any(name != HOST for name in tables):
        lines += [
            "A title that ends in `sim:NAME` is of a simulated machine: a call of its allocators costs a fixed time or what a",
            "table says, without contention, so that its tables show placement.", "",
        ]  # fmt: skip
    for text in tables.values():
        lines += text
    return "\n".join(lines).rstrip("\n") + "\n"


def picture(result: Result) -> str:
    """The picture of the page: of each application the best allocator over the worst, with the most threads."""
    rows = {}
    for one in applications(by_machine(result).get(HOST, ())):
        if not one.shared:
            continue
        threads = max(one.shared)
        kinds = {
            "records shared by stripes": one.shared.get(threads),
            "a record for each 16 bytes": one.shadow.get(threads),
        }
        row = {kind: spread[2] for kind, case in kinds.items() if (spread := _ends(case)) is not None}
        if row:
            rows[one.name] = row
    return opening.picture("Best over worst allocator", "ratio of rates", rows)


def _opening(measured: Sequence[Application]) -> list[str]:
    """What the page begins with, of the applications on this machine."""
    ratios = []
    for one in measured:
        for threads, case in one.shared.items():
            if (ends := _ends(case)) is not None:
                ratios.append((ends[2].estimate, one.name, threads, ends))
    if not ratios:
        return []
    counts = words.listing(str(count) for count in sorted({threads for _, _, threads, _ in ratios}))
    sentences = [f"{len(measured)} applications with {counts} threads, under transactions of etl-wb and sequentially."]
    _, name, threads, (best, worst, ratio) = max(ratios)
    sentences.append(
        f"The allocator matters most in {name} with {words.threads(threads)}: "
        f"{best} has {paired.text_of(ratio)} times the rate of {worst}."
    )
    shared, shadow = _means(measured)
    if shared != rounding.MISSING:
        sentences.append(
            f"Geometric mean of best over worst: {shared} with records shared by stripes, "
            f"{shadow} with a record for each 16 bytes."
        )
    return sentences


def _machine(result: Result, name: str, cells: Sequence[Cell]) -> list[str]:
    """The tables of one machine; none if no application ran both alone and under transactions there."""
    measured = [one for one in applications(cells) if one.alone.values and one.shared]
    where = "" if name == HOST else f", {name}"
    allocators = list(dict.fromkeys(allocator for one in measured for allocator in one.alone.values))
    lines = []
    for threads in sorted({count for one in measured for count in one.shared}):
        shown = [one for one in measured if threads in one.shared]
        title = f"{threads} thread{'s' * (threads > 1)}"
        lines += [f"## Speed-up with {title}, over the allocator's own sequential rate{where}", ""]
        lines += _speed_ups(shown, threads, allocators, best=False)
        lines += [f"## Speed-up with {title}, over the best sequential rate{where}", ""]
        lines += _speed_ups(shown, threads, allocators, best=True)
    if measured:
        lines += _extremes(measured, where) + _causes(result, cells, [one.name for one in measured], where)
    return lines


def _speed_ups(shown: Sequence[Application], threads: int, allocators: Sequence[str], *, best: bool) -> list[str]:
    lines = ["| | " + " | ".join(one.name for one in shown) + " |", "| --- |" + " ---: |" * len(shown)]
    for allocator in allocators:
        cells = []
        for one in shown:
            base = one.alone.fastest(list(one.alone.values)) if best else allocator
            both = Case(one.name, threads, {"alone": one.alone.values.get(base or "", [])})
            both.values["shared"] = one.shared[threads].values.get(allocator, [])
            cells.append(paired.text_of(both.ratio("shared", "alone")))
        lines.append(f"| {allocator} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _slowest(case: Case) -> str | None:
    """The allocator with the lowest median."""
    known = [(float(np.median([v for v in values if v])), name) for name, values in case.values.items() if any(values)]
    return min(known)[1] if known else None


def _ends(case: Case | None) -> tuple[str, str, Interval] | None:
    """Best and worst allocator and their ratio; None where there are no two."""
    best, worst = (None, None) if case is None else (case.fastest(list(case.values)), _slowest(case))
    if case is None or best is None or worst is None or best == worst or (ratio := case.ratio(best, worst)) is None:
        return None
    return best, worst, ratio


def _spread(case: Case | None) -> tuple[str, list[float] | None]:
    """Best and worst allocator and their ratio, in words; and the logarithms of the ratio by block."""
    ends = _ends(case)
    if case is None or ends is None:
        return rounding.MISSING, None
    best, worst, ratio = ends
    return f"{best} over {worst} {paired.text_of(ratio)}", case.logs(best, worst)


def _extremes(measured: Sequence[Application], where: str) -> list[str]:
    """Table 5 of the paper, and the same with shadow records."""
    lines = [
        f"## Best over worst allocator{where}", "",
        "Best and worst are chosen by the medians of the same blocks, so a ratio of equals is a little above 1.", "",
        "| application | threads | records shared by stripes | a record for each 16 bytes |", "| --- | ---: | --- | --- |",
    ]  # fmt: skip
    for one in measured:
        for threads in sorted(one.shared):
            before, after = _spread(one.shared[threads])[0], _spread(one.shadow.get(threads))[0]
            lines.append(f"| {one.name} | {threads} | {before} | {after} |")
    texts = _means(measured)
    if any(text != rounding.MISSING for text in texts):
        lines.append(f"| geometric mean of those with both | | {texts[0]} | {texts[1]} |")
    return [*lines, ""]


def _means(measured: Sequence[Application]) -> tuple[str, str]:
    """The geometric means of best over worst, of the cases that have both kinds of records: shared ones, shadow ones."""
    shared, shadow = [], []
    for one in measured:
        for threads, case in one.shared.items():
            logs, others = _spread(case)[1], _spread(one.shadow.get(threads))[1]
            if logs is not None and others is not None:
                shared.append(logs)
                shadow.append(others)
    return _mean(shared), _mean(shadow)


def _mean(rows: Sequence[Sequence[float]]) -> str:
    if not rows or len({len(row) for row in rows}) != 1:
        return rounding.MISSING
    return paired.text_of(intervals.geometric_mean([list(row) for row in rows]))


def _causes(result: Result, cells: Sequence[Cell], names: Sequence[str], where: str) -> list[str]:
    """Of all attempts the share that aborted, by cause; over the allocators, with records shared by stripes."""
    words = {cause.name: cause.words for cause in result.abort_causes}
    counted: dict[tuple[str, int], dict[str, int]] = {}
    for cell in cells:
        blame = cell.blame
        if not blame or cell.parameters.get("mapping") == SHADOW:
            continue
        sums = counted.setdefault((cell.factors.workload, cell.factors.threads), {})
        for name in ("attempts", *(f"aborts_{cause}" for cause in words)):
            sums[name] = sums.get(name, 0) + int(blame.get(name, 0))
    shown = [cause for cause in words if any(sums[f"aborts_{cause}"] for sums in counted.values())]
    if not shown:
        return []
    lines = [
        f"## Aborts by cause{where}", "", "Of all attempts, over all allocators, in runs that look for the cause.", "",
        "| application | threads | " + " | ".join(words[cause] for cause in shown) + " |",
        "| --- | ---: |" + " ---: |" * len(shown),
    ]  # fmt: skip
    for (name, threads), sums in counted.items():
        if name not in names or threads == 1:
            continue
        shares = [sums[f"aborts_{cause}"] / sums["attempts"] if sums["attempts"] else 0.0 for cause in shown]
        texts = [f"{rounding.significant(100 * share)} %" if share else "0" for share in shares]
        lines.append(f"| {name} | {threads} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    options = paired.page_parser("stamp", __doc__).parse_args(arguments)
    return paired.write_page(options.result, options.page, page, picture)
