"""Hardware transactions of a simulated machine, through the seam that code for real ones uses."""

from __future__ import annotations

import pytest
from simulating import MACHINE, numbers, start

CAPACITY = 8  # in the status of an abort
WITH = {
    **MACHINE, "transactions.policy": "requester-wins", "transactions.reads": "l1", "transactions.begin_cycles": "40",
    "transactions.commit_cycles": "40", "transactions.abort_cycles": "100",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["written", "read"])
@pytest.mark.parametrize(
    ("lines", "stride", "status"), [(512, 64, 0), (513, 64, CAPACITY), (8, 4096, 0), (9, 4096, CAPACITY)]
)
def test_the_room_of_a_transaction_is_the_first_level_cache(kind: str, lines: int, stride: int, status: int) -> None:
    """32 KiB of 8 ways: 512 lines, and 8 of one set."""
    assert numbers("simulated-transactions", kind, lines, stride, machine=WITH)["status"] == status


def test_a_bank_keeps_its_sum_and_conflicts_grow_with_cores() -> None:
    few, many = (numbers("simulated-transactions", "bank", cores, 500, machine=WITH)["aborts"] for cores in (2, 8))
    assert 0 < few < many


@pytest.mark.parametrize("piece", ["registers", "blocks"])
def test_an_abort_puts_back_memory_locals_blocks_and_ends_before_a_system_call(piece: str) -> None:
    done = start("simulated-transactions", piece, machine=WITH)
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_an_interrupt_aborts() -> None:
    """One each 100 cycles lets no transaction of 100 lines commit."""
    machine = {**WITH, "interrupt.every_cycles": "100"}
    assert numbers("simulated-transactions", "written", 100, 64, machine=machine)["status"] != 0


def test_a_machine_without_them_says_so() -> None:
    done = start("simulated-transactions", "registers", machine=MACHINE)
    assert "failed: transactions work" in done.stdout


def test_a_policy_that_needs_buffered_stores_is_refused() -> None:
    done = start("simulated-transactions", "registers", machine={**WITH, "transactions.policy": "committer-wins"})
    assert done.returncode == 2
    assert "committer-wins" in done.stderr
