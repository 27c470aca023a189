"""What an interval says of a limit, of a band, and of two that are even."""

from __future__ import annotations

import claimed
import pytest
from test_claims import A1, claim, speeds, verdict

from loam_lab.judging.claims import judges
from loam_lab.judging.claims.judges import FAILS, HOLDS, OPEN
from loam_lab.judging.statistics.intervals import Interval


def interval(low: float | None, high: float | None) -> Interval:
    return Interval(1.0, low, high, 10)


# A comparison's own interval, that at the confidence of all together, and what they say of a limit of 1 (2 to 4: band).
NONE = interval(None, None)


@pytest.mark.parametrize(
    ("one", "apart", "above", "below"),
    [
        (interval(1.1, 1.2), interval(1.0, 1.3), HOLDS, FAILS),
        (interval(1.0, 1.2), interval(0.9, 1.3), OPEN, OPEN),  # the limit itself is not above it
        (interval(0.8, 0.9), interval(0.7, 1.0), FAILS, HOLDS),
        (interval(0.8, 1.0), interval(0.7, 1.1), OPEN, OPEN),  # nor below it
        (interval(0.8, 0.9), interval(0.7, 1.1), OPEN, HOLDS),
        (interval(1.1, 1.2), interval(0.9, 1.3), HOLDS, OPEN),
        (interval(1.1, 1.2), NONE, HOLDS, OPEN),
        (interval(0.8, 0.9), NONE, OPEN, HOLDS),
        (NONE, NONE, OPEN, OPEN),
    ],
)
def test_a_limit_is_judged_by_both_intervals(one: Interval, apart: Interval, above: str, below: str) -> None:
    assert judges.above(1.0)(one, apart) == above
    assert judges.under(1.0)(one, apart) == below


@pytest.mark.parametrize(
    ("one", "apart", "limit", "above", "below"),
    [
        (interval(0.99, 1.01), interval(0.98, 1.02), 1.0, FAILS, FAILS),  # as fast, as far as two can be told apart
        (interval(0.99, 1.01), interval(0.979, 1.01), 1.0, OPEN, OPEN),
        (interval(0.99, 1.01), interval(0.99, 1.021), 1.0, OPEN, OPEN),
        (interval(1.001, 1.01), interval(0.999, 1.01), 1.0, HOLDS, FAILS),  # a small difference that was shown is one
        (interval(0.99, 0.999), interval(0.99, 1.001), 1.0, FAILS, HOLDS),
        (interval(1.99, 2.01), interval(1.98, 2.02), 2.0, OPEN, OPEN),  # no other limit says that two differ
        (interval(0.99, 1.01), NONE, 1.0, OPEN, OPEN),
    ],
)
def test_two_that_were_shown_to_be_even_are_not_apart(
    one: Interval, apart: Interval, limit: float, above: str, below: str
) -> None:
    assert judges.above(limit, 0.02)(one, apart) == above
    assert judges.under(limit, 0.02)(one, apart) == below


@pytest.mark.parametrize(("margin", "expected"), [(0.02, "contradicted"), (0.0001, "undecided")])
def test_the_margin_is_the_studys(margin: float, expected: str) -> None:
    above = claim({"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}})
    made = claimed.study([above]).model_copy(update={"margin": margin})
    assert verdict(claimed.campaign(made, speeds(a=100, b=100)))["verdict"] == expected


@pytest.mark.parametrize(
    ("one", "apart", "outcome"),
    [
        (interval(2.0, 4.0), interval(1.9, 4.1), HOLDS),  # its limits belong to a band
        (interval(1.99, 4.0), interval(1.9, 4.1), OPEN),
        (interval(2.0, 4.01), interval(1.9, 4.1), OPEN),
        (interval(1.0, 1.9), interval(0.9, 1.99), FAILS),
        (interval(1.0, 1.9), interval(0.9, 2.0), OPEN),
        (interval(4.1, 5.0), interval(4.01, 5.1), FAILS),
        (interval(4.1, 5.0), interval(4.0, 5.1), OPEN),
        (interval(1.0, 1.9), NONE, OPEN),
        (NONE, NONE, OPEN),
        (interval(1.0, 5.0), interval(0.9, 5.1), OPEN),
    ],
)
def test_a_band_is_judged_by_both_intervals(one: Interval, apart: Interval, outcome: str) -> None:
    assert judges.within(2.0, 4.0)(one, apart) == outcome
