"""docs/performance/hardening-cost.md: the processor time of real programs under each allocator.

    python -m loam_lab.programs.cost [--allocator NAME,...] [--program NAME,...] [--blocks N] [--short]
                                     [--out FOLDER] [--page FILE]

Ratios are of runs that shared a block.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from loam_lab import machine, pages
from loam_lab.programs import blocks
from loam_lab.programs.blocks import Runs
from loam_lab.report import paired, rounding

# Python asks its own pools for what is small, as it does where nobody says otherwise.
AS_THEY_ARE = {"PYTHONMALLOC": "pymalloc"}


def page(runs: Runs, allocators: Sequence[str], count: int, *, short: bool = False) -> str:
    """The table: seconds under the first allocator, and ratios of the others to it and of the last to the one before."""
    pairs = [(name, allocators[0]) for name in allocators[1:]]
    if len(allocators) > 2:
        pairs.append((allocators[-1], allocators[-2]))
    head = ["program", f"{allocators[0]}, s", *(f"{above} / {below}" for above, below in pairs)]
    times = blocks.cases(runs, lambda one: one.cpu_s)
    rows = []
    for case in times:
        ratios = [paired.text_of(case.ratio(above, below)) for above, below in pairs]
        median = float(np.median([one.cpu_s for one in runs[case.name][allocators[0]]]))
        rows.append(f"| `{case.name}` | {rounding.significant(median)} | {' | '.join(ratios)} |")
    means = [paired.text_of(paired.mean_ratio(times, above, below)) for above, below in pairs]
    return "\n".join([
        "# What hardening costs", "",
        "Written by `python -m loam_lab.programs.cost`: processor time, in user and kernel mode, of real programs that do the",
        f"same {'short ' if short else ''}work under each allocator, in {count} blocks; ratios of runs that shared a block, "
        "with 95 % intervals.",
        f"{machine.cpu_model()}.", "",
        "| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1), *rows,
        f"| geometric mean | | {' | '.join(means)} |",
    ]) + "\n"  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = blocks.page_parser("loam_lab.programs.cost", __doc__, "hardening-cost.md", 10)
    options = parser.parse_args(arguments)

    def text() -> str:
        return page(
            blocks.asked_for(options, AS_THEY_ARE), options.allocator.split(","), options.blocks, short=options.short
        )

    return pages.write(options.page, text)


if __name__ == "__main__":
    sys.exit(main())
