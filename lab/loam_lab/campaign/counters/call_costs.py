"""Counts what calls of malloc and free of an allocator execute, and makes the table that simulated machines charge them by.

lab/probe/call_costs.c allocates and frees bursts of blocks, of each size in lengths that double. A burst that fits into what a
thread keeps of freed blocks costs the same for each call: these are hits. In long bursts nearly all calls are misses. Between the
two the mean changes where the stock ends, so its length follows from the first burst that differs.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import valgrind
from loam_lab.setup import build
from loam_lab.subjects.allocators import building, costs, registry

PROGRAM = "loam-call-costs"
# At most as many as the simulator takes (simulator/engine/call_costs.hpp).
SIZES = (16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 32768)
TIMEOUT_S = 600.0
# A mean that differs by more than this from the hits' is not of hits alone.
DIFFERS = 0.1

# (size, "malloc", "free" or "remote", length of the burst) -> what one call executes
Counted = Mapping[tuple[int, str, int], costs.Executed]


def counted(stretches: Mapping[str, Mapping[str, int]]) -> dict[tuple[int, str, int], costs.Executed]:
    """What one call executes, calling and counting it not included, from the stretches of the program by their names."""
    means: dict[tuple[int, str, int], tuple[float, float, float]] = {}
    for stretch, events in stretches.items():
        of, kind, length, calls = stretch.split(";")
        all_of_them = events.get("Ir", 0), events.get("Dr", 0) + events.get("Dw", 0), events.get("Ge", 0)
        instructions, accesses, locked = (value / int(calls) for value in all_of_them)
        means[int(of), kind, int(length)] = instructions, accesses, locked
    per_call = {}
    for (size, what, burst), (instructions, accesses, locked) in means.items():
        if size == 0:
            continue
        # The function of the empty loops is one instruction, which reads where to return to.
        loop_instructions, loop_accesses, loop_locked = means[0, what, burst]
        per_call[size, what, burst] = costs.Executed(
            round(instructions - loop_instructions + 1, 2), round(accesses - loop_accesses + 1, 2),
            round(locked - loop_locked, 2),
        )  # fmt: skip
    return per_call


def sizes(means: Counted) -> list[costs.Size]:
    """The rows of the table."""
    return [_size(size, means) for size in sorted({size for size, _, _ in means})]


def _size(size: int, means: Counted) -> costs.Size:
    bursts = sorted(burst for of, what, burst in means if (of, what) == (size, "malloc"))
    [remote] = [one for (of, what, _), one in means.items() if (of, what) == (size, "remote")]

    def pair(burst: int) -> float:
        return sum(means[size, what, burst].instructions for what in ("malloc", "free"))

    hit, miss = pair(bursts[0]), pair(bursts[-1])
    stock = bursts[-1]
    for before, burst in itertools.pairwise(bursts):
        if abs(pair(burst) - hit) > DIFFERS * hit:
            # burst calls cost pair(burst) each: stock of them as hits, the others as misses. All of the burst before were hits.
            fitted = round(burst * (miss - pair(burst)) / (miss - hit)) if miss != hit else burst
            stock = min(max(fitted, before), burst)
            break
    short, long = bursts[0], bursts[-1]
    return costs.Size(
        size, stock,
        {
            "malloc": means[size, "malloc", short], "free": means[size, "free", short],
            "malloc_miss": means[size, "malloc", long], "free_miss": means[size, "free", long], "remote_free": remote,
        },
    )  # fmt: skip


def count(name: str) -> costs.Table:
    """Count the calls of an allocator.

    raises: LoamError if it cannot be loaded, or does not run under valgrind
    """
    building.ensure([name])
    build.ensure_targets("release", [PROGRAM], label="the counting program")
    loaded = registry.load(name)
    with tempfile.TemporaryDirectory() as folder:
        done, stretches = valgrind.requested_events(
            [str(paths.root() / "build" / "release" / PROGRAM), *map(str, SIZES)], Path(folder),
            {**build.tool_environment(), **loaded.environment, "LD_PRELOAD": ":".join(loaded.libraries)}, TIMEOUT_S,
            ("--collect-atstart=no", "--cache-sim=yes", "--collect-bus=yes"),
        )  # fmt: skip
    if done.returncode != 0 or not any(re.match(rf"{SIZES[-1]};remote;", stretch) for stretch in stretches):
        messages = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("==")]
        raise LoamError("--allocator", name, f"does not run under valgrind: {' '.join(messages[-2:])}", exit_code=1)
    return costs.Table(loaded.name, loaded.version, loaded.sha256, sizes(counted(stretches)))


def write(names: list[str], *, as_json: bool) -> int:
    """Count allocators, and write their tables; returns the exit status."""
    written = []
    for name in names:
        console.note(f"counting {name} ...")
        table = count(name)
        file = costs.file_of(registry.load(name))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(table.toml())
        written.append({"name": name, "version": table.version, "file": str(file)})
        if not as_json:
            print(file)
    if as_json:
        console.print_json({"schema": 1, "written": written})
    return 0
