"""Changes of the algorithm under auto, under the schedule checker: zombie readers and delayed write-backs, also by proxy.

What each piece checks stands in tests/simulator/switching_orders.cpp. The mutant order_of_a_change shows that the checker would
find a weaker order.
"""

from __future__ import annotations

import functools
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from simulating import CHECKED, start

PROGRAM = "simulated-switching_orders"
PIECES = [
    f"{piece}/{place}/{change}"
    for piece in ("zombie", "write-back", "zombie-by-proxy", "write-back-by-proxy")
    for place in ("before", "behind", "beside")
    for change in ("to-many", "to-few")
]
# Two threads, and no third one that changes the algorithm.
SHORT = [word for word in PIECES if "proxy" not in word and "beside" not in word]


def checked(mode: str, *words: str, seed: int = 1, bound: int = 1) -> subprocess.CompletedProcess[str]:
    environment = {"LOAM_SIM_CHECK": mode, "LOAM_SIM_BOUND": str(bound), "LOAM_SIM_EXECUTIONS_MAX": "1000000"}
    return start(PROGRAM, *words, machine=CHECKED, seed=seed, environment=environment, timeout_s=1800)


@functools.cache
def words() -> list[str]:
    return start(PROGRAM, machine=CHECKED).stdout.split()


def holds(mode: str, seeds: int) -> None:
    runs = [(word, seed) for word in words() for seed in range(1, seeds + 1)]
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        ended = pool.map(lambda run: checked(mode, run[0], seed=run[1]), runs)
        for (word, seed), done in zip(runs, ended, strict=True):
            assert done.stdout == "done\n", f"{word}, {mode}, seed {seed}:\n{done.stdout}{done.stderr}"


def explored(word: str, bound: int) -> set[str]:
    """What an exhaustive search with so many departures printed; it must have found nothing wrong."""
    done = checked("exhaustive", word, "outcome", bound=bound)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert any("explored" in line for line in lines), done.stderr
    return {line.partition("printed: ")[2] for line in lines if "printed: " in line}


def test_the_pieces_are_those_that_the_program_has() -> None:
    assert words() == ["bank", *PIECES]
    assert checked("random", "zombie/nowhere/to-many").returncode == 2


@pytest.mark.parametrize("mode", ["random", "pct"])
def test_what_is_unlinked_is_private_across_a_change(mode: str) -> None:
    holds(mode, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["random", "pct"])
def test_what_is_unlinked_is_private_across_a_change_in_many_orders(mode: str) -> None:
    holds(mode, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("word", PIECES)
def test_what_is_unlinked_is_private_across_a_change_in_every_order_with_a_departure(word: str) -> None:
    assert {"linked, owned", "-, owned"} <= explored(word, 1) | explored(word, 0)
