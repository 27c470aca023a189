"""docs/performance/hardening-cost.md: the processor time of real programs under each allocator.

    ./loam study run programs
    ./loam page hardening-cost [RESULT] [--allocator NAME,...] [--page FILE]

Ratios are of runs that shared a block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import paired, programs
from loam_lab.presenting.report import rounding

ALLOCATORS = ("glibc", "loam", "loam:hardened=1")
# CPython asks its own pools for what is small, as it does where nobody says otherwise.
PYTHON = "pymalloc"


def page(result: Result, allocators: Sequence[str] = ALLOCATORS) -> str:
    """The table: seconds under the first allocator, and ratios of the others to it and of the last to the one before.

    raises: ValueError if the result has no programs, or lacks one of the allocators
    """
    times = programs.cases(result, PYTHON)
    lacking = [name for name in allocators if not any(any(case.values.get(name, ())) for case in times)]
    if lacking:
        raise ValueError(f"this result has no times of {', '.join(lacking)}; {programs.STUDY} has")
    times = [case for case in times if any(case.values.get(allocators[0], ()))]
    pairs = [(name, allocators[0]) for name in allocators[1:]]
    if len(allocators) > 2:
        pairs.append((allocators[-1], allocators[-2]))
    head = ["program", f"{allocators[0]}, s", *(f"{above} / {below}" for above, below in pairs)]
    rows = []
    for case in times:
        ratios = [paired.text_of(case.ratio(above, below)) for above, below in pairs]
        median = float(np.median([value for value in case.values[allocators[0]] if value]))
        rows.append(f"| `{case.name}` | {rounding.significant(median)} | {' | '.join(ratios)} |")
    means = [paired.text_of(paired.mean_ratio(times, above, below)) for above, below in pairs]
    return "\n".join([
        "# What hardening costs", "",
        f"Written by `./loam page hardening-cost` from a result of `{programs.STUDY}`: processor time, in user and kernel",
        f"mode, of real programs that do the same work under each allocator, {programs.amount(result)}.",
        "Ratios of runs that shared a block, with 95 % intervals.", "",
        "| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1), *rows,
        f"| geometric mean | | {' | '.join(means)} |",
    ]) + "\n"  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("hardening-cost", __doc__)
    parser.add_argument("--allocator", default=",".join(ALLOCATORS), help="names, separated by commas; the base first")
    options = parser.parse_args(arguments)
    return paired.write_page(options.result, options.page, lambda result: page(result, options.allocator.split(",")))
