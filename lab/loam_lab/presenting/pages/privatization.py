"""docs/performance/privatization.md: what safety for privatization costs, over sets and over applications.

    ./loam run intset -p structure=list,hash,tree -p update_percent=0,20,60 -p privatization=commit,none \\
        -p generator=erand48 -p duration_ms=100 -p warmup_ms=50 --allocator jemalloc --sync etl-wb,norec --threads 1,2
    ./loam run bayes,genome,intruder,kmeans,labyrinth,ssca2,vacation,yada -p size=small \\
        -p privatization=commit,none --allocator glibc --sync etl-wb,norec --threads 1,2
    ./loam page privatization RESULT RESULT [--page FILE]

Each RESULT is the folder of a `run` with both modes of privatization.  Every algorithm and mode is set against etl-wb without
safety in the same blocks.  Ratios are of paired blocks, with signed-rank intervals of 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loam_lab.base import subcommands
from loam_lab.base.errors import LoamError
from loam_lab.model.result import Result
from loam_lab.model.store.folder import read_result
from loam_lab.presenting.pages import tm
from loam_lab.presenting.pages.parts import paired, writing

BASE = "etl-wb (none)"


def page(results: Sequence[Result]) -> str:
    """The page.

    raises: ValueError if a result lacks etl-wb without safety, or has nothing that is safe
    """
    lines = [
        "# What safety for privatization costs", "",
        "A transaction unlinks a node; afterwards its thread uses the node without transactions. That is *privatization*, and",
        "it is safe only if no other transaction still reads or writes the node. `privatization=commit`, the library's",
        "default, guarantees it; `none` leaves it to `tx.privatize` ([transactions](../transactions.md)).", "",
        f"The row of {BASE} has rates. Every other row has its rate over that one, with a 95 % interval: above 1 is faster.",
        "**Bold**: the fastest of a column. The library's default, auto, is norec while few threads meet.", "",
    ]  # fmt: skip
    for result in results:
        lines += _of(result)
    lines += ["```", "./loam page privatization     writes this page from these results", "```"]
    return "\n".join(lines) + "\n"


def _of(result: Result) -> list[str]:
    """The tables of one result."""
    cases, syncs = tm.cases(result)
    memories = tm.memories_of(result, syncs)
    if BASE not in memories or not any(map(tm.is_safe, memories)):
        raise ValueError("this result has not both modes of privatization under etl-wb; loam page privatization --help")
    machine = result.machine
    lines = [
        f"## {', '.join(dict.fromkeys(case.name.split()[0] for case in cases))}", "",
        "```", result.commands[0], "```", "",
        f"{result.blocks} paired blocks, allocator {result.baseline}, {machine['cpu']}, {machine['cores']} cores, kernel",
        f"{machine['kernel']}, {result.created_utc[:10]}.", "",
    ]  # fmt: skip
    for threads in sorted({case.threads for case in cases}):
        own = [case for case in cases if case.threads == threads]
        shown = [name for name in memories if any(name in case.values for case in own)]
        lines += [f"### {threads} thread{'s' * (threads > 1)}", "", *paired.table(own, shown, BASE, shown), ""]
    return lines + tm.safety(cases, memories, BASE, heading="###")


def main(arguments: Sequence[str]) -> int:
    """Write the page of some results."""
    parser = subcommands.Parser("page", "privatization", __doc__)
    parser.add_argument("results", type=Path, nargs="+", help="folders of results")
    parser.add_argument("--page", type=Path, default=writing.place("privatization"), help="file to write")
    options = parser.parse_args(arguments)
    try:
        text = page([read_result(folder) for folder in options.results])
    except ValueError as problem:
        raise LoamError(", ".join(map(str, options.results)), None, str(problem)) from problem
    return writing.write(options.page, text)
