"""docs/performance/hardening-cost.md: the processor time of real programs under each allocator.

    python -m loam_lab.programs.cost [--allocator NAME,...] [--program NAME,...] [--blocks N] [--short] [--page FILE]

A block runs each program once under each allocator, in an order that is drawn; ratios are of runs that shared a block.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from loam_lab import machine, pages
from loam_lab.errors import LoamError
from loam_lab.programs import catalogue
from loam_lab.programs.running import Outcome, Program, lacking, run_apart
from loam_lab.report import paired, rounding
from loam_lab.statistics import intervals

# Those whose work is fixed, and done by what is waited for: no servers, and nothing that runs for a given time.
FIXED = ("awk", "sort", "gcc", "g++", "git", "sqlite3", "gs", "python3", "perl", "lua", "node", "java")
# Python asks its own pools for what is small, as it does where nobody says otherwise.
AS_THEY_ARE = {"PYTHONMALLOC": "pymalloc"}
SEED = 1

Times = dict[str, list[float]]  # by allocator: seconds, a value for each block


def measure(programs: Sequence[Program], allocators: Sequence[str], blocks: int, *, short: bool) -> dict[str, Times]:
    """By program.

    raises: LoamError where a run fails, or comes to something else than another one
    """
    times: dict[str, Times] = {program.name: {name: [] for name in allocators} for program in programs}
    expected: dict[str, bytes] = {}
    order = random.Random(SEED)
    for _ in range(blocks):
        for program in programs:
            for name in order.sample(allocators, len(allocators)):
                amount = program.short if short else program.long
                done = _done(program, name, run_apart(program, name, amount, AS_THEY_ARE))
                if expected.setdefault(program.name, done.result) != done.result:
                    raise LoamError(program.name, None, f"comes to something else under {name} than before")
                times[program.name][name].append(done.cpu_s)
    return times


def _done(program: Program, allocator: str, outcome: Outcome | None) -> Outcome:
    if outcome is None:
        raise LoamError(program.name, None, f"fails under {allocator}; why stands above")
    return outcome


def page(times: Mapping[str, Times], allocators: Sequence[str], blocks: int, *, short: bool = False) -> str:
    """The table: seconds under the first allocator, and ratios of the others to it and of the last to the one before."""
    pairs = [(name, allocators[0]) for name in allocators[1:]]
    if len(allocators) > 2:
        pairs.append((allocators[-1], allocators[-2]))
    head = ["program", f"{allocators[0]}, s", *(f"{above} / {below}" for above, below in pairs)]
    rows = []
    for program, own in times.items():
        ratios = [paired.text_of(intervals.paired_ratio(own[above], own[below])) for above, below in pairs]
        rows.append(
            f"| `{program}` | {rounding.significant(float(np.median(own[allocators[0]])))} | {' | '.join(ratios)} |"
        )
    means = [
        paired.text_of(intervals.geometric_mean([np.log(own[above]) - np.log(own[below]) for own in times.values()]))
        for above, below in pairs
    ]
    return "\n".join([
        "# What hardening costs", "",
        "Written by `python -m loam_lab.programs.cost`: processor time, in user and kernel mode, of real programs that do the",
        f"same {'short ' if short else ''}work under each allocator, in {blocks} blocks; ratios of runs that shared a block, "
        "with 95 % intervals.",
        f"{machine.cpu_model()}.", "",
        "| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1), *rows,
        f"| geometric mean | | {' | '.join(means)} |",
    ]) + "\n"  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = catalogue.page_parser("loam_lab.programs.cost", __doc__, FIXED, "hardening-cost.md")
    parser.add_argument(
        "--blocks", type=int, default=10, help="how often each runs under each; 6 or more for intervals"
    )
    options = parser.parse_args(arguments)

    def text() -> str:
        names, allocators = options.program.split(","), options.allocator.split(",")
        if options.blocks < 1:
            raise LoamError("--blocks", options.blocks, "must be 1 or more", "6 or more give intervals")
        if len(allocators) < 2:
            raise LoamError("--allocator", options.allocator, "must be two names or more, the base first")
        present = [program for program in catalogue.chosen(names, allocators) if not lacking(program)]
        if not present:
            raise LoamError("programs", None, "none of them is installed", "./loam setup --programs")
        return page(
            measure(present, allocators, options.blocks, short=options.short),
            allocators,
            options.blocks,
            short=options.short,
        )

    return pages.write(options.page, text)


if __name__ == "__main__":
    sys.exit(main())
