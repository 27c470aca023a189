"""Contrasts between levels of factors: which are made, what they are called, and which way they point."""

from __future__ import annotations

from typing import Any

import claimed
import pytest

from loam_lab.judging.statistics import contrasts, multiplicity
from loam_lab.judging.statistics.data import Campaign
from loam_lab.model.cell import Cell


def contrasts_of(made: Campaign) -> list[dict[str, Any]]:
    return [one.as_json() for one in contrasts.contrasts(made)]


def speed(cell: Cell, block: int) -> dict[str, float]:
    """Twice as fast with two threads; of allocator b half as fast with shift 4."""
    slower = cell.allocator == "b" and dict(cell.parameters)["shift"] == 4
    return {"operations": (block + 1) * 100.0 * cell.threads * (0.5 if slower else 1)}


def test_every_level_is_compared_with_the_first_of_its_factor() -> None:
    lines = contrasts_of(claimed.campaign(claimed.study([]), speed))
    by_name = {(line["what"], line["allocator"], line["threads"]): line for line in lines}
    ratios = {name: line["estimate"] for name, line in by_name.items()}
    assert ratios == pytest.approx({
        ("shift 4 against shift 5", "a", 1): 1.0, ("shift 4 against shift 5", "a", 2): 1.0,
        ("shift 4 against shift 5", "b", 1): 0.5, ("shift 4 against shift 5", "b", 2): 0.5,
        ("2 threads against 1 thread", "a", 2): 2.0, ("2 threads against 1 thread", "b", 2): 2.0,
    })  # fmt: skip
    slower = by_name["shift 4 against shift 5", "b", 1]
    assert (slower["factor"], slower["level"], slower["verdict"], slower["better"]) == ("shift", 4, "worse", "higher")
    assert (slower["metric"], slower["n"], slower["rough"]) == ("ops_per_s", 10, False)
    assert by_name["2 threads against 1 thread", "a", 2]["verdict"] == "better"
    assert by_name["shift 4 against shift 5", "a", 1]["verdict"] == "equivalent"


def find(made: Campaign, allocator: str, threads: int = 1, shift: int = 5, group: str = "list") -> Cell:
    return next(
        cell for cell in made.cells
        if (cell.group, cell.allocator, cell.threads, cell.parameters) == (group, allocator, threads, (("shift", shift),))
    )  # fmt: skip


def test_every_contrast_names_its_cell_and_its_interval() -> None:
    made = claimed.campaign(claimed.study([]), speed)
    line = next(one for one in contrasts_of(made) if one["allocator"] == "b" and one["factor"] == "shift")
    ratio = contrasts.paired(made, (find(made, "b", shift=4), 0), (find(made, "b"), 0))
    assert ratio is not None
    assert line == {
        "what": "shift 4 against shift 5", "factor": "shift", "group": "list", "workload": "intset", "sync": "stm",
        "threads": 1, "machine": "host", "parameters": {}, "allocator": "b",
        "metric": "ops_per_s", "better": "higher", "level": 4,
        "estimate": ratio.estimate, "low": ratio.low, "high": ratio.high, "n": 10, "p": ratio.p,
        "q": line["q"], "verdict": "worse", "rough": False,
    }  # fmt: skip
    threads = next(one for one in contrasts_of(made) if one["factor"] == "threads")
    assert threads["parameters"] == {"shift": 5}, "what else the group varies"


def test_contrasts_are_adjusted_for_their_number_and_judged_by_the_studys_limits() -> None:
    def noisy(cell: Cell, block: int) -> dict[str, float]:
        better = 1.1 if cell.threads == 2 else 1.0
        return {
            "operations": 100 * better * (1 + 0.03 * ((block * 7 + cell.threads * 3 + ord(cell.allocator)) % 5 - 2))
        }

    lines = contrasts_of(claimed.campaign(claimed.study([]), noisy))
    expected = multiplicity.benjamini_hochberg([line["p"] for line in lines])
    assert [line["q"] for line in lines] == expected and len(set(expected)) > 1
    assert any(line["rough"] for line in lines)
    wide = contrasts_of(claimed.campaign(claimed.study([], margin=0.49, width_max=10.0), noisy))
    assert {(line["verdict"], line["rough"]) for line in wide} == {("equivalent", False)}
    few = contrasts_of(claimed.campaign(claimed.study([]), noisy, blocks=1))
    assert {(line["n"], line["p"], line["q"], line["verdict"]) for line in few} == {(1, 1.0, 1.0, "inconclusive")}


