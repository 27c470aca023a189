"""The commands that look: list, report, doctor, setup, test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing
from loam_lab.cli.options import AsJson

Kind = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        autocompletion=completing.kind,
        help="allocators, workloads, syncs, machines, studies or claims.",
    ),
]
Result = Annotated[
    Path | None, typer.Argument(help="A result's folder (default: the newest one here).", show_default=False)
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to write (default: into the result).")]
Subject = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="SUBJECT",
        autocompletion=completing.checked,
        help="Only one of noise, memory, htm, counters, allocators, build, tests.",
    ),
]
Golden = Annotated[bool, typer.Option("--golden-update", help="Accept new expected output; read the diff then.")]


def list_registry(
    kind: Kind,
    as_json: AsJson = False,
) -> int:
    """List allocators, workloads, syncs, machines, studies or claims, as the code defines them."""
    from loam_lab.cli import listing

    return listing.show(kind, as_json=as_json)


def report(
    result: Result = None,
    out: Out = None,
    png: Annotated[bool, typer.Option("--png", help="Write the pictures as PNG too.")] = False,
    as_json: AsJson = False,
) -> int:
    """Rebuild a result's report: one HTML file, pictures, CSV and Markdown."""
    from loam_lab.presenting.report import commands

    commands.report(result, out, as_json, png)
    return 0


def doctor(
    subject: Subject = None,
    quick: Annotated[bool, typer.Option("--quick", help="Skip the half second that measures shared cores.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check what this machine can and cannot measure, what that costs, and what to do."""
    from loam_lab.commands.doctor import commands

    return commands.doctor(subject, quick=quick, as_json=as_json)


def setup(
    tests: Annotated[bool, typer.Option("--tests", help="Also what only the tests need (valgrind, chromium).")] = False,
    programs: Annotated[bool, typer.Option("--programs", help="Also real programs to run under allocators.")] = False,
    as_json: AsJson = False,
) -> int:
    """List and install what is missing, and build everything that is measured."""
    from loam_lab.base import console
    from loam_lab.setup import commands

    status = commands.setup(tests=tests, programs=programs, as_json=as_json)
    if programs and status == 0:
        from loam_lab.subjects.programs import originals

        for line in originals.bring():
            console.note(line)
    return status


def test(
    fast: Annotated[
        bool, typer.Option("--fast", help="Style, unit tests and the lab; no sanitizers, mutants or slow tests.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also what takes long or needs more than CI has.")] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="A tiny run of every workload on every algorithm.")] = False,
    golden_update: Golden = False,
    replay: Annotated[
        int | None, typer.Option("--replay", help="Repeat the tests of the schedule checker with this seed.", min=0)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run the tests; without an option, those that CI runs."""
    modes = {"--fast": fast, "--all": everything, "--smoke": smoke, "--golden-update": golden_update}
    chosen = [name for name, given in modes.items() if given]
    chosen += ["--replay"] if replay is not None else []
    if len(chosen) > 1:
        raise LoamError(" ".join(chosen), None, "only one of these at a time")
    from loam_lab.dev.testing import command

    if replay is not None:
        os.environ["LOAM_CHECK_SEED"] = str(replay)

    return command.run(chosen[0].removeprefix("--") if chosen else "ci", as_json=as_json)
