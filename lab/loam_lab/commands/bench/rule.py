"""From what was told apart to what is advised: one rule for speed, for memory and for both.

What was not told apart from the baseline counts as equal to it, so no choice rests on a difference that was not shown,
and none contradicts another one.  What was not told apart from the fastest counts as equally fast: which of the two is named
must not be another one each time that somebody asks.  Of those the one is taken that needs less memory, else the first named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from loam_lab.judging.statistics.verdicts import MARGIN

# Two allocators this near to each other are not told apart.
NEAR = 1 + MARGIN
# Nothing that looks slower than the fastest by more than this counts as equally fast, however few blocks there were.
EQUAL_MAX = 1.05

# Pairs of allocators that were not told apart by speed.
Alike = Set[frozenset[str]]


@dataclass(frozen=True)
class Ratios:
    """An allocator's ratios to the baseline, less is better; 1 where none was shown. memory: None where it is not known"""

    speed: float = 1.0
    memory: float | None = 1.0


def level(ratios: Mapping[str, Ratios], alike: Alike) -> dict[str, Ratios]:
    """The same, but those that were not told apart from the fastest have its ratio."""
    if not ratios:
        return {}
    best = min(ratios, key=lambda name: ratios[name].speed)
    fastest = ratios[best].speed

    def equal(name: str) -> bool:
        return ratios[name].speed < 1 and frozenset((name, best)) in alike and ratios[name].speed <= fastest * EQUAL_MAX

    return {name: replace(one, speed=fastest) if equal(name) else one for name, one in ratios.items()}


def fastest(baseline: str, ratios: Mapping[str, Ratios]) -> str:
    """The one to take for speed; the baseline where none was shown to be faster."""
    best = _least(baseline, {name: one.speed for name, one in ratios.items()})
    if best == baseline:
        return baseline
    needs = {name: one.memory or 1.0 for name, one in ratios.items() if one.speed == ratios[best].speed}
    return next(name for name, memory in needs.items() if memory <= min(needs.values()) * NEAR)


def advise(baseline: str, ratios: Mapping[str, Ratios]) -> dict[str, str]:
    """Which allocator to take for "speed", "memory" and "both"; empty where no other was shown to be better in either.

    ratios: of all others, by name
    """
    known = {name: one.memory for name, one in ratios.items() if one.memory is not None}
    speed = fastest(baseline, ratios)
    memory = _least(baseline, known)
    if {speed, memory} == {baseline}:
        return {}
    if not known:
        return {"speed": speed}
    return {"speed": speed, "memory": memory, "both": front(baseline, ratios)[0]}


def front(baseline: str, ratios: Mapping[str, Ratios]) -> list[str]:
    """The names that no other one beats in both, of which the one with the smallest product of the two ratios is first."""
    points = {baseline: (1.0, 1.0)}
    points |= {name: (one.speed, one.memory) for name, one in ratios.items() if one.memory is not None}
    return pareto(points)


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other one beats: nearer than NEAR counts as equal. Less is better in both; best product first."""

    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        no_worse = all(a <= b * NEAR for a, b in zip(one, other, strict=True))
        return no_worse and any(a * NEAR < b for a, b in zip(one, other, strict=True))

    unbeaten = [name for name, own in points.items() if not any(beats(other, own) for other in points.values())]
    return sorted(unbeaten or points, key=lambda name: math.prod(points[name]))


def _least(baseline: str, ratios: Mapping[str, float]) -> str:
    """The name of the smallest ratio below 1; the baseline where there is none."""
    best = min(ratios, key=lambda name: ratios[name], default=baseline)
    return best if best != baseline and ratios[best] < 1 else baseline
