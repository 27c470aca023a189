"""docs/performance/malloc-idle.md: how much freed memory each allocator keeps while the process is idle.

    ./loam page malloc-idle [--allocator NAME,...] [--size BYTES,...] [--mib N] [--jobs N] [--page FILE]

Runs lab/probe/idle.c once for each size of block and each allocator, several processes at a time, because they mostly
sleep.  loam has a second row, with the helper thread that LOAM_MALLOC_BACKGROUND=1 starts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loam_lab.base import console, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.presenting.pages.parts import writing
from loam_lab.setup import build
from loam_lab.subjects.allocators import building, registry

SIZES = (64, 1024, 16384, 100_000, 1_000_000, 10_000_000, 100_000_000)
MOMENTS_S = (0, 1, 3, 10, 30)
MIB = 400
# Processes at a time; each has MIB of memory at first.
JOBS = 8
# Measured by default, as far as they are installed or were built before.
DEFAULT = (
    "loam", "glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc", "mimalloc-2.5", "mimalloc-3.6", "snmalloc", "rpmalloc",
)  # fmt: skip
OURS = "loam"
HELPED = "loam with a helper"
HELP = {"LOAM_MALLOC_BACKGROUND": "1"}

# MiB at each moment, by size of block and by row.
Rests = dict[int, dict[str, Sequence[float]]]


def program() -> Path:
    """Builds the program that frees its memory and sleeps."""
    return Path(build.ensure_built(["idle"])["libraries"]["idle"])


def rest(
    executable: Path, libraries: Sequence[str | Path], environment: Mapping[str, str], size: int,
    mib: int, moments_s: Sequence[int],
) -> list[float]:  # fmt: skip
    """Resident MiB at each of these seconds after the last free, less those before the first block.

    libraries: what is preloaded; environment: variables on top of this process's
    raises: LoamError if the program fails
    """
    printed = output(
        executable, [str(size), str(mib), *map(str, moments_s)], libraries, environment, max(moments_s) + 120
    )
    return [int(line) / 1024 for line in printed.split()]


def output(
    executable: Path, arguments: Sequence[str], libraries: Sequence[str | Path], environment: Mapping[str, str],
    timeout_s: float | None = None,
) -> str:  # fmt: skip
    """What a program prints under preloaded libraries.

    environment: variables on top of this process's
    raises: LoamError with the program's own words if it fails
    """
    preload = {"LD_PRELOAD": ":".join(map(str, libraries))} if libraries else {}
    done = subprocess.run(
        [executable, *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment, **preload}, timeout=timeout_s,
    )  # fmt: skip
    if done.returncode != 0:
        message = done.stderr.strip().partition("\n")[0] or f"ended with status {done.returncode}"
        raise LoamError(executable.name, " ".join(arguments), message)
    return done.stdout


def installed() -> list[str]:
    """The allocators of DEFAULT that can be loaded on this machine. Builds ours first."""
    building.ensure_own([OURS])
    names = []
    for name in DEFAULT:
        try:
            registry.load(name)
        except LoamError as problem:
            console.note(f"left out: {problem.line()}")
        else:
            names.append(name)
    return names


def loaded_rows(allocators: Sequence[str]) -> dict[str, tuple[Sequence[str | Path], Mapping[str, str]]]:
    """The rows of a page: what is preloaded for each, and its variables. Ours has a second row with its helper thread.

    raises: LoamError if an allocator cannot be loaded
    """
    building.ensure(allocators)
    building.ensure_own(allocators)
    rows: dict[str, tuple[Sequence[str | Path], Mapping[str, str]]] = {}
    for name in allocators:
        loaded = registry.load(name)
        rows[name] = (loaded.libraries, loaded.environment)
        if name == OURS:
            rows[HELPED] = (loaded.libraries, {**loaded.environment, **HELP})
    return rows


def measure(allocators: Sequence[str], sizes: Sequence[int], mib: int, jobs: int) -> Rests:
    """Measures every size under every allocator.

    raises: LoamError if one cannot be loaded, or the program fails under it
    """
    rows = loaded_rows(allocators)
    executable = program()
    console.note(f"{len(rows) * len(sizes)} processes sleep for {max(MOMENTS_S)} s, {jobs} at a time ...")
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {
            (size, row): pool.submit(rest, executable, libraries, environment, size, mib, MOMENTS_S)
            for size in sizes
            for row, (libraries, environment) in rows.items()
        }
        return {size: {row: waiting[size, row].result() for row in rows} for size in sizes}


def page(rests: Rests, mib: int) -> str:
    """A table for each size of block."""
    lines = [
        "# Memory of an idle process", "",
        "```", "./loam page malloc-idle     measures and writes this page", "```", "",
        f"A process allocates {mib} MiB in blocks of one size, writes all blocks, frees them in the same order, and then only",
        "sleeps (`lab/probe/idle.c`). The cells are resident MiB at some times after the last free, in seconds. The resident",
        "memory before the first block is subtracted. Each row is one process; **bold** is the least of a column.", "",
        f"*{HELPED}* has `LOAM_MALLOC_BACKGROUND=1`. Without it, loam returns blocks over 32 KiB to the system at once,",
        "and shorter blocks beyond 64 MiB, the rest in a later call, which this process does not make",
        "([details](../internals/heap.md#memory)).", "",
    ]  # fmt: skip
    for size, rows in rests.items():
        least = [min(row[moment] for row in rows.values()) for moment in range(len(MOMENTS_S))]
        lines += [
            f"| {_size(size)} | " + " | ".join(f"{moment} s" for moment in MOMENTS_S) + " |",
            "| --- |" + " ---: |" * len(MOMENTS_S),
        ]
        for name, row in rows.items():
            # A difference below half a MiB counts as none: code that ran for the first time can explain it.
            cells = [
                f"**{kept:.0f}**" if kept < best + 0.5 else f"{kept:.0f}" for kept, best in zip(row, least, strict=True)
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the page."""
    parser = subcommands.Parser("page", "malloc-idle", __doc__)
    parser.add_argument("--allocator", default="", help="names, separated by commas (all that are installed)")
    parser.add_argument("--size", default=",".join(map(str, SIZES)), help="bytes of the blocks, separated by commas")
    parser.add_argument("--mib", type=subcommands.count, default=MIB, help="how much each process allocates")
    parser.add_argument("--jobs", type=subcommands.count, default=JOBS, help="processes at a time")
    parser.add_argument("--page", type=Path, default=writing.place("malloc-idle"))
    options = parser.parse_args(arguments)
    sizes = [_bytes(text) for text in options.size.split(",")]
    allocators = options.allocator.split(",") if options.allocator else installed()
    rests = measure(allocators, sizes, options.mib, options.jobs)
    return writing.write(options.page, page(rests, options.mib))


def _bytes(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise LoamError("--size", text, "must be whole numbers of bytes, separated by commas")
    return int(text)


def _size(size: int) -> str:
    return f"{size:,} B".replace(",", " ")
