"""docs/performance/hardening.md: which mistakes with memory each allocator finds.

    ./loam page hardening [--allocator NAME,...] [--times N] [--page FILE]

A case is a mistake of lab/probe/corruption.c with blocks of one size. It is made several times, each time in a process
of its own, alone and among other blocks.  Found: the process did not end as if nothing had happened; a crash counts, and
so does a report at the end.  Placement is random in some allocators, so what is found now and then is counted apart.
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

SIZES = (24, 500, 20000, 300000)
OTHERS = (0, 300)
DEFAULT = ("glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc", "loam", "loam:hardened=1")
TIMEOUT_S = 20.0
# What the program ends with where the process cannot commit the mistake (no C++ allocation functions).
CANNOT = 4


@dataclass(frozen=True)
class Mistake:
    """One of the program's. has_size: whether it is made with blocks of a given size."""

    kind: str
    name: str
    has_size: bool

    def sizes(self) -> tuple[int, ...]:
        """Those of its cases; 0: it has none."""
        return SIZES if self.has_size else (0,)


@dataclass(frozen=True)
class Outcome:
    """How often a case was found. runs: 0 where it cannot be committed; message: the first line on standard error."""

    times: int
    runs: int
    message: str


def program() -> Path:
    """The program that makes the mistakes, built."""
    return Path(build.ensure_built(["corruption"])["libraries"]["corruption"])


def mistakes(executable: Path) -> list[Mistake]:
    """All, in the order of the page."""
    lines = subprocess.run([executable], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    return [Mistake(kind, name, has_size == "1") for kind, name, has_size in rows]


def commit(executable: Path, allocator: str, mistake: str, size: int, times: int = 1, **variables: str) -> Outcome:
    """Make a mistake under an allocator, several times alone and as often among other blocks.

    allocator: a registered name, with settings; size: of the blocks, bytes; variables: of the environment
    """
    loaded = registry.load(allocator)
    environment = {**os.environ, **loaded.environment, **variables}
    if loaded.libraries:
        environment["LD_PRELOAD"] = ":".join(loaded.libraries)
    # glibc's own checks speak to the terminal; here to standard error.
    environment["LIBC_FATAL_STDERR_"] = "1"
    times_noticed, message = 0, ""
    for others in OTHERS * times:
        try:
            done = subprocess.run(
                [executable, mistake, str(size), str(others)], capture_output=True, text=True, check=False, env=environment,
                timeout=TIMEOUT_S, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            times_noticed += 1
            continue
        if done.returncode == CANNOT:
            return Outcome(0, 0, "")
        times_noticed += done.returncode != 0
        message = message or done.stderr.partition("\n")[0]
    return Outcome(times_noticed, len(OTHERS) * times, message)


def page(allocators: Sequence[str], times: int) -> str:
    """How many cases of each kind are found, then each mistake."""
    building.ensure(allocators)
    building.ensure_own(allocators)
    executable = program()
    known = mistakes(executable)
    outcomes = {
        (allocator, one.name): [commit(executable, allocator, one.name, size, times) for size in one.sizes()]
        for allocator in allocators for one in known
    }  # fmt: skip
    rule = ["| --- |" + " ---: |" * (len(allocators) + 1)]
    lines = [
        "# What allocators find", "",
        "```", "./loam page hardening     makes the mistakes and writes this page", "```", "",
        "A case is a mistake with blocks of one size. A process of its own (`lab/probe/corruption.c`) makes it with blocks of",
        f"{', '.join(map(str, SIZES))} bytes, {times}x alone and {times}x among {OTHERS[-1]} other blocks. Found means",
        "that the process did not end as if nothing had happened: a crash counts as much as a message, and a message at",
        "the end as much as one at once. *by chance*: not each time.", "",
        "| cases found each time | cases | " + " | ".join(allocators) + " |", *rule,
    ]  # fmt: skip
    for kind in dict.fromkeys(one.kind for one in known):
        names = [one.name for one in known if one.kind == kind]
        lines.append(_counts(kind, [[case for name in names for case in outcomes[each, name]] for each in allocators]))
    everything = [[case for one in known for case in outcomes[each, one.name]] for each in allocators]
    lines.append(_counts("**all**", everything))
    chance = [str(sum(0 < case.times < case.runs for case in cases)) for cases in everything]
    lines += [f"| by chance | | {' | '.join(chance)} |", ""]
    lines += ["| mistake | cases | " + " | ".join(allocators) + " |", *rule]
    for one in known:
        lines.append(_counts(one.name, [outcomes[each, one.name] for each in allocators]))
    return "\n".join(lines) + "\n"


def _counts(label: str, cases: Sequence[Sequence[Outcome]]) -> str:
    """A row: of each allocator's cases how many were found each time; - where none can be made."""
    most = max(len(each) for each in cases)
    cells = []
    for each in cases:
        made = [case for case in each if case.runs]
        cells.append(str(sum(case.times == case.runs for case in made)) if made else "-")
    return f"| {label} | {most} | " + " | ".join(cells) + " |"


def main(arguments: Sequence[str]) -> int:
    """Write the page."""
    parser = subcommands.Parser("page", "hardening", __doc__)
    parser.add_argument("--allocator", default=",".join(DEFAULT), help="names, separated by commas")
    parser.add_argument("--times", type=subcommands.count, default=3, help="how often each mistake is made")
    parser.add_argument("--page", type=Path, default=writing.place("hardening"))
    options = parser.parse_args(arguments)
    return writing.write(options.page, page(options.allocator.split(","), options.times))
