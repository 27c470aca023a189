"""The proof that blocks apart mend a program: what its threads share then, and its time before and after, in paired blocks."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import RealInstruments, scratch_folder, without_allocator_settings
from loam_lab.campaign.process.execute import execute
from loam_lab.commands.bench import target
from loam_lab.commands.explain import story
from loam_lab.commands.explain.sharing import estimate, run, sentences, sites
from loam_lab.commands.explain.sharing.estimate import Basis, Share
from loam_lab.commands.explain.sharing.findings import Seen
from loam_lab.judging.statistics import intervals
from loam_lab.subjects.allocators import preloading

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.judging.statistics.intervals import Interval

ALLOCATOR = "loam"  # the one that reads such files
BLOCKS = 8  # paired ones: of six at least an interval of 95 % can be told
COMPLAINT = "loam malloc: LOAM_MALLOC_APART"


def write(file: Path, command: Sequence[str], at_fault: Sequence[sites.Site]) -> None:
    """Write the file of sites; raises: LoamError if it cannot be written"""
    program = os.path.realpath(target.program(command[0], "explain"))
    try:
        file.write_text(sites.text(program, at_fault))
    except OSError as problem:
        raise LoamError("--apart", str(file), f"cannot be written: {problem.strerror}", "name another file") from None


def variables(file: Path) -> dict[str, str]:
    """The environment that puts the blocks of a file's sites apart."""
    return {sites.VARIABLE: str(file.absolute())}


def time(command: Sequence[str], file: Path, instruments: Instruments | None = None, blocks: int = BLOCKS) -> Interval:
    """The time with blocks apart over the time without, from paired blocks whose order is turned each time.

    raises: LoamError where a run fails
    """
    walls: dict[bool, list[float]] = {False: [], True: []}
    for block in range(blocks):
        for apart in (False, True) if block % 2 == 0 else (True, False):
            walls[apart].append(_wall_s(command, variables(file) if apart else {}, instruments))
    return intervals.paired_ratio(walls[True], walls[False])


def _wall_s(command: Sequence[str], extra: Mapping[str, str], instruments: Instruments | None) -> float:
    using = instruments or RealInstruments()
    argv = [target.program(command[0], "explain"), *command[1:]]
    user, _ = without_allocator_settings(os.environ)
    with preloading.place(scratch_folder()) as proof_file:
        environment = {**user, **using.environment(using.allocator(ALLOCATOR), proof_file), **extra}
        outcome = execute(argv, environment, timeout_s=run.TIMEOUT_S)
    if ending := run.ended(outcome):
        raise LoamError(
            "explain", shlex.join(command), f"{ending}, in a run that was to be timed",
            "give it work that it ends well", exit_code=1,
        )  # fmt: skip
    return outcome.wall_s


def shared(seen: Seen) -> Share:
    """The share of the time at cache lines of two blocks, with its upper end where nothing was caught."""
    for kind in seen.findings.kinds:
        if kind.key == sites.CAUSE:
            return kind.share
    watches = [watch for process in seen.processes for watch in process.watches]
    return estimate.share([], Basis.of(watches, seen.findings.samples))


def as_json(
    file: Path,
    at_fault: Sequence[sites.Site],
    before: Share,
    after: Share,
    ratio: Interval,
    complaints: Sequence[str] = (),
) -> dict[str, Any]:
    """What `--apart` adds to an explanation."""
    return {
        "file": str(file), "sites": [one.words for one in at_fault], "blocks": ratio.n,
        "before": before.as_json(), "after": after.as_json(),
        "time_ratio": ratio.estimate, "time_ratio_low": ratio.low, "time_ratio_high": ratio.high,
        "words": words(file, at_fault, before, after, ratio), "complaints": list(complaints),
    }  # fmt: skip


def words(file: Path, at_fault: Sequence[sites.Site], before: Share, after: Share, ratio: Interval) -> list[str]:
    """What was written, what is left of the sharing, what it does to the time, and how to use it."""
    many = f"{len(at_fault)} site{'s' if len(at_fault) != 1 else ''}"
    ends = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.2f} to {ratio.high:.2f})"
    return [
        f"With the blocks of {many} apart, threads meet in cache lines of different blocks for "
        f"{story.percent(after.share)} of the time ({sentences.interval(after)}); before {story.percent(before.share)} "
        f"({sentences.interval(before)}).",
        f"The program takes {ratio.estimate:.2f}{ends} of its time, in {ratio.n} paired blocks.",
        f"To run it so: {sites.VARIABLE}={shlex.quote(str(file))} LD_PRELOAD={_library()} COMMAND",
    ]


def complaints(stderr_tail: str) -> list[str]:
    """What Loam's malloc said of the file: another build, sites that were never reached."""
    lines = stderr_tail.splitlines()
    messages = []
    for at, line in enumerate(lines):
        if line.startswith(COMPLAINT):
            more = [one.strip() for one in lines[at + 1 :]]
            ends = next((n for n, one in enumerate(lines[at + 1 :]) if not one.startswith("  ")), len(more))
            messages.append(" ".join([line, *more[:ends]]))
    return messages


def _library() -> str:
    return shlex.quote(paths.load_paths()["libraries"]["malloc"])
