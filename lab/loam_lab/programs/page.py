"""docs/performance/programs.md: what real programs come to under each allocator, and their memory.

    python -m loam_lab.programs.page [--allocator NAME,...] [--program NAME,...] [--short] [--page FILE]

Runs each program of the catalogue once under each allocator and compares with the first one's result.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from loam_lab import pages
from loam_lab.programs import catalogue
from loam_lab.programs.running import Program, lacking, run_apart


def _row(program: Program, allocators: Sequence[str], *, short: bool) -> str:
    absent = lacking(program)
    if absent:
        return f"| `{program.name}` | {program.compares} | not installed: {' '.join(absent)} |" + " |" * (
            2 * len(allocators) - 2
        )
    amount = program.short if short else program.long
    outcomes = [run_apart(program, allocator, amount) for allocator in allocators]
    expected = outcomes[0]
    verdicts = [
        "failed" if one is None else "same" if expected and one.result == expected.result else "differs"
        for one in outcomes[1:]
    ]
    peaks = ["-" if one is None or one.peak_bytes is None else f"{one.peak_bytes / 2**20:.0f}" for one in outcomes]
    return f"| `{program.name}` | {program.compares} | {' | '.join(verdicts)} | {' | '.join(peaks)} |"


def page(names: Sequence[str], allocators: Sequence[str], *, short: bool) -> str:
    """The table.

    raises: LoamError for a program that is not in the catalogue, and where an allocator is missing
    """
    programs = catalogue.chosen(names, allocators)
    head = ["program", "what is compared", *allocators[1:], *(f"{name}: MiB" for name in allocators)]
    return "\n".join([
        "# Real programs", "",
        f"Written by `python -m loam_lab.programs.page`: each program does the same work, once, under {allocators[0]} and under",
        f"the others, and comes to the same or not as under {allocators[0]}. MiB: peak resident memory of its largest process,",
        "where that exceeds the lab's own (the kernel counts a child from before it executes a program). One run each: no",
        "statement about speed.",
        "Redis of Debian is linked with jemalloc, which is then what it has where nothing is preloaded.", "",
        "| " + " | ".join(head) + " |", "| --- | --- |" + " --- |" * (len(allocators) - 1) + " ---: |" * len(allocators),
        *(_row(program, allocators, short=short) for program in programs),
    ]) + "\n"  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = catalogue.page_parser("loam_lab.programs.page", __doc__, list(catalogue.PROGRAMS), "programs.md")
    options = parser.parse_args(arguments)
    names, allocators = options.program.split(","), options.allocator.split(",")
    return pages.write(options.page, lambda: page(names, allocators, short=options.short))


if __name__ == "__main__":
    sys.exit(main())
