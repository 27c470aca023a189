"""docs/performance/tm.md: every synchronisation over the same blocks, as one Markdown page.

    ./loam page tm RESULT [--page FILE] [--published NAME,...] [--same OURS=THEIRS,...]

RESULT is the folder of a `run` or study whose groups have several synchronisations, as

    ./loam run intset --sync all -p structure=list,hash,tree -p update_percent=0,20,60 -p privatization=commit,none \\
        --threads 1,2 --allocator glibc

`published` names those that are not Loam's own: the best of the others is set against the best of them, case by case, and
the one of ours with the best geometric mean against the one of theirs.  `same` names pairs of one algorithm;
sequential=THEIRS shows the limit, what no transactional memory can exceed.
With both modes of privatization, what safety costs is a table of its own: each safe one over the unsafe base.
Ratios are of paired blocks, with signed-rank intervals of 95 %.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import opening, paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

METRIC, SEQUENTIAL = "ops_per_s", "sequential"
# Parameters of the synchronisation: where one is varied, its values are synchronisations of their own.
_OPTIONS = ("mapping", "privatization")
SAFE = "commit"
# Where a peer lies on one machine is of no use on another.
_PATH = re.compile(r"(?<=[\s,])/[^\s,]+")


def cases(result: Result) -> tuple[list[Case], list[str]]:
    """The cases of a Result under its baseline allocator, and the synchronisations in the order of their appearance."""
    by_place: dict[tuple[str, int], Case] = {}
    syncs: dict[str, None] = {}
    relevant = [cell for cell in result.cells if cell.copy == 0 and METRIC in cell.metrics]
    relevant = [cell for cell in relevant if cell.allocator == result.baseline]
    varied = {
        name
        for name in {n for cell in relevant for n in cell.parameters}
        if len({str(cell.parameters.get(name)) for cell in relevant if name in cell.parameters}) > 1
    }
    for cell in relevant:
        factors = cell.factors
        own = {n: v for n, v in cell.parameters.items() if n in varied}
        options = [str(own.pop(name)) for name in _OPTIONS if name in own]
        sync = factors.sync + (f" ({', '.join(options)})" if options else "")
        words = [factors.workload, *(word(name, value) for name, value in own.items())]
        key = " ".join(words), factors.threads
        syncs[sync] = None
        by_place.setdefault(key, Case(*key)).values[sync] = paired.by_block(cell, METRIC)
    return sorted(by_place.values(), key=lambda case: case.threads), list(syncs)


def memories_of(result: Result, syncs: Sequence[str]) -> list[str]:
    """Of the synchronisations, as cases() names them, the transactional memories: others are yardsticks only."""
    kinds = {entry.name: entry.kind for entry in result.syncs}
    return [name for name in syncs if kinds[name.split(" (")[0]] == "transactional"]


def _mode(result: Result) -> list[str]:
    """A sentence that names the mode of privatization, where there was one for all."""
    modes = {cell.parameters["privatization"] for cell in result.cells if "privatization" in cell.parameters}
    return [f"Loam's transactions ran with `privatization={mode}`.\n" for mode in modes] if len(modes) == 1 else []


def is_safe(name: str) -> bool:
    """Whether a synchronisation, as cases() names it, ran with privatization=commit where both modes were measured."""
    return name.endswith((f"({SAFE})", f", {SAFE})"))


def safety(all_cases: Sequence[Case], memories: Sequence[str], base: str, heading: str = "##") -> list[str]:
    """What the safe mode costs: the safe ones over the base, which is not safe."""
    rows = []
    for name in filter(is_safe, memories):
        ratios = [(ratio.estimate, case) for case in all_cases if (ratio := case.ratio(name, base)) is not None]
        if not ratios:
            continue
        least, where = min(ratios, key=lambda pair: pair[0])
        threads = f"{where.threads} thread{'s' * (where.threads > 1)}"
        mean = paired.text_of(paired.mean_ratio(all_cases, name, base))
        rows.append(f"| {name} | {mean} | {rounding.significant(least)}: {where.name}, {threads} |")
    if not rows:
        return []
    return [
        f"{heading} Safe for privatization",
        "",
        f"With `privatization={SAFE}`, the library's default, over {base}, which is not safe:",
        "",
        "| | geometric mean of all cases | least |",
        "| --- | ---: | --- |",
        *rows,
        "",
    ]


def picture(result: Result, published: Sequence[str] = ()) -> str:
    """The picture of the page: of each synchronisation its first variant over the base. published: as page() has them"""
    all_cases, syncs = cases(result)
    base = _base(syncs)
    rows: dict[str, dict[str, Interval]] = {}
    for name in syncs:
        if row := opening.by_threads(all_cases, name, base):
            rows.setdefault(name.split(" (")[0], row)
    title = f"Rate over that of {base}"
    return opening.picture(title, "geometric mean over the cases", rows, rows.keys() - set(published))


def _base(syncs: Sequence[str]) -> str:
    """The synchronisation that the others are set beside: etl-wb, unsafe for privatization where both modes were measured."""
    ours = [name for name in syncs if name.startswith("etl-wb")]
    return next((name for name in ours if not is_safe(name)), next(iter(ours), syncs[0]))


def _opening(
    result: Result, all_cases: Sequence[Case], memories: Sequence[str], base: str, published: Sequence[str]
) -> list[str]:
    """What the page begins with."""
    sentences = [f"{opening.counted(all_cases)}, in {result.blocks} paired blocks, allocator {result.baseline}."]
    ours = [name for name in memories if name not in published]
    theirs = [name for name in memories if name in published]
    best, rival = paired.leader(all_cases, ours), paired.leader(all_cases, theirs)
    if best is not None:
        beside = "" if rival is None else (
            f": {paired.text_of(paired.mean_ratio(all_cases, best, rival))} times the rate of {rival}, the fastest of the others"
        )  # fmt: skip
        sentences.append(f"The fastest of ours over all cases is {best}{beside}.")
    if rival is not None:
        sentences.append(opening.slower(all_cases, ours, theirs))
    for threads, ratio in opening.by_threads(all_cases, SEQUENTIAL, base).items():
        sentences.append(f"The limit: sequential code has {paired.text_of(ratio)} times the rate of {base}, {threads}.")
    return [*sentences, opening.machine(result)]


def word(name: str, value: object) -> str:
    """A parameter's level, as names of cases have it."""
    return f"{value} %" if name.endswith("_percent") else str(value)


