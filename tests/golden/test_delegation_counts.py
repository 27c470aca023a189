"""Instructions of an operation on an object that nobody else wants, counted exactly by callgrind.

delegation_paths.toml holds the accepted counts and an upper bound for each, as in test_instruction_counts.py.
A section of docs/instruction-counts.md is written from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from steps_table import Table

MUTEX = "std::mutex"
# Those that are to be used in place of a mutex, and how much more they may take where nobody contends.
INSTEAD, FACTOR_MAX = ("cc-synch", "flat-combining"), 1.2


def over_mutex(steps: Mapping[str, Any], name: str) -> str:
    return f"{steps[name]['count'] / steps[MUTEX]['count']:.2f}"


TABLE = Table(
    part="delegation",
    title="Delegation",
    comment="Instructions of an operation on an object that nobody else wants",
    intro=(
        "{compiler}, of `apply([](long& n) {{ ++n; }})` on an object that no other thread uses, in a process of two threads.",
        "`std::mutex` is a `lock_guard` around `++n`, with the C library's part. `cc-synch` and `flat-combining` must take at",
        "most 1.2 times `std::mutex`. With a server the client waits for another thread, so its instructions are not counted.",
    ),
    more={"times `std::mutex`": over_mutex},
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], str]:
    return TABLE.count(tmp_path_factory.mktemp("delegation"))


def test_counts_are_the_accepted_ones(counted: tuple[dict[str, float], str]) -> None:
    TABLE.check(*counted)


def test_what_replaces_a_mutex_takes_little_more(counted: tuple[dict[str, float], str]) -> None:
    steps, _ = counted
    for name in INSTEAD:
        assert steps[name] <= FACTOR_MAX * steps[MUTEX], name


def test_page_shows_the_accepted_counts() -> None:
    TABLE.check_page()
