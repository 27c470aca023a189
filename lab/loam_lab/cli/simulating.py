"""The command that runs a program of the user's on a simulated machine: simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing, options

Sources = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SOURCE... [-- ARGUMENT...]",
        help="The program's C and C++ files, then its arguments; {threads} in them is the number of --threads.",
        show_default=False,
    ),
]
MachineName = Annotated[
    str,
    typer.Option(
        "--machine", metavar="M", autocompletion=completing.machine, help="The simulated machine; see list machines."
    ),
]
Threads = Annotated[
    list[str] | None, typer.Option("--threads", metavar="N,M", help="Numbers that {threads} stands for, one run each.")
]
Flags = Annotated[
    str, typer.Option("--flags", metavar="WORDS", help="For the compiler and the linker, such as '-O3 -Iinclude -lm'.")
]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", help="Runs of each variant, each in another order of threads.")
]
Arguments = Annotated[list[str] | None, typer.Option("--argument", hidden=True)]


def simulate(
    sources: Sources = None, machine: MachineName = "sim:xeon-e5405", allocator: options.Allocators = None,
    threads: Threads = None, flags: Flags = "-O2", seeds: Seeds = 3, argument: Arguments = None,
    as_json: options.AsJson = False,
) -> int:  # fmt: skip
    """Compile a program of yours and run it on a simulated machine: time, misses and lines that move, by allocator."""
    if not sources:
        raise LoamError("simulate", None, "no source files", "for example: simulate main.c work.c -- --size 100")
    options.at_least("--seeds", seeds, 1)
    from loam_lab.commands import simulate as command

    return command.simulate(
        sources, machine=machine, allocators=options.allocator_names(allocator) or ["glibc"],
        threads=options.integers("--threads", threads), flags=flags, seeds=seeds, arguments=argument or [], as_json=as_json,
    )  # fmt: skip
