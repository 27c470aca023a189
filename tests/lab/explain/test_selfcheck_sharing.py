"""How `selfcheck sharing` judges a run by what the planted program says of itself, and a table by what must hold."""

from __future__ import annotations

from typing import Any

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import sharing
from loam_lab.dev.selfcheck.sharing import Case, Row

BLOCKS = Case("blocks", 20, 2, "glibc")


def explained(*, named: bool = True, function: str = sharing.MADE_BY, low: float = 0.2, high: float = 0.3) -> dict[str, Any]:
    """What a run's document has of a pair of blocks."""
    block = {"made": {"function": function}}
    return {
        "blocks": [{"named": named, "cause": "other_block", "blocks": [block, block]}],
        "kinds": [{"kind": "other_block", "low": low, "high": high}],
    }


def test_a_pair_counts_as_found_with_its_kind_and_both_places_that_made_it() -> None:
    assert sharing.judged(BLOCKS, explained(), 0.25) == (True, True, True)
    assert sharing.judged(BLOCKS, explained(function="main"), 0.25) == (False, True, True)
    assert sharing.judged(BLOCKS, explained(named=False), 0.25) == (False, True, False)
    assert sharing.judged(Case("static", 20, 2, "glibc"), explained(), 0.25) == (False, False, True)


def test_the_interval_is_held_against_the_share_that_the_program_measured() -> None:
    assert sharing.planted_share("x\nsharers: 0.3125 of the time\n") == 0.3125
    assert not sharing.judged(BLOCKS, explained(), 0.3125)[1]
    assert sharing.judged(BLOCKS, explained(), 0.2)[1]
    with pytest.raises(LoamError, match="does not say which share it planted"):
        sharing.planted_share("sharers: killed")


def test_a_table_holds_if_each_row_does_and_few_runs_that_share_nothing_name_a_line() -> None:
    good = Row(BLOCKS, 20, found=19, covered=18, named=20)
    assert sharing.status([good]) == 0
    for bad in (Row(BLOCKS, 20, found=18, covered=20, named=20), Row(BLOCKS, 20, found=20, covered=17, named=20)):
        assert sharing.status([good, bad]) == 1
    small = Row(Case("blocks", 1, 2, "glibc"), 20, found=0, covered=0, named=0)
    assert sharing.status([good, small]) == 0
    nothing = Case("nothing", 0, 2, "glibc")
    assert sharing.status([Row(nothing, 200, 0, 0, named=2)]) == 0
    assert sharing.status([Row(nothing, 200, 0, 0, named=3)]) == 1
