"""docs/performance/hardening.md: which mistakes with memory each allocator finds.

    ./loam page hardening [--allocator NAME,...] [--times N] [--page FILE]

Runs lab/probe/corruption.c, one mistake a process, with blocks of three sizes, several times each.  Found: the process
did not reach its end; a crash counts.  Placement is random in some allocators, so that what is found now and then is
counted as such.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import subcommands
from loam_lab.presenting.pages.parts import writing
from loam_lab.setup import build
from loam_lab.subjects.allocators import building, registry

SIZES = (24, 500, 20000)
DEFAULT = ("glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc", "loam", "loam:hardened=1")
TIMEOUT_S = 20.0
# What the program ends with where the process cannot commit the mistake (no C++ allocation functions).
CANNOT = 4


@dataclass(frozen=True)
class Found:
    """How often a mistake was found. runs: 0 where it cannot be committed; message: the first line on standard error."""

    times: int
    runs: int
    message: str


def program() -> Path:
    """The program that makes the mistakes, built."""
    return Path(build.ensure_built(["corruption"])["libraries"]["corruption"])


def mistakes(executable: Path) -> list[str]:
    """Their names, in the order of the page."""
    return subprocess.run([executable], capture_output=True, text=True, check=True).stdout.split()


def commit(executable: Path, allocator: str, mistake: str, size: int, times: int = 1) -> Found:
    """Make a mistake under an allocator, several times.

    allocator: a registered name, with settings; size: of the blocks, bytes
    """
    loaded = registry.load(allocator)
    environment = {**os.environ, **loaded.environment}
    if loaded.libraries:
        environment["LD_PRELOAD"] = ":".join(loaded.libraries)
    # glibc's own checks speak to the terminal; here to standard error.
    environment["LIBC_FATAL_STDERR_"] = "1"
    found, message = 0, ""
    for _ in range(times):
        try:
            done = subprocess.run(
                [executable, mistake, str(size)], capture_output=True, text=True, check=False, env=environment,
                timeout=TIMEOUT_S, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            found += 1
            continue
        if done.returncode == CANNOT:
            return Found(0, 0, "")
        found += done.returncode != 0
        message = message or done.stderr.partition("\n")[0]
    return Found(found, times, message)


def page(allocators: Sequence[str], times: int) -> str:
    """The table of what is found."""
    building.ensure(allocators)
    building.ensure_own(allocators)
    executable = program()
    names = mistakes(executable)
    lines = [
        "# What allocators find", "",
        "Written by `./loam page hardening`. Each mistake is a process of its own (`lab/probe/corruption.c`)",
        f"that makes it with blocks of {', '.join(map(str, SIZES))} bytes, {times} times each. Found means that the process did",
        "not reach its end; a crash counts as much as a message. `all`: every time.", "",
        "| mistake | " + " | ".join(allocators) + " |", "| --- |" + " --- |" * len(allocators),
    ]  # fmt: skip
    for name in names:
        cells = []
        for allocator in allocators:
            found = [commit(executable, allocator, name, size, times) for size in SIZES]
            got, of = sum(one.times for one in found), sum(one.runs for one in found)
            cells.append("-" if of == 0 else "all" if got == of else "" if got == 0 else f"{got} of {of}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page."""
    parser = subcommands.Parser("page", "hardening", __doc__)
    parser.add_argument("--allocator", default=",".join(DEFAULT), help="names, separated by commas")
    parser.add_argument("--times", type=subcommands.count, default=5, help="how often each mistake is made")
    parser.add_argument("--page", type=Path, default=writing.place("hardening"))
    options = parser.parse_args(arguments)
    return writing.write(options.page, page(options.allocator.split(","), options.times))
