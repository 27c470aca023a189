"""From an interval to one of four words: equivalent, better, worse, inconclusive.

The word says what the interval says.  How wide the interval is, is a second property, said beside it: "roughly".
"""

from __future__ import annotations

import math
from typing import Literal

from loam_lab.judging.statistics.intervals import Interval
from loam_lab.judging.statistics.multiplicity import SIGNIFICANCE
from loam_lab.model.result import Ends

Verdict = Literal["equivalent", "better", "worse", "inconclusive"]
Better = Literal["higher", "lower", "neither"]

MARGIN = 0.02
# An interval wider than this shows that there is a difference, and only roughly how large it is.
WIDTH_MAX = 0.05
# More blocks are never advised: beyond them noise is the problem and not their number.
BLOCKS_ADVISED_MAX = 60


def decide(ratio: Interval, better: Better, *, margin: float = MARGIN, adjusted: float | None = None) -> Verdict:
    """The verdict on a ratio.

    Asked in this order: is the whole interval inside 1 +- margin (equivalent)?  Does it exclude 1, beyond chance among
    all that were compared (better or worse, by the direction of the metric)?  All else is inconclusive.
    better: which direction of the metric is good; with "neither" a difference cannot be judged
    adjusted: the probability after correction for how many were compared, None for a comparison that stands alone
    """
    if ratio.low is None or ratio.high is None:
        return "inconclusive"
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return "equivalent"
    if ratio.low <= 1 <= ratio.high or better == "neither" or not _shown(adjusted):
        return "inconclusive"
    return "better" if (ratio.low > 1) == (better == "higher") else "worse"


def rough(ratio: Interval, width_max: float = WIDTH_MAX) -> bool:
    """Whether the interval is too wide to tell the size well; without an interval there is no size to tell."""
    return ratio.low is not None and ratio.width > width_max


def reach(ratio: Interval) -> float:
    """The largest difference from 1 that the interval allows, as a fraction, in either direction."""
    return Ends(*ratio.ends).reach


def _shown(adjusted: float | None) -> bool:
    return adjusted is None or adjusted < SIGNIFICANCE


def advice(
    ratio: Interval,
    verdict: Verdict,
    *,
    better: Better = "higher",
    margin: float = MARGIN,
    adjusted: float | None = None,
    family: int = 1,
) -> str:
    """Why a verdict is inconclusive and what to do, as fact; consequence; next step.  Empty for other verdicts.

    better, margin, adjusted: see decide; family: how many were compared
    """
    if verdict != "inconclusive":
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.n} blocks; too few for a 95 % interval, which needs 6; repeat with --blocks 10 or more"
    if ratio.low <= 1 <= ratio.high:
        return (
            f"the interval holds 1; no difference is shown, and none above {percent(reach(ratio))} is there; "
            f"{more(ratio, margin)}"
        )
    if better == "neither":
        return "the interval excludes 1; no direction of this metric is good, so it is not judged; look at its values"
    return (
        f"the interval excludes 1, but {family} were compared and some of them do so by chance (adjusted p {adjusted or 0:.2f}); "
        f"inconclusive; {more(ratio, reach(ratio) / 2)}"
    )


def blocks_for(ratio: Interval, wanted: float) -> float:
    """How many blocks would bring the interval to +- wanted, as its width falls with the square root; may be infinite.

    wanted: a fraction above 0
    """
    return ratio.n * max(1.0, (ratio.width / (2 * wanted)) ** 2)


def more(ratio: Interval, wanted: float) -> str:
    """What would tell more: a number of blocks that can be measured, or less noise."""
    blocks = blocks_for(ratio, wanted)
    if blocks <= BLOCKS_ADVISED_MAX:
        return f"about {math.ceil(blocks)} blocks would tell (--blocks {math.ceil(blocks)})"
    return "a quieter machine (loam doctor) or longer runs would tell more, further blocks hardly"


def percent(fraction: float) -> str:
    """0.0523 -> "5.2 %"."""
    return f"{100 * fraction:.1f} %"
