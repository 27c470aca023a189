"""Reads that are shown to writers, under the schedule checker: of a reader and a writer one sees the other.

What each piece checks stands in tests/simulator/visible_orders.cpp. The mutants with that program (tests/mutants) show that the
checker would find a weaker order.
"""

from __future__ import annotations

import pytest
from scheduling import checked, hold, words

PROGRAM = "simulated-visible_orders"
WAYS = ("together", "apart", "mixed", "without", "marked")
PIECES = [*(f"skew/{way}" for way in (*WAYS, "first")), *(f"sums/{way}" for way in WAYS)]


def test_the_pieces_are_those_that_the_program_has() -> None:
    assert words(PROGRAM) == PIECES
    assert checked(PROGRAM, "random", "skew/nowhere").returncode == 2


@pytest.mark.parametrize("mode", ["random", "pct"])
def test_no_reader_is_missed(mode: str) -> None:
    hold(PROGRAM, PIECES, mode, 6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["random", "pct"])
def test_no_reader_is_missed_in_many_orders(mode: str) -> None:
    hold(PROGRAM, PIECES, mode, 200)
