"""The command that measures programs of the user's: bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing, options

# The panels of --help: what is measured comes first, by the kind that it is of.
SERVER = "A server under a load"
COMMANDS = "Commands"
AROUND = "Around each run"
FURTHER = "What else to find out"

Search = Annotated[
    bool,
    typer.Option(
        "--search",
        rich_help_panel=FURTHER,
        help="Then search the settings of the best two allocators, in about four minutes.",
    ),
]
SearchFor = Annotated[
    float | None,
    typer.Option(
        "--search-for", rich_help_panel=FURTHER, metavar="SECONDS", help="Search for about this long; implies --search."
    ),
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.", show_default=False),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        rich_help_panel=SERVER,
        metavar="COMMAND",
        help="The server; it must stay in the foreground, on 127.0.0.1.",
    ),
]
Ready = Annotated[
    str | None,
    typer.Option(
        "--ready",
        rich_help_panel=SERVER,
        metavar="PORT|REGEX",
        help="When the server is ready: a port that answers, or a pattern in what it writes.",
    ),
]
Load = Annotated[
    str | None,
    typer.Option(
        "--load", rich_help_panel=SERVER, metavar="COMMAND", help="The command that sends a fixed number of requests."
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        rich_help_panel=SERVER,
        metavar="REGEX",
        help="Pattern in what the load prints; its group is the number to compare.",
    ),
]
Stop = Annotated[
    str | None,
    typer.Option(
        "--stop",
        rich_help_panel=SERVER,
        metavar="SIGNAL",
        autocompletion=completing.signal,
        help="The signal at which the server ends by itself (default: TERM, or INT where it catches only that).",
    ),
]
Better = Annotated[
    Literal["higher", "lower"] | None,
    typer.Option("--better", rich_help_panel=SERVER, help="Which value is better, if the metric's name does not say."),
]
Commands = Annotated[
    list[str] | None,
    typer.Option(
        "--command", rich_help_panel=COMMANDS, metavar="COMMAND", help="A command; several are measured side by side."
    ),
]
Scan = Annotated[
    list[str] | None,
    typer.Option(
        "--scan",
        rich_help_panel=COMMANDS,
        metavar="NAME=VALUES",
        help="A command for each value of {NAME} in it: threads=1..8, size=64,256.",
    ),
]
CommandFile = Annotated[
    Path | None,
    typer.Option("--commands", rich_help_panel=COMMANDS, metavar="FILE", help="A file with one command on each line."),
]
Prepare = Annotated[
    str,
    typer.Option(
        "--prepare", rich_help_panel=AROUND, metavar="LINE", help="A shell line before each run, not measured."
    ),
]
Fill = Annotated[
    str,
    typer.Option(
        "--fill",
        rich_help_panel=SERVER,
        metavar="LINE",
        help="A shell line that fills a server before its loads, not measured.",
    ),
]
Cleanup = Annotated[
    str,
    typer.Option(
        "--cleanup", rich_help_panel=AROUND, metavar="LINE", help="A shell line after each run, not measured."
    ),
]
Check = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        rich_help_panel=AROUND,
        metavar="LINE|same-output",
        help="A shell line that must succeed after each run ($LOAM_OUTPUT names its output); or same-output.",
    ),
]
Warmup = Annotated[
    int,
    typer.Option(
        "--warmup",
        rich_help_panel=AROUND,
        metavar="N",
        help="Loads of each server, or first runs of a command, that do not count.",
    ),
]
IgnoreFailure = Annotated[
    bool,
    typer.Option(
        "--ignore-failure",
        rich_help_panel=COMMANDS,
        help="Measure a command also where it ends with another status than 0.",
    ),
]
Export = Annotated[
    Literal["markdown", "csv"] | None,
    typer.Option("--export", help="Print the result as Markdown or CSV on standard output, in place of the tables."),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        rich_help_panel=AROUND,
        metavar="NAME=N",
        autocompletion=completing.limit,
        help="A limit, such as as=4G or nofile=256; of all processes together memory.max=1G.",
    ),
]
Memory = Annotated[
    bool,
    typer.Option("--memory", rich_help_panel=FURTHER, help="Further runs under each allocator, for memory over time."),
]
Counters = Annotated[
    bool,
    typer.Option(
        "--counters",
        rich_help_panel=FURTHER,
        help="Of a command: further runs with hardware counters, or with valgrind.",
    ),
]
Tlb = Annotated[
    bool,
    typer.Option(
        "--tlb",
        rich_help_panel=FURTHER,
        help="Of a command: further runs for misses of the translation buffers, counted or modelled.",
    ),
]
Blocks = Annotated[
    int | None,
    typer.Option(
        "--blocks",
        metavar="N",
        help="So many blocks, each of one run under every allocator (default: as many as fit into its time).",
    ),
]
Profile = Annotated[
    bool,
    typer.Option(
        "--profile",
        rich_help_panel=FURTHER,
        help="One more run under each allocator, which counts every call of the allocator.",
    ),
]
ProfileSample = Annotated[
    bool,
    typer.Option(
        "--profile-sample",
        rich_help_panel=FURTHER,
        help="The same from samples, for programs that counting every call would slow down.",
    ),
]
Flame = Annotated[
    bool,
    typer.Option(
        "--flame",
        rich_help_panel=FURTHER,
        help="Flame graphs: where the time goes and who allocates, under two allocators.",
    ),
]


def bench(
    command: Command = None,
    server: Server = None,
    ready: Ready = None,
    load: Load = None,
    metric: MetricOption = None,
    better: Better = None,
    stop: Stop = None,
    commands: Commands = None,
    command_file: CommandFile = None,
    scan: Scan = None,
    prepare: Prepare = "",
    fill: Fill = "",
    cleanup: Cleanup = "",
    check: Check = None,
    warmup: Warmup = 0,
    limit: Limit = None,
    ignore_failure: IgnoreFailure = False,
    allocator: options.Allocators = None,
    blocks: Blocks = None,
    seed: options.Seed = 1,
    timeout: options.Timeout = None,
    memory: Memory = False,
    counters: Counters = False,
    tlb: Tlb = False,
    profile: Profile = False,
    profile_sample: ProfileSample = False,
    flame: Flame = False,
    search: Search = False,
    search_for: SearchFor = None,
    export: Export = None,
    resume: options.Resume = False,
    out: options.Out = None,
    as_json: options.AsJson = False,
) -> int:
    """Any program of yours under every allocator: time, memory and faults with intervals, and a recommendation.

    A command after -- is started as it stands. A server needs --server, --ready,
    --load and --metric; docs/choosing-an-allocator.md walks through one.

    Without --allocator the usual ones are compared that are installed here. The
    baseline is glibc if it is among them, else the first; of a program that is
    linked with an allocator of its own, it is the program as it is.
    """
    options.check(blocks, timeout, seed)
    options.at_least("--warmup", warmup, 0)
    options.positive("--search-for", search_for)
    if export and as_json:
        raise LoamError("--export", export, "has no effect with --json", "choose one of them")
    from loam_lab.commands.bench import job_options

    what = job_options.what(
        command or (), server=server, ready=ready, load=load, metric=metric, better=better, commands=commands or (),
        command_file=command_file, prepare=prepare, cleanup=cleanup, checks=check or (), warmup=warmup,
        limits=limit or (), timeout_s=timeout, ignore_failure=ignore_failure, fill=fill,
        scans=scan or (), stop=stop,
    )  # fmt: skip
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(allocators=options.allocator_names(allocator))
    debian.ensure("measure", *["flame"] * flame)
    from loam_lab.commands.bench import bench as measure_bench
    from loam_lab.commands.request import Effort, Further, Output, Request, Selection

    request = Request(
        Selection(options.allocator_names(allocator)), Effort(blocks, seed=seed, timeout_s=timeout),
        Further(
            options.chosen(memory=memory, counters=counters, tlb=tlb), flame=flame,
            profile="sample" if profile_sample else "full" if profile else "",
            search=search or search_for is not None, search_budget_s=search_for,
        ),
        Output(out, resume, as_json, export or ""),
    )  # fmt: skip
    return measure_bench.bench(what, request)
