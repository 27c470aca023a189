"""Which columns are narrow enough: by their widest ratio, by the blocks before that turn alone, and not too early."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, measure, study

from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure import stopping_rule
from loam_lab.campaign.measure.stopping_rule import Narrow
from loam_lab.judging.statistics.data import Campaign
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.cell import Cell
from loam_lab.model.study import Study

WIDE, NARROW = 0.5, 0.001


def ask(patched: pytest.MonkeyPatch, half_widths: Mapping[str, float]) -> list[int]:
    """Let the ratios of each allocator have a half-width; returns: of how many blocks they are, as it is asked."""
    blocks: list[int] = []

    def ratio(campaign: Campaign, cell: Cell) -> Interval | None:
        blocks.append(len({run.block for runs in campaign.timed.values() for run in runs}))
        half = half_widths.get(cell.allocator)
        return None if half is None else Interval(1.0, 1 / (1 + half), 1 + half, 6)

    patched.setattr(stopping_rule.contrasts, "to_baseline", ratio)
    return blocks


def narrow(made: Study, folder: Path) -> Narrow:
    """After the first blocks of a study."""
    measure(made.model_copy(update={"target_width": None}), folder)
    return Narrow(made, plans.make(made), folder)


@pytest.mark.parametrize("order", [("fast", "slow"), ("slow", "fast")])
def test_the_widest_ratio_of_a_column_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any) -> None:
    made = study(allocators=["plain", *order], blocks=2, target_width=0.02, max_blocks=20)
    rule = narrow(made, tmp_path)
    ask(monkeypatch, {"fast": WIDE, "slow": NARROW})
    assert rule.close(2, frozenset()) == frozenset()
    ask(monkeypatch, {"fast": NARROW, "slow": NARROW})
    assert rule.close(2, frozenset()) == {0}


def test_later_blocks_that_a_resumed_campaign_has_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = study(blocks=2, target_width=0.02, max_blocks=20)
    measure(made.model_copy(update={"target_width": None, "blocks": 14}), tmp_path)
    rule = Narrow(made, plans.make(made), tmp_path)
    blocks = ask(monkeypatch, {"fast": WIDE})
    for turn in (2, 7, 12):
        rule.close(turn, frozenset())
        assert set(blocks) == {turn}
        blocks.clear()


def test_each_group_has_its_own_number_of_blocks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"workload": "intset", "sync": [STM], "threads": [1], "parameters": {"structure": "list"}}
    groups = [{"name": "few", **one, "blocks": 2}, {"name": "many", **one, "blocks": 7}]
    made = Study.model_validate(
        {**study(blocks=2, target_width=0.02, max_blocks=20).model_dump(by_alias=True, mode="json"), "groups": groups}
    )
    rule = narrow(made, tmp_path)
    columns = {run.cell.group: run.column for block in plans.make(made).turns[0] for run in block}
    ask(monkeypatch, {"fast": NARROW})
    assert rule.close(2, frozenset()) == {columns["few"]}
    assert rule.close(7, frozenset({columns["few"]})) == {columns["many"]}
