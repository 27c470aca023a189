"""The file of allocation sites that LOAM_MALLOC_APART takes: whose blocks share cache lines, so that they get their own.

runtime/malloc/apart_sites.hpp has the form. A site is what a call of malloc returns to, and the callers outwards up to the
first line that is the program's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loam_lab.commands.explain import story
from loam_lab.commands.explain.sharing.findings import Seen
from loam_lab.commands.explain.sharing.names import RUNTIME
from loam_lab.commands.explain.sharing.watches import Process
from loam_lab.subjects import symbols
from loam_lab.subjects.allocators import identify

HEAD = "loam-apart 1"
VARIABLE = "LOAM_MALLOC_APART"
CAUSE = "other_block"  # the kind that such a file mends
_FRAMES_MOST, _SITES_MOST = 16, 512


@dataclass(frozen=True)
class Site:
    """Where blocks at fault are made. frames: files, each with what the call returns to, innermost first; words: for people"""

    frames: tuple[tuple[str, int], ...]
    words: str


def at_fault(seen: Seen) -> list[Site]:
    """The sites of all blocks that lie in one cache line with another thread's block, those of the largest share first."""
    sites: dict[tuple[tuple[str, int], ...], tuple[float, str]] = {}
    for one in seen.findings.blocks:
        for catch in one.catches if one.named else ():
            if catch.conflict.cause != CAUSE:
                continue
            process = seen.processes[catch.at]
            for block in (catch.watch.block, catch.caught.block):
                frames = _frames(process, process.stacks.get(block.stack, ())) if block else ()
                if block is None or not frames or frames in sites:
                    continue
                made = seen.names.places.get(seen.names.stacks.get((catch.at, block.stack), 0))
                where = f" made at {made.text}" if made is not None and made.frame else ""
                share = one.share.share
                sites[frames] = share, f"{story.percent(share)} of the time: {block.bytes}-byte blocks{where}"
    ranked = sorted(sites.items(), key=lambda item: -item[1][0])
    return [Site(frames, words) for frames, (_, words) in ranked[:_SITES_MOST]]


def _frames(process: Process, callers: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """A stack up to the first frame that is the program's own; empty where one on the way has no file."""
    frames: list[tuple[str, int]] = []
    for caller in callers[:_FRAMES_MOST]:
        place = process.loaded.in_file(caller - 1)
        if place is None:
            return ()
        file, address = place
        frames.append((file, address + 1))
        if not Path(file).name.startswith(RUNTIME) and not file.startswith(symbols.SYSTEM):
            break
    return tuple(frames)


def text(program: str, sites: Sequence[Site]) -> str:
    """The content of the file. program: the absolute path of the executable whose sites they are"""
    modules = list(dict.fromkeys(file for site in sites for file, _ in site.frames))
    lines = [HEAD, f"program {program}", *(f"module {identity(Path(file))} {file}" for file in modules)]
    for site in sites:
        frames = " ".join(f"{modules.index(file)}+{address:x}" for file, address in site.frames)
        lines.append(f"site {frames} # {site.words}")
    return "".join(f"{line}\n" for line in lines)


def identity(file: Path) -> str:
    """By what a build of a module is known: its build ID; without one, its size and when it was changed."""
    build_id = identify.identify(file).build_id
    about = file.stat()
    return f"build-id {build_id}" if build_id else f"file {about.st_size} {about.st_mtime_ns}"
