"""docs/performance/many-cores.md: what the runtime does between one core and 128, simulated, as one Markdown page.

    ./loam study run many-cores
    ./loam page many-cores RESULT [--page FILE] [--default NAME]

RESULT is the folder of that study's result.  Rates are of the whole machine, medians over the blocks, each of which is a
seed.  A transactional memory that is not safe for privatization shows what is to be had; the library's default and the other
safe ones are set beside the best of those.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from loam_lab.model import words
from loam_lab.model.result import Result
from loam_lab.presenting.pages import tm
from loam_lab.presenting.pages.malloc import RATES
from loam_lab.presenting.pages.parts import curves, opening, paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

DEFAULT = "auto"
SETS = "intset"
DRAWN_PERCENT = "20 %"
# What frees its own blocks, and what frees those of others: the least share of a linear rate that is asked for at 64 threads.
PRIVATE, REMOTE = ("threadtest", "sh6", "larson"), ("sh8", "xmalloc")
LEAST_PRIVATE, LEAST_REMOTE = 0.8, 0.5
# What the default is asked to reach of the best unsafe one, at these numbers of threads; less on the hash set at the last, at
# which allocation is judged, too.
LIMITED_THREADS = (16, 32, 64)
MOST_THREADS = LIMITED_THREADS[-1]
LEAST, LEAST_HASH = 0.5, {"20 %": 0.45, "60 %": 0.35}
# At n threads, of the highest rate with fewer.
LEAST_KEPT = 0.5

# A row of a table: what it is of, and its rate by the number of threads, in 1/s.
Course = dict[int, float]


def courses(cases: Sequence[Case]) -> dict[str, dict[str, Course]]:
    """Medians of cases: by the case's name, by what was compared in it, by threads."""
    result: dict[str, dict[str, Course]] = {}
    for case in cases:
        for name, values in case.values.items():
            known = [value for value in values if value]
            if known:
                result.setdefault(case.name, {}).setdefault(name, {})[case.threads] = float(np.median(known))
    return result


def least_of(case: str, threads: int, shared: Collection[str] = ()) -> float:
    """What the default is asked to reach of the best unsafe one. shared: words of levels that the case's name leaves out"""
    described = f" {case} {' '.join(shared)} "
    if threads == MOST_THREADS and " hash " in described:
        return next((least for percent, least in LEAST_HASH.items() if f" {percent} " in described), LEAST)
    return LEAST


def _shared(result: Result) -> dict[str, object]:
    """Levels that all sets of a result have, which their headings leave out."""
    levels: dict[str, set[object]] = {"structure": set(), "update_percent": set()}
    for cell in result.cells:
        if cell.factors.workload == SETS:
            for name, seen in levels.items():
                seen.update([cell.parameters[name]] if name in cell.parameters else [])
    return {name: next(iter(seen)) for name, seen in levels.items() if len(seen) == 1}


def _common(shared: Mapping[str, object]) -> list[str]:
    settings = [f"`{name}={level}`" for name, level in shared.items()]
    return [f"All sets are of {words.listing(settings)}.", ""] if settings else []


def is_unsafe(name: str) -> bool:
    """Whether a synchronisation, as tm.cases() names it, leaves privatization to the program."""
    return name.endswith("(none)")


def _sets(result: Result) -> dict[str, dict[str, Course]]:
    own = [cell for cell in result.cells if cell.factors.workload == SETS]
    return courses(tm.cases(replace(result, cells=own))[0])


def _others(result: Result) -> tuple[dict[str, Course], dict[str, Course]]:
    """Workloads that allocate, by name, and schemes of delegation, by name."""
    allocating: dict[str, Course] = {}
    schemes: dict[str, Course] = {}
    for cell in result.cells:
        metric = next((name for name in RATES if name in cell.metrics), None)
        if cell.copy or metric is None or cell.factors.workload == SETS:
            continue
        rate = float(np.median([value for value in paired.by_block(cell, metric) if value] or [0.0]))
        if rate and cell.factors.workload in (*PRIVATE, *REMOTE):
            allocating.setdefault(cell.factors.workload, {})[cell.factors.threads] = rate
        elif rate:
            schemes.setdefault(cell.factors.sync, {})[cell.factors.threads] = rate
    return allocating, schemes


