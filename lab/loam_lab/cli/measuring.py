"""The commands that measure what the tree has: tour, run, study."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing
from loam_lab.cli.fleet import Engine, EngineOption, Hosts, Identical, Partition, choice
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
    allocator_names,
    check,
    chosen,
    count,
    integers,
    names,
    positive,
)

study = typer.Typer(help="Studies: questions with their factors, blocks and figures, one file each.")

Syncs = Annotated[
    list[str] | None,
    typer.Option(
        "--sync",
        metavar="R,S",
        autocompletion=completing.syncs,
        help="Algorithms, all, or paths of executables that write the record schema.",
    ),
]
Threads = Annotated[list[str] | None, typer.Option("--threads", metavar="1,2", help="Thread counts.")]
Machines = Annotated[
    list[str] | None,
    typer.Option(
        "--machine",
        metavar="M,N",
        autocompletion=completing.machines,
        help="Machines; host is this one. See list machines.",
    ),
]
Groups = Annotated[list[str] | None, typer.Option("--group", metavar="G,H", help="Only these groups of the study.")]
Collectors = Annotated[
    list[str] | None,
    typer.Option(
        "--collector",
        metavar="C,D",
        autocompletion=completing.collectors,
        help="Garbage collectors, for --sync jvm-...",
    ),
]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--parameter", metavar="KEY=V1,V2", help="A parameter of the workload or algorithm, and its levels."
    ),
]
Blame = Annotated[bool, typer.Option("--blame", help="One extra run per cell that finds the causes of aborts.")]
Memory = Annotated[bool, typer.Option("--memory", help="Extra runs of each cell (or allocator) that sample memory.")]
Counters = Annotated[
    bool,
    typer.Option("--counters", help="Extra runs per cell with hardware counters, or with valgrind if there are none."),
]
Callgrind = Annotated[bool, typer.Option("--callgrind", help="Extra runs per cell: exact instructions per operation.")]
Cachegrind = Annotated[
    bool, typer.Option("--cachegrind", help="Extra runs per cell: cache misses of one simulated core.")
]
Tlb = Annotated[
    bool, typer.Option("--tlb", help="Extra runs per cell: misses of the translation buffers, counted or modelled.")
]
Asked = Annotated[
    bool, typer.Option("--profile", help="Extra runs per cell: blocks and bytes that the program requests.")
]
D1 = Annotated[
    str | None,
    typer.Option(
        "--d1", metavar="BYTES,WAYS,LINE", help="The data cache that cachegrind simulates, such as 32768,8,64."
    ),
]
Oversubscribe = Annotated[bool, typer.Option("--oversubscribe", help="Allow more threads than this machine has.")]
EffortOption = Annotated[
    Literal["quick", "full"], typer.Option("--effort", help="quick: few blocks, for a first look.")
]


def tour(resume: Resume = False, out: Out = None, as_json: AsJson = False) -> int:
    """The first study of this machine, in under three minutes, with a report. Start here."""
    from loam_lab.setup import debian

    debian.ensure("measure")
    from loam_lab.commands.request import Output, Request
    from loam_lab.commands.run import commands

    return commands.study_run("tour", Request(output=Output(out, resume, as_json)), command="./loam tour")


def run(
    workload: Annotated[
        str, typer.Argument(autocompletion=completing.workloads, help="Workloads, as A,B; see: list workloads.")
    ],
    allocator: Allocators = None,
    sync: Syncs = None,
    threads: Threads = None,
    machine: Machines = None,
    collector: Collectors = None,
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
    tlb: Tlb = False,
    profile: Asked = False,
    d1: D1 = None,
    oversubscribe: Oversubscribe = False,
    engine: Engine = "local",
    hosts: Hosts = None,
    partition: Partition = None,
    engine_option: EngineOption = None,
    identical: Identical = None,
    resume: Resume = False,
    out: Out = None,
    as_json: AsJson = False,
) -> int:
    """Measure every combination of the given levels in paired blocks; print a table, keep the records."""
    check(blocks, timeout, seed)
    _stopping(target_width, max_blocks, budget)
    counts = integers("--threads", threads)
    parameters = [_key_value(item) for item in parameter or ()]
    where = choice(engine, hosts, partition, engine_option, identical)
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(
        of=names([workload]) or [workload], syncs=names(sync), allocators=allocator_names(allocator), on=names(machine)
    )
    debian.ensure("measure")
    from loam_lab.commands.request import Effort, Further, Output, Request, Selection
    from loam_lab.commands.run import commands
    from loam_lab.model.collector import NAME as COLLECTOR

    if collector:
        parameters.append((COLLECTOR, names(collector)))
    purposes = chosen(
        blame=blame, memory=memory, counters=counters, callgrind=callgrind, cachegrind=cachegrind, tlb=tlb,
        profile=profile,
    )  # fmt: skip
    request = Request(
        Selection(allocator_names(allocator), names(sync), counts, names(machine), parameters, oversubscribe=oversubscribe),
        Effort(blocks, target_width, max_blocks, budget, seed, timeout), Further(purposes, d1),
        Output(out, resume, as_json), where,
    )  # fmt: skip
    return commands.run(workload, request)


@study.command("list")
def study_list(as_json: AsJson = False) -> int:
    """List the studies and their questions."""
    from loam_lab.commands.run import commands

    return commands.study_list(as_json=as_json)


@study.command("run")
def study_run(
    name: Annotated[
        str, typer.Argument(autocompletion=completing.study, help="A study's name, or the path of a study file.")
    ],
    effort: EffortOption = "full",
    machine: Machines = None,
    group: Groups = None,
    target_width: TargetWidth = None,
    max_blocks: MaxBlocks = None,
    budget: Budget = None,
    oversubscribe: Oversubscribe = False,
    engine: Engine = "local",
    hosts: Hosts = None,
    partition: Partition = None,
    engine_option: EngineOption = None,
    identical: Identical = None,
    resume: Resume = False,
    out: Out = None,
    as_json: AsJson = False,
) -> int:
    """Run a study, decide its claims, and write its report."""
    _stopping(target_width, max_blocks, budget)
    where = choice(engine, hosts, partition, engine_option, identical)
    from loam_lab.model import studies
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(on=names(machine))
    typed_names.check_study(studies.find(name)[0])
    debian.ensure("measure")
    from loam_lab.commands.request import Effort, Output, Request, Selection
    from loam_lab.commands.run import commands

    request = Request(
        Selection(machines=names(machine), groups=names(group), oversubscribe=oversubscribe),
        Effort(None, target_width, max_blocks, budget, quick=effort == "quick"), output=Output(out, resume, as_json),
        engine=where,
    )  # fmt: skip
    return commands.study_run(name, request)


def _stopping(target_width: float | None, max_blocks: int | None, budget_s: float | None) -> None:
    if target_width is not None and not 0 < target_width < 1:
        raise LoamError("--target-width", target_width, "must lie between 0 and 1", "0.02 means intervals of ±2 %")
    count("--max-blocks", max_blocks)
    positive("--budget", budget_s)


def _key_value(item: str) -> tuple[str, list[str]]:
    key, equals, value = item.partition("=")
    levels = [level.strip() for level in value.split(",")]
    if not equals or not key or not all(levels):
        raise LoamError("-p", item, "not of the form key=value or key=v1,v2", "for example -p structure=list,tree")
    return key, list(dict.fromkeys(levels))
