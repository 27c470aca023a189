"""Instructions of the managed heap's fast paths, counted exactly by callgrind.

gc_paths.toml holds the accepted counts and an upper bound for each, as in test_instruction_counts.py.
A section of docs/instruction-counts.md is written from it.
"""

from __future__ import annotations

import pytest
from steps_table import Table

TABLE = Table(
    part="gc",
    title="The managed heap",
    comment="Instructions of the managed heap's fast paths",
    intro=(
        "{compiler}; logs in the dedicated heap, all filters on. Allocation is that in a buffer of the thread; a logged",
        "enlistment includes its share of the commit.",
    ),
    more={},
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], str]:
    return TABLE.count(tmp_path_factory.mktemp("gc"))


def test_counts_are_the_accepted_ones(counted: tuple[dict[str, float], str]) -> None:
    TABLE.check(*counted)


def test_page_shows_the_accepted_counts() -> None:
    TABLE.check_page()
