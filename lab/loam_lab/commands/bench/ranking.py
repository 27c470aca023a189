"""Whether a replayed trace ranks allocators as the live program does, wherever the live program's intervals tell them apart.

Both are measured by `bench`; the ratios of processor time to the baseline's are compared.  A replay does the allocator's part
of the work alone, so its ratios lie further from 1: their order counts, not their size.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from loam_lab.base import console
from loam_lab.campaign.measure.instruments import Instruments
from loam_lab.commands.bench import bench, trace
from loam_lab.commands.request import Output, Request
from loam_lab.judging.statistics import contrasts, data
from loam_lab.judging.statistics.data import process_metric
from loam_lab.judging.statistics.intervals import Interval

TIME = "processor_s"


@dataclass(frozen=True)
class Pair:
    """Two allocators that the live program tells apart. ratios: of the faster one's time to the slower one's"""

    faster: str
    slower: str
    live: float
    replayed: float

    @property
    def agrees(self) -> bool:
        """Whether the replay ranks them the same."""
        return self.replayed < 1


def pairs(live: Mapping[str, Interval], replayed: Mapping[str, Interval]) -> list[Pair]:
    """Every two allocators whose live intervals do not overlap, and how far apart both lie.

    live, replayed: time over the baseline's, by allocator; the baseline itself is 1
    """
    apart = []
    for one, other in itertools.permutations([name for name in live if name in replayed], 2):
        first, second = live[one], live[other]
        if first.high is not None and second.low is not None and first.high < second.low:
            ratio = replayed[one].estimate / replayed[other].estimate
            apart.append(Pair(one, other, first.estimate / second.estimate, ratio))
    return apart


def times(folder: Path) -> dict[str, Interval]:
    """Processor time over the baseline's in the same blocks, by allocator, of a measured command."""
    campaign = data.load(folder)
    metric = process_metric(TIME)
    ratios: dict[str, Interval] = {}
    for cell in campaign.cells:
        if data.state_of(campaign.runs(cell)) != "ok":
            continue
        ratio = contrasts.to_baseline(campaign, cell, metric=metric)
        if ratio is not None:
            ratios[cell.allocator] = ratio
        elif cell.allocator == campaign.baseline(cell):
            ratios[cell.allocator] = Interval(1.0, 1.0, 1.0, len(campaign.runs(cell)))
    return ratios


def check(
    file: Path, command: Sequence[str], request: Request, *, threads: str, instruments: Instruments | None = None
) -> int:  # fmt: skip
    """Measure a command and the trace that was recorded of it under the same allocators, and compare the rankings.

    returns: 0, 1 if a pair is ranked otherwise or something failed, 130 after Ctrl-C
    """
    trace.read(file)  # what cannot be played is said before anything is measured
    folder, as_json = request.output.folder("trace-check"), request.output.as_json
    live, replayed = (replace(request, output=Output(folder / name, report=False)) for name in ("live", "replayed"))
    with contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext():
        for status in (
            bench.bench(command, live, instruments),
            trace.replay(file, replayed, threads=threads, instruments=instruments),
        ):
            if status:
                return status
    apart = pairs(times(folder / "live"), times(folder / "replayed"))
    if as_json:
        console.print_json(
            {"pairs": [{**asdict(pair), "agrees": pair.agrees} for pair in apart], "folder": str(folder)}
        )
    else:
        show(apart)
    return int(not all(pair.agrees for pair in apart))


def show(apart: Sequence[Pair]) -> None:
    """Print the pairs and what they come to."""
    if not apart:
        console.warn("the live program tells no two allocators apart: nothing to compare; measure more --blocks")
        return
    rows = [
        [pair.faster, pair.slower, f"{pair.live:.3f}", f"{pair.replayed:.3f}", "yes" if pair.agrees else "no"]
        for pair in apart
    ]
    columns = ["faster", "slower", "live", "replayed", "same order"]
    same = sum(pair.agrees for pair in apart)
    title = (
        f"The replay ranks {same} of {len(apart)} pairs as the live program does (processor time, faster over slower)"
    )
    console.out().print(console.table(columns, rows, numeric=["live", "replayed"], title=title))
