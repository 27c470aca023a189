"""The command that says who aborts whom: explain."""

from __future__ import annotations

from typing import Annotated

import typer

from loam_lab.cli.options import AsJson, Seed, at_least, names
from loam_lab.errors import LoamError

Workload = Annotated[str, typer.Argument(help="A workload; see: list workloads.")]
Allocator = Annotated[
    str | None,
    typer.Option("--allocator", metavar="A", help="One allocator, with settings as in glibc:tcache=0; glibc."),
]
Sync = Annotated[
    str | None, typer.Option("--sync", metavar="S", help="One algorithm that can tell causes apart; etl-wb.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads, at least 2; all that this machine has.")
]
Parameter = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="A parameter of the workload or algorithm."),
]
Every = Annotated[int, typer.Option("--every", metavar="N", help="Record every N-th abort of a thread.")]
Chains = Annotated[bool, typer.Option("--chains", help="Show each source line with the functions it was inlined into.")]
Oversubscribe = Annotated[bool, typer.Option("--oversubscribe", help="Allow more threads than this machine has.")]


def explain(
    workload: Workload,
    allocator: Allocator = None,
    sync: Sync = None,
    threads: Threads = None,
    parameter: Parameter = None,
    every: Every = 1,
    seed: Seed = 1,
    chains: Chains = False,
    oversubscribe: Oversubscribe = False,
    as_json: AsJson = False,
) -> int:
    """Who aborts whom, and why: blocks and source lines of one run's conflicts, and what placement would change."""
    at_least("--every", every, 1)
    at_least("--threads", threads, 1)
    for option, value in (("--allocator", allocator), ("--sync", sync)):
        if value is not None and len(names([value])) != 1:
            raise LoamError(option, value, "one run has one of them", "explain each in a run of its own")
    parameters = [_key_value(item) for item in parameter or ()]
    from loam_lab.setup import debian

    debian.ensure("measure")
    from loam_lab.explain import commands

    return commands.explain(
        workload, allocator=allocator, sync=sync, threads=threads, parameters=parameters, every=every, seed=seed,
        chains=chains, oversubscribe=oversubscribe, as_json=as_json,
    )  # fmt: skip


def _key_value(text: str) -> tuple[str, list[str]]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise LoamError("-p", text, "not of the form key=value", "for example -p structure=list")
    return key, names([value])
