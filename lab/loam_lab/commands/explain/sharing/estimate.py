"""From watches to shares of time.

A sample is taken each time that a thread has run for a fixed time, so watches are taken in proportion to time, and
caught / samples is a share of it. The word itself is always watched; of the seven other words of its line some, chosen by
chance each time. So a catch of another word stands for more than itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loam_lab.commands.explain.sharing.watches import LINE_WORDS, Watch
from loam_lab.judging.statistics import binomial

OTHERS = LINE_WORDS - 1


@dataclass(frozen=True)
class Share:
    """A share of the threads' time, with its exact interval. caught: watches that it rests on; of: samples"""

    share: float
    low: float
    high: float
    caught: int
    of: int

    def as_json(self) -> dict[str, float | int]:
        """As a result has it."""
        return {"share": self.share, "low": self.low, "high": self.high, "caught": self.caught, "samples": self.of}


@dataclass(frozen=True)
class Hit:
    """A watch that caught something. words: numbers of the caught words of its line"""

    watch: Watch
    words: frozenset[int]


def share(hits: Sequence[Hit], samples: int) -> Share:
    """The share of time of all hits together; each watch is in it at most once."""
    if samples == 0:
        return Share(0.0, 0.0, 1.0, 0, 0)
    # Which other words others use is asked of each word apart: two threads that meet see each other's.
    used: dict[int, set[int]] = {}
    for hit in hits:
        used.setdefault(hit.watch.word, set()).update(hit.words - {_own(hit.watch)})
    scales = [_scale(hit, len(used[hit.watch.word])) for hit in hits]
    estimate, low, high = binomial.share(len(hits), samples)
    mean = math.fsum(scales) / len(scales) if scales else _scale_most()
    return Share(min(1.0, estimate * mean), min(1.0, low * mean), min(1.0, high * mean), len(hits), samples)


def _own(watch: Watch) -> int:
    return watch.word % (LINE_WORDS * 8) // 8


def _scale(hit: Hit, used: int) -> float:
    """For how many watches a hit stands. used: how many other words of the line other threads were seen to use"""
    if _own(hit.watch) in hit.words:
        return 1.0
    return 1 / chance(len(hit.watch.words) - 1, max(1, used))


def _scale_most() -> float:
    return 1 / chance(3, 1)


def chance(watched: int, used: int) -> float:
    """The chance that of `watched` other words at least one is among the `used` ones."""
    if watched <= 0:
        return 1.0
    return 1 - math.comb(OTHERS - used, watched) / math.comb(OTHERS, watched)


def beside(watches: Iterable[Watch]) -> float:
    """The share of watches in which another thread ran at all."""
    ran = [watch.ran_ns > 0 for watch in watches]
    return sum(ran) / len(ran) if ran else 0.0
