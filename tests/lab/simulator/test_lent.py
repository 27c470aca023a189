"""Allocation in hardware transactions of a simulated machine.  If malloc lends stocks, it adds few aborts and two cache
lines."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from simulating import MACHINE, built, start

PROGRAM = "simulated-lent"
WITH = {
    **MACHINE, "transactions.policy": "requester-wins", "transactions.reads": "l1", "transactions.begin_cycles": "40",
    "transactions.commit_cycles": "40", "transactions.abort_cycles": "100",
}  # fmt: skip
# The first level of machines/emerald-8.toml: 768 lines, 12 of each of 64 sets.
EMERALD = {**WITH, "l1.bytes": "49152", "l1.ways": "12"}
WAYS = ("hybrid", "elided")


def counts(
    way: str, kind: str, size: int, count: int, times: int, threads: int = 1, machine: Mapping[str, str] = WITH
) -> dict[str, int]:
    environment = {"LD_PRELOAD": built("malloc")}
    done = start(PROGRAM, way, kind, size, count, times, threads, machine=machine, environment=environment)
    assert done.returncode == 0, done.stderr
    numbers = {key: int(value) for key, _, value in (word.partition("=") for word in done.stdout.split())}
    assert (numbers["wrong"], numbers["lends"]) == (0, 1)
    return numbers


@pytest.mark.parametrize("size", [48, 1000, 4096])
@pytest.mark.parametrize("way", WAYS)
def test_allocation_adds_hardly_an_abort(way: str, size: int) -> None:
    """Four threads, eight blocks a transaction. The first aborts fill the stocks."""
    held, made = (counts(way, kind, size, 8, 1_000, threads=4) for kind in ("held", "made"))
    assert made["commits"] == held["commits"] == 4_000
    assert 0 < made["provided"] <= made["aborts"]
    assert made["aborts"] - held["aborts"] <= 0.005 * made["commits"]
    assert made["hardware"] >= 0.99 * made["commits"]


def least_lines(way: str, kind: str) -> int:
    """Lines of the smallest first-level cache, of one set, in which a transaction on one block commits."""
    low, high = 1, 64  # it fits into `high`, and does not into `low`
    while high - low > 1:
        lines = (low + high) // 2
        machine = {**WITH, "l1.bytes": str(64 * lines), "l1.ways": str(lines)}
        if counts(way, kind, 48, 1, 200, machine=machine)["hardware"] > 0:
            high = lines
        else:
            low = lines
    assert high < 64, "it fits"
    return high


@pytest.mark.parametrize("way", WAYS)
def test_an_allocation_touches_two_lines(way: str) -> None:
    assert least_lines(way, "made") - least_lines(way, "held") <= 2


@pytest.mark.parametrize("way", WAYS)
def test_two_hundred_blocks_of_4_kib_fit_into_a_transaction(way: str) -> None:
    counted = counts(way, "made", 4096, 200, 100, machine=EMERALD)
    assert counted["hardware"] >= 90
