"""Do slices tell the truth, and how much narrower are the intervals?  Simulated runs beside simulated other work.

    ./loam selfcheck slices [--studies 200] [--json]

A study is ten blocks of one run of A and one of B: two threads on two processors, 100 ms.  B does 5 % less, or the same.
Each run is simulated in steps of 20 us: which thread has its processor, how fast it works, when it looks at the clock.
A thread that was away works 20 % slower for 0.2 ms, and one whose partner is away works 8 % faster, since nobody is in its
way: that is why the time of a wait cannot simply be subtracted.  B may also sleep in a lock of its own and be woken late.
The rule is that of workloads/harness/slices.cpp, with its constants.  The truth is the ratio where nobody else runs.

Exit status 1 if a median of the slices is off by more than 0.3 points where a tenth of the runs or fewer stay disturbed, 3 with
fewer than 100 studies: they do not tell.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from loam_lab.base import console, subcommands
from loam_lab.dev.selfcheck import exit_status
from loam_lab.judging.statistics import intervals
from loam_lab.judging.statistics.intervals import Array

# workloads/harness/slices.hpp has these; a test compares them.
WAITED_SHARE_MAX, OVERLAP_MAX, SLICES_MIN, KEPT_SHARE_MIN = 0.02, 0.1, 10, 0.05
STEP_S, SLICE_STEPS, TICK_STEPS = 20e-6, 50, 200
RUN_STEPS = 100 * SLICE_STEPS
THREADS, BLOCKS, STUDIES = 2, 10, 200
# Medians of fewer studies wander by more than the bias that is allowed.
STUDIES_MIN = 100
RUN_NOISE, STEP_NOISE = 0.01, 0.05
COLD, COLD_STEPS, ALONE = 0.8, 10, 1.08
DISTURBED_SHARE = 0.02
BIAS_MAX, DISTURBED_RUNS_MAX = 0.003, 0.1
EFFECTS = (0.0, 0.05)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Scenario:
    """What else runs. name: for the table

    tasks_per_s: short tasks of the kernel on each processor, task_s: their mean length; bursts_per_s: visits of another
    program that takes turns of a tick with what runs; loops: endless ones; sleeps_per_s: of B, in its own lock
    """

    name: str
    tasks_per_s: float = 20.0
    task_s: float = 40e-6
    bursts_per_s: float = 0.0
    loops: int = 0
    sleeps_per_s: float = 0.0


SCENARIOS = (
    Scenario("a quiet machine"),
    Scenario("a quiet machine, B sleeps in its lock", sleeps_per_s=2000.0),
    Scenario("bursts of other work, 4 a second", bursts_per_s=4.0),
    Scenario("one endless loop", loops=1),
    Scenario("two endless loops", loops=2),
)


@dataclass(frozen=True)
class Row:
    """One scenario and effect. bias: of the median ratio, in points of the ratio; width: median of whole intervals

    whole: by the whole run, as it would be without slices; sliced: by slices; disturbed: share of runs that stay so
    kept: share of slices that count
    """

    scenario: str
    effect: float
    studies: int
    whole_bias: float
    whole_width: float
    whole_disturbed: float
    sliced_bias: float
    sliced_width: float
    sliced_disturbed: float
    kept: float

    @property
    def true(self) -> bool:
        """Whether slices tell the truth; no promise is made where many runs stay disturbed, and are said to be."""
        return self.sliced_disturbed > DISTURBED_RUNS_MAX or abs(self.sliced_bias) <= BIAS_MAX


def away(scenario: Scenario, random: np.random.Generator) -> Mask:
    """In which steps another task has the processor of each thread; bool array (threads, steps)."""
    taken = np.zeros((THREADS, RUN_STEPS), dtype=bool)
    seconds = RUN_STEPS * STEP_S
    for processor in range(THREADS):
        for _ in range(random.poisson(scenario.tasks_per_s * seconds)):
            at = int(random.integers(RUN_STEPS))
            taken[processor, at : at + max(1, round(random.exponential(scenario.task_s) / STEP_S))] = True
        for _ in range(random.poisson(scenario.bursts_per_s * seconds)):
            at, length = int(random.integers(RUN_STEPS)), int(random.integers(TICK_STEPS, 10 * TICK_STEPS))
            taken[processor, at : at + length] |= turns(random)[at : at + length]
    # Each loop on a processor of its own; the kernel moves them now and then.
    at, processor = 0, int(random.integers(THREADS))
    while scenario.loops and at < RUN_STEPS:
        length = int(random.exponential(50 * TICK_STEPS)) + TICK_STEPS
        for loop in range(scenario.loops):
            taken[(processor + loop) % THREADS, at : at + length] |= turns(random)[at : at + length]
        at, processor = at + length, processor + 1
    return taken


def turns(random: np.random.Generator) -> Mask:
    """Every other tick, of a kernel that lets two tasks take turns."""
    ticks = (np.arange(RUN_STEPS) + int(random.integers(2 * TICK_STEPS))) // TICK_STEPS
    return np.asarray(ticks % 2 == 1, dtype=bool)


def speeds(gone: Mask, rate: float, random: np.random.Generator) -> Array:
    """Operations of each thread in each step. gone: whoever took the processor, the thread's own sleep included"""
    wandering = np.repeat(random.normal(0, STEP_NOISE, (THREADS, RUN_STEPS // SLICE_STEPS)), SLICE_STEPS, axis=1)
    operations = rate * np.exp(random.normal(0, RUN_NOISE) + wandering)
    operations = np.where(gone[::-1], operations * ALONE, operations)
    recent = np.zeros_like(gone)
    for late in range(1, COLD_STEPS + 1):
        recent[:, late:] |= gone[:, :-late]
    return np.where(gone, 0.0, np.where(recent, operations * COLD, operations))


def whole_rate(operations: Array) -> float:
    """By the whole run."""
    return float(operations.sum()) / (RUN_STEPS * STEP_S)


def sliced_rate(operations: Array, gone: Mask, taken: Mask) -> tuple[float, int, bool]:
    """The rate, the number of slices in which nobody waited, and whether they were enough.

    Where they are too few the rate is that of each thread's own slices; 0.0 where these are too few as well.
    gone: steps in which a thread did not work; taken: those in which another task had its processor
    """
    slices = RUN_STEPS // SLICE_STEPS
    bad = np.zeros((THREADS, slices), dtype=bool)
    segments: list[list[tuple[int, int]]] = []
    for thread in range(THREADS):
        works = np.flatnonzero(~gone[thread])
        # A thread looks at the first step of its own at or after a boundary.
        boundaries = np.arange(SLICE_STEPS, RUN_STEPS, SLICE_STEPS)
        places = np.searchsorted(works, boundaries)
        ends = np.unique(works[places[places < len(works)]])
        waited = np.concatenate([[0], np.cumsum(taken[thread])])
        begin, own = 0, []
        for end in ends.tolist():
            if waited[end] - waited[begin] > WAITED_SHARE_MAX * (end - begin):
                first, last = _reach(begin, end)
                bad[thread, first : last + 1] = True
            own.append((begin, end))
            begin = end
        segments.append(own)
    inside = min((own[-1][1] // SLICE_STEPS if own else 0) for own in segments)
    any_bad: Mask = np.asarray(bad.any(axis=0), dtype=bool)
    kept = int((~any_bad[:inside]).sum())
    enough = kept >= SLICES_MIN and kept >= KEPT_SHARE_MIN * inside
    sums = np.concatenate([np.zeros((THREADS, 1)), np.cumsum(operations, axis=1)], axis=1)
    done, steps = np.zeros(THREADS), np.zeros(THREADS)
    for thread, own in enumerate(segments):
        left_out = any_bad if enough else bad[thread]
        clean = int((~left_out[:inside]).sum())
        if clean < SLICES_MIN or clean < KEPT_SHARE_MIN * inside:
            return 0.0, kept, False
        for begin, end in own:
            first, last = _reach(begin, end)
            if last < inside and not left_out[first : last + 1].any():
                done[thread] += sums[thread, end] - sums[thread, begin]
                steps[thread] += end - begin
    if not steps.all():
        return 0.0, kept, False
    if enough:
        return float(done.sum() / (steps.sum() * STEP_S) * THREADS), kept, True
    return float((done / (steps * STEP_S)).sum()), kept, False


def _reach(begin: int, end: int) -> tuple[int, int]:
    """First and last slice in which a segment lies by more than the overlap that is allowed."""
    first = begin // SLICE_STEPS
    return first, max(first, (end - 1 - int(OVERLAP_MAX * SLICE_STEPS)) // SLICE_STEPS)


def _run(
    scenario: Scenario, rate: float, sleeps: bool, random: np.random.Generator
) -> tuple[float, float, bool, bool, int]:
    """One run: its rate by the whole and by slices, whether either stays disturbed, and the slices kept."""
    taken = away(scenario, random)
    gone = taken.copy()
    if sleeps:
        for thread in range(THREADS):
            at = random.integers(0, RUN_STEPS - 2, random.poisson(scenario.sleeps_per_s * RUN_STEPS * STEP_S))
            gone[thread, at] = True
    operations = speeds(gone, rate, random)
    by_slices, kept, enough = sliced_rate(operations, gone, taken)
    whole, waited = whole_rate(operations), float(taken.mean()) > DISTURBED_SHARE
    return whole, by_slices or whole, waited, waited and not enough, kept


def truth(scenario: Scenario, effect: float, random: np.random.Generator) -> float:
    """The ratio of B to A, in logarithms, where nobody else runs: its own sleeps are its own."""
    if not scenario.sleeps_per_s:
        return math.log(1 - effect)
    alone = Scenario("", tasks_per_s=0.0, sleeps_per_s=scenario.sleeps_per_s)
    logs = [[math.log(_run(alone, 1 - effect * b, bool(b), random)[0]) for _ in range(200)] for b in (0, 1)]
    return float(np.mean(logs[1]) - np.mean(logs[0]))


def rows(studies: int = STUDIES, scenarios: Sequence[Scenario] = SCENARIOS) -> Iterator[Row]:
    """Simulate every scenario with every effect, each with a seed of its own."""
    for number, scenario in enumerate(scenarios):
        for effect in EFFECTS:
            random = np.random.default_rng([number, round(1000 * effect)])
            yield _row(scenario, effect, studies, random)


def _row(scenario: Scenario, effect: float, studies: int, random: np.random.Generator) -> Row:
    true = truth(scenario, effect, random)
    whole: list[float] = []
    sliced: list[float] = []
    whole_widths: list[float] = []
    sliced_widths: list[float] = []
    disturbed = fell = kept = 0
    for _ in range(studies):
        pairs: tuple[list[float], list[float]] = ([], [])
        for _ in range(BLOCKS):
            first = _run(scenario, 1.0, False, random)
            second = _run(scenario, 1 - effect, scenario.sleeps_per_s > 0, random)
            pairs[0].append(math.log(second[0] / first[0]))
            pairs[1].append(math.log(second[1] / first[1]))
            disturbed += first[2] + second[2]
            fell += first[3] + second[3]
            kept += first[4] + second[4]
        for logs, ratios, widths in ((pairs[0], whole, whole_widths), (pairs[1], sliced, sliced_widths)):
            interval = intervals.hodges_lehmann(logs)
            ratios.append(interval.estimate)
            assert interval.low is not None
            assert interval.high is not None
            widths.append(math.exp(interval.high) - math.exp(interval.low))
    runs = 2 * BLOCKS * studies
    return Row(
        scenario.name, effect, studies,
        math.exp(float(np.median(whole))) - math.exp(true), float(np.median(whole_widths)), disturbed / runs,
        math.exp(float(np.median(sliced))) - math.exp(true), float(np.median(sliced_widths)), fell / runs,
        kept / (runs * (RUN_STEPS // SLICE_STEPS)),
    )  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Print the table as Markdown, or with --json as JSON; 1 if slices are biased, 3 if too few studies tell."""
    parser = subcommands.Parser("selfcheck", "slices", __doc__)
    parser.add_argument("--studies", type=subcommands.count, default=STUDIES, help="per scenario and effect")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args(arguments)
    judged = []
    if not options.json:
        print("| beside | effect | whole run: bias | width | disturbed | slices: bias | width | disturbed | kept |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows(options.studies):
        judged.append(row)
        if not options.json:
            cells = (row.whole_width, row.whole_disturbed), (row.sliced_width, row.sliced_disturbed)
            whole, sliced = (f"{100 * width:.1f} % | {100 * share:.0f} %" for width, share in cells)
            print(
                f"| {row.scenario} | {100 * row.effect:.0f} % | {100 * row.whole_bias:+.2f} | {whole} "
                f"| {100 * row.sliced_bias:+.2f} | {sliced} | {100 * row.kept:.0f} % |", flush=True,
            )  # fmt: skip
    if options.json:
        print(json.dumps({"schema": 1, "rows": [{**asdict(row), "true": row.true} for row in judged]}, indent=1))
    if options.studies < STUDIES_MIN:
        console.note(f"fewer than {STUDIES_MIN} studies do not tell whether slices are biased")
        return exit_status.TOO_FEW
    return exit_status.of(row.true for row in judged)