def page(result: Result, published: Sequence[str] = (), same: Sequence[tuple[str, str]] = ()) -> str:
    """The page.

    published: synchronisations of others; same: pairs of one algorithm, ours first
    raises: ValueError if the result compares no synchronisations
    """
    all_cases, syncs = cases(result)
    if len(syncs) < 2:
        raise ValueError("this result has one synchronisation; compare several, as with --sync all")
    memories = memories_of(result, syncs)
    base = _base(syncs)
    sentences = _opening(result, all_cases, memories, base, published)
    caption = f"Rate over that of {base}, geometric mean over the cases with 95 % interval: right of the line is faster"
    lines = [
        *opening.lines("Speed of the transactional memory", "tm", sentences, caption),
        "```", _PATH.sub("PATH", result.commands[0]), "./loam page tm     writes this page from the result", "```", "",
        f"The row of {base} has rates. Every other row has its rate over that one, with a 95 % interval: above 1 is faster.",
        "**Bold**: the fastest transactional memory of a column.", "",
        f"Runs were interleaved in {result.blocks} paired blocks. Allocator {result.baseline}.", "",
        *_mode(result),
    ]  # fmt: skip
    for threads in sorted({case.threads for case in all_cases}):
        own = [case for case in all_cases if case.threads == threads]
        shown = [name for name in syncs if any(name in case.values for case in own)]
        lines += [
            f"## {threads} thread{'s' * (threads > 1)}",
            "",
            *paired.table(own, shown, base, [name for name in shown if name in memories]),
            "",
        ]
        if published:
            lines += _against(own, [name for name in shown if name in memories], published)
    lines += safety(all_cases, memories, base)
    if published:
        lines += _overall(all_cases, syncs, memories, published, same)
    return "\n".join(lines).rstrip("\n") + "\n"


