"""The command tune: machine settings, shown, changed and put back."""

from __future__ import annotations

from typing import Annotated

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing
from loam_lab.cli.options import AsJson, names


def tune(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be changed, why and at what risk.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Save the present values and change them, as root.")] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Restore each setting that is still as --apply set it.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="A,B",
            autocompletion=completing.tuned,
            help="Only these settings, such as thp,governor.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Change machine settings that disturb measuring, reversibly; without an option, only show them."""
    modes = {"dry-run": dry_run, "apply": apply, "restore": restore}
    chosen = [name for name, given in modes.items() if given]
    if len(chosen) > 1:
        raise LoamError(" ".join(f"--{name}" for name in chosen), None, "only one of these at a time")
    if restore and only:
        raise LoamError("--only", ",".join(only), "restore puts back everything", "leave it out")
    from loam_lab.setup.tune import commands

    return commands.tune(chosen[0] if chosen else "dry-run", names(only), as_json=as_json)
