"""From an interval to one of four words: equivalent, better, worse, inconclusive."""

from __future__ import annotations

import math
from typing import Literal

from loam_lab.statistics.intervals import Interval
from loam_lab.statistics.multiplicity import SIGNIFICANCE

Verdict = Literal["equivalent", "better", "worse", "inconclusive"]
Better = Literal["higher", "lower", "neither"]

MARGIN = 0.02
WIDTH_MAX = 0.05
# Beyond so many times the blocks, noise is the problem and not their number.
MORE_MAX = 16


def decide(
    ratio: Interval,
    better: Better,
    *,
    margin: float = MARGIN,
    width_max: float = WIDTH_MAX,
    adjusted: float | None = None,
) -> Verdict:
    """The verdict on a ratio to the baseline.

    Asked in this order: is the whole interval inside 1 +- margin (equivalent)?  Is it wider than width_max, missing,
    or does it hold 1 (inconclusive)?  Else it is better or worse, by the direction of the metric.
    better: which direction of the metric is good; with "neither" a difference cannot be judged
    adjusted: the probability after correction for how many were compared, None for a comparison that stands alone
    """
    if ratio.low is None or ratio.high is None:
        return "inconclusive"
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return "equivalent"
    if ratio.width > width_max or ratio.low <= 1 <= ratio.high or better == "neither" or not _shown(adjusted):
        return "inconclusive"
    return "better" if (ratio.low > 1) == (better == "higher") else "worse"


def _shown(adjusted: float | None) -> bool:
    return adjusted is None or adjusted < SIGNIFICANCE


def advice(
    ratio: Interval, verdict: Verdict, *, width_max: float = WIDTH_MAX, adjusted: float | None = None, family: int = 1
) -> str:
    """Why a verdict is inconclusive and what to do, as fact; consequence; next step.  Empty for other verdicts.

    adjusted: see decide; family: how many were compared
    """
    if verdict != "inconclusive":
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.n} blocks; too few for a 95 % interval, which needs 6; repeat with --blocks 10 or more"
    if ratio.width > width_max:
        side = "its direction is clear, its size is not; " if not ratio.low <= 1 <= ratio.high else ""
        more = more_runs(ratio, width_max)
        step = f"about {more} times as many blocks, or longer runs"
        if more > MORE_MAX:
            step = "but first quieten the machine (loam doctor): more blocks alone would be far too many"
        return (
            f"the interval is {percent(ratio.width)} wide, more than {percent(width_max)}; {side}inconclusive; "
            f"run longer: {step}"
        )
    if not ratio.low <= 1 <= ratio.high and not _shown(adjusted):
        return (
            f"the interval excludes 1, but {family} were compared and some of them do so by chance (adjusted p {adjusted:.2f}); "
            "inconclusive; repeat with more blocks"
        )
    return "the interval holds 1 and exceeds the margin of equivalence; no difference is shown; run longer to narrow it"


def more_runs(ratio: Interval, width_max: float = WIDTH_MAX) -> int:
    """How many times as many blocks would bring the width to width_max (it falls with the square root), 2 to 100."""
    if not math.isfinite(ratio.width):
        return 2
    return min(100, max(2, math.ceil((ratio.width / width_max) ** 2)))


def percent(fraction: float) -> str:
    """0.0523 -> "5.2 %"."""
    return f"{100 * fraction:.1f} %"
