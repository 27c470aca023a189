"""The table of `./loam selfcheck sharing --cost`: what programs take under the sampler, over what they take without it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import without_allocator_settings
from loam_lab.campaign.process.execute import execute
from loam_lab.commands.explain.sharing import run
from loam_lab.dev.selfcheck import exit_status, line_ranks
from loam_lab.dev.selfcheck.line_ranks import Program
from loam_lab.judging.statistics.intervals import paired_ratio
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from loam_lab.judging.statistics.intervals import Interval

# Of the ratios of all programs the median, and the largest, may be so much.
MEDIAN, WORST = 1.05, 1.15
LEAST_REPEATS = 5  # pairs of a program
# Each does a fixed work, of some two seconds.
PROGRAMS = (
    Program("queue", "mcs", parameters={"operations": "3000000"}),
    Program("queue", "cc-synch", parameters={"operations": "24000000"}),
    Program("stack", "lock-free-epoch", parameters={"operations": "16000000"}),
    Program("map", "mcs", parameters={"operations": "3000000"}),
    Program("intset", "etl-wb", parameters={"structure": "hash", "operations": "4000000"}),
    Program("intset", "norec", parameters={"structure": "tree", "operations": "6000000"}),
    Program("vacation", "etl-wb", parameters={"size": "medium"}),
    Program("kmeans", "norec", parameters={"size": "medium"}),
    Program("xmalloc", "none", parameters={"operations": "2000000"}),
    Program("threadtest", "none", parameters={"operations": "120000000"}),
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Times of a program's pairs of runs, seconds: without the sampler, and under it."""

    program: Program
    without_s: Sequence[float]
    under_s: Sequence[float]

    @property
    def ratio(self) -> Interval:
        """Of the paired times."""
        return paired_ratio(self.under_s, self.without_s)


def measured(program: Program, repeats: int) -> Cost:
    """Run a program so many times with and without the sampler, by turns; raises: LoamError where a run fails"""
    command = line_ranks.asked(program, machines.HOST).command()
    without: list[float] = []
    under: list[float] = []
    for repeat in range(repeats):
        # Which of a pair is first alternates, so that a machine that becomes slower favours neither.
        for watched in (repeat % 2 == 0, repeat % 2 == 1):
            (under if watched else without).append(_wall_s(program, command, watched=watched))
    return Cost(program, without, under)


def _wall_s(program: Program, command: Sequence[str], *, watched: bool) -> float:
    if watched:
        performed = run.perform(command, program.allocator)
        ending, wall_s = performed.ending, performed.wall_s
    else:
        outcome = execute(command, without_allocator_settings(os.environ)[0], timeout_s=run.TIMEOUT_S)
        ending, wall_s = run.ended(outcome), outcome.wall_s
    if ending:
        raise LoamError("selfcheck sharing", program.text, ending, exit_code=1)
    return wall_s


def compare(names: Sequence[str], repeats: int, as_json: bool) -> int:
    """Run the programs and print what they take. names: of workloads, all of them where there is none

    returns: the exit status; raises: LoamError
    """
    chosen = line_ranks.chosen(PROGRAMS, names)
    if exit_status.refused(run.check_machine):
        return exit_status.NOT_RUN
    _prepare(chosen)
    if not as_json:
        print("| program | without, s | under the sampler, over that |")
        print("| --- | ---: | ---: |")
    costs = []
    for program in chosen:
        costs.append(measured(program, repeats))
        if not as_json:
            print(_row(costs[-1]), flush=True)
    if as_json:
        print(json.dumps(document(costs), indent=1))
    else:
        ratios = [one.ratio.estimate for one in costs]
        print(f"| **all** | | median {median(ratios):.3f}, largest {max(ratios):.3f} |")
    if repeats < LEAST_REPEATS or len(chosen) < len(PROGRAMS):
        console.note(
            f"fewer than {LEAST_REPEATS} pairs of all {len(PROGRAMS)} programs do not tell whether the figures hold"
        )
        return exit_status.TOO_FEW
    return status(costs)


def status(costs: Sequence[Cost]) -> int:
    """HOLDS if median and largest ratio are within their limits, FAILS if not."""
    ratios = [one.ratio.estimate for one in costs]
    return exit_status.of([median(ratios) <= MEDIAN, max(ratios) <= WORST])


def document(costs: Sequence[Cost]) -> dict[str, Any]:
    """As --json prints it."""
    return {
        "schema": 1, "status": status(costs),
        "programs": [
            {
                **asdict(one.program), "without_s": list(one.without_s), "under_s": list(one.under_s),
                "ratio": {"estimate": one.ratio.estimate, "low": one.ratio.low, "high": one.ratio.high},
            }
            for one in costs
        ],
    }  # fmt: skip


def _row(one: Cost) -> str:
    ratio = one.ratio
    interval = f" [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.low is not None and ratio.high is not None else ""
    return f"| {one.program.text} | {median(one.without_s):.2f} | {ratio.estimate:.3f}{interval} |"


def _prepare(programs: Sequence[Program]) -> None:
    from loam_lab.setup import build

    build.ensure_built(["probe", run.LIBRARY])
    build.ensure_built(list(dict.fromkeys(program.sync for program in programs)), "release")
