"""From a study to runs: complete blocks, seeded order, and clear errors for what cannot be run."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from campaigns import OTHER, SEQUENTIAL, STM, study

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import plan as plans
from loam_lab.model.cell import PlannedRun
from loam_lab.model.study import Study
from loam_lab.subjects import workloads
from loam_lab.subjects.subject import Subject


def blocks_of(plan: plans.Plan) -> dict[tuple[Any, ...], list[PlannedRun]]:
    """Timed runs by structure and block, in the order of the plan."""
    by_block: dict[tuple[Any, ...], list[PlannedRun]] = {}
    for run in plan.runs:
        if not run.blame:
            by_block.setdefault((dict(run.cell.parameters).get("structure"), run.block), []).append(run)
    return by_block


WIDE = {
    "parameters": {"structure": ["list", "tree"], "mapping": ["table", "shadow"]},
    "allocators": ["plain", "fast", "slow"],
}


def test_a_block_holds_every_compared_level_and_the_sentinel() -> None:
    plan = plans.make(study(**WIDE, threads=[1, 2], blocks=5))
    blocks = blocks_of(plan)
    assert len(blocks) == 2 * 5
    for runs in blocks.values():
        assert len(runs) == 3 * 2 * 2 + 1
        assert len({(run.cell, run.copy) for run in runs}) == len(runs)
        assert [run.cell.allocator for run in runs if run.copy == 1] == ["plain"]
        assert len({run.seed for run in runs}) == 1
        assert len({run.padding for run in runs}) == 1
        orders = sorted(run.order for run in runs)
        assert orders == list(range(orders[0], orders[0] + len(runs))), "a block is run without interruption"


def test_blocks_have_seeds_of_their_own_and_shuffled_orders() -> None:
    blocks = blocks_of(plans.make(study(**WIDE, blocks=20)))
    assert len({runs[0].seed for runs in blocks.values()}) == len(blocks)
    assert len({tuple((run.cell, run.copy) for run in runs) for runs in blocks.values()}) == len(blocks)
    first = Counter(runs[0].cell.allocator for runs in blocks.values())
    assert len(first) == 3, f"every allocator comes first now and then: {first}"


def test_blocks_of_all_columns_take_turns() -> None:
    blocks = blocks_of(plans.make(study(**WIDE, blocks=6)))
    numbers = [block for _, block in sorted(blocks, key=lambda key: blocks[key][0].order)]
    assert numbers == sorted(numbers)


def test_columns_of_a_turn_come_in_an_order_of_its_own() -> None:
    """A column that always came first would always have the machine as the turn before has left it."""
    three = {**WIDE, "parameters": {"structure": ["list", "hash", "tree"]}}
    plan = plans.make(study(**three, blocks=20))
    assert len(plan.turns) == 20
    orders = [tuple(block[0].column for block in turn) for turn in plan.turns]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    for place in range(3):
        seen = Counter(order[place] for order in orders)
        assert len(seen) == 3 and max(seen.values()) <= 14, f"each column comes at place {place} now and then: {seen}"
    assert len(set(orders)) >= 4, f"few of six orders: {set(orders)}"
    again = plans.make(study(**three, blocks=20, seed=4))
    assert [[block[0].column for block in turn] for turn in again.turns] != [list(order) for order in orders]


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    one, again, other = (plans.make(study(**WIDE, seed=seed)) for seed in (3, 3, 4))
    assert one.runs == again.runs
    assert [run.cell for run in one.runs] != [run.cell for run in other.runs]


def test_blame_runs_are_one_per_cell_and_first() -> None:
    plan = plans.make(study(**WIDE, blame=True, sync=[STM, OTHER]))
    blame = [run for run in plan.runs if run.blame]
    assert Counter(run.cell for run in blame) == Counter(plan.cells())
    assert plan.runs[: len(blame)] == blame
    assert len({run.order for run in plan.runs}) == len(plan.runs)


def test_no_blame_where_the_synchronisation_has_none() -> None:
    plan = plans.make(study(sync=[SEQUENTIAL], blame=True))
    assert not any(run.blame for run in plan.runs)
    assert "no blame runs" in plan.notes[0]


def test_more_threads_than_the_machine_has_need_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(LoamError, match=r"--threads=3: this machine has 2 hardware threads \(add --oversubscribe"):
        plans.make(study(threads=[1, 3]))
    plan = plans.make(study(threads=[1, 3]), oversubscribe=True)
    assert "describe the scheduler" in plan.notes[0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sync": [SEQUENTIAL], "threads": [2]}, "--threads=2: fake-sequential has threads_max 1"),
        (
            {"parameters": {"strukture": "list"}},
            "-p=strukture: not the name of a parameter of intset (did you mean structure?)",
        ),
        ({"parameters": {"structure": "lst"}}, "-p structure=lst: is not one of list, hash, tree (did you mean list?)"),
        ({"parameters": {"shift": 13}}, "-p shift=13: allowed are 3 to 12"),
        ({"parameters": {"shift": 2}}, "-p shift=2: allowed are 3 to 12"),
        ({"parameters": {"shift": "five"}}, "-p shift=five: is not an integer"),
        ({"sync": ["/nowhere/at/all"]}, "--sync=/nowhere/at/all: no such file"),
        ({"sync": [__file__]}, "is not executable"),
        ({"sync": ["/bin/false"]}, "/bin/false: --describe ended with status 1"),
        ({"sync": ["/bin/true"]}, "/bin/true: --describe: "),
    ],
)
def test_what_cannot_be_run_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(LoamError, match=re.escape(message)):
        plans.make(study(**changed))


def test_an_unknown_workload_is_named_with_the_nearest() -> None:
    made = study()
    made = made.model_copy(update={"groups": (made.groups[0].model_copy(update={"workload": "intest"}),)})
    with pytest.raises(LoamError, match=r"WORKLOAD=intest: .*did you mean intset\?"):
        plans.make(made)


def test_a_peer_of_another_schema_is_refused(tmp_path: Path) -> None:
    peer = tmp_path / "peer"
    peer.write_text(
        '#!/bin/sh\necho \'{"schema": 1, "sync": {"name": "x", "threads_max": 1}, "workloads": '
        '[{"name": "intset", "metrics": [{"name": "a", "kind": "count"}]}]}\'\n'
    )
    peer.chmod(0o755)
    with pytest.raises(LoamError, match=r"has schema 1, this lab reads 2; since .* a peer has to change"):
        plans.make(study(sync=[str(peer)]))


def test_two_peers_of_one_name_stay_apart(tmp_path: Path) -> None:
    copy = tmp_path / "mine" / "fake-stm"
    copy.parent.mkdir()
    copy.write_bytes(Path(STM).read_bytes())
    copy.chmod(0o755)
    labels = {cell.sync for cell in plans.make(study(sync=[STM, str(copy)])).cells()}
    assert labels == {"fake-stm", "fake-stm@fake-stm"}


def test_a_parameter_that_one_peer_lacks_is_left_out_for_it(tmp_path: Path) -> None:
    text = Path(STM).read_text()
    peer = tmp_path / "peer"
    peer.write_text("\n".join(row for row in text.splitlines() if '"name":"mapping"' not in row))
    peer.chmod(0o755)
    cells = plans.make(study(sync=[STM, str(peer)], parameters={"mapping": ["table", "shadow"]})).cells()
    assert Counter((cell.sync, cell.parameters) for cell in cells) == {
        ("fake-stm", (("mapping", "table"),)): 2, ("fake-stm", (("mapping", "shadow"),)): 2, ("peer", ()): 2,
    }  # fmt: skip


def test_the_baseline_leads_wherever_it_stands_in_the_list() -> None:
    made = study(allocators=["slow", "fast", "plain"])
    assert made.allocators_of(made.groups[0]) == ("plain", "slow", "fast")
    assert all(run.cell.allocator == "plain" for run in plans.make(made).runs if run.copy)


def minimal(**changed: Any) -> dict[str, Any]:
    return {**study().model_dump(by_alias=True), **changed}


def test_a_study_survives_its_own_json() -> None:
    made = study(**WIDE)
    assert Study.model_validate(made.model_dump(by_alias=True, mode="json")) == made


def test_all_synchronisations_are_taken_and_what_cannot_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"stm": STM, "alone": SEQUENTIAL}
    known = {"executables": {name: Subject.of(Path(file)).as_json() for name, file in files.items()}}
    monkeypatch.setattr(paths, "load_paths", lambda preset: known)
    plan = plans.make(study(sync=["all"], threads=[1, 2]), oversubscribe=True)
    assert {(cell.sync, cell.threads) for cell in plan.cells()} == {
        ("fake-sequential", 1), ("fake-stm", 1), ("fake-stm", 2),
    }  # fmt: skip
    assert plan.notes == [
        "fake-sequential runs at most 1 thread; it is skipped with 2; read its other cells",
    ]
    named = plans.make(study(sync=[STM, SEQUENTIAL], threads=[1, 2]), oversubscribe=True)
    assert named.notes == plan.notes, "of several that are named as well"
    with pytest.raises(LoamError, match="fake-sequential has threads_max 1"):
        plans.make(study(sync=[STM, SEQUENTIAL], threads=[2]), oversubscribe=True)
    with pytest.raises(LoamError, match="fake-sequential has threads_max 1"):
        plans.make(study(sync=[SEQUENTIAL], threads=[1, 2]), oversubscribe=True)
    kept, skipped = workloads.within_threads(plan.executables.values(), [2, 65])
    assert [executable.label for executable in kept] == ["fake-stm"] and len(skipped) == 2
