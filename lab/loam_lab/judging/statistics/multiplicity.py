"""Probabilities adjusted for how many were looked at: Holm for what is claimed, Benjamini-Hochberg for what is shown."""

from __future__ import annotations

from collections.abc import Sequence

SIGNIFICANCE = 0.05


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities adjusted for their number by Holm's step-down rule, in the order given.

    Claiming those below 5 % makes one false claim or more in at most 5 % of all families.
    """
    m = len(probabilities)
    adjusted = [1.0] * m
    worst = 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: probabilities[i])):
        worst = max(worst, min(1.0, (m - rank) * probabilities[index]))
        adjusted[index] = worst
    return adjusted


def benjamini_hochberg(probabilities: Sequence[float]) -> list[float]:
    """Probabilities adjusted by Benjamini and Hochberg's step-up rule ("q"), in the order given.

    Of those below 5 %, at most 5 % are expected to be false.
    """
    m = len(probabilities)
    adjusted = [1.0] * m
    best = 1.0
    for rank, index in reversed(list(enumerate(sorted(range(m), key=lambda i: probabilities[i]), 1))):
        best = min(best, probabilities[index] * m / rank)
        adjusted[index] = best
    return adjusted
