"""docs/performance/malloc-instructions.md: what malloc and free of each allocator cost in instructions.

    ./loam page malloc-instructions [--allocator NAME,...] [--page FILE]

Counted exactly, by callgrind, without the calls themselves: tests/golden/malloc_paths.c.  The counts of ours have bounds
that a test keeps (tests/golden/test_malloc_counts.py); here they stand beside the peers'.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from loam_lab.base import console, paths, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import valgrind
from loam_lab.presenting.pages.parts import writing
from loam_lab.presenting.report import rounding
from loam_lab.setup import build
from loam_lab.subjects.allocators import building, registry

SIZES = (16, 64, 256, 1024, 4096, 16384, 32768)
WHATS = ("malloc", "free", "pair", "remote")
DEFAULT = ("loam", "glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc-2.5", "mimalloc-3.6", "snmalloc", "rpmalloc")
TIMEOUT_S = 250.0

Counts = dict[int, dict[str, float]]


class Uncounted(Exception):
    """An allocator that does not run under valgrind; str() is what it said."""


def count(libraries: Sequence[str | Path], environment: Mapping[str, str]) -> Counts:
    """Instructions of each call of an allocator, by size in bytes and kind; calling and counting them not included.

    libraries: what is preloaded; environment: variables on top of this process's
    raises: Uncounted
    """
    program = paths.root() / "build" / "release" / "loam-golden-malloc-paths"
    with tempfile.TemporaryDirectory() as folder:
        done, stretches = valgrind.requested(
            [str(program), *map(str, SIZES)], Path(folder),
            {**build.tool_environment(), **environment, "LD_PRELOAD": ":".join(map(str, libraries))}, TIMEOUT_S,
        )  # fmt: skip
    totals: dict[tuple[int, str], float] = {}
    for stretch, total in stretches.items():
        size, what, calls_made = stretch.split(";")
        totals[int(size), what] = total / int(calls_made)
    if done.returncode != 0 or len(totals) != (len(SIZES) + 1) * len(WHATS):
        lines = done.stderr.splitlines()
        raise Uncounted("\n".join([line for line in lines if line.strip() and not line.startswith("==")] or lines[-5:]))
    # The function of the empty loops is one instruction for each call.
    calls = {"malloc": 1, "free": 1, "pair": 2, "remote": 1}
    return {
        size: {what: round(totals[size, what] - totals[0, what] + calls[what], 2) for what in WHATS} for size in SIZES
    }


def build_program() -> None:
    """The counting program and our malloc, built."""
    build.configure("release", again=True)
    build.build("release", ["loam-golden-malloc-paths", "loam-malloc"], label="the counting program")


def page(counted: Mapping[str, Counts | None]) -> str:
    """A table for each kind of call; None: the allocator could not be counted."""
    lines = [
        "# Instructions of malloc and free", "",
        "```", "./loam page malloc-instructions     counts and writes this page", "```", "",
        "Instructions per call, exact (callgrind), without the call instruction. **Bold**: the fewest of a size.", "",
        "| column | is |", "| --- | --- |",
        "| malloc, free | the mean over 1000 blocks, allocated, then freed in order, once, in a new process of one thread |",
        "| pair | both, one block at a time |",
        "| remote | as free, by a second thread, which did not allocate the blocks |", "",
    ]  # fmt: skip
    missing = [name for name, counts in counted.items() if counts is None]
    if missing:
        lines += [f"Not counted, because it does not run under valgrind: {', '.join(missing)}.", ""]
    known = {name: counts for name, counts in counted.items() if counts is not None}
    for what in WHATS:
        least = {size: min(counts[size][what] for counts in known.values()) for size in SIZES}
        lines += [
            f"| {what} | " + " | ".join(f"{size} B" for size in SIZES) + " |",
            "| --- |" + " ---: |" * len(SIZES),
        ]
        for name, counts in known.items():
            shown = [
                f"**{text}**" if counts[size][what] == least[size] else text
                for size in SIZES
                for text in [rounding.significant(counts[size][what])]
            ]
            lines.append(f"| {name} | " + " | ".join(shown) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """Count, and write the page."""
    parser = subcommands.Parser("page", "malloc-instructions", __doc__)
    parser.add_argument("--allocator", default=",".join(DEFAULT), help="names, separated by commas")
    parser.add_argument("--page", type=Path, default=writing.place("malloc-instructions"))
    options = parser.parse_args(arguments)
    names = options.allocator.split(",")
    building.ensure(names)
    build_program()
    counted = {name: _counted(name) for name in names}
    if not any(counted.values()):
        raise LoamError("--allocator", options.allocator, "none of these could be counted under valgrind")
    return writing.write(options.page, page(counted))


def _counted(name: str) -> Counts | None:
    loaded = registry.load(name)
    console.note(f"counting {name} ...")
    try:
        return count(loaded.libraries, loaded.environment)
    except Uncounted as problem:
        console.note(f"{name} does not run under valgrind:\n{problem}")
        return None
