"""The command that watches a campaign from another terminal: top."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.cli.options import AsJson

Folder = Annotated[
    Path | None, typer.Argument(help="A campaign's folder; the newest of this folder without it.", show_default=False)
]
Once = Annotated[bool, typer.Option("--once", help="Print what there is now and end.")]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", help="Pause between two looks, 1 or more.")]


def top(folder: Folder = None, once: Once = False, every: Every = 2.0, as_json: AsJson = False) -> int:
    """Follow a campaign that runs in another terminal: what is done, the intervals so far, failures, disturbances."""
    from loam_lab.measure import top as following

    return following.top(folder, once=once, every_s=every, as_json=as_json)
