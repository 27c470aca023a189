"""The command that compares two results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.cli.options import AsJson

Side = Annotated[Path, typer.Argument(help="A result's folder, or its result.json.", show_default=False)]
Other = Annotated[
    Path | None,
    typer.Argument(
        help="The result to compare with; without it, the machines of the first are compared.", show_default=False
    ),
]
Gate = Annotated[
    float | None,
    typer.Option(
        "--gate", metavar="RATIO", help="Exit status 1 if a cell is certainly less than RATIO times as good as before."
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="With --gate: exit status 3 if a cell is open, was not proven, or is in one result only."
    ),
]
Across = Annotated[
    bool, typer.Option("--across-machines", help="Compare results of two machines, by their ratios to the baseline.")
]


def compare(
    first: Side,
    second: Other = None,
    gate: Gate = None,
    strict: Strict = False,
    across_machines: Across = False,
    as_json: AsJson = False,
) -> int:
    """Show what became better or worse between two results, or compare the machines of one result."""
    from loam_lab.commands.compare import commands

    return commands.compare(first, second, gate=gate, strict=strict, across_machines=across_machines, as_json=as_json)
