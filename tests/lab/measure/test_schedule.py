"""Which run comes next: disturbed blocks again and whole, within bounds, the same after every interruption."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, measure, runner, study

from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.schedule import REPEATS_SHARE_MAX, Schedule
from loam_lab.judging.statistics import data
from loam_lab.model.cell import PlannedRun
from loam_lab.model.store import journal

WIDE: dict[str, Any] = {"parameters": {"structure": ["list", "tree"]}}


def walked(
    plan: plans.Plan, disturbed: set[tuple[int, int, int]], *, seen: dict[PlannedRun, dict[str, Any]] | None = None,
    failed: bool = False, limit: int | None = None,
) -> tuple[list[PlannedRun], Schedule]:  # fmt: skip
    """Runs in the order of a schedule.

    disturbed: (column, block, attempt) of which one run is disturbed; seen: lines of before; limit: stop after so many
    """
    lines = {} if seen is None else seen
    order: list[PlannedRun] = []
    schedule = Schedule(plan, lines.get)
    for run in schedule:
        if len(order) == limit:
            break
        order.append(run)
        bad = (run.column, run.block, run.attempt) in disturbed and run.copy == 1
        state = "failed" if bad and failed else "ok"
        lines[run] = {"state": state, "disturbance": {"contaminated": bad}}
    return order, schedule


def test_without_disturbance_the_plan_is_what_is_run() -> None:
    plan = plans.make(study(**WIDE, blocks=6, blame=True))
    order, schedule = walked(plan, set())
    assert order == plan.runs
    assert (schedule.repeated, schedule.refused) == (0, 0)


def test_a_disturbed_block_is_run_again_whole_after_its_turn() -> None:
    plan = plans.make(study(**WIDE, blocks=10))
    order, schedule = walked(plan, {(1, 2, 0)})
    again = [run for run in order if run.attempt]
    first = [run for run in plan.runs if (run.column, run.block) == (1, 2)]
    assert {(run.cell, run.copy) for run in again} == {(run.cell, run.copy) for run in first}
    assert {(run.seed, run.padding, run.stack) for run in again} == {
        (run.seed, run.padding, run.stack) for run in first
    }
    assert schedule.repeated == len(first) == 3
    place = order.index(again[0])
    assert {run.block for run in order[:place]} == {0, 1, 2}
    assert {run.block for run in order[place + 3 :]} == set(range(3, 10))
    assert len({run.order for run in order}) == len(order)


def test_a_block_is_repeated_at_most_twice() -> None:
    plan = plans.make(study(blocks=20))
    order, schedule = walked(plan, {(0, 4, 0), (0, 4, 1), (0, 4, 2)})
    assert Counter(run.attempt for run in order if run.block == 4) == {0: 3, 1: 3, 2: 3}
    assert (schedule.repeated, schedule.refused) == (6, 0)


def test_a_campaign_spends_a_quarter_of_its_runs_on_repetitions_and_says_so() -> None:
    plan = plans.make(study(blocks=20))
    everything = {(0, block, attempt) for block in range(20) for attempt in range(3)}
    order, schedule = walked(plan, everything)
    assert len([run for run in order if run.attempt]) == schedule.repeated == 15 == REPEATS_SHARE_MAX * 60
    assert schedule.refused == 18, "two blocks got both repetitions, one got one"


def test_failures_are_not_taken_for_disturbances() -> None:
    order, schedule = walked(plans.make(study(blocks=8)), {(0, 1, 0)}, failed=True)
    assert schedule.repeated == 0
    assert not any(run.attempt for run in order)


def test_blocks_of_counts_are_not_repeated(tmp_path: Path) -> None:
    """What does not depend on time is not spoiled by waiting."""
    peer = tmp_path / "peer"
    text = Path(STM).read_text()
    assert '{"name":"ops_per_s","unit":"1/s","better":"higher","kind":"ratio","of":["operations","elapsed_s"]}' in text
    peer.write_text(text.replace('"of":["operations","elapsed_s"]', '"of":["operations","attempts"]'))
    peer.chmod(0o755)
    instruments = FakeInstruments(disturbed=lambda number: True)
    ended, result = measure(study(sync=[str(peer)], blocks=8), tmp_path / "o", instruments)
    assert (ended.repeated, ended.refused, ended.done) == (0, 0, 24)
    assert not any("disturbed" in warning for warning in result["warnings"])


@pytest.mark.parametrize("cut", [1, 7, 10, 11, 12, 13, 25, 40])
def test_wherever_it_is_interrupted_it_goes_on_alike(cut: int) -> None:
    plan = plans.make(study(**WIDE, blocks=8))
    disturbed = {(0, 1, 0), (0, 1, 1), (1, 3, 0), (1, 5, 0)}
    whole, expected = walked(plan, disturbed)
    seen: dict[PlannedRun, dict[str, Any]] = {}
    before, _ = walked(plan, disturbed, seen=seen, limit=cut)
    after, schedule = walked(plan, disturbed, seen=seen)
    assert before + after == whole
    assert schedule.repeated == expected.repeated


def test_a_turn_that_was_begun_is_finished_and_no_further_one_begins() -> None:
    plan = plans.make(study(blocks=8))
    lines: dict[PlannedRun, dict[str, Any]] = {}
    walked(plan, set(), seen=lines, limit=4)
    order = []
    for run in Schedule(plan, lines.get, stops=lambda turn: True):
        order.append(run)
        lines[run] = {"state": "ok"}
    assert order == plan.runs[4:6]


def test_a_closed_column_gets_no_more_blocks() -> None:
    plan = plans.make(study(**WIDE, blocks=8))
    lines: dict[PlannedRun, dict[str, Any]] = {}
    for run in Schedule(plan, lines.get, close=lambda turn, closed: {1} if turn == 3 else set()):
        lines[run] = {"state": "ok"}
    assert Counter(run.column for run in lines) == {0: 24, 1: 9}


def test_attempts_are_in_journal_and_identity_and_the_last_one_counts(tmp_path: Path) -> None:
    # Runs 3, 4, 5 are the second block; its first repetition (6, 7, 8) is disturbed too.
    instruments = FakeInstruments(disturbed=lambda number: number in (4, 8))
    ended, _ = measure(study(blocks=8), tmp_path, instruments)
    assert (ended.repeated, ended.refused, ended.done, ended.total) == (6, 0, 30, 30)
    lines = journal.read(tmp_path)
    assert [line["attempt"] for line in lines] == [0] * 6 + [1] * 3 + [2] * 3 + [0] * 18
    assert all(line["identity"]["attempt"] == line["attempt"] for line in lines)
    assert len({line["id"] for line in lines}) == 30
    assert [line["disturbance"]["contaminated"] for line in lines] == [number in (4, 8) for number in range(30)]
    assert [line["t_s"] for line in lines] == sorted(line["t_s"] for line in lines)
    campaign = data.load(tmp_path)
    last = {(line["cell"], line["copy"]): line for line in lines if line["block"] == 1}
    for cell in campaign.cells:
        metric = campaign.primary(cell)
        (iteration,) = [r for r in last[cell.key, 0]["records"] if r["kind"] == "iteration"]
        assert campaign.values(cell, 0, metric)[1] == pytest.approx(iteration["operations"] / iteration["elapsed_s"])


def test_a_disturbed_campaign_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    made = study(blocks=8)
    measure(made, tmp_path / "o", FakeInstruments(disturbed=lambda number: number in (4, 8)))
    file = tmp_path / "o" / "journal" / "local.jsonl"
    kept = file.read_bytes().splitlines(keepends=True)
    for cut in (5, 7, 10, 12):
        file.write_bytes(b"".join(kept[:cut]))
        ended = runner(
            made, tmp_path / "o", FakeInstruments(disturbed=lambda number, cut=cut: number + cut in (4, 8)), resume=True
        ).run()  # fmt: skip
        lines = journal.read(tmp_path / "o")
        assert (ended.repeated, ended.measured, len(lines)) == (6, 30 - cut, 30)
        assert [line["identity"] for line in lines] == [line["identity"] for line in map(journal._parsed, kept) if line]
        assert [line["t_s"] for line in lines] == sorted(line["t_s"] for line in lines)


def test_a_campaign_that_stays_disturbed_says_so(tmp_path: Path) -> None:
    ended, result = measure(study(blocks=8), tmp_path, FakeInstruments(disturbed=lambda number: True))
    assert ended.repeated == 6
    assert ended.refused == 8 - 1
    expected = "8 of 8 blocks stayed disturbed, although 1 was run again (threads waited for a CPU in 8)"
    assert any(expected in warning for warning in result["warnings"])


def test_planned_blocks_go_before_repetitions_where_time_is_short() -> None:
    plan = plans.make(study(**WIDE, blocks=10))
    lines: dict[PlannedRun, dict[str, Any]] = {}
    asked = []

    def spare(turn: int, runs: int) -> bool:
        asked.append((turn, runs))
        return turn == 9

    schedule = Schedule(plan, lines.get, spare=spare)
    for run in schedule:
        bad = run.block in (2, 9) and run.column == 0 and run.attempt == 0 and run.copy == 1
        lines[run] = {"state": "ok", "disturbance": {"contaminated": bad}}
    assert asked == [(2, 3), (9, 3)]
    assert (schedule.repeated, schedule.refused, len(lines)) == (3, 1, len(plan.runs) + 3)