def test_a_group_without_synchronisation_adds_the_ratios_of_its_allocators() -> None:
    groups = [
        {"name": "alone", "workload": "intset", "sync": ["stm"], "role": "sequential", "parameters": {"shift": [5, 4]}}
    ]
    lines = contrasts_of(claimed.campaign(claimed.study([], groups=groups), speed))
    own = [line for line in lines if line["factor"] == "sequential"]
    assert [(line["what"], line["parameters"]) for line in own] == [
        ("b against a, without synchronisation", {"shift": 5}), ("b against a, without synchronisation", {"shift": 4}),
    ]  # fmt: skip
    assert [line["estimate"] for line in own] == pytest.approx([1.0, 0.5])
    assert len(lines) == 4 and all("level" not in line for line in own)


def test_synchronisations_are_contrasted_with_the_first_of_their_group() -> None:
    groups = [{"name": "list", "workload": "intset", "sync": ["stm", "lock"], "parameters": {"shift": 5}}]
    made = claimed.campaign(
        claimed.study([], groups=groups), lambda cell, block: {"operations": 300.0 if cell.sync == "lock" else 100.0}
    )
    made.cells = [cell for cell in made.cells if ("shift", 5) in cell.parameters]
    made.descriptions["lock"] = claimed.DESCRIPTION
    lines = contrasts_of(made)
    assert [(line["what"], line["factor"], line["level"], line["allocator"]) for line in lines] == [
        ("lock against stm", "sync", "lock", "a"), ("lock against stm", "sync", "lock", "b"),
    ]  # fmt: skip
    assert [line["estimate"] for line in lines] == pytest.approx([3.0, 3.0])
    made.cells = [cell for cell in made.cells if cell.sync == "lock" or cell.allocator == "a"]
    assert [line["allocator"] for line in contrasts_of(made.__class__(**_same(made)))] == ["a"]


def _same(made: Campaign) -> dict[str, object]:
    """What a campaign was made of, for one that has found nothing yet."""
    return {name: getattr(made, name) for name in ("folder", "manifest", "study", "cells", "descriptions", "timed")}


def test_a_pair_needs_two_positive_values_of_one_block() -> None:
    def values(cell: Cell, block: int) -> dict[str, float] | None:
        if cell.allocator == "a":
            return {"operations": 2.0, "aborts": 6} if block != 2 else None
        return {"operations": 0.0 if block == 0 else 0.5, "aborts": 3 * (block > 3)}

    made = claimed.campaign(claimed.study([]), values)
    a, b = (find(made, "a"), 0), (find(made, "b"), 0)
    ratio = contrasts.paired(made, a, b)
    assert ratio is not None and (ratio.estimate, ratio.n) == (pytest.approx(4.0), 8)
    assert contrasts.paired(made, b, a) is not None and contrasts.paired(made, a, (b[0], 1)) is None
    assert contrasts.paired(made, a, b, without=frozenset(range(10))) is None
    one = contrasts.paired(made, a, b, without=frozenset(range(9)))
    assert one is not None and (one.n, one.low) == (1, None)
    aborts = claimed.DESCRIPTION.workloads[0].metric("aborts")
    assert aborts is not None
    counted = contrasts.paired(made, a, b, metric=aborts)
    assert counted is not None and (counted.estimate, counted.n) == (pytest.approx(2.0), 6)


def test_the_baseline_is_compared_with_nothing_but_its_own_copy() -> None:
    made = claimed.campaign(claimed.study([]), speed)
    a, b = find(made, "a"), find(made, "b", shift=4)
    assert contrasts.to_baseline(made, a) is None and contrasts.to_baseline(made, b, 1) is None
    made.timed[a.key, 1] = made.runs(a)
    copy = contrasts.to_baseline(made, a, 1)
    assert copy is not None and copy.estimate == 1.0
    ratio = contrasts.to_baseline(made, b)
    assert ratio is not None and (ratio.estimate, ratio.n) == (pytest.approx(0.5), 10)
    fewer = contrasts.to_baseline(made, b, without=frozenset({0, 1}))
    assert fewer is not None and fewer.n == 8
    elapsed = claimed.DESCRIPTION.workloads[0].metric("elapsed_s")
    time = contrasts.to_baseline(made, b, metric=elapsed)
    assert time is not None and time.estimate == 1.0
    made.cells = [cell for cell in made.cells if cell.allocator == "b"]
    assert contrasts.to_baseline(made.__class__(**_same(made)), b) is None, "the baseline was not measured"


def test_the_words_of_a_level() -> None:
    assert [contrasts._word("threads", n) for n in (1, 2)] == ["1 thread", "2 threads"]
    assert [contrasts._word("shift", 4), contrasts._word("mapping", "shadow")] == ["shift 4", "shadow"]
