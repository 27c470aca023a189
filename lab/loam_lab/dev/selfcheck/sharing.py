"""Does `loam explain -- COMMAND` find planted sharing, with its kind and its share, and nothing where nothing is shared?

    ./loam selfcheck sharing [--repeats 20] [--seconds 5] [--kind blocks,...] [--percent 5,...] [--threads 2,...]
                             [--allocator glibc,...] [--burst-us 740] [--json]
    ./loam selfcheck sharing --ranks [--program queue,...] [--seconds 5] [--json]
    ./loam selfcheck sharing --cost [--program queue,...] [--repeats 20] [--json]

The planted program (tests/planted/sharers.cpp) uses one line by all threads for a known share of its time, in bursts, and
tells for which share it did. A row of the table has one kind, share, number of threads and allocator: in how
many runs it was found with the right kind (and for two blocks both places that made them), and in how many the interval
covers the share. What must hold, for shares of 5 % or more: found in 19 of 20, covered in 18 of 20. Of runs in which
nothing is shared at most 1 in 100 may name a line.

With --ranks workloads of ours run under the sampler and on sim:host, which counts for each cache line the time that cores share
it. The table has the lines that both name, grouped by the code that uses them, and of each program the rank correlation of that
time and the sampler's shares. It must be 0.9 wherever the simulator tells three groups apart (line_ranks.py).

With --cost ten programs of ours, which do a fixed work, run with and without the sampler by turns. Of the ten ratios of their
times the median may be 1.05, and the largest 1.15 (cost_table.py).

A wait for the line is part of the shared time, in both: threads need a processor each.

Exit status 1 if that does not hold, 3 where fewer than 20 repeats, or programs without such groups, tell nothing, 4 where the
kernel gives no events: not run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loam_lab.base import console, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing import document, findings, run
from loam_lab.dev.selfcheck import exit_status

# The kind of each planted case, as explain calls it.
KINDS = {
    "blocks": "other_block", "same_block": "same_block", "lock": "same_word", "atomic": "same_word", "data": "same_word",
    "static": "static", "stack": "stack", "nothing": "",
}  # fmt: skip
PERCENTS, THREADS = (1, 5, 20, 100), (2, 4, 8)
ALLOCATORS = ("glibc", "jemalloc", "tcmalloc", "mimalloc", "tbb")
REPEATS, SECONDS = 20, 5.0
# Twenty times what it takes from a sample to the watch of its line; the periods that follow from it are none of the clock's.
BURST_US = 740
LEAST_PERCENT = 5  # from here on a share must be found
FOUND, COVERED, WRONG = 19 / 20, 18 / 20, 2 / 200
PROGRAM, MADE_BY, UNPLACED = "planted-sharers", "make_block", "ended with status 3"
# Options that not all checks have, with those that do; "": of planted sharing.
ONLY_FOR = {
    "repeats": ("", "--cost"), "seconds": ("", "--ranks"), "program": ("--ranks", "--cost"),
    "kind": ("",), "percent": ("",), "threads": ("",), "allocator": ("",), "burst_us": ("",),
}  # fmt: skip
DEFAULTS = {
    "repeats": REPEATS, "seconds": SECONDS, "program": "", "kind": ",".join(KINDS), "percent": ",".join(map(str, PERCENTS)),
    "threads": ",".join(map(str, THREADS)), "allocator": ",".join(ALLOCATORS), "burst_us": BURST_US,
}  # fmt: skip
_PLANTED = re.compile(r"sharers: ([0-9.]+) of the time")


@dataclass(frozen=True)
class Case:
    """What is planted. percent: of the time; 0 for nothing"""

    kind: str
    percent: int
    threads: int
    allocator: str


@dataclass(frozen=True)
class Row:
    """What was found of a case. found: runs with the right kind and places; covered: runs whose interval has the share

    named: runs that name any line; unplaced: the allocator never places two blocks in one line
    """

    case: Case
    repeats: int
    found: int
    covered: int
    named: int
    unplaced: bool = False

    @property
    def holds(self) -> bool:
        """Whether what must hold does; shares that need not be found, and placements that are not made, do."""
        if self.case.kind == "nothing" or self.unplaced or self.case.percent < LEAST_PERCENT:
            return True
        return self.found >= FOUND * self.repeats and self.covered >= COVERED * self.repeats


def cases(
    kinds: Sequence[str], percents: Sequence[int], threads: Sequence[int], allocators: Sequence[str]
) -> list[Case]:
    """Every combination; where nothing is shared there is no share to choose."""
    return [
        Case(kind, percent, count, allocator)
        for kind in kinds
        for percent in ((0,) if kind == "nothing" else percents)
        for count in threads
        for allocator in allocators
    ]  # fmt: skip


def judged(case: Case, explained: Mapping[str, Any], planted: float) -> tuple[bool, bool, bool]:
    """Of one run's document: whether the planted line was found, its interval covers the share, and any line is named.

    planted: the share of the time for which the program used the line
    """
    named = [pair for pair in explained["blocks"] if pair["named"]]
    right = [pair for pair in named if pair["cause"] == KINDS[case.kind]]
    if case.kind == "blocks":
        right = [
            pair for pair in right
            if all(one and one["made"] and one["made"]["function"] == MADE_BY for one in pair["blocks"])
        ]  # fmt: skip
    of_kind = next((one for one in explained["kinds"] if one["kind"] == KINDS[case.kind]), None)
    covered = of_kind is not None and of_kind["low"] <= planted <= of_kind["high"]
    return bool(right), covered, bool(named)


def planted_share(stderr: str) -> float:
    """The share of its time that the program says to have planted; raises: LoamError if it says none"""
    match = _PLANTED.search(stderr)
    if match is None:
        raise LoamError("selfcheck sharing", PROGRAM, "does not say which share it planted", "build this checkout anew")
    return float(match[1])


def row(case: Case, program: str, repeats: int, seconds: float, burst_us: int = BURST_US) -> Row:
    """Run a case so many times; raises: LoamError where it cannot be watched. burst_us: how long the line is used at a time"""
    detected = covered = named = 0
    command = [program, case.kind, str(case.percent), str(case.threads), f"{seconds:g}", str(burst_us)]
    for _ in range(repeats):
        performed = run.perform(command, case.allocator)
        if performed.ending.startswith(UNPLACED):
            return Row(case, 0, 0, 0, 0, unplaced=True)
        if performed.ending:
            raise LoamError("selfcheck sharing", " ".join(command), performed.ending, exit_code=1)
        seen = findings.see(performed.processes, Path.cwd())
        one = judged(case, document.of(command, case.allocator, seen, performed), planted_share(performed.stderr_tail))
        detected, covered, named = detected + one[0], covered + one[1], named + one[2]
    return Row(case, repeats, detected, covered, named)


def wrongly_named(rows: Sequence[Row]) -> tuple[int, int]:
    """Of the runs that share nothing: how many name a line, and how many there are."""
    none = [one for one in rows if one.case.kind == "nothing"]
    return sum(one.named for one in none), sum(one.repeats for one in none)


def status(rows: Sequence[Row]) -> int:
    """HOLDS if all that must hold does, FAILS if not."""
    wrong, of = wrongly_named(rows)
    return exit_status.of([*(one.holds for one in rows), wrong <= WRONG * of])


def program() -> str:
    """The planted program, built."""
    from loam_lab.setup import build

    return str(build.ensure_built([PROGRAM, "probe", run.LIBRARY])["libraries"][PROGRAM])


def _check_typed(typed: Mapping[str, Any], check: str) -> None:
    """raises: LoamError for an option that a check has no use for. typed: values, None where there is none"""
    for name, value in typed.items():
        if value is not None and name in ONLY_FOR and check not in ONLY_FOR[name]:
            belongs = " and ".join(one or "planted sharing" for one in ONLY_FOR[name])
            raise LoamError(f"--{name.replace('_', '-')}", str(value), f"belongs to {belongs}", "leave it out")


def main(arguments: Sequence[str]) -> int:
    """Print the table as Markdown, or with --json as JSON."""
    parser = subcommands.Parser("selfcheck", "sharing", __doc__)
    # None where it was not typed: each of the three checks takes some of them, and DEFAULTS come after that is known.
    parser.add_argument("--repeats", type=subcommands.count, help=f"runs of each case ({REPEATS})")
    parser.add_argument("--seconds", type=float, help=f"of each run ({SECONDS:g})")
    parser.add_argument("--kind", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--percent", help="of the time")
    parser.add_argument("--threads", help="threads, 2 to 8")
    parser.add_argument("--allocator", help="allocators")
    parser.add_argument("--burst-us", type=subcommands.count, help=f"how long the line is used at a time ({BURST_US})")
    parser.add_argument("--ranks", action="store_true", help="rank lines of our workloads beside the simulator instead")
    parser.add_argument("--cost", action="store_true", help="time our workloads with and without the sampler instead")
    parser.add_argument("--program", help="with --ranks or --cost: only these workloads")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args(arguments)
    if options.ranks and options.cost:
        raise LoamError("selfcheck sharing", None, "--ranks and --cost are two checks", "give one of them")
    check = "--ranks" if options.ranks else "--cost" if options.cost else ""
    _check_typed(vars(options), check)
    for name, value in DEFAULTS.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    names = [name for name in options.program.split(",") if name]
    if check == "--ranks":
        from loam_lab.dev.selfcheck import rank_table

        return rank_table.compare(names, options.seconds, options.json)
    if check == "--cost":
        from loam_lab.dev.selfcheck import cost_table

        return cost_table.compare(names, options.repeats, options.json)
    kinds = options.kind.split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise LoamError("--kind", kind, f"is none of {', '.join(KINDS)}", "choose one of them")
    try:
        percents, threads = ([int(one) for one in text.split(",")] for text in (options.percent, options.threads))
    except ValueError:
        raise LoamError("selfcheck sharing", None, "--percent and --threads take numbers", "such as 5,20") from None
    if exit_status.refused(run.check_machine):
        return exit_status.NOT_RUN
    planted = program()
    if max(threads) > (os.cpu_count() or 1):
        console.warn("more threads than processors: they take turns, and share less than is planted")
    if not options.json:
        print("| kind | share | threads | allocator | found | covered | names a line |")
        print("| --- | ---: | ---: | --- | ---: | ---: | ---: |")
    rows = []
    for case in cases(kinds, percents, threads, options.allocator.split(",")):
        one = row(case, planted, options.repeats, options.seconds, options.burst_us)
        rows.append(one)
        if not options.json:
            figures = (
                "not placed so | |" if one.unplaced else f"{one.found} of {one.repeats} | {one.covered} | {one.named}"
            )
            print(f"| {case.kind} | {case.percent} % | {case.threads} | {case.allocator} | {figures} |", flush=True)
    if options.json:
        print(json.dumps({"schema": 1, "rows": [{**asdict(one), "holds": one.holds} for one in rows]}, indent=1))
    if options.repeats < REPEATS:
        console.note(f"fewer than {REPEATS} repeats do not tell whether the figures hold")
        return exit_status.TOO_FEW
    return status(rows)
