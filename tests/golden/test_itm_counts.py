"""Instructions of accesses of code compiled with -fgnu-tm, on our library under norec, counted exactly by callgrind.

itm_paths.toml holds the accepted counts and an upper bound for each, as in test_instruction_counts.py.
A section of docs/instruction-counts.md is written from it.
"""

from __future__ import annotations

import pytest
from steps_table import Table

TABLE = Table(
    part="itm",
    title="libitm",
    comment="Instructions of accesses on our libitm.so.1 under norec",
    intro=(
        "{compiler}, algorithm `norec`, with barriers as in a program with several threads ([libitm.md](libitm.md)). The count",
        "of a read includes the call of the barrier, the barrier, and the algorithm's function.",
    ),
    more={},
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], str]:
    return TABLE.count(tmp_path_factory.mktemp("itm"))


def test_counts_are_the_accepted_ones(counted: tuple[dict[str, float], str]) -> None:
    TABLE.check(*counted)


def test_an_update_reads_before_its_first_write_as_a_read_only_transaction_does(
    counted: tuple[dict[str, float], str],
) -> None:
    steps, _ = counted
    before = steps["read of a word, before the first write"]
    assert before == steps["read of a word, read-only"]
    assert before < steps["read of a word, after the first write"]


def test_page_shows_the_accepted_counts() -> None:
    TABLE.check_page()
