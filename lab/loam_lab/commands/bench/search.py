"""The search of `bench --search`, without any measuring: which settings to try, and who goes on to the next round.

Successive halving: every round measures all that are left in paired blocks beside the best allocator as it is, and the
better half by estimate goes on, with as much time for fewer candidates.  The rounds choose and claim nothing; a final
with fresh runs decides by its intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loam_lab.subjects.allocators import registry

FINALISTS = 2
ALLOCATORS = 2
# A round of fewer blocks would choose by one disturbed run; more than these are better spent in the final.
ROUND_BLOCKS_MIN, ROUND_BLOCKS_MAX = 3, 15
FINAL_BLOCKS_MIN, FINAL_BLOCKS_MAX = 10, 60
FINAL_SHARE = 0.5
# Beside the candidates, each block holds the best allocator as it is and its second copy.
BESIDE = 2


@dataclass(frozen=True)
class Plan:
    """What a search will do at most.

    sizes: candidates in each round; blocks: of each round; final_blocks: of the final; runs: all processes
    """

    sizes: tuple[int, ...]
    blocks: tuple[int, ...]
    final_blocks: int
    runs: int


def variants(name: str) -> list[str]:
    """The allocator with each single setting worth trying, in the order of its file; settings it has stay."""
    base, given = registry.split(name)
    settings, known = registry.definitions()[base].settings, registry.values(name)
    return [
        f"{name}:{key}={value}"
        for key, setting in settings.items()
        if key not in given
        for value in setting.search
        if value != known.get(key)
    ]


def searchable(ranked: Sequence[str]) -> list[str]:
    """The first ALLOCATORS of a ranking that have settings worth trying, each base once.

    ranked: names, best first
    """
    chosen: dict[str, str] = {}
    for name in ranked:
        base = registry.split(name)[0]
        if base not in chosen and variants(name):
            chosen[base] = name
    return list(chosen.values())[:ALLOCATORS]


def halve(scores: Mapping[str, float | None]) -> list[str]:
    """The better half of a round, best first; one with a half is rounded up, those without a score never go on.

    scores: estimated ratio of time to the best allocator as it is, None for one that failed
    """
    good = sorted((name for name in scores if scores[name] is not None), key=lambda name: (scores[name], name))
    return good[: max(FINALISTS, math.ceil(len(scores) / 2))]


def combine(scores: Mapping[str, float | None]) -> list[str]:
    """For each allocator, its two best different settings together, where each alone looked better than none."""
    better: dict[str, list[str]] = {}
    for name in halve(scores):
        score = scores[name]
        if score is not None and score < 1:
            better.setdefault(registry.split(name)[0], []).append(name)
    joined = []
    for names in better.values():
        _, first = registry.split(names[0])
        for other in names[1:]:
            _, second = registry.split(other)
            new = {key: value for key, value in second.items() if key not in first}
            if len(new) == len(second):
                joined.append(":".join([names[0], *(f"{key}={value}" for key, value in second.items())]))
                break
    return joined


def following(scores: Mapping[str, float | None], number: int) -> list[str]:
    """The candidates after round `number` (from 1): the better half, after the first round with combinations."""
    kept = halve(scores)
    return [*kept, *combine(scores)] if number == 1 else kept


def plan(candidates: int, run_s: float, budget_s: float) -> Plan:
    """Rounds and blocks that fit into the budget; short of the least blocks, where even those exceed it.

    candidates: of the first round; run_s: of one run; budget_s: for rounds and final together
    """
    sizes: list[int] = []
    left = candidates
    while left > FINALISTS:
        sizes.append(left)
        half = max(FINALISTS, math.ceil(left / 2))
        left = half + ALLOCATORS if len(sizes) == 1 and half + ALLOCATORS < left else half
    share_s = budget_s * (1 - FINAL_SHARE) / max(1, len(sizes))
    blocks = [_fit(share_s, run_s * (size + BESIDE), ROUND_BLOCKS_MIN, ROUND_BLOCKS_MAX) for size in sizes]
    final_size = FINALISTS + BESIDE + 1
    final = _fit(budget_s * FINAL_SHARE, run_s * final_size, FINAL_BLOCKS_MIN, FINAL_BLOCKS_MAX)
    runs = sum(n * (size + BESIDE) for n, size in zip(blocks, sizes, strict=True)) + final * final_size
    return Plan(tuple(sizes), tuple(blocks), final, runs)


def _fit(budget_s: float, block_s: float, least: int, most: int) -> int:
    return min(most, max(least, int(budget_s / max(block_s, 1e-3))))
