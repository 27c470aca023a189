"""The command group allocators: bring your own, and prove that it really is the one in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.cli import completing
from loam_lab.cli.options import AsJson

Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND...]", help="The program to examine (default: a small one of ours)."),
]

allocators = typer.Typer(help="Bring your own allocator, and prove that it is the one in use.")


@allocators.command("add")
def add(
    name: Annotated[str, typer.Argument(help="The name to give it.")],
    path: Annotated[Path, typer.Argument(help="The shared object.")],
    as_json: AsJson = False,
) -> int:
    """Register a shared object under a name of yours (kept in ~/.config/loam/allocators)."""
    from loam_lab.subjects.allocators import commands

    return commands.add(name, path, as_json=as_json)


@allocators.command("remove")
def remove(
    name: Annotated[str, typer.Argument(autocompletion=completing.added, help="A name given with add.")],
    as_json: AsJson = False,
) -> int:
    """Forget an allocator that add registered. The shared object stays where it is."""
    from loam_lab.subjects.allocators import commands

    return commands.remove(name, as_json=as_json)


@allocators.command("build")
def build(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]", autocompletion=completing.built, help="Default: all that build within a minute."
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also rebuild what is up to date.")] = False,
    as_json: AsJson = False,
) -> int:
    """Build allocators from sources in package registries, pinned by version and checksum, into .loam/allocators."""
    from loam_lab.subjects.allocators import building

    return building.build(names or [], again=again, as_json=as_json)


@allocators.command("costs")
def costs(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            autocompletion=completing.allocator,
            help="Allocators, with settings as in glibc:tcache=0.",
        ),
    ],
    as_json: AsJson = False,
) -> int:
    """Count what an allocator's calls execute: by this table simulated machines charge them."""
    from loam_lab.campaign.counters import call_costs
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(allocators=names)
    debian.ensure("measure")
    return call_costs.write(names, as_json=as_json)


@allocators.command("verify")
def verify(
    name: Annotated[
        str,
        typer.Argument(autocompletion=completing.allocator, help="An allocator, with settings as in glibc:tcache=0."),
    ],
    command: Command = None,
    as_json: AsJson = False,
) -> int:
    """Run a program under an allocator and report, per process, which object really provided malloc."""
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names
    from loam_lab.subjects.allocators import verify as verification

    typed_names.check(allocators=[name])
    verification.check_command(command or [])
    debian.ensure("measure")
    from loam_lab.subjects.allocators import commands

    return commands.verify(name, command or [], as_json=as_json)
