"""docs/performance/programs-speed.md: real programs under ours and under its peers, as fast as the first allocator or not.

    python -m loam_lab.programs.speed [--allocator NAME,...] [--program NAME,...] [--blocks N] [--short]
                                      [--out FOLDER] [--page FILE]

Rates are runs in a second of processor time, in user and kernel mode; ratios are of runs that shared a block.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from loam_lab import machine, pages
from loam_lab.programs import blocks
from loam_lab.programs.blocks import Runs
from loam_lab.report import paired, rivals, rounding
from loam_lab.report.paired import Case

ALLOCATORS = (
    "loam", "glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc-2.5", "mimalloc-3.6", "snmalloc", "rpmalloc",
)  # fmt: skip


def page(runs: Runs, count: int, *, short: bool = False) -> str:
    """The page; the first allocator is ours.

    count: of blocks
    """
    rates = blocks.cases(runs, lambda one: 1 / one.cpu_s if one.cpu_s else None)
    ours, *peers = rates[0].values
    rows = []
    for case, by in zip(rates, runs.values(), strict=True):
        top = case.fastest([ours, *peers])
        texts = [rounding.significant(float(np.median([one.cpu_s for one in by[ours]])))]
        texts += [paired.text_of(case.ratio(name, ours)) for name in peers]
        cells = [f"**{text}**" if name == top else text for name, text in zip((ours, *peers), texts, strict=True)]
        rows.append(f"| `{case.name}` | {' | '.join(cells)} |")
    means = [paired.text_of(paired.mean_ratio(rates, name, ours)) for name in peers]
    peaks = blocks.cases(runs, lambda one: one.peak_bytes)
    return "\n".join([
        "# Speed and memory of real programs", "",
        f"Written by `python -m loam_lab.programs.speed`: programs do the same {'short ' if short else ''}work under each",
        f"allocator, in {count} blocks in an order that is drawn, and come to the same. {ours}: seconds of processor time, in",
        "user and kernel mode, medians. The others: their rate beside it with 95 % intervals; above 1 is faster. **Bold**:",
        f"the fastest. Here python3 asks malloc for small blocks too. {machine.cpu_model()}.", "",
        f"| program | {ours}, s | " + " | ".join(peers) + " |", "| --- |" + " ---: |" * (len(peers) + 1), *rows,
        f"| geometric mean | 1 | {' | '.join(means)} |", "",
        *rivals.against(rates, ours, peers, "over these programs"),
        *rivals.memory([case for case in peaks if _is_complete(case)], ours, rates, peers),
    ]).rstrip("\n") + "\n"  # fmt: skip


def _is_complete(case: Case) -> bool:
    """Whether all peaks are known: of programs that need less than the lab itself they are not."""
    return all(value for values in case.values.values() for value in values)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = blocks.page_parser("loam_lab.programs.speed", __doc__, "programs-speed.md", 30)
    parser.set_defaults(allocator=",".join(ALLOCATORS))
    options = parser.parse_args(arguments)
    return pages.write(options.page, lambda: page(blocks.asked_for(options), options.blocks, short=options.short))


if __name__ == "__main__":
    sys.exit(main())
