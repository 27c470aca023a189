"""Instructions of accesses through the C interface, as calls and inline, counted exactly by callgrind.

c_paths.toml holds the accepted counts and an upper bound for each, as in test_instruction_counts.py.
A section of docs/instruction-counts.md is written from it.
"""

from __future__ import annotations

import pytest
from steps_table import Table

TABLE = Table(
    part="c",
    title="The C interface",
    comment="Instructions of accesses through the C interface",
    intro=(
        "{compiler}, library linked statically: the shared one adds a jump to each call. Under `norec`, or under the algorithm",
        "that a row names. *call*: a function of `loam/tm.h`. *inline*: the same compiled with `-DLOAM_TM_ALGORITHM`",
        "([embedding.md](embedding.md#accesses-without-a-call)).",
    ),
    more={},
    programs=("c-norec", "c-etl-wb", "c-dctl"),
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], str]:
    return TABLE.count(tmp_path_factory.mktemp("c"))


def test_counts_are_the_accepted_ones(counted: tuple[dict[str, float], str]) -> None:
    TABLE.check(*counted)


def test_an_inline_access_takes_fewer_instructions_than_a_call(counted: tuple[dict[str, float], str]) -> None:
    steps, _ = counted
    common = [name.removesuffix(": inline") for name in steps if name.endswith(": inline")]
    # Where the inline part decides nothing, it comes on top.
    hard = {"read of a word written before", "write of a word behind the eighth, with its commit"}
    hard |= {
        f"{records}: {step}" for records in ("etl-wb", "dctl")
        for step in ("read of a word written before", "write of 4 bytes, the second to the eighth, with its commit")
    }  # fmt: skip
    assert hard < set(common)
    for name in set(common) - hard:
        assert steps[f"{name}: inline"] < steps[f"{name}: call"], name


def test_page_shows_the_accepted_counts() -> None:
    TABLE.check_page()
