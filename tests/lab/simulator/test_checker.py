"""The schedule checker: small lock-free pieces in many orders, with the values that C++20 allows.

`./loam test --replay SEED` (LOAM_CHECK_SEED) runs all of them with one seed and shows what the checker says.
"""

from __future__ import annotations

import os
import subprocess

import pytest
from simulating import CHECKED, built, start

from loam_lab.base import paths

PROGRAM = "simulated-orders"
REPLAYED = os.environ.get("LOAM_CHECK_SEED")
SEEDS = [int(REPLAYED)] if REPLAYED else list(range(1, 41))
# What is found at all is found in far fewer: one in three to one in twenty.
SEEDS_MAX = 200
MODES = ("random", "pct")
RIGHT = (
    "message",
    "dekker",
    "spin-lock",
    "owned-lock",
    "elided-lock",
    "fallback-lock",
    "barrier",
    "slots",
    "epochs",
    "hazards",
    "remote-frees",
    # Each scheme of delegation is a piece of its own name.
    *(
        file.stem.replace("_", "-")
        for file in sorted((paths.root() / "runtime" / "delegation" / "schemes").glob("*.hpp"))
    ),
)


def checked(piece: str, kind: str, mode: str, seed: int) -> subprocess.CompletedProcess[str]:
    # Of the allocators ours alone can be checked: it is instrumented.
    preload = {"LD_PRELOAD": built("malloc")} if piece == "remote-frees" else {}
    return start(PROGRAM, piece, kind, machine=CHECKED, seed=seed, environment={"LOAM_SIM_CHECK": mode, **preload})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("piece", RIGHT)
def test_what_is_right_holds_in_every_order(piece: str, mode: str) -> None:
    for seed in SEEDS:
        done = checked(piece, "right", mode, seed)
        assert done.stdout == "done\n", f"{piece}, {mode}, ./loam test --replay {seed}:\n{done.stdout}{done.stderr}"


@pytest.mark.skipif(REPLAYED is not None, reason="a single seed need not find it")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("piece", "message"), [
    ("message", "the program ended with status 1"), ("dekker", "the program ended with status 1"), ("spin-lock", "race: thread"),
    ("epochs", "race: thread"),
])  # fmt: skip
def test_an_order_that_is_too_weak_is_found_and_told(piece: str, message: str, mode: str) -> None:
    failing = next(
        (run for seed in range(1, 1 + SEEDS_MAX) if (run := checked(piece, "weak", mode, seed)).returncode), None
    )
    assert failing is not None, f"{piece}: {SEEDS_MAX} seeds found nothing"
    assert message in failing.stderr
    assert "repeat with ./loam test --replay" in failing.stderr
    assert "threads in the order in which they ran last:" in failing.stderr


def test_a_seed_repeats_what_it_found() -> None:
    runs = [checked("message", "weak", "random", seed) for seed in SEEDS]
    again = [checked("message", "weak", "random", seed) for seed in SEEDS]
    assert [(run.returncode, run.stderr) for run in runs] == [(run.returncode, run.stderr) for run in again]


def test_a_stale_value_is_called_so() -> None:
    outputs = [checked("message", "weak", "random", seed).stderr for seed in SEEDS]
    assert REPLAYED or any("= 0, an older value" in text for text in outputs)
