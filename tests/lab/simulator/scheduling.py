"""Programs of tests/simulator that have pieces, each named by a word, under the schedule checker."""

from __future__ import annotations

import functools
import subprocess

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


def explored(program: str, word: str, bound: int) -> set[str]:
    """What an exhaustive search with so many departures printed; it must have found nothing wrong."""
    done = checked(program, "exhaustive", word, "outcome", bound=bound)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert any("explored" in line for line in lines), done.stderr
    return {line.partition("printed: ")[2] for line in lines if "printed: " in line}
