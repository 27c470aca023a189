"""docs/performance/programs.md: whether real programs have the same result under each allocator, and their memory.

./loam study run programs
./loam page programs [RESULT] [--page FILE]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loam_lab.model.result import Cell, Result
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts import programs as measured
from loam_lab.subjects.programs.catalogue import PROGRAMS

PYTHON = "malloc"
# How the failure of a run begins whose result is another one.
DIFFERS = "its result differs"


def page(result: Result) -> str:
    """The table.

    raises: ValueError if the result has no programs
    """
    by_workload: dict[str, dict[str, Cell]] = {}
    for cell in measured.cells(result, PYTHON):
        by_workload.setdefault(cell.factors.workload, {})[cell.allocator] = cell
    if not by_workload:
        raise ValueError(f"this result has no programs; {measured.STUDY} has")
    base = result.baseline
    names = list(dict.fromkeys([base, *(name for by in by_workload.values() for name in by)]))
    head = ["program", "what is compared", *names[1:], *(f"{name}: MiB" for name in names)]
    rows = []
    for program, by in by_workload.items():
        verdicts = [_verdict(result, by.get(name)) for name in names[1:]]
        sizes = [_peak(by.get(name)) for name in names]
        about = PROGRAMS[program].compares if program in PROGRAMS else ""
        rows.append(f"| `{program}` | {about} | {' | '.join([*verdicts, *sizes])} |")
    return "\n".join([
        "# Real programs", "",
        "```", measured.STUDY, "./loam page programs     writes this page of the newest result", "```", "",
        f"Each program does the same work under each allocator, {measured.amount(result)}.",
        f"*Same*: its result is that under {base}.", "",
        "MiB: peak resident memory of its largest process, medians. Debian's Redis is linked with jemalloc, which serves it",
        "where nothing is preloaded: its run under glibc is unproven.", "",
        "| " + " | ".join(head) + " |", "| --- | --- |" + " --- |" * (len(names) - 1) + " ---: |" * len(names), *rows,
    ]) + "\n"  # fmt: skip


def _verdict(result: Result, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if cell.state == "ok":
        return "same"
    details = [
        failure.detail for failure in result.failures
        if (failure.cell.workload, failure.cell.allocator)
        == (cell.factors.workload, cell.allocator)
    ]  # fmt: skip
    return "differs" if any(text.startswith(DIFFERS) for text in details) else cell.state


def _peak(cell: Cell | None) -> str:
    values = [] if cell is None else cell.values("rss_peak_bytes")
    return f"{float(np.median(values)) / 2**20:.0f}" if values else "-"


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    options = paired.page_parser("programs", __doc__).parse_args(arguments)
    return paired.write_page(options.result, options.page, page)
