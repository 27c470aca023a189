"""Hardware transactions beside software ones, on a simulated machine.

A million histories, which take minutes: pytest -m exhaustive tests/lab/simulator/test_hybrid.py
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from simulating import MACHINE, built, start

PROGRAM = "simulated-hybrid"
WITH = {
    **MACHINE, "transactions.policy": "requester-wins", "transactions.reads": "l1", "transactions.begin_cycles": "40",
    "transactions.commit_cycles": "40", "transactions.abort_cycles": "100",
}  # fmt: skip
HISTORIES = 10_000
MILLION, PARTS = 1_000_000, 20


def numbers(*arguments: object, seed: int = 1, timeout_s: float = 120) -> dict[str, int]:
    done = start(PROGRAM, *arguments, machine=WITH, seed=seed, timeout_s=timeout_s)
    assert done.returncode == 0, done.stderr
    return {key: int(value) for key, _, value in (word.partition("=") for word in done.stdout.split())}


def histories(kind: str, count: int, seed: int, timeout_s: float = 120) -> dict[str, int]:
    """Of one process; the seed chooses the histories, and on the machine the order of what happens at the same time."""
    return numbers("histories", kind, count, seed, seed=seed, timeout_s=timeout_s)


def test_nobody_sees_a_torn_state_and_no_update_is_lost() -> None:
    counts = histories("right", HISTORIES, seed=1)
    assert (counts["histories"], counts["torn"], counts["lost"]) == (HISTORIES, 0, 0)
    assert counts["hardware"] > HISTORIES, "both kinds ran"
    assert counts["software"] > HISTORIES


def test_a_hybrid_whose_hardware_commits_are_not_told_is_found_out() -> None:
    counts = histories("untold", HISTORIES, seed=1)
    assert counts["torn"] > 0


@pytest.mark.parametrize("piece", ["alone", "turns", "freed", "inside"])
def test_hardware_does_its_part_beside_software(piece: str) -> None:
    """Without the gate in hardware, its wake-ups, or deferred frees, one fails: tests/mutants/tm/hardware/hybrid.toml."""
    for seed in range(1, 6):
        done = start(PROGRAM, piece, machine=WITH, seed=seed)
        assert (done.returncode, done.stdout) == (0, "done\n"), f"seed {seed}\n{done.stdout}{done.stderr}"


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_a_million_histories_have_no_torn_state() -> None:
    built(PROGRAM)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(lambda part: histories("right", MILLION // PARTS, part + 2, 3600), range(PARTS)))
    assert sum(part["histories"] for part in parts) == MILLION
    assert all((part["torn"], part["lost"]) == (0, 0) for part in parts)


@pytest.mark.parametrize("threads", [1, 4, 8])
def test_short_disjoint_sections_commit_in_hardware(threads: int) -> None:
    counts = numbers("disjoint", threads, 2_000)
    assert counts["commits"] == threads * 2_000
    assert counts["hardware"] >= 0.98 * counts["commits"]


def test_short_disjoint_sections_commit_in_hardware_beside_interrupts() -> None:
    """One each 20 000 cycles, some hundred sections."""
    machine = {**WITH, "interrupt.every_cycles": "20000"}
    done = start(PROGRAM, "disjoint", 4, 4_000, machine=machine)
    counts = {key: int(value) for key, _, value in (word.partition("=") for word in done.stdout.split())}
    assert 0.98 * counts["commits"] <= counts["hardware"] < counts["commits"]
