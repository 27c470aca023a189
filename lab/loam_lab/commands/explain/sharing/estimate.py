"""From watches to shares of time.

A sample is taken each time that a thread has run for a fixed time, so watches are taken in proportion to time, and
caught / samples is a share of it. The word itself is always watched; of the seven other words of its line some, chosen by
chance each time; of very many threads some, chosen by chance, too. So a catch may stand for more than itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loam_lab.commands.explain.sharing.watches import LINE_BYTES, LINE_WORDS, WORD_BYTES, Watch
from loam_lab.judging.statistics import binomial

OTHER_WORDS = LINE_WORDS - 1


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
    """A watch that caught something. words: numbers of the caught words of its line; threads: that were caught"""

    watch: Watch
    words: frozenset[int]
    threads: frozenset[int]

    @property
    def others(self) -> frozenset[int]:
        """The caught words but for the access's own."""
        return self.words - {number(self.watch.address)}


@dataclass(frozen=True)
class Basis:
    """What shares are of. scale: for how many watches one stands at most: one word, one thread"""

    samples: int
    scale: float

    @classmethod
    def of(cls, watches: Sequence[Watch], samples: int) -> Basis:
        """From all watches of a run and the number of its samples."""
        seen = [_words(watch, 1) * _threads(watch, 1) for watch in watches]
        mean = math.fsum(seen) / len(seen) if seen else 0.0
        return cls(samples, 1 / mean if mean > 0 else math.inf)


def share(hits: Sequence[Hit], basis: Basis) -> Share:
    """The share of time of all hits together; each watch is in it at most once."""
    if basis.samples == 0:
        return Share(0.0, 0.0, 1.0, 0, 0)
    # Which other words, and threads, use a line is asked of each word apart: two threads that meet see each other's.
    words: dict[int, set[int]] = {}
    threads: dict[int, set[int]] = {}
    for hit in hits:
        words.setdefault(hit.watch.word, set()).update(hit.others)
        threads.setdefault(hit.watch.word, set()).update(hit.threads)
    scales = [_scale(hit, len(words[hit.watch.word]), len(threads[hit.watch.word])) for hit in hits]
    estimate, low, high = binomial.share(len(hits), basis.samples)
    mean = math.fsum(scales) / len(scales) if scales else basis.scale
    return Share(min(1.0, estimate * mean) if hits else 0.0, min(1.0, low * mean) if hits else 0.0,
                 min(1.0, high * mean), len(hits), basis.samples)  # fmt: skip


def number(address: int) -> int:
    """Which word of its cache line an address lies in."""
    return address % LINE_BYTES // WORD_BYTES


def _scale(hit: Hit, words: int, threads: int) -> float:
    """For how many watches a hit stands. words, threads: how many others were seen to use the line"""
    own = number(hit.watch.address) in hit.words
    seen = (1.0 if own else _words(hit.watch, max(1, words))) * _threads(hit.watch, max(1, threads))
    return 1 / seen if seen > 0 else 1.0


def _words(watch: Watch, used: int) -> float:
    return chance(len(watch.words) - 1, used, OTHER_WORDS)


def _threads(watch: Watch, used: int) -> float:
    return chance(watch.others, used, max(watch.others, watch.all_others))


def chance(watched: int, used: int, of: int) -> float:
    """The chance that of `watched` things, chosen from `of`, at least one is among the `used` ones."""
    if watched <= 0 or of <= 0:
        return 0.0
    return 1 - math.comb(max(0, of - used), watched) / math.comb(of, watched)


def beside(watches: Iterable[Watch]) -> float:
    """The share of watches in which another thread ran at all."""
    ran = [watch.ran_ns > 0 for watch in watches]
    return sum(ran) / len(ran) if ran else 0.0
