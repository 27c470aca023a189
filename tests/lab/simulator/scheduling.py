"""Programs of tests/simulator that have pieces, each named by a word, under the schedule checker."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from simulating import CHECKED, start


@functools.cache
def words(program: str) -> list[str]:
    """Every piece that a program has."""
    return start(program, machine=CHECKED).stdout.split()


def checked(
    program: str, mode: str, *words: str, seed: int = 1, bound: int = 1
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a piece. bound: departures, of an exhaustive search"""
    environment = {"LOAM_SIM_CHECK": mode, "LOAM_SIM_BOUND": str(bound), "LOAM_SIM_EXECUTIONS_MAX": "1000000"}
    return start(program, *words, machine=CHECKED, seed=seed, environment=environment, timeout_s=1800)


def hold(program: str, pieces: Sequence[str], mode: str, seeds: int) -> None:
    """Every piece ends well under so many seeds of a mode that draws its orders."""
    runs = [(word, seed) for word in pieces for seed in range(1, seeds + 1)]
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        ended = pool.map(lambda run: checked(program, mode, run[0], seed=run[1]), runs)
        for (word, seed), done in zip(runs, ended, strict=True):
            assert done.stdout == "done\n", f"{word}, {mode}, seed {seed}:\n{done.stdout}{done.stderr}"


def explored(program: str, word: str, bound: int) -> set[str]:
    """What an exhaustive search with so many departures printed; it must have found nothing wrong."""
    done = checked(program, "exhaustive", word, "outcome", bound=bound)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert any("explored" in line for line in lines), done.stderr
    return {line.partition("printed: ")[2] for line in lines if "printed: " in line}
