"""Does a simulated machine say what the machine itself says?  This host beside sim:host: direction, rank and factor.

    ./loam selfcheck simulated [--blocks 10] [--json]

Three questions that two cores can answer: atomic counters of two threads in one line and apart; how much faster two
threads allocate than one, by allocator; the share of attempts on a list that abort, by allocator. Each is measured on
this host and on sim:host, which has the same cores and caches, and assumed times. A pair of variants counts if the
host tells them apart: their intervals do not meet, and they lie further apart than CLEAR. The simulated machine has
to put each such pair in the same order, and the factor between the two has to be the host's within a factor of FAR.
So has each speed-up, which is a factor itself. Other values are shown and not compared: the times are assumed.
Wants a quiet machine, some two minutes of it.

Exit status 1 if a pair comes out the other way or too far off, 3 if the host tells no pair of a question apart, 0 otherwise.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from loam_lab.base import console, paths, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import exit_status
from loam_lab.model.result import Cell, Result, read
from loam_lab.subjects.machines import HOST
from loam_lab.subjects.simulated import PREFIX

SIMULATED = PREFIX + HOST
# Nearer than that two variants count as equal on the host.
CLEAR = 1.1
# So far apart the factors of a pair may be on the two machines.
FAR = 2.0
# On the host as long as a run usually is; of the simulated machine's own time, and as many seeds as tell rates of some per cent.
HOST_MS, SIMULATED_MS, SIMULATED_BLOCKS = 100, 10, 5
BLOCKS = 10
# The unit of values that are factors themselves: they are compared, not their pairs alone.
FACTOR = "times"


@dataclass(frozen=True)
class Value:
    """What was found of one variant on one machine."""

    estimate: float
    low: float
    high: float


Values = Mapping[str, Value]


def _of_metric(cell: Cell, metric: str) -> Value:
    """raises: LoamError where no run of the cell gave it"""
    measured = cell.metrics.get(metric)
    if measured is None:
        factors = cell.factors
        what = f"{factors.workload} with {factors.allocator} on {factors.machine}"
        raise LoamError("selfcheck simulated", what, f"gave no {metric}: its runs are {cell.state}", "try again")
    estimate = measured.estimate
    low, high = (estimate if end is None else end for end in (measured.low, measured.high))
    return Value(estimate, low, high)


def _cells(result: Result) -> Iterator[Cell]:
    return (cell for cell in result.cells if cell.copy == 0)


def _rate(result: Result, cell: Cell) -> Value:
    """Of the metric that the workload itself calls its primary one."""
    return _of_metric(cell, result.primary_metrics[cell.factors.workload])


def patterns(result: Result) -> Values:
    """Operations per second, by where the counters lie."""
    return {str(cell.parameters["pattern"]): _rate(result, cell) for cell in _cells(result)}


def speed_ups(result: Result) -> Values:
    """How many times as fast two threads are as one, by allocator. Its interval is the widest that those of both allow."""
    rates = {(cell.allocator, cell.factors.threads): _rate(result, cell) for cell in _cells(result)}
    return {
        name: Value(two.estimate / one.estimate, two.low / one.high, two.high / one.low)
        for (name, threads), two in rates.items()
        if threads != 1
        for one in (rates[name, 1],)
    }


def abort_rates(result: Result) -> Values:
    """The share of attempts that abort, by allocator."""
    return {cell.allocator: _of_metric(cell, "aborts_per_attempt") for cell in _cells(result)}


@dataclass(frozen=True)
class Question:
    """what: in words; unit: of its values; run: words of `./loam run`; values: what of the result is compared"""

    what: str
    unit: str
    run: tuple[str, ...]
    values: Callable[[Result], Values]


QUESTIONS = (
    Question(
        "two atomic counters, in one line and apart", "1/s",
        ("lines", "-p", "pattern=same,apart", "-p", "count=atomic", "--threads", "2", "--allocator", "glibc"), patterns,
    ),
    Question(
        "threadtest: two threads against one", FACTOR,
        ("threadtest", "-p", "size=16", "-p", "batch=64", "--threads", "1,2"), speed_ups,
    ),
    Question(
        "list: attempts that abort", "of 1",
        ("intset", "-p", "structure=list", "--sync", "etl-wb", "--threads", "2"), abort_rates,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two variants that the host tells apart. ratio: of the first to the second, above 1; simulated: the same on sim:host"""

    first: str
    second: str
    ratio: float
    simulated: float

    @property
    def agrees(self) -> bool:
        """Whether the simulated machine has them in this order."""
        return self.simulated > 1

    @property
    def near(self) -> bool:
        """Whether the factor is the host's within FAR; one that has no end is near to any."""
        return math.isinf(self.ratio) or is_near(self.simulated, self.ratio)


