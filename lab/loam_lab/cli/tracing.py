"""The commands on traces: record, replay, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import options
from loam_lab.cli.benching import Command, Fill, Load, Memory, Ready, Server

Threads = Annotated[
    Literal["recorded", "1"], typer.Option("--threads", help="As many as were recorded, or one that plays all.")
]

trace = typer.Typer(help="Record the allocations of a program; replay them under every allocator.")


@trace.command("record")
def record(
    command: Command = None,
    server: Server = None,
    ready: Ready = None,
    load: Load = None,
    fill: Fill = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The trace (default: PROGRAM.trace here).")
    ] = None,
    timeout: options.Timeout = None,
    as_json: options.AsJson = False,
) -> int:
    """Run a command, or a server under a load, and write down what it allocates and frees, thread by thread."""
    options.positive("--timeout", timeout)
    from loam_lab.commands.bench import job_options
    from loam_lab.commands.bench import trace as traces

    limit_s = timeout or traces.TIMEOUT_S
    what = job_options.to_watch(
        "trace record", command or (), server=server, ready=ready, load=load, fill=fill, timeout_s=limit_s
    )
    return traces.record(what, out=out, timeout_s=limit_s, as_json=as_json)


@trace.command("replay")
def replay(
    file: Annotated[Path, typer.Argument(help="A trace that record wrote.")],
    threads: Threads = "recorded",
    allocator: options.Allocators = None,
    blocks: options.Blocks = None,
    seed: options.Seed = 1,
    timeout: options.Timeout = None,
    memory: Memory = False,
    resume: options.Resume = False,
    out: options.Out = None,
    as_json: options.AsJson = False,
) -> int:
    """Play a trace under every allocator in paired blocks: time and memory with intervals, and a recommendation."""
    options.check(blocks, timeout, seed)
    from loam_lab.commands.bench import trace as traces
    from loam_lab.commands.request import Effort, Further, Output, Request, Selection
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(allocators=options.allocator_names(allocator))
    traces.read(file)
    debian.ensure("measure")
    request = Request(
        Selection(options.allocator_names(allocator)), Effort(blocks, seed=seed, timeout_s=timeout),
        Further(options.chosen(memory=memory)), Output(out, resume, as_json),
    )  # fmt: skip
    return traces.replay(file, request, threads=threads)


@trace.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="A trace that record wrote of the command.")],
    command: Command = None,
    threads: Threads = "recorded",
    allocator: options.Allocators = None,
    blocks: options.Blocks = None,
    seed: options.Seed = 1,
    timeout: options.Timeout = None,
    out: options.Out = None,
    as_json: options.AsJson = False,
) -> int:
    """Check that a trace ranks allocators in the same order as the program itself; both are measured."""
    options.check(blocks, timeout, seed)
    if not command:
        raise LoamError("trace check", None, "no command was given", "as in ./loam trace check FILE -- lua5.4 FILE")
    from loam_lab.commands.bench import ranking, target, trace
    from loam_lab.commands.request import Effort, Output, Request, Selection
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(allocators=options.allocator_names(allocator))
    trace.read(file)
    target.program(command[0], "trace check")
    debian.ensure("measure")
    request = Request(
        Selection(options.allocator_names(allocator)), Effort(blocks, seed=seed, timeout_s=timeout),
        output=Output(out, as_json=as_json),
    )  # fmt: skip
    return ranking.check(file, command, request, threads=threads)
