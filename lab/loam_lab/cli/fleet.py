"""Options that choose where runs are measured, and the command that an engine starts on a host: agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loam_lab.cli import completing
from loam_lab.cli.options import names

if TYPE_CHECKING:
    from loam_lab.campaign.fleet.selection import Choice

Engine = Annotated[
    str,
    typer.Option(
        "--engine", metavar="E", autocompletion=completing.engine, help="Where runs are measured: local, slurm or ssh."
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--hosts", metavar="A,B", help="Nodes or hosts of the engine; each is a machine of the result."),
]
Partition = Annotated[str | None, typer.Option("--partition", metavar="P", help="Slurm's partition.")]
EngineOption = Annotated[
    list[str] | None,
    typer.Option("--engine-option", metavar="OPT", help="An option for sbatch or ssh, such as --account=x."),
]
Identical = Annotated[
    list[str] | None,
    typer.Option("--identical", metavar="A,B", help="Hosts of one kind: pooled too if their A/A comparison passes."),
]

agent = typer.Typer(help="What an engine starts on a measured host.", no_args_is_help=True)


def choice(
    engine: str, hosts: list[str] | None, partition: str | None, options: list[str] | None, identical: list[str] | None
) -> Choice:
    """The engine that the options choose; raises: LoamError if they do not fit together"""
    from loam_lab.campaign.fleet.selection import Choice

    alike = tuple(tuple(names([one])) for one in identical or ())
    chosen = Choice(engine, tuple(names(hosts)), partition, tuple(options or ()), alike)
    chosen.check()
    return chosen


@agent.command("describe")
def describe(question: Annotated[str, typer.Argument(help="JSON, see campaign/fleet/agent.py.")]) -> int:
    """Print what this host has of what a study asks for."""
    from loam_lab.campaign.fleet import agent as subject

    return subject.answer(question)


@agent.command("run")
def run(
    folder: Annotated[Path, typer.Argument(help="The campaign's folder.")],
    job: Annotated[str, typer.Argument(help="The job's name.")],
) -> int:
    """Run the missing runs of a job."""
    from loam_lab.campaign.fleet import agent as subject

    return subject.run(folder, job)
