"""Do the iterations of a process settle, from which one on, and was an allocator's first run a cold one?

The series is cut where its level changes: the cut that minimises the squared distance of log values from their
segment's mean, where each further segment costs as much as chance would gain by it (BIC).  The noise is estimated from
differences of neighbours, which a change of level hardly touches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Literal

from loam_lab.model.records import number

# Fewer iterations than this show no course.
ITERATIONS_MIN = 10
# Longer series are looked at in that many equal parts: where exactly a long series settles is of no interest.
POINTS_MAX = 500
# Levels closer than this are one level, because nobody would call two percent a start-up; and so are levels of so few
# values that their noise may have made the difference.
SAME_LEVEL = 0.02
LEVEL_DEVIATIONS = 4.0
LEVEL_MIN = 3
# The part of the series that has to be level to call it steady.
STEADY_SHARE_MIN = 0.25
# Robust standard deviation of a normal sample from its median absolute deviation.
NORMAL = 1.4826
COLD_DEVIATIONS = 4.0

Kind = Literal["flat", "warm-up", "slow-down", "no steady state"]

ADVICE: dict[Kind, str] = {
    "warm-up": "its first iterations are slower than the later ones; its values mix start-up and steady state; "
    "give it a longer warm-up (-p warmup_ms=...)",
    "slow-down": "its later iterations are slower than the first ones; its values depend on how long it runs; "
    "run longer, or look at the iterations in the journal",
    "no steady state": "its iterations reach no steady state; its values describe neither start-up nor steady state; "
    "run longer",
}


@dataclass(frozen=True)
class Course:
    """How the iterations of a process went.

    steady_from: index of the first iteration of the steady part, None without one; iterations: how many there were
    """

    kind: Kind
    steady_from: int | None
    iterations: int

    def as_json(self) -> dict[str, Any]:
        """As the journal has it."""
        return {"kind": self.kind, "steady_from": self.steady_from, "iterations": self.iterations}


def of_records(records: Sequence[Mapping[str, Any]]) -> Course | None:
    """The course of a process's iterations; None for too few.

    An iteration is judged by its time per operation, or by its time where it counts no operations
    """
    costs = []
    for line in records:
        if line.get("kind") != "iteration":
            continue
        elapsed_s, operations = number(line.get("elapsed_s")), number(line.get("operations", line.get("pairs", 1)))
        if not elapsed_s or not operations or elapsed_s < 0 or operations < 0:
            return None
        costs.append(elapsed_s / operations)
    return course(costs)


def course(costs: Sequence[float]) -> Course | None:
    """How a series of positive costs (less is better) goes; None if it is shorter than ITERATIONS_MIN."""
    count = len(costs)
    if count < ITERATIONS_MIN:
        return None
    step = math.ceil(count / POINTS_MAX)
    logs = [median(math.log(cost) for cost in costs[at : at + step]) for at in range(0, count, step)]
    cuts = changes(logs)
    bounds = [0, *cuts, len(logs)]
    levels = [median(logs[a:b]) for a, b in pairwise(bounds)]
    lengths = [b - a for a, b in pairwise(bounds)]
    first = len(levels) - 1
    while first > 0:
        chance = LEVEL_DEVIATIONS * _noise(logs) * math.sqrt(1 / lengths[first - 1] + 1 / lengths[-1])
        if abs(levels[first - 1] - levels[-1]) > max(SAME_LEVEL, chance):
            break
        first -= 1
    start = bounds[first]
    if len(logs) - start < STEADY_SHARE_MIN * len(logs):
        return Course("no steady state", None, count)
    if first == 0:
        return Course("flat", 0, count)
    before = median(logs[:start])
    return Course("warm-up" if before > levels[-1] else "slow-down", start * step, count)


def changes(values: Sequence[float]) -> list[int]:
    """Indices at which a new level begins, in order.

    Optimal partitioning with pruning: exact, and fast where there are changes.  A segment has at least LEVEL_MIN
    values, so that the median of one that holds an outlier is still its level
    """
    count = len(values)
    if count < 2 * LEVEL_MIN:
        return []
    noise = _noise(values)
    penalty = 3 * noise * noise * math.log(count)
    sums, squares = [0.0], [0.0]
    for value in values:
        sums.append(sums[-1] + value)
        squares.append(squares[-1] + value * value)

    def cost(a: int, b: int) -> float:
        total = sums[b] - sums[a]
        return squares[b] - squares[a] - total * total / (b - a)

    best = [-penalty] + [math.inf] * count
    last = [0] * (count + 1)
    candidates = [0]
    for end in range(LEVEL_MIN, count + 1):
        costs = {begin: best[begin] + cost(begin, end) for begin in candidates if end - begin >= LEVEL_MIN}
        last[end] = min(costs, key=costs.__getitem__)
        best[end] = costs[last[end]] + penalty
        # What is worse by more than a whole segment's price now can never win later.
        candidates = [begin for begin in candidates if costs.get(begin, -math.inf) <= best[end]]
        if end + 1 >= 2 * LEVEL_MIN:
            candidates.append(end + 1 - LEVEL_MIN)
    cuts = []
    end = count
    while last[end] > 0:
        end = last[end]
        cuts.append(end)
    return cuts[::-1]


def _noise(values: Sequence[float]) -> float:
    """Standard deviation of the values around their level; never 0, so that a level series has no cuts."""
    steps = [abs(b - a) for a, b in pairwise(values)]
    return max(NORMAL * median(steps) / math.sqrt(2), 1e-4)


def cold(values: Sequence[float]) -> bool:
    """Whether the first of some runs took longer than the others beyond their noise.

    values: times in the order in which they were measured, at least six; fewer are never called cold
    """
    if len(values) < 6:
        return False
    logs = [math.log(value) for value in values]
    middle = median(logs[1:])
    noise = NORMAL * median(abs(value - middle) for value in logs[1:])
    return logs[0] - middle > max(COLD_DEVIATIONS * noise, SAME_LEVEL)
