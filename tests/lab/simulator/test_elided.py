"""Elided sections (htm-lock) on a simulated machine with hardware transactions, so that every machine runs them."""

from __future__ import annotations

import pytest
from simulating import MACHINE, built, start

PROGRAM = "simulated-elided"
WITH = {
    **MACHINE, "transactions.policy": "requester-wins", "transactions.reads": "l1", "transactions.begin_cycles": "40",
    "transactions.commit_cycles": "40", "transactions.abort_cycles": "100",
}  # fmt: skip


@pytest.mark.parametrize("piece", ["excluded", "counted", "throws"])
def test_sections_exclude_one_another_whatever_ends_them(piece: str) -> None:
    for seed in range(1, 6):
        done = start(PROGRAM, piece, machine=WITH, seed=seed)
        assert (done.returncode, done.stdout) == (0, "done\n"), f"seed {seed}\n{done.stdout}{done.stderr}"


def test_blocks_of_a_section_that_threw_go_back_to_a_malloc_that_lends() -> None:
    done = start(PROGRAM, "throws", machine=WITH, environment={"LD_PRELOAD": built("malloc")})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
