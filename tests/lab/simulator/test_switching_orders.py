"""Changes of the algorithm under auto, under the schedule checker: zombie readers and delayed write-backs, also by proxy.

What each piece checks stands in tests/simulator/switching_orders.cpp. The mutant order_of_a_change shows that the checker would
find a weaker order.
"""

from __future__ import annotations

import pytest
from scheduling import checked, explored, hold, words

PROGRAM = "simulated-switching_orders"
PIECES = [
    f"{piece}/{place}/{change}"
    for piece in ("zombie", "write-back", "zombie-by-proxy", "write-back-by-proxy")
    for place in ("before", "behind", "beside")
    for change in ("to-many", "to-few")
]


def test_the_pieces_are_those_that_the_program_has() -> None:
    assert words(PROGRAM) == ["bank", *PIECES]
    assert checked(PROGRAM, "random", "zombie/nowhere/to-many").returncode == 2


@pytest.mark.parametrize("mode", ["random", "pct"])
def test_what_is_unlinked_is_private_across_a_change(mode: str) -> None:
    hold(PROGRAM, words(PROGRAM), mode, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["random", "pct"])
def test_what_is_unlinked_is_private_across_a_change_in_many_orders(mode: str) -> None:
    hold(PROGRAM, words(PROGRAM), mode, 40)


# With a third thread a search takes minutes.
@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("word", PIECES)
def test_what_is_unlinked_is_private_across_a_change_in_every_order_with_a_departure(word: str) -> None:
    assert {"linked, owned", "-, owned"} <= explored(PROGRAM, word, 1) | explored(PROGRAM, word, 0)
