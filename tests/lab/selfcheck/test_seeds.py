"""The check that seeds of simulated machines differ: which cells it runs, and what it says of equal counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from loam_lab.dev.selfcheck import seeds
from loam_lab.dev.selfcheck.seeds import Pair
from loam_lab.model import studies
from loam_lab.model.cell import Cell, PlannedRun
from loam_lab.model.study import Study
from loam_lab.subjects import machines


def run(group: str, threads: int, block: int, **more: Any) -> PlannedRun:
    cell = Cell(group, "intset", "etl-wb", "glibc", threads, (), 0, machine="sim:one")
    return PlannedRun(**{"cell": cell, "block": block, "copy": 0, "seed": 10 + block, "order": 0, "padding": 0, **more})


def line(state: str = "ok", **counted: int) -> Mapping[str, Any]:
    record = {"kind": "iteration", **{f"counted_{name}": value for name, value in counted.items()}}
    return {"state": state, "failure": "crash", "detail": "signal 11", "records": [{"kind": "begin"}, record, record]}


def test_each_study_with_simulated_groups_has_all_of_them_and_one_block() -> None:
    parts = {name: seeds.simulated(studies.find(name)[0]) for name in studies.registry()}
    with_groups = {name: study for name, study in parts.items() if study is not None}
    assert {"stm", "delegation", "stamp", "pools", "hybrid"} <= with_groups.keys()
    for name, study in with_groups.items():
        whole = studies.find(name)[0]
        assert [g.name for g in study.groups] == [g.name for g in whole.groups if machines.are_simulated(g.machines)]
        for group in study.groups:
            assert group.blocks == 1
            assert len(group.threads) == 1
    assert parts["tour"] is None


def test_both_copies_of_the_baseline_run_in_each_group() -> None:
    runs = [
        run("a", 1, 0, order=2), run("a", 1, 0, order=5, copy=1), run("a", 1, 1, order=7, copy=1),
        run("a", 2, 0, order=1, purpose="blame"), run("a", 2, 0, order=6), run("a", 2, 0, order=8, copy=1),
        run("b", 4, 0, order=4), run("c", 8, 0, order=3, copy=1), run("c", 8, 0, order=9),
    ]  # fmt: skip
    places = [[(one.cell.group, one.cell.threads, one.block, one.copy) for one in of] for of in seeds.chosen(runs)]
    assert places == [[("c", 8, 0, 0), ("c", 8, 0, 1)], [("a", 1, 0, 0), ("a", 1, 0, 1)]]


@pytest.mark.parametrize(
    ("lines", "differ", "problem"),
    [
        ([line(misses=4, reads=9), line(misses=5, reads=9)], ("misses",), ""),
        ([line(misses=4, reads=9), line(misses=4, reads=9)], (), ""),
        ([line(misses=4), line("failed", misses=5)], ("misses",), "crash: signal 11"),
        ([line(), line()], (), "nothing was counted"),
    ],
)
def test_counts_are_compared(lines: Sequence[Mapping[str, Any]], differ: tuple[str, ...], problem: str) -> None:
    pair = seeds.compared("s", [run("a", 1, 0), run("a", 1, 0, copy=1)], lines)
    assert (pair.differ, pair.problem, pair.seeds) == (differ, problem, (10, 11))


def test_a_group_of_which_nothing_ran_is_told() -> None:
    study = seeds.simulated(studies.find("hybrid")[0])
    assert study is not None
    ran = Pair(study.name, study.groups[0].name, study.groups[0].machines[0], "w", (1, 2), ("misses",))
    assert [(pair.group, pair.problem) for pair in seeds.uncompared(study, [ran])] == [
        (group.name, "its baseline has no second copy") for group in study.groups[1:]
    ]


@pytest.mark.parametrize(
    ("differ", "problem", "status"), [(("misses",), "", 0), ((), "", 1), (("misses",), "crash", 1)]
)
def test_seeds_that_change_nothing_are_a_failure(
    differ: tuple[str, ...], problem: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def ask(study: Study) -> list[Pair]:
        asked.append(study.name)
        return [Pair(study.name, "g", "sim:one", "w", (1, 2), differ, problem)]

    assert seeds.main(["--study", "pools,tour"], ask) == status
    assert asked == ["pools"]
    assert ("change nothing" in capsys.readouterr().out) == (not differ)
    assert seeds.main(["--study", "pools", "--json"], ask) == status
    assert json.loads(capsys.readouterr().out)["pairs"][0]["differ"] == list(differ)
