"""What lab/interposer/profile.cpp wrote of a run: processes added up, fragmentation as docs/internals/profile.md defines it.

`bench --profile` shows it whole; a counting run of the purpose `profile` keeps what claims and figures read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import paths
from loam_lab.campaign.process.observer import Observer
from loam_lab.model.protocol import PROFILE

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome

LIBRARY = "profile"
SOURCE = "profile"
# Blocks that die before their thread has allocated so much more.
SHORT_BYTES = 64 * 1024
SILENT = "no process said anything: none asked for memory, or they were ended by a signal"


def silent(programs: Iterable[Sequence[str]]) -> str:
    """Why no process of command lines said anything: what keeps a library out of them, else SILENT."""
    from loam_lab.subjects.allocators import preflight

    return "; ".join(dict.fromkeys(obstacle for line in programs for obstacle in preflight.obstacles(line))) or SILENT


class ProfileObserver(Observer):
    """One run with the counting library in front of the allocator. scratch: a folder for what it writes"""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch
        self.front = str(paths.load_paths("release")["libraries"][LIBRARY])
        self.variables = {PROFILE: str(scratch / LIBRARY)}

    def begin(self) -> None:
        """See Observer."""
        for file in self._files():
            file.unlink()

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """See Observer; observed: {"source", "events": calls and bytes, "peak", "fragmentation"}."""
        processes = read(self._files())
        if not processes:
            return {}, SILENT
        totals = summary(processes)
        return {
            "source": SOURCE,
            "events": {"calls": totals["calls"], "requested_bytes": totals["bytes"]},
            "peak": totals["peak"],
            "fragmentation": totals["fragmentation"],
        }, ""

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{LIBRARY}.*"))


def read(files: Sequence[Path]) -> list[dict[str, Any]]:
    """What processes said, one object each."""
    return [json.loads(file.read_text()) for file in files]


def summary(processes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What processes asked of their allocator, added up; memory is that of the one with the largest peak.

    processes: what profile.cpp wrote
    returns: calls, bytes, by class [[bytes up to, blocks, bytes]], lifetimes and remote frees as shares, threads, and at
    the peak requested, usable, occupied and resident bytes, with what they tell of fragmentation
    """
    threads = [thread for process in processes for thread in process["threads"]]
    limits = processes[0]["class_bytes"]
    blocks = [sum(thread["blocks"][at] for thread in threads) for at in range(len(limits))]
    sizes = [sum(thread["bytes"][at] for thread in threads) for at in range(len(limits))]
    ages = [sum(thread["lifetimes"][at] for thread in threads) for at in range(len(threads[0]["lifetimes"]))]
    remote = sum(thread["remote"] for thread in threads)
    freed = sum(ages) + remote
    largest = max(processes, key=lambda process: process["peak"][2])
    _, requested, usable, occupied, resident = largest["peak"]
    calls, stamp = sum(blocks), processes[0]["stamp_bytes"]
    # Age class k holds ages below 2^k stamps.
    short = sum(count for age, count in enumerate(ages) if stamp << age <= SHORT_BYTES)
    return {
        "sampled": bool(processes[0]["mean"]),
        "processes": len(processes),
        "threads": len(threads),
        "calls": calls,
        "bytes": sum(sizes),
        "classes": [[limit, n, size] for limit, n, size in zip(limits, blocks, sizes, strict=True) if n],
        "short_lived": short / freed if freed else None,
        "remote": remote / freed if freed else None,
        "unknown_frees": sum(thread["unknown"] for thread in threads),
        "by_thread": [
            {"number": thread["number"], "calls": sum(thread["blocks"]), "bytes": sum(thread["bytes"]),
             "freed_of_others": thread["remote"]}
            for thread in sorted(largest["threads"], key=lambda thread: int(thread["number"]))
        ],
        "peak": {"requested": requested, "usable": usable, "occupied": occupied, "resident": resident},
        "fragmentation": fragmentation(requested, usable, occupied, resident),
        "snapshots": largest["snapshots"],
    }  # fmt: skip


def fragmentation(requested: int, usable: int, occupied: int, resident: int) -> dict[str, float] | None:
    """Bytes beyond the requested ones, each as a share of those; None where nothing is live.

    padding: the allocator gave more than was asked for (internal); scattered: the rest of pages that hold live blocks,
    what a compacting allocator would give back (external); held: resident pages without any live block (external).
    None for what sampling does not see
    """
    if not requested:
        return None
    shares = {"padding": max(0, usable - requested) / requested}
    if occupied and resident:
        shares["scattered"] = max(0, occupied - usable) / requested
        shares["held"] = max(0, resident - max(occupied, usable)) / requested
    return shares
