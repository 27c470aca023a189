"""What calls of a native allocator cost on a simulated machine: hits, misses and frees by other threads, by size."""

from __future__ import annotations

import pytest
from simulating import MACHINE, start

# Of 64 bytes a thread keeps four freed blocks, of 1024 none.
TABLE = "test 1.0;64=4,100,200,1000,2000,5000;1024=0,10,20,300,400,500"
# What the program itself does for each call: it stores or loads the block's address.
OWN = int(MACHINE["l1.cycles"]) + int(MACHINE["core.access_cycles"])


def cycles(*arguments: object, allocation: str = TABLE) -> dict[str, int]:
    environment = {"LOAM_SIM_ALLOCATION": allocation} if allocation else {}
    done = start("simulated-memory", *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    words = (word.partition("=") for word in done.stdout.split())
    return {key: int(value) for key, _, value in words if value.isdigit()}


@pytest.mark.parametrize(
    ("count", "malloc", "free"),
    [(1, 100, 200), (4, 400, 800), (5, 1400, 2800), (10, 6400, 12800)],
    ids=["one", "the stock", "one more", "mostly misses"],
)
def test_what_a_thread_keeps_is_hit_and_the_rest_is_missed(count: int, malloc: int, free: int) -> None:
    measured = cycles("allocate", 64, count)
    assert measured["malloc"] == malloc + count * OWN
    assert measured["free"] == free + count * OWN
    assert measured["kind"] == 1


@pytest.mark.parametrize(
    ("size", "malloc", "free"), [(1, 100, 200), (65, 300, 400), (1024, 300, 400), (99999, 300, 400)]
)
def test_a_size_costs_what_the_next_larger_one_in_the_table_does(size: int, malloc: int, free: int) -> None:
    measured = cycles("allocate", size, 1)
    assert measured["malloc"] == malloc + OWN
    assert measured["free"] == free + OWN


def test_a_free_by_another_thread_is_a_remote_one() -> None:
    assert cycles("free-there", 64, 8)["free"] == 8 * (5000 + OWN)


def test_without_a_table_each_call_costs_the_same() -> None:
    for allocation, malloc, free in (("", 60, 40), ("7,9", 7, 9)):
        measured = cycles("allocate", 64, 10, allocation=allocation)
        assert measured["malloc"] == 10 * (malloc + OWN)
        assert measured["free"] == 10 * (free + OWN)
        assert measured["kind"] == 0


@pytest.mark.parametrize(
    ("allocation", "part"),
    [
        ("60", "60"),
        ("60,x", "60,x"),
        ("test;64=1,2,3", "64=1,2,3"),
        ("test;64=1,2,3,4,5,6;64=1,2,3,4,5,6", "64=1"),
        ("test;", "test;"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(allocation: str, part: str) -> None:
    done = start("simulated-memory", "allocate", 64, 1, environment={"LOAM_SIM_ALLOCATION": allocation})
    assert done.returncode == 2
    assert f"LOAM_SIM_ALLOCATION: {part}" in done.stderr
    assert "must be MALLOC,FREE" in done.stderr
