"""Which sources of counts work here.  A hardware counter is believed only after it counted a program of known length."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loam_lab.campaign.counters import valgrind
from loam_lab.campaign.counters.events import INSTRUCTIONS, Counting, Event

LOOP_COUNT = 30_000_000
LOOP_INSTRUCTIONS = 6 * LOOP_COUNT
TOLERANCE = 0.01
PROGRAM = "counted-loop"


def probe() -> list[dict[str, Any]]:
    """Every source, the best first: [{"source", "counts": bool, "why"}]. Takes a tenth of a second the first time."""
    return [dict(source) for source in _probed()]


@functools.cache
def _probed() -> tuple[dict[str, Any], ...]:
    counts, why = judged()
    there, tool = valgrind.available()
    return (
        {"source": "perf_event", "counts": counts, "why": why},
        {"source": "callgrind", "counts": there, "why": tool},
        {"source": "cachegrind", "counts": there, "why": tool},
        {"source": "lackey", "counts": there, "why": tool},
    )


def judged(
    program: Path | None = None, *, event: Event = INSTRUCTIONS, run: Callable[[Path], None] | None = None
) -> tuple[bool, str]:
    """Whether the counter of instructions follows a program of known length with its thread and child, and why not.

    program: the counted loop, None to find it in the build; event, run: other than the real ones, for tests
    """
    counting = Counting([event])
    try:
        if counting.refused:
            return False, counting.refused[event.name]
        if program is None:
            program = _built()
            if program is None:
                return False, "not judged: the program with the known loop is not built; run ./loam setup"
        (run or _run)(program)
        read = counting.read().get(event.name)
    except OSError as problem:
        return False, f"not judged: {problem.strerror}"
    finally:
        counting.close()
    counted = 0.0 if read is None else read.value
    count_text = f"{counted:.0f} instructions of a program with {LOOP_INSTRUCTIONS}"
    if abs(counted / LOOP_INSTRUCTIONS - 1) > TOLERANCE:
        return False, f"the counter opens but counted {count_text}"
    return True, f"counted {count_text}"


def _run(program: Path) -> None:
    pid = os.posix_spawn(program, [str(program), str(LOOP_COUNT)], {})
    os.waitpid(pid, 0)


def _built() -> Path | None:
    from loam_lab.base import paths
    from loam_lab.base.errors import LoamError

    try:
        file = paths.load_paths("release")["libraries"].get(PROGRAM)
    except LoamError:
        return None
    return Path(file) if file and Path(file).exists() else None
