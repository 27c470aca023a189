"""The command that runs a program on one of our libraries: exec."""

from __future__ import annotations

from typing import Annotated

import typer

from loam_lab.cli import completing
from loam_lab.cli.benching import Command

Itm = Annotated[
    str,
    typer.Option(
        "--itm",
        metavar="ALGORITHM",
        autocompletion=completing.algorithm,
        help="The algorithm behind the interface of GCC's libitm.",
    ),
]


def execute(command: Command = None, itm: Itm = "norec") -> int:
    """Run a program that GCC compiled with -fgnu-tm on our transactional memory instead of GCC's."""
    from loam_lab.subjects import itm as library

    return library.execute(command or (), itm)