def is_near(simulated: float, host: float = 1.0) -> bool:
    """Whether a factor of the simulated machine is the host's within FAR."""
    return host / FAR <= simulated <= host * FAR


def pairs(host: Values, simulated: Values) -> list[Pair]:
    """Every two variants that the host tells apart, the larger first."""
    apart = []
    for one, other in itertools.combinations(host, 2):
        first, second = (one, other) if host[one].estimate >= host[other].estimate else (other, one)
        if host[first].low > host[second].high and _ratio(host[first], host[second]) > CLEAR:
            apart.append(
                Pair(first, second, _ratio(host[first], host[second]), _ratio(simulated[first], simulated[second]))
            )
    return apart


def _ratio(above: Value, below: Value) -> float:
    if below.estimate == 0:
        return float("inf") if above.estimate > 0 else 1.0
    return above.estimate / below.estimate


def ask(question: Question, machine: str, blocks: int) -> Values:
    """Measure one question on one machine.

    raises: LoamError with what the command said if it failed
    """
    duration, count = (HOST_MS, blocks) if machine == HOST else (SIMULATED_MS, min(blocks, SIMULATED_BLOCKS))
    command = [str(paths.root() / "loam"), "run", *question.run, "-p", f"duration_ms={duration}", "--blocks", str(count),
               "--machine", machine, "--json"]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="loam-simulated-") as scratch:
        out = str(Path(scratch) / "result")
        done = subprocess.run([*command, "--out", out], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LoamError("selfcheck simulated", question.what, f"{machine}: {done.stderr.strip()[-500:]}")
    return question.values(read(done.stdout, question.what))


def factors_of(question: Question, host: Values, simulated: Values) -> dict[str, float]:
    """Where the values are factors themselves, such as speed-ups: each on sim:host for one on the host."""
    if question.unit != FACTOR:
        return {}
    return {name: simulated[name].estimate / host[name].estimate for name in host}


Ask = Callable[[Question, str, int], Values]


def _print_pairs(question: Question, host: Values, simulated: Values, apart: Sequence[Pair]) -> None:
    rows = [[name, f"{host[name].estimate:.4g}", f"{simulated[name].estimate:.4g}"] for name in host]
    print(f"{question.what} ({question.unit})\n\n| | {HOST} | {SIMULATED} |\n| --- | ---: | ---: |")
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    agree = sum(pair.agrees for pair in apart)
    print(f"\n{len(apart)} pairs differ on the host, {agree} of them in the same order on {SIMULATED}")
    for pair in apart:
        how = "the other way" if not pair.agrees else "" if pair.near else "too far off"
        print(f"  {pair.first} to {pair.second}: {pair.ratio:.2f}, simulated {pair.simulated:.2f}{how and f' ({how})'}")
    for name, ratio in factors_of(question, host, simulated).items():
        far = "" if is_near(ratio) else " (too far off)"
        print(f"  {name}: {SIMULATED} has {ratio:.2f} times the host's factor{far}")
    print(flush=True)


def main(arguments: Sequence[str], ask_one: Ask = ask) -> int:
    """Print a table for each question, as Markdown or with --json as JSON."""
    parser = subcommands.Parser("selfcheck", "simulated", __doc__)
    parser.add_argument(
        "--blocks",
        type=subcommands.count,
        default=BLOCKS,
        help=f"on the host; at most {SIMULATED_BLOCKS} on the simulated machine",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the tables")
    options = parser.parse_args(arguments)
    answers, status = [], exit_status.HOLDS
    for question in QUESTIONS:
        host, simulated = (ask_one(question, machine, options.blocks) for machine in (HOST, SIMULATED))
        apart = pairs(host, simulated)
        factors = factors_of(question, host, simulated)
        if not all(pair.agrees and pair.near for pair in apart) or not all(map(is_near, factors.values())):
            status = exit_status.FAILS
        elif not apart and not factors:
            status = status or exit_status.TOO_FEW
        if options.json:
            answers.append({
                "question": question.what, "unit": question.unit,
                "values": {name: {HOST: asdict(host[name]), SIMULATED: asdict(simulated[name])} for name in host},
                "pairs": [{**asdict(pair), "agrees": pair.agrees, "near": pair.near} for pair in apart], "factors": factors,
            })  # fmt: skip
        else:
            _print_pairs(question, host, simulated, apart)
    if options.json:
        print(json.dumps({"schema": 1, "clear": CLEAR, "far": FAR, "questions": answers}, indent=1))
    elif status == exit_status.TOO_FEW:
        console.note(
            "on one question the host tells no two variants apart; try again when the machine is quiet, or with more --blocks"
        )
    return status
