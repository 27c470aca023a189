"""Samples of mutants: from those that were judged follows, within an interval, how many of all would be killed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")

CONFIDENCE = 0.95


def drawn(every: Sequence[T], count: int, seed: int) -> list[T]:
    """So many of all, each as likely as any other, in random order: the first ones of them are a sample as well."""
    return random.Random(seed).sample(list(every), min(count, len(every)))


def interval(killed: int, judged: int) -> tuple[float, float]:
    """Between which shares of all that of the killed ones lies: Wilson's interval, 1927; from 0 to 1 if none was judged."""
    if judged == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2)
    share, weight = killed / judged, z * z / judged
    middle = (share + weight / 2) / (1 + weight)
    reach = z * math.sqrt(share * (1 - share) / judged + weight / (4 * judged)) / (1 + weight)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def score(killed: int, judged: int, seed: int) -> str:
    """The score of a sample in words."""
    low, high = interval(killed, judged)
    return f"sample of seed {seed}: {killed} of {judged} killed; of all {100 * low:.0f} to {100 * high:.0f} %"
