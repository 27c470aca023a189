"""The wait that commits share, under the schedule checker: zombie readers and delayed write-backs, also by proxy.

What each piece checks stands in tests/simulator/grace_orders.cpp. The mutants in tests/mutants/tm/attempts/grace.toml show that
the checker would find a weaker order.
"""

from __future__ import annotations

import functools
import subprocess

import pytest
from simulating import CHECKED, start

PROGRAM = "simulated-grace_orders"
PIECES = [
    f"{piece}/{groups}"
    for piece in ("zombie", "write-back", "zombie-by-proxy", "write-back-by-proxy", "settled")
    for groups in ("together", "paired", "apart")
]


def checked(mode: str, *words: str, seed: int = 1, bound: int = 1) -> subprocess.CompletedProcess[str]:
    environment = {"LOAM_SIM_CHECK": mode, "LOAM_SIM_BOUND": str(bound), "LOAM_SIM_EXECUTIONS_MAX": "1000000"}
    return start(PROGRAM, *words, machine=CHECKED, seed=seed, environment=environment, timeout_s=1800)


@functools.cache
def words() -> list[str]:
    return start(PROGRAM, machine=CHECKED).stdout.split()


def explored(word: str, bound: int) -> set[str]:
    """What an exhaustive search with so many departures printed; it must have found nothing wrong."""
    done = checked("exhaustive", word, "outcome", bound=bound)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert any("explored" in line for line in lines), done.stderr
    return {line.partition("printed: ")[2] for line in lines if "printed: " in line}


def test_the_pieces_are_those_that_the_program_has() -> None:
    assert words() == PIECES
    assert checked("random", "zombie/nowhere").returncode == 2


@pytest.mark.parametrize("word", PIECES)
@pytest.mark.parametrize("mode", ["random", "pct"])
def test_what_is_unlinked_is_private_in_many_orders(word: str, mode: str) -> None:
    for seed in range(1, 11):
        done = checked(mode, word, seed=seed)
        assert done.stdout == "done\n", f"{word}, {mode}, seed {seed}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("word", ["zombie/together", "zombie/apart", "write-back/together", "write-back/apart"])
def test_what_is_unlinked_is_private_in_every_order_with_a_departure(word: str) -> None:
    assert explored(word, 1) == {"linked, owned", "-, owned"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("word", PIECES)
def test_what_is_unlinked_is_private_in_every_order_with_two_departures(word: str) -> None:
    assert {"linked, owned", "-, owned"} <= explored(word, 2)
