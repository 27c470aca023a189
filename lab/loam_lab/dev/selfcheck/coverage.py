"""Does the method keep its promises?  Simulated studies with a known truth, judged by the code that judges real ones.

    ./loam selfcheck coverage [--replicates 4000] [--json]

Noise of a shared machine, in logarithms: normal with 2 %; spikes, 5 % of the runs take 10 to 100 % longer; a drift that
wanders from run to run (AR(1), 0.95, standard deviation 3 %).  A block holds one run of every variant in random order.
Exit status 1 if a promise is broken, 3 if there are too few replicates to tell (fewer than 4000).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from loam_lab.base import subcommands
from loam_lab.dev.selfcheck import exit_status
from loam_lab.judging.statistics import bootstrap, extremes, intervals, multiplicity, shift, verdicts
from loam_lab.judging.statistics.intervals import Array, Interval

NOISE, SPIKE_SHARE, SPIKE_LOW, SPIKE_HIGH = 0.02, 0.05, math.log(1.1), math.log(2.0)
DRIFT, MEMORY = 0.03, 0.95
BLOCKS = (10, 15, 20, 30)
REPLICATES = 4000
EFFECT = math.log(1.05)
ALLOCATORS, WORKLOADS, FAMILIES = 6, 3, 8
# Fewer cannot tell what is allowed from what is not: 1000 at 95 % have a standard deviation of 0.7 %.
REPLICATES_MIN = REPLICATES // 4
# A replicate that draws again and again costs some hundred times one of the exact intervals.
DRAWS_SHARE = 4
COVERAGE = (0.935, 0.965)
FALSE_MAX = 0.057
# What was found is told, and judged by no bound of its own: it follows from the noise.
FOUND = (0.0, 1.0)


@dataclass(frozen=True)
class Row:
    """One promise at one number of blocks. value: the share found; low, high: the bounds it must keep"""

    what: str
    blocks: int
    replicates: int
    value: float
    low: float
    high: float

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.low <= self.value <= self.high

    @property
    def verdict(self) -> bool | None:
        """As kept; None where there are too few replicates. What has no bounds of its own is always kept."""
        judged = (self.low, self.high) == FOUND or self.replicates >= REPLICATES_MIN
        return self.kept if judged else None


def noise(random: np.random.Generator, blocks: int, variants: int) -> Array:
    """Logarithms of the times of one study in which nothing differs.

    returns: float64 array (blocks, variants); its runs drift in the random order in which they were made
    """
    drift = np.empty(blocks * variants)
    steps = random.normal(0, DRIFT * math.sqrt(1 - MEMORY**2), drift.size)
    at = random.normal(0, DRIFT)
    for index, step in enumerate(steps):
        at = MEMORY * at + step
        drift[index] = at
    order = np.argsort(random.random((blocks, variants)), axis=1)
    spikes = np.where(random.random((blocks, variants)) < SPIKE_SHARE, 1.0, 0.0)
    spikes *= random.uniform(SPIKE_LOW, SPIKE_HIGH, (blocks, variants))
    made: Array = np.take_along_axis(drift.reshape(blocks, variants), order, axis=1)
    return made + random.normal(0, NOISE, (blocks, variants)) + spikes


def _holds(ratio: Interval | None, truth: float) -> bool:
    return ratio is not None and ratio.low is not None and ratio.high is not None and ratio.low <= truth <= ratio.high


def _paired(random: np.random.Generator, blocks: int) -> bool:
    """The interval of one comparison among two variants and the sentinel holds a true difference of 5 %."""
    runs = np.exp(noise(random, blocks, 3))
    return _holds(intervals.paired_ratio(runs[:, 1] * math.exp(EFFECT), runs[:, 0]), math.exp(EFFECT))


def _false_alarm(random: np.random.Generator, blocks: int) -> bool:
    """Two names of the same thing are called better or worse."""
    runs = np.exp(noise(random, blocks, 3))
    ratio = intervals.paired_ratio(runs[:, 1], runs[:, 0])
    return verdicts.decide(ratio, "lower") in ("better", "worse")


def _headlines(logs: Sequence[Array]) -> list[tuple[extremes.Pick, bool]]:
    """Of each family of a report its best and worst, and whether that is claimed (Holm over all of them)."""
    picks = [extremes.pick(-family) for family in logs]
    adjusted = multiplicity.holm([one.p for one in picks])
    return [
        (one, verdicts.decide(one.ratio, "higher", adjusted=p) == "better")
        for one, p in zip(picks, adjusted, strict=True)
    ]


def _false_headline(random: np.random.Generator, blocks: int) -> bool:
    """In a report of equal allocators some headline is claimed."""
    families = [noise(random, blocks, ALLOCATORS + 1)[:, :ALLOCATORS] for _ in range(FAMILIES)]
    return any(claimed for _, claimed in _headlines(families))


def _headline_found(random: np.random.Generator, blocks: int) -> bool:
    """In one family of a report one allocator needs 5 % more time: the headline names it as the worst."""
    families = [noise(random, blocks, ALLOCATORS + 1)[:, :ALLOCATORS] for _ in range(FAMILIES)]
    families[0][:, -1] += EFFECT
    pick, claimed = _headlines(families)[0]
    return claimed and pick.worst == ALLOCATORS - 1


def _difference_found(random: np.random.Generator, blocks: int) -> bool:
    """A single comparison finds a difference of 5 %."""
    runs = np.exp(noise(random, blocks, 3))
    return verdicts.decide(intervals.paired_ratio(runs[:, 1] * math.exp(EFFECT), runs[:, 0]), "lower") == "worse"


def _false_heat_map(random: np.random.Generator, blocks: int) -> bool:
    """In a study of equal allocators some cell is coloured (Benjamini and Hochberg over all cells)."""
    ratios = []
    for _ in range(WORKLOADS):
        runs = np.exp(noise(random, blocks, ALLOCATORS + 1))
        ratios += [intervals.paired_ratio(runs[:, i], runs[:, 0]) for i in range(1, ALLOCATORS)]
    adjusted = multiplicity.benjamini_hochberg([ratio.p or 0.0 for ratio in ratios])
    return any(
        verdicts.decide(ratio, "lower", adjusted=q) in ("better", "worse")
        for ratio, q in zip(ratios, adjusted, strict=True)
    )


def _compared(random: np.random.Generator, blocks: int) -> bool:
    """The change between two campaigns, each against its own baseline, is in its interval."""
    before, after = noise(random, blocks, 3), noise(random, blocks, 3)
    change = shift.shift(before[:, 1] - before[:, 0], after[:, 1] + EFFECT - after[:, 0])
    return _holds(change, EFFECT)


def _mean(random: np.random.Generator, blocks: int) -> bool:
    """The geometric mean over workloads is in its interval; true effects 0, 5 and 10 %."""
    runs = [noise(random, blocks, 3) for _ in range(WORKLOADS)]
    logs = [made[:, 1] - made[:, 0] + workload * EFFECT for workload, made in enumerate(runs)]
    return _holds(intervals.geometric_mean(logs), math.exp(EFFECT * (WORKLOADS - 1) / 2))


def _rates(random: np.random.Generator, blocks: int) -> bool:
    """The ratio of two abort rates is in its bootstrap interval; true rates 2 and 3 %, which vary by 20 % per run."""
    attempts = 10_000 * np.exp(-noise(random, blocks, 3))
    wander = np.exp(random.normal(0, 0.2, (blocks, 2)) - 0.02)
    first, second = (random.poisson(rate * attempts[:, i] * wander[:, i]) for i, rate in ((0, 0.03), (1, 0.02)))
    return _holds(bootstrap.ratio_of_rates((first, attempts[:, 0]), (second, attempts[:, 1])), 1.5)


# What is simulated: name, one replicate, the bounds of the share of replicates that say yes, whether it draws many times.
Promise = tuple[str, Callable[[np.random.Generator, int], bool], tuple[float, float], bool]
PROMISES: tuple[Promise, ...] = (
    ("interval of a paired ratio holds the truth", _paired, COVERAGE, False),
    ("interval of a change between two campaigns holds the truth", _compared, COVERAGE, False),
    ("A/A: better or worse", _false_alarm, (0.0, FALSE_MAX), False),
    (f"{FAMILIES} families of {ALLOCATORS} equal allocators: some headline", _false_headline, (0.0, FALSE_MAX), True),
    (
        f"{WORKLOADS} workloads, {ALLOCATORS} equal allocators: some cell (Benjamini-Hochberg)",
        _false_heat_map,
        (0.0, FALSE_MAX),
        False,
    ),
    ("one comparison of 5 %: found", _difference_found, FOUND, False),
    (f"{FAMILIES} families, in one an allocator of {ALLOCATORS} slower by 5 %: headline", _headline_found, FOUND, True),
    ("interval of a geometric mean holds the truth", _mean, COVERAGE, False),
    ("interval of a ratio of abort rates holds the truth", _rates, COVERAGE, True),
)


def rows(replicates: int = REPLICATES, blocks: Sequence[int] = BLOCKS, *, slack: float = 0.0) -> Iterator[Row]:
    """Simulate every promise, each with seeds of its own.

    replicates: of the exact methods, a quarter of it for those that draw; slack: by how much bounds are widened
    """
    for number, (what, replicate, (low, high), draws) in enumerate(PROMISES):
        count = max(1, replicates // DRAWS_SHARE) if draws else replicates
        for n in blocks:
            random = np.random.default_rng([number, n])
            positive = sum(replicate(random, n) for _ in range(count))
            yield Row(what, n, count, positive / count, max(0.0, low - slack), high + slack)


def main(arguments: Sequence[str]) -> int:
    """Print the table as Markdown, or with --json as JSON; 1 if a promise is broken, 3 if too few replicates tell."""
    parser = subcommands.Parser("selfcheck", "coverage", __doc__)
    parser.add_argument(
        "--replicates",
        type=subcommands.count,
        default=REPLICATES,
        help="of each exact method; a quarter of those that draw",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args(arguments)
    judged: list[Row] = []
    if not options.json:
        print("| promise | blocks | replicates | found | allowed | |\n| --- | ---: | ---: | ---: | ---: | --- |")
    for row in rows(options.replicates):
        judged.append(row)
        if not options.json:
            bounds = f"{100 * row.low:.1f}–{100 * row.high:.1f} %"
            word = {True: "kept", False: "broken", None: "too few replicates"}[row.verdict]
            print(f"| {row.what} | {row.blocks} | {row.replicates} | {100 * row.value:.2f} % | {bounds} | {word} |")
            sys.stdout.flush()
    if options.json:
        print(json.dumps({"schema": 1, "rows": [{**asdict(row), "kept": row.verdict} for row in judged]}, indent=1))
    return exit_status.of(row.verdict for row in judged)
