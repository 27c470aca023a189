"""The runs of a campaign: which attempt of a block counts, which cells belong together, and when a cell has failed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import campaigns
import claimed
import pytest

from loam_lab.judging.statistics import data
from loam_lab.judging.statistics.data import Campaign, Run
from loam_lab.model.cell import Cell
from loam_lab.model.description import Description
from loam_lab.model.store import journal


def empty(**changed: Any) -> Campaign:
    """A campaign without runs."""
    made = claimed.campaign(claimed.study([], **changed), lambda cell, block: {"operations": 100.0 + block})
    made.timed.clear()
    return made


MADE = claimed.campaign(claimed.study([]), lambda cell, block: {"operations": 100.0 + block}, blocks=3)
A, B = (next(c for c in MADE.cells if c.allocator == name and c.threads == 1 and dict(c.parameters)["shift"] == 5)
        for name in "ab")  # fmt: skip


def run(cell: Cell = A, block: int = 0, attempt: int = 0, **changed: Any) -> Run:
    return dataclasses.replace(MADE.runs(cell)[0], block=block, attempt=attempt, **changed)


def counted(*runs: Run) -> tuple[list[int], list[int]]:
    """Attempts of a's and of b's runs that count."""
    made = empty()
    made.sort(runs)
    assert len(made.superseded) + sum(map(len, made.timed.values())) == len([r for r in runs if r.cell != "other"])
    return [r.attempt for r in made.runs(A)], [r.attempt for r in made.runs(B)]


# ---- attempts


def test_of_each_block_the_last_whole_attempt_counts() -> None:
    assert counted(run(A), run(B)) == ([0], [0])
    assert counted(run(A), run(B), run(A, attempt=1), run(B, attempt=1)) == ([1], [1])
    later = [run(cell, attempt=attempt) for attempt in (0, 1, 2) for cell in (A, B)]
    assert counted(*later) == ([2], [2])
    assert counted(*reversed(later)) == ([2], [2]), "in whatever order they come"
    assert counted(run(A, attempt=1), run(B, attempt=1)) == ([1], [1])


def test_an_attempt_that_was_interrupted_does_not_count() -> None:
    assert counted(run(A), run(B), run(A, attempt=1)) == ([0], [0])
    # What one attempt did well and the next lacks is missed by all later ones, also where one between was whole.
    assert counted(run(A), run(A, attempt=1), run(B, attempt=1), run(A, attempt=2)) == ([1], [1])
    # A run that failed need not be there again.
    assert counted(run(A), run(B, state="failed"), run(A, attempt=1)) == ([1], [])
    assert counted(run(A, state="failed"), run(B), run(A, attempt=1)) == ([0], [0])


def test_copies_and_blocks_are_told_apart() -> None:
    made = empty()
    made.sort([run(A), run(A, copy=1), run(A, attempt=1), run(A, block=1), run(A, block=1, attempt=1)])
    assert [(r.block, r.attempt) for r in made.runs(A)] == [(0, 0), (1, 1)], "the second attempt lacks the copy"
    assert [(r.block, r.attempt) for r in made.runs(A, 1)] == [(0, 0)]
    assert sorted((r.block, r.attempt) for r in made.superseded) == [(0, 1), (1, 0)]
    assert made.runs(B) == []


def test_a_run_of_no_cell_is_dropped() -> None:
    made = empty()
    made.sort([run(A), dataclasses.replace(run(B), cell="other")])
    assert list(made.timed) == [(A.key, 0)] and made.superseded == []


# ---- disturbed blocks


def test_a_block_is_contaminated_by_a_good_timed_run_that_stayed_disturbed() -> None:
    made = empty()
    disturbed = {"contaminated": True}
    made.sort([
        run(A, 0, disturbance=disturbed), run(A, 1, disturbance={"contaminated": False}), run(A, 2),
        run(A, 3, disturbance=disturbed, state="failed"),
    ])  # fmt: skip
    assert made.contaminated == {made.block_of(run(A, 0))}
    assert made.block_of(run(A, 0)) == made.block_of(run(B, 0)), "they share their blocks"
    assert made.block_of(run(A, 0)) != made.block_of(run(A, 1))


def test_what_is_compared_by_counts_is_not_disturbed_by_waiting() -> None:
    counting = json.loads(claimed.DESCRIPTION.model_dump_json(by_alias=True))
    counting["workloads"][0]["metrics"] = [{"name": "aborts", "kind": "count"}]
    made = empty()
    made.descriptions = {"stm": Description.model_validate(counting)}
    made.sort([run(A, 0, disturbance={"contaminated": True})])
    assert made.contaminated == frozenset()


# ---- which cells belong together


def test_cells_share_their_blocks_where_only_levels_of_the_synchronisation_differ() -> None:
    made = empty()
    assert len({made.stratum(cell) for cell in made.cells}) == 1, "shift is the synchronisation's own"
    workload = claimed.DESCRIPTION.workloads[0].model_copy(update={"parameters": claimed.DESCRIPTION.sync.parameters})
    made.descriptions = {"stm": claimed.DESCRIPTION.model_copy(update={"workloads": (workload,)})}
    strata = {made.stratum(cell): dict(cell.parameters)["shift"] for cell in made.cells}
    assert sorted(strata.values()) == [4, 5], "a workload's own parameter has blocks of its own"
    assert all(stratum[:2] == ("list", "host") for stratum in strata)


def test_a_cell_is_found_by_all_that_it_is() -> None:
    assert MADE.find(A.as_json()) == A
    assert MADE.find({**A.as_json(), "allocator": "b"}) == B
    for changed in (
        {"allocator": "c"},
        {"threads": 3},
        {"parameters": {}},
        {"parameters": {"shift": 6}},
        {"machine": "x"},
    ):
        assert MADE.find({**A.as_json(), **changed}) is None
    wide = dataclasses.replace(A, parameters=(("shift", 5), ("size", 1)))
    made = empty()
    made.cells.append(wide)
    assert made.find({**wide.as_json(), "parameters": {"size": 1, "shift": 5}}) == wide, "in whatever order"


def test_a_counterpart_has_the_parameters_that_both_have() -> None:
    made = empty()
    lock = dataclasses.replace(A, sync="lock", parameters=())
    same = [dataclasses.replace(c, sync="other") for c in made.cells]
    made.cells += [lock, *same]
    assert made.counterpart(A, "lock") == lock
    assert made.counterpart(A, "other") == dataclasses.replace(A, sync="other")
    four = next(cell for cell in made.cells if cell.sync == "stm" and ("shift", 4) in cell.parameters)
    assert made.counterpart(four, "other") == dataclasses.replace(four, sync="other"), "of the same levels"
    assert made.counterpart(lock, "stm") == A, "the first of those that differ in what lock has not"
    assert made.counterpart(B, "lock") is None and made.counterpart(A, "none") is None


def test_what_varies_is_what_a_group_has_several_levels_of() -> None:
    fixed = [{"name": "list", "workload": "intset", "sync": ["stm"], "threads": [1], "parameters": {"shift": 5}}]
    assert MADE.varied(A) == {"shift": 5}
    assert empty(groups=fixed).varied(A) == {}
    twice = [{**fixed[0], "parameters": {"shift": [5, 5]}}]
    assert empty(groups=twice).varied(A) == {}, "one level, said twice"
    assert MADE.baseline(A) == "a"
    assert empty(groups=[{**fixed[0], "allocators": ["b"]}]).baseline(A) == "b", "where the group lacks the study's"
    assert MADE.of_group("list") == MADE.cells and MADE.group(A).name == "list"
    assert MADE.units(A) == {"shift": ""}, "its synchronisation has a parameter, its workload none"
    assert MADE.workload(A).name == "intset" and MADE.primary(A).name == "ops_per_s"


def test_a_synchronisation_that_keeps_a_processor_leaves_the_others() -> None:
    made = empty()
    made.manifest["machines"]["host"]["cores"] = 8
    assert made.cores(A) == 8
    kept = {"name": "stm", "machine": "host", "description": {"sync": {"cpus_reserved": 2}}}
    others = [{**kept, "name": "lock"}, {**kept, "machine": "far"}]
    made.manifest["executables"] = others
    assert made.cores(A) == 8
    made.manifest["executables"] = [*others, kept]
    assert made.cores(A) == 6
    made.manifest["machines"]["host"].pop("cores")
    assert made.cores(dataclasses.replace(A, sync="none")) == 0


# ---- values


def test_values_are_those_of_good_runs_by_block() -> None:
    made = empty()
    metric = made.primary(A)
    silent = run(A, 2, iterations=())
    made.sort([run(A, 0), run(A, 1, state="failed"), silent, run(A, 5)])
    assert made.values(A, 0, metric) == {0: 100.0, 5: 100.0}
    assert made.values(A, 1, metric) == {} and made.values(B, 0, metric) == {}
    made.values(A, 0, metric).clear()
    assert made.values(A, 0, metric) == {0: 100.0, 5: 100.0}, "the caller's own"
    rss = data.process_metric("rss_peak_bytes")
    assert made.values(A, 0, rss) == {}
    with pytest.raises(StopIteration):
        data.process_metric("colour")


def test_special_runs_are_found_by_purpose() -> None:
    made = empty()
    blame, counted_run = run(A, purpose="blame"), run(A, purpose="cachegrind")
    made.special = {"blame": {A.key: [blame]}, "cachegrind": {A.key: [counted_run]}}
    assert made.others(A) == [blame, counted_run]
    assert made.others(A, surrounded=False) == [blame]
    assert made.others(B) == []
    assert made.blame == {A.key: [blame]} and empty().blame == {}


@pytest.mark.parametrize(
    ("good", "failed", "unproven", "state"),
    [
        (0, 0, 0, "skipped"), (1, 0, 0, "ok"), (0, 1, 0, "failed"), (0, 0, 1, "unproven"), (50, 0, 1, "unproven"),
        (19, 1, 0, "ok"), (18, 1, 0, "failed"), (38, 2, 0, "ok"), (37, 2, 0, "failed"), (0, 5, 1, "unproven"),
    ],
)  # fmt: skip
def test_one_of_twenty_runs_may_fail(good: int, failed: int, unproven: int, state: str) -> None:
    states = ["ok"] * good + ["failed"] * failed + ["unproven"] * unproven
    assert data.state_of([run(A, state=state) for state in states]) == state


# ---- from the folder


def test_a_folder_is_read_with_its_damage(tmp_path: Path) -> None:
    campaigns.measure(campaigns.study(blocks=6, blame=True), tmp_path)
    warnings: list[str] = []
    made = data.load(tmp_path, warnings.append)
    assert warnings == []
    plain, fast = made.cells
    assert [r.block for r in made.runs(plain)] == [*range(6)] and [r.block for r in made.runs(plain, 1)] == [*range(6)]
    assert [r.block for r in made.runs(fast)] == [*range(6)] and made.runs(fast, 1) == []
    assert [r.purpose for r in made.others(plain)] == ["blame"] and set(made.blame) == {plain.key, fast.key}
    first = made.runs(plain)[0]
    processor, user, system = (first.value(data.process_metric(name)) for name in ("processor_s", "user_s", "system_s"))
    assert processor is not None and user is not None and system is not None and processor == user + system
    assert first.begin["workload"] == "intset" and first.attempt == 0
    with journal.files(tmp_path)[0].open("a") as file:
        file.write("torn\ntorn again\n")
    assert len(data.load(tmp_path, warnings.append).runs(plain)) == 6
    assert warnings == ["2 lines of the journal cannot be read; their runs are missing; --resume runs them again"]
    data.load(tmp_path)
    for file in journal.files(tmp_path):
        file.unlink()
    assert data.load(tmp_path, warnings.append).timed == {} and len(warnings) == 1
