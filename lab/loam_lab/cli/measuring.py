"""The commands that measure: tour, run, study, bench."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from loam_lab.cli.options import (
    Allocators,
    AsJson,
    Blocks,
    Budget,
    MaxBlocks,
    Out,
    Resume,
    Seed,
    TargetWidth,
    Timeout,
    at_least,
    chosen,
    integers,
    names,
)
from loam_lab.errors import LoamError

study = typer.Typer(help="Studies: questions with their factors, blocks and figures, one file each.")

Syncs = Annotated[
    list[str] | None,
    typer.Option(
        "--sync", metavar="R,S", help="Algorithms, all, or paths of executables that speak the record schema."
    ),
]
Threads = Annotated[list[str] | None, typer.Option("--threads", metavar="1,2", help="Thread counts.")]
Machine = Annotated[str, typer.Option("--machine", metavar="M", help="The machine; host is this one.")]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--parameter", metavar="KEY=V1,V2", help="A parameter of the workload or algorithm, and its levels."
    ),
]
Blame = Annotated[bool, typer.Option("--blame", help="One further run per cell that tells the causes of aborts apart.")]
Memory = Annotated[bool, typer.Option("--memory", help="One further run per cell (or allocator): memory over time.")]
Counters = Annotated[
    bool,
    typer.Option("--counters", help="Further runs per cell: hardware counters, or valgrind where they do not count."),
]
Callgrind = Annotated[bool, typer.Option("--callgrind", help="Further runs per cell: instructions of an operation.")]
Cachegrind = Annotated[
    bool, typer.Option("--cachegrind", help="Further runs per cell: cache misses of one modelled core.")
]
D1 = Annotated[
    str | None,
    typer.Option("--d1", metavar="BYTES,WAYS,LINE", help="The data cache that cachegrind models, as 32768,8,64."),
]
Oversubscribe = Annotated[bool, typer.Option("--oversubscribe", help="Allow more threads than this machine has.")]
Effort = Annotated[Literal["quick", "full"], typer.Option("--effort", help="quick: few blocks, for a first look.")]
Tune = Annotated[
    bool, typer.Option("--tune", help="Then search the settings of the best two allocators, in about four minutes.")
]
TuneFor = Annotated[
    float | None, typer.Option("--tune-for", metavar="SECONDS", help="Search for about so long; implies --tune.")
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.", show_default=False),
]


def tour(resume: Resume = False, out: Out = None, as_json: AsJson = False) -> int:
    """The two-minute study of this machine, with a report. Start here."""
    from loam_lab.setup import debian

    debian.ensure("measure")
    from loam_lab.measure import commands

    return commands.tour(resume=resume, out=out, as_json=as_json)


def run(
    workload: Annotated[str, typer.Argument(help="A workload; see: list workloads.")],
    allocator: Allocators = None,
    sync: Syncs = None,
    threads: Threads = None,
    machine: Machine = "host",
    parameter: Parameter = None,
    blocks: Blocks = None,
    seed: Seed = 1,
    timeout: Timeout = None,
    target_width: TargetWidth = None,
    max_blocks: MaxBlocks = None,
    budget: Budget = None,
    blame: Blame = False,
    memory: Memory = False,
    counters: Counters = False,
    callgrind: Callgrind = False,
    cachegrind: Cachegrind = False,
    d1: D1 = None,
    oversubscribe: Oversubscribe = False,
    resume: Resume = False,
    out: Out = None,
    as_json: AsJson = False,
) -> int:
    """An ad-hoc matrix: every combination of the levels given, in paired blocks. Prints a table, keeps the records."""
    at_least("--blocks", blocks, 1)
    _positive("--timeout", timeout)
    _stopping(target_width, max_blocks, budget)
    counts = integers("--threads", threads)
    parameters = [_key_value(item) for item in parameter or ()]
    from loam_lab.setup import debian

    debian.ensure("measure")
    from loam_lab.measure import commands

    purposes = chosen(blame=blame, memory=memory, counters=counters, callgrind=callgrind, cachegrind=cachegrind)
    return commands.run(
        workload, allocators=names(allocator), syncs=names(sync), threads=counts, machine=machine,
        parameters=parameters, blocks=blocks, target_width=target_width, max_blocks=max_blocks,
        budget_s=budget, seed=seed, timeout_s=timeout, purposes=purposes, d1=d1,
        oversubscribe=oversubscribe, resume=resume, out=out, as_json=as_json,
    )  # fmt: skip


@study.command("list")
def study_list(as_json: AsJson = False) -> int:
    """The studies there are, with their questions."""
    from loam_lab.measure import commands

    return commands.study_list(as_json=as_json)


@study.command("run")
def study_run(
    name: Annotated[str, typer.Argument(help="A study's name, or the path of a study file.")],
    effort: Effort = "full",
    target_width: TargetWidth = None,
    max_blocks: MaxBlocks = None,
    budget: Budget = None,
    oversubscribe: Oversubscribe = False,
    resume: Resume = False,
    out: Out = None,
    as_json: AsJson = False,
) -> int:
    """Run a study, decide its claims, and write its report."""
    _stopping(target_width, max_blocks, budget)
    from loam_lab.setup import debian

    debian.ensure("measure")
    from loam_lab.measure import commands

    return commands.study_run(
        name, effort=effort, target_width=target_width, max_blocks=max_blocks, budget_s=budget,
        oversubscribe=oversubscribe, resume=resume, out=out, as_json=as_json,
    )  # fmt: skip


def bench(
    command: Command = None,
    allocator: Allocators = None,
    blocks: Blocks = None,
    seed: Seed = 1,
    timeout: Timeout = None,
    memory: Memory = False,
    counters: Counters = False,
    tune: Tune = False,
    tune_for: TuneFor = None,
    resume: Resume = False,
    out: Out = None,
    as_json: AsJson = False,
) -> int:
    """Any program of yours under every allocator: time, memory and faults with intervals, and a recommendation."""
    at_least("--blocks", blocks, 1)
    _positive("--timeout", timeout)
    _positive("--tune-for", tune_for)
    if not command:
        raise LoamError("bench", None, "no command was given", "as in ./loam bench -- /usr/bin/python3 -c 'print(1)'")
    from loam_lab.setup import debian

    debian.ensure("measure")
    from loam_lab.measure import bench as measure_bench

    return measure_bench.bench(
        command, allocators=names(allocator), blocks=blocks, seed=seed, timeout_s=timeout, memory=memory, counters=counters,
        tune=tune or tune_for is not None, tune_budget_s=tune_for, resume=resume, out=out, as_json=as_json,
    )  # fmt: skip


def _stopping(target_width: float | None, max_blocks: int | None, budget_s: float | None) -> None:
    if target_width is not None and not 0 < target_width < 1:
        raise LoamError("--target-width", target_width, "must lie between 0 and 1", "0.02 means intervals of ±2 %")
    at_least("--max-blocks", max_blocks, 1)
    _positive("--budget", budget_s)


def _positive(option: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise LoamError(option, value, "must be above 0 seconds")


def _key_value(item: str) -> tuple[str, list[str]]:
    key, equals, value = item.partition("=")
    levels = [level.strip() for level in value.split(",")]
    if not equals or not key or not all(levels):
        raise LoamError("-p", item, "not of the form key=value or key=v1,v2", "for example -p structure=list,tree")
    return key, list(dict.fromkeys(levels))
