"""Transactions under the schedule checker: every algorithm in many orders, with the values that C++20 allows.

What each piece checks stands in tests/simulator/transactional_orders.cpp. That the checker would find a weaker order is shown by
the mutants with that program (tests/mutants). `./loam test --replay SEED` (LOAM_CHECK_SEED) runs all of it with one seed.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from scheduling import words
from simulating import CHECKED, start

PROGRAM = "simulated-transactional_orders"
REPLAYED = os.environ.get("LOAM_CHECK_SEED")
SEEDS = [int(REPLAYED)] if REPLAYED else list(range(1, 11))
PIECES = ("bank", "skew", "published", "privatized", "shared", "alone")


def checked(word: str, mode: str, seed: int) -> subprocess.CompletedProcess[str]:
    return start(PROGRAM, word, machine=CHECKED, seed=seed, environment={"LOAM_SIM_CHECK": mode})


def test_the_pieces_are_run_on_every_algorithm_but_that_of_one_thread() -> None:
    algorithms = {
        piece: {word.split("/")[1] for word in words(PROGRAM) if word.startswith(f"{piece}/")} for piece in PIECES
    }
    assert sum(map(len, algorithms.values())) == len(words(PROGRAM))
    assert all(algorithms[piece] == algorithms["bank"] for piece in PIECES)
    assert {"etl-wb", "norec", "two-phase"} <= algorithms["bank"]
    assert "sequential" not in algorithms["bank"]


@pytest.mark.parametrize("mode", ["random", "pct"])
@pytest.mark.parametrize("piece", PIECES)
def test_transactions_hold_in_every_order(piece: str, mode: str) -> None:
    runs = [(word, seed) for word in words(PROGRAM) if word.startswith(f"{piece}/") for seed in SEEDS]
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        ended = pool.map(lambda run: checked(run[0], mode, run[1]), runs)
        for (word, seed), done in zip(runs, ended, strict=True):
            assert done.stdout == "done\n", f"{word}, {mode}, seed {seed}:\n{done.stdout}{done.stderr}"


def test_a_piece_or_an_algorithm_that_is_not_there_is_refused() -> None:
    for word in ("bank/nothing", "nothing/norec", "bank"):
        assert start(PROGRAM, word, machine=CHECKED).returncode == 2
