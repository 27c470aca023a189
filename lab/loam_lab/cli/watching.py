"""The command that watches a campaign from another terminal: top."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.cli.options import AsJson

Folder = Annotated[
    Path | None, typer.Argument(help="A campaign's folder (default: the newest one here).", show_default=False)
]
Once = Annotated[bool, typer.Option("--once", help="Print the present state and exit.")]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", help="Seconds between two updates, at least 1.")]


def top(folder: Folder = None, once: Once = False, every: Every = 2.0, as_json: AsJson = False) -> int:
    """Follow a campaign that runs in another terminal: what is done, the intervals so far, failures, disturbances."""
    from loam_lab.campaign.measure import top as following

    return following.top(folder, once=once, every_s=every, as_json=as_json)
