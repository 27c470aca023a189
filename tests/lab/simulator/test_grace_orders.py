"""The wait that commits share, under the schedule checker: zombie readers and delayed write-backs, also by proxy.

What each piece checks stands in tests/simulator/grace_orders.cpp. The mutants in tests/mutants/tm/attempts/grace.toml show that
the checker would find a weaker order.
"""

from __future__ import annotations

import pytest
from scheduling import checked, explored, words

PROGRAM = "simulated-grace_orders"
PIECES = [
    f"{piece}/{groups}"
    for piece in ("zombie", "write-back", "zombie-by-proxy", "write-back-by-proxy", "settled")
    for groups in ("together", "paired", "apart")
]


def test_the_pieces_are_those_that_the_program_has() -> None:
    assert words(PROGRAM) == PIECES
    assert checked(PROGRAM, "random", "zombie/nowhere").returncode == 2


@pytest.mark.parametrize("word", PIECES)
@pytest.mark.parametrize("mode", ["random", "pct"])
def test_what_is_unlinked_is_private_in_many_orders(word: str, mode: str) -> None:
    for seed in range(1, 11):
        done = checked(PROGRAM, mode, word, seed=seed)
        assert done.stdout == "done\n", f"{word}, {mode}, seed {seed}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("word", ["zombie/together", "zombie/apart", "write-back/together", "write-back/apart"])
def test_what_is_unlinked_is_private_in_every_order_with_a_departure(word: str) -> None:
    assert explored(PROGRAM, word, 1) == {"linked, owned", "-, owned"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("word", PIECES)
def test_what_is_unlinked_is_private_in_every_order_with_two_departures(word: str) -> None:
    assert {"linked, owned", "-, owned"} <= explored(PROGRAM, word, 2)
