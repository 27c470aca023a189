"""docs/performance/libitm.md: GCC's library behind -fgnu-tm and ours, as one Markdown page.

    ./loam study run libitm
    ./loam page libitm [RESULT] [--page FILE]

RESULT is the folder of that study's result.  Methods of GCC's library and algorithms of ours run the same executable in
the same blocks.  Ours are set against ml_wt and against the fastest method of each case that is right.  Ratios are of
paired blocks, with signed-rank intervals of 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loam_lab.judging.statistics import intervals
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Cell, Result
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

METRIC = "ops_per_s"
# By synchronisation: the parameter that chooses a method or algorithm (None if there is only one), the name of a row.
PARTIES = {
    "libitm": ("method", "GCC"),
    "loam-itm": ("algorithm", "ours,"),
    "loam-itm-hybrid": (None, "ours, hybrid-norec"),
}
BASE = "GCC ml_wt"
# What leaves a write of a cancelled transaction in place (docs/libitm.md): no limit holds ours against it.
WRONG = ("serial", "serialirr", "serialirr_onwrite", "htm")
MARK = " †"
# Ours over ml_wt at JUDGED_THREADS, the geometric mean; over the fastest right method, each case.
MEAN_LIMIT, CASE_LIMIT, JUDGED_THREADS = 2.0, 0.9, 2


def _name(cell: Cell) -> str | None:
    """The row of a cell; None where it is of neither library."""
    sync = cell.factors.sync
    if sync not in PARTIES:
        return None
    parameter, who = PARTIES[sync]
    if parameter is None:
        return who
    chosen = cell.parameters.get(parameter)
    return None if chosen is None else f"{who} {chosen}{MARK * (who == 'GCC' and chosen in WRONG)}"


def _case(parameters: Mapping[str, Any]) -> str:
    if "layout" in parameters:
        return f"{parameters['layout']} counter"
    return f"{parameters['structure']} {parameters['update_percent']} %"


def cases(result: Result) -> tuple[list[Case], list[str]]:
    """The cases, and the rows in the order of their appearance.

    A method that needs hardware transactions is left out where the machine has none: GCC's library replaces it.
    """
    works = result.machine.get("rtm") == "works"
    by_place: dict[tuple[str, int], Case] = {}
    names: dict[str, None] = {}
    for cell in result.cells:
        name = _name(cell)
        if cell.copy or METRIC not in cell.metrics or name is None or (name == f"GCC htm{MARK}" and not works):
            continue
        names[name] = None
        key = _case(cell.parameters), cell.factors.threads
        by_place.setdefault(key, Case(*key)).values[name] = paired.by_block(cell, METRIC)
    return list(by_place.values()), list(names)


def page(result: Result) -> str:
    """The page.

    raises: ValueError if the result has not both libraries
    """
    all_cases, names = cases(result)
    ours = [name for name in names if name.startswith("ours")]
    if not ours or BASE not in names:
        raise ValueError("this result has not both libraries; ./loam study run libitm makes one")
    machine = result.machine
    lines = [
        "# The library behind -fgnu-tm", "",
        "```", "./loam study run libitm     measures; some ten minutes on an idle machine",
        "./loam page libitm          writes this page from the result", "```", "",
        "One executable, compiled by `g++ -fgnu-tm`, on GCC's library with each of its methods, and on ours with each",
        f"algorithm. The row of {BASE} has rates. Every other row has its rate over that one, with a 95 % interval: above 1",
        f"is faster. **Bold**: the fastest of a column.{MARK}: lets a write stay that was cancelled",
        "([libitm.md](../libitm.md)).", "",
        f"Runs were interleaved in {result.blocks} paired blocks. Allocator {result.baseline}, {machine['cpu']},",
        f"{machine['cores']} cores, kernel {machine['kernel']}, {result.created_utc[:10]}.", "",
    ]  # fmt: skip
    counts = sorted({case.threads for case in all_cases})
    for threads in counts:
        own = [case for case in all_cases if case.threads == threads]
        shown = [name for name in names if any(name in case.values for case in own)]
        lines += [f"## {_threads(threads)}", "", *paired.table(own, shown, BASE, shown), ""]
    right = [name for name in names if name not in ours and not name.endswith(MARK)]
    lines += [
        "## Ours against the limits", "",
        f"The geometric mean over {BASE} with {JUDGED_THREADS} threads has to be {MEAN_LIMIT:g} or more, and no case may be",
        f"below {CASE_LIMIT:g} of the fastest method that is right ({', '.join(right)}).", "",
        f"| | threads | over {BASE} | | over the fastest right one | least case | |",
        "| --- | ---: | ---: | --- | ---: | --- | --- |",
        *(row for name in ours for threads in counts for row in _judged(all_cases, name, threads, right)), "",
    ]  # fmt: skip
    return "\n".join(lines).rstrip("\n") + "\n"


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _judged(all_cases: Sequence[Case], name: str, threads: int, right: Sequence[str]) -> list[str]:
    """The row of one of ours at one number of threads; none where it was not measured there."""
    own = [case for case in all_cases if case.threads == threads and name in case.values]
    rivals = [(case, rival) for case in own if (rival := case.fastest(right)) is not None]
    ratios = [(ratio, case, rival) for case, rival in rivals if (ratio := case.ratio(name, rival)) is not None]
    if not ratios:
        return []
    mean = paired.mean_ratio(own, name, BASE)
    logs = [logs for case, rival in rivals if (logs := case.logs(name, rival)) is not None]
    whole = intervals.geometric_mean(logs) if len({len(row) for row in logs}) == 1 else None
    least, where, rival = min(ratios, key=lambda one: one[0].estimate)
    verdict = _verdict(mean, MEAN_LIMIT) if threads == JUDGED_THREADS else ""
    return [
        f"| {name} | {threads} | {paired.text_of(mean)} | {verdict} | {paired.text_of(whole)} "
        f"| {where.name} over {rival}: {paired.text_of(least)} | {_verdict(least, CASE_LIMIT)} |"
    ]


def _verdict(ratio: Interval | None, limit: float) -> str:
    """Of a limit that a ratio has to reach: decided by the whole interval."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return rounding.MISSING
    return "met" if ratio.low >= limit else "missed" if ratio.high < limit else "undecided"


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    options = paired.page_parser("libitm", __doc__).parse_args(arguments)
    return paired.write_page(options.result, options.page, page)