def _against(own: Sequence[Case], shown: Sequence[str], published: Sequence[str]) -> list[str]:
    """The best of ours against the best of the published ones, per case and over all."""
    theirs = [name for name in shown if name in published]
    ours = [name for name in shown if name not in published]
    if not theirs or not ours:
        return []
    lines = [
        "Our best over the best published one:",
        "",
        "| case | ours | published | ratio |",
        "| --- | --- | --- | ---: |",
    ]
    for case in own:
        best, rival = case.fastest(ours), case.fastest(theirs)
        if best is not None and rival is not None:
            lines.append(f"| {case.name} | {best} | {rival} | {paired.text_of(case.ratio(best, rival))} |")
    return [*lines, ""]


def _overall(
    all_cases: Sequence[Case],
    syncs: Sequence[str],
    memories: Sequence[str],
    published: Sequence[str],
    same: Sequence[tuple[str, str]],
) -> list[str]:
    """One synchronisation against one other, as geometric means over the cases of all thread counts."""
    groups = {"all": list(all_cases)}
    for name in dict.fromkeys(case.name.split()[1] for case in all_cases if len(case.name.split()) > 1):
        groups[name] = [case for case in all_cases if name in case.name.split()]
    if {"hash", "tree"} <= set(groups):  # what instructions bound, the list being the cache's
        groups["hash and tree"] = [*groups["hash"], *groups["tree"]]
    ours = [name for name in memories if name not in published]
    best, rival = (
        paired.leader(all_cases, ours),
        paired.leader(all_cases, [name for name in syncs if name in published]),
    )
    pairs = [(name, theirs) for mine, theirs in same for name in syncs if name.split(" (")[0] == mine]
    if best is not None and rival is not None:
        pairs.insert(0, (best, rival))
    rows = [
        [
            _named(all_cases, mine, theirs),
            *(paired.text_of(paired.mean_ratio(own, mine, theirs)) for own in groups.values()),
        ]
        for mine, theirs in dict.fromkeys(pairs)
        if theirs in syncs
    ]
    if not rows:
        return []
    return [
        "## One against one", "",
        "Geometric means over the cases above. The first row compares our best mean with the best published one; the others",
        "compare two implementations of one algorithm.", "",
        "| | " + " | ".join(groups) + " |", "| --- |" + " ---: |" * len(groups),
        *("| " + " | ".join(row) + " |" for row in rows), "",
    ]  # fmt: skip


def _named(all_cases: Sequence[Case], mine: str, theirs: str) -> str:
    """The pair, with its thread count where it was measured at one alone, as sequential code is."""
    threads = {case.threads for case in all_cases if case.logs(mine, theirs) is not None}
    some = len(threads) == 1 and threads != {case.threads for case in all_cases}
    return f"{mine} over {theirs}" + (f", {min(threads)} thread{'s' * (threads != {1})}" if some else "")


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("tm", __doc__)
    parser.add_argument("--published", default="libitm", help="synchronisations of others, separated by commas")
    parser.add_argument("--same", default="", help="pairs of one algorithm, ours first: etl-wb=tinystm,...")
    options = parser.parse_args(arguments)
    same = [(ours, theirs) for ours, _, theirs in (pair.partition("=") for pair in options.same.split(",")) if theirs]
    published = options.published.split(",")
    return paired.write_page(
        options.result,
        options.page,
        lambda result: page(result, published, same),
        lambda result: picture(result, published),
    )
