"""loam top: follow a campaign from another terminal, without disturbing it.

It sleeps between looks, never looks more often than once a second, gives way to everybody else, reads only what was
appended to the journals, and takes no lock.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.live_view import Watched
from loam_lab.campaign.measure.progress import duration, table

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY_MIN_S = 1.0


def top(folder: Path | None, *, once: bool = False, every_s: float = 2.0, as_json: bool = False) -> int:
    """Show a campaign until it ends, or once.

    folder: of the campaign, None for the newest of the current folder; every_s: pause between two looks
    as_json: one document of what there is now; returns: 0, also after Ctrl-C
    raises: LoamError if there is no campaign, or the pause is too short
    """
    if not every_s >= EVERY_MIN_S:
        raise LoamError(
            "--every", every_s, "must be at least 1 second", "each update takes time from the measured machine"
        )
    watched = Watched(paths.latest_result() if folder is None else folder)
    with contextlib.suppress(OSError):
        os.nice(19)
    watched.poll()
    if as_json:
        console.print_json(watched.as_json())
    elif once or not watched.running():
        console.out().print(frame(watched))
    else:
        with contextlib.suppress(KeyboardInterrupt):
            _follow(watched, every_s)
    return 0


def _follow(watched: Watched, every_s: float) -> None:
    if not sys.stdout.isatty():
        while True:
            console.out().print(headline(watched), soft_wrap=True)
            if not watched.running():
                return
            time.sleep(every_s)
            watched.poll()
    from rich.live import Live

    # auto_refresh would start a thread that draws several times a second.
    with Live(frame(watched), console=console.out(), auto_refresh=False) as live:
        while watched.running():
            time.sleep(every_s)
            if watched.poll():
                live.update(frame(watched), refresh=True)
        watched.poll()
        live.update(frame(watched), refresh=True)


def headline(watched: Watched) -> str:
    """The campaign in one line."""
    running = watched.running()
    parts = [f"{watched.study.name}: {watched.done} of {watched.planned} runs"]
    left_s = watched.left_s()
    if running and left_s is not None:
        parts.append(f"{'at most ' if watched.study.target_width is not None else ''}{duration(left_s)} left")
    if not running:
        parts.append("not running")
    if watched.failed:
        parts.append(f"{watched.failed} failed")
    if watched.disturbed:
        parts.append(f"{watched.disturbed} disturbed (worst {watched.worst_share:.0%}), {watched.repeated} repeated")
    return ", ".join(parts)


def frame(watched: Watched) -> RenderableType:
    """All that is shown at once."""
    from rich.console import Group

    return Group(headline(watched), table(watched))
