"""Cells of which further runs would only repeat what is known, and those that look like them."""

from __future__ import annotations

import pytest
from campaigns import study

from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.given_up import TIMEOUTS_MAX, GivenUp
from loam_lab.model.cell import SURROUNDED, Cell


@pytest.fixture
def cells() -> list[Cell]:
    """Of two structures under two allocators."""
    return plans.make(study(parameters={"structure": ["list", "tree"]})).cells()


def noted(cell: Cell, *states: str, purpose: str = "timing") -> GivenUp:
    """What is known after runs of a cell that ended so."""
    given_up = GivenUp()
    for state in states:
        given_up.note(cell, {"purpose": purpose, "state": state})
    return given_up


def test_timeouts_are_counted_cell_by_cell(cells: list[Cell]) -> None:
    given_up = GivenUp()
    for turn in range(TIMEOUTS_MAX):
        for cell in cells:
            assert given_up.reason(cell) == "", f"turn {turn}"
            given_up.note(cell, {"purpose": "timing", "state": "timeout"})
    assert [given_up.reason(cell) for cell in cells] == ["timeout"] * len(cells)


def test_who_was_proven_before_may_be_disturbed_once(cells: list[Cell]) -> None:
    same = [cell for cell in cells if cell.allocator == cells[0].allocator]
    assert len(same) == 2
    for states, reason in ((("unproven",), "unproven"), (("ok", "unproven"), ""), (("unproven", "ok"), "unproven")):
        known = noted(same[0], *states)
        assert [known.reason(cell) for cell in same] == [reason, reason], "a proof is of the allocator"
        assert {known.reason(cell) for cell in cells if cell not in same} == {""}


@pytest.mark.parametrize("purpose", sorted(SURROUNDED))
def test_runs_inside_a_tool_say_nothing(cells: list[Cell], purpose: str) -> None:
    for state in ("timeout", "unproven"):
        assert noted(cells[0], *[state] * TIMEOUTS_MAX, purpose=purpose).reason(cells[0]) == ""


def test_a_changed_file_gives_up_its_cell_alone(cells: list[Cell]) -> None:
    given_up = GivenUp()
    given_up.change(cells[1])
    assert [given_up.reason(cell) for cell in cells] == ["", "changed", *[""] * (len(cells) - 2)]