def page(result: Result, default: str = DEFAULT) -> str:
    """The page.

    default: the library's default, as tm.cases() names it
    raises: ValueError if the result has no sets under the default and under something unsafe
    """
    sets = _sets(result)
    if not any(default in rows and any(map(is_unsafe, rows)) for rows in sets.values()):
        raise ValueError(
            f"this result has no sets under {default} and without safety; ./loam study run many-cores does"
        )
    allocating, schemes = _others(result)
    lines = [
        *opening.lines("From one core to 128", "many-cores", _opening(result, sets, allocating, default), _caption()),
        "```", "./loam study run many-cores     measures", "./loam page many-cores          writes this page from the result",
        "```", "",
        f"The machine is simulated ([simulator](../simulator.md)): `{_machines(result)}`. Rates are those of the whole machine,",
        f"in millions of operations a second, {_seeds(result)}. *Unsafe*: `privatization=none`.",
        "All others are safe for privatization ([transactions](../transactions.md)).", "",
        "## Sets", "",
        f"**Bold**: the fastest safe one of a column. {default} is the library's default.", "",
    ]  # fmt: skip
    shared = _shared(result)
    lines += _common(shared)
    for case, rows in sets.items():
        lines += [f"### {case}", "", *_table(_ordered(rows, default), bold=lambda name: not is_unsafe(name)), ""]
    lines += _limits(sets, default, [tm.word(name, level) for name, level in shared.items()])
    if allocating:
        lines += _allocation(allocating)
    if schemes:
        lines += [
            "## Delegation",
            "",
            "A queue. **Bold**: the fastest of a column.",
            "",
            *_table(schemes, lambda _: True),
            "",
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _seeds(result: Result) -> str:
    """Over how many seeds the rates are medians: of sets perhaps fewer, which are many."""
    counts = {True: 0, False: 0}  # by whether it is a set
    for cell in result.cells:
        is_set = cell.factors.workload == SETS
        for name in RATES if not is_set else (tm.METRIC,):
            counts[is_set] = max(counts[is_set], len(paired.by_block(cell, name)) if name in cell.metrics else 0)
    of_sets = f"{counts[True]} {'seed' if counts[True] == 1 else 'seeds'}"
    if counts[False] in (0, counts[True]):
        return f"medians over {of_sets}"
    return f"of sets medians over {of_sets}, of the rest over {counts[False]}"


def _machines(result: Result) -> str:
    return words.listing(dict.fromkeys(cell.factors.machine for cell in result.cells))


def _drawn(sets: Collection[str]) -> list[str]:
    """The cases of the picture: those with some updates; all where the share of updates was not varied."""
    return [case for case in sets if case.endswith(DRAWN_PERCENT)] or list(sets)


def _caption() -> str:
    return f"Sets with {DRAWN_PERCENT} updates: million operations a second of the machine over threads"


def _ordered(rows: dict[str, Course], default: str) -> dict[str, Course]:
    """The default first, then what is safe, then what is not."""
    return dict(sorted(rows.items(), key=lambda row: (row[0] != default, is_unsafe(row[0]), row[0])))


def _table(rows: dict[str, Course], bold: Callable[[str], bool]) -> list[str]:
    levels = sorted({threads for course in rows.values() for threads in course})
    best = {
        threads: max(
            (course[threads] for name, course in rows.items() if bold(name) and threads in course), default=None
        )
        for threads in levels
    }
    lines = [
        "| | " + " | ".join(words.threads(threads) for threads in levels) + " |",
        "| --- |" + " ---: |" * len(levels),
    ]
    for name, course in rows.items():
        cells = []
        for threads in levels:
            text = rounding.significant(course[threads] / 1e6) if threads in course else rounding.MISSING
            cells.append(f"**{text}**" if bold(name) and course.get(threads) == best[threads] is not None else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _best(rows: dict[str, Course], threads: int, *, unsafe: bool) -> tuple[str, float] | None:
    """The fastest at a number of threads, unsafe or safe; None where none was measured."""
    rates = [
        (course[threads], name) for name, course in rows.items() if is_unsafe(name) == unsafe and threads in course
    ]
    return max(rates)[::-1] if rates else None


def _share(rows: dict[str, Course], name: str, threads: int) -> float | None:
    """One over the best unsafe one."""
    best = _best(rows, threads, unsafe=True)
    rate = rows.get(name, {}).get(threads)
    return None if best is None or rate is None else rate / best[1]


def _kept(course: Course, threads: int) -> float | None:
    """The rate at a number of threads over the highest with fewer."""
    fewer = [rate for level, rate in course.items() if level < threads]
    return course[threads] / max(fewer) if fewer and threads in course else None


def _judged(value: float | None, least: float) -> str:
    if value is None:
        return rounding.MISSING
    text = rounding.significant(value, 2)
    return text if value >= least else f"**{text}**"


def _limits(sets: dict[str, dict[str, Course]], default: str, shared: Collection[str]) -> list[str]:
    """The default and the best safe one over the best unsafe one, against what is asked for."""
    lines = [
        "## What safety leaves", "",
        "Over the best unsafe one at the same number of threads. In brackets what is asked of the default; **bold**: below it.",
        f"*Kept*: the least rate of the default over its highest with fewer threads; asked for: {LEAST_KEPT}.", "",
        "| case | threads | default | best safe | | best unsafe |", "| --- | ---: | ---: | --- | ---: | --- |",
    ]  # fmt: skip
    kept = []
    for case, rows in sets.items():
        for threads in LIMITED_THREADS:
            safe, unsafe = _best(rows, threads, unsafe=False), _best(rows, threads, unsafe=True)
            if safe is None or unsafe is None:
                continue
            least = least_of(case, threads, shared)
            own = f"{_judged(_share(rows, default, threads), least)} ({least:g})"
            best = rounding.significant(safe[1] / unsafe[1], 2)
            lines.append(f"| {case} | {threads} | {own} | {safe[0]} | {best} | {unsafe[0]} |")
        course = rows.get(default, {})
        shares = [(share, level) for level in course if (share := _kept(course, level)) is not None]
        if shares:
            share, level = min(shares)
            kept.append(f"| {case} | {_judged(share, LEAST_KEPT)} | {level} |")
    return [*lines, "", "| case | kept | at threads |", "| --- | ---: | ---: |", *kept, ""]


def _linear(course: Course, threads: int) -> float | None:
    """The rate over that of as many times the fewest threads that were measured."""
    fewest = min(course)
    return course[threads] / (course[fewest] * threads / fewest) if threads in course else None


def _allocation(allocating: dict[str, Course]) -> list[str]:
    """Rates of workloads that allocate, over a linear course."""
    levels = sorted({threads for course in allocating.values() for threads in course})
    lines = [
        "## Allocation", "",
        "The rate of the fewest threads, and for more threads the rate over a linear course from there: 1 scales wholly.",
        f"Asked for at {MOST_THREADS} threads: {LEAST_PRIVATE} where threads free their own blocks ({words.listing(PRIVATE)}),",
        f"{LEAST_REMOTE} where they free those of others ({words.listing(REMOTE)}). **Bold**: below it. The blocks of xmalloc",
        "pass through a queue with one lock, which bounds its rate under any allocator.", "",
        "| | rate | " + " | ".join(words.threads(threads) for threads in levels) + " |",
        "| --- |" + " ---: |" * (len(levels) + 1),
    ]  # fmt: skip
    for name, course in allocating.items():
        least = LEAST_PRIVATE if name in PRIVATE else LEAST_REMOTE
        cells = [_judged(_linear(course, threads), least if threads == MOST_THREADS else 0.0) for threads in levels]
        rate = f"{rounding.significant(course[min(course)] / 1e6)} M/s"
        lines.append(f"| {name} | {rate} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _opening(
    result: Result, sets: dict[str, dict[str, Course]], allocating: dict[str, Course], default: str
) -> list[str]:
    """What the page begins with."""
    last = MOST_THREADS
    sentences = []
    for case, rows in sets.items():
        safe, unsafe = _best(rows, last, unsafe=False), _best(rows, last, unsafe=True)
        share = _share(rows, default, last)
        if case in _drawn(sets) and safe is not None and unsafe is not None and share is not None:
            sentences.append(
                f"{case}, {words.threads(last)}: the default, {default}, has {rounding.significant(share, 2)} times the rate of "
                f"the best unsafe one, {unsafe[0]}; {safe[0]}, the best safe one, {rounding.significant(safe[1] / unsafe[1], 2)}."
            )
    linear = [(share, name) for name, course in allocating.items() if (share := _linear(course, last)) is not None]
    if linear:
        share, name = min(linear)
        sentences.append(
            f"Allocation, {words.threads(last)}: at least {rounding.significant(share, 2)} of a linear course ({name})."
        )
    return [*sentences, f"Simulated: {_machines(result)}, {result.created_utc[:10]}."]


def picture(result: Result, default: str = DEFAULT) -> str:
    """The picture of the page: the rate over threads, a panel for each structure."""
    sets = _sets(result)
    panels = {case: _ordered(sets[case], default) for case in _drawn(sets)}
    return curves.picture(_caption(), "threads", panels, faded=is_unsafe)


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("many-cores", __doc__)
    parser.add_argument("--default", default=DEFAULT, help="the synchronisation that is the library's default")
    options = parser.parse_args(arguments)
    return paired.write_page(
        options.result,
        options.page,
        lambda result: page(result, options.default),
        lambda result: picture(result, options.default),
    )
