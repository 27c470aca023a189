"""Which cells a selection names, what is read of them, and each reason for which nothing can be read."""

from __future__ import annotations

import dataclasses
from typing import Any

import claimed
import pytest

from loam_lab.judging.claims import values
from loam_lab.judging.claims.values import Evidence, Observed, Undecided
from loam_lab.judging.reasons import NoMetric, NotGood, NotMeasured, NoValue, Oversubscribed, Reason
from loam_lab.judging.statistics import runs
from loam_lab.judging.statistics.data import Campaign
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Selection

A1 = {"group": "list", "threads": 1, "parameters": {"shift": 5}}


def speed(cell: Cell, block: int) -> dict[str, float]:
    return {
        "operations": 100.0 * (block + 1) * (1 + (cell.allocator == "b")) + dict(cell.parameters)["shift"],
        "aborts": block, "attempts": 10 + cell.threads, "room_bytes": 32.0,
    }  # fmt: skip


def made(function: claimed.Values = speed, **options: Any) -> Campaign:
    return claimed.campaign(claimed.study([]), function, blocks=3, **options)


def read(campaign: Campaign, allocator: str = "a", evidence: Evidence | None = None, **selection: Any) -> Observed:
    return values.read(evidence or Evidence(campaign), Selection.model_validate({**A1, **selection}), allocator)


# ---- which cells


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 1), ({"threads": None}, 2), ({"threads": 3}, 0), ({"parameters": {}}, 2), ({"parameters": {"shift": "5"}}, 1),
        ({"parameters": {"shift": 6}}, 0), ({"parameters": {"size": 1}}, 0), ({"sync": "stm"}, 1), ({"sync": "lock"}, 0),
        ({"machine": "host"}, 1), ({"machine": "sim:a"}, 0), ({"group": "tree"}, 0),
    ],
)  # fmt: skip
def test_a_selection_names_the_cells_that_have_all_its_levels(changed: dict[str, Any], count: int) -> None:
    cells = values.cells_of(made(), Selection.model_validate({**A1, **changed}), "a")
    assert len(cells) == count
    assert {cell.allocator for cell in cells} <= {"a"}
    assert values.cells_of(made(), Selection.model_validate({**A1, **changed}), "c") == []


def test_a_synchronisation_is_named_with_or_without_its_variant() -> None:
    campaign = made()
    campaign.cells = [dataclasses.replace(cell, sync="stm@fast") for cell in campaign.cells]
    for sync, count in (("stm", 1), ("stm@fast", 1), ("stm@slow", 0), ("fast", 0)):
        assert len(values.cells_of(campaign, Selection.model_validate({**A1, "sync": sync}), "a")) == count


def test_a_look_alike_stands_in_only_for_what_is_absent() -> None:
    alike = claimed.study([], lookalikes={"hoard": "b", "a": "b", "dlmalloc": "absent"})
    campaign = claimed.campaign(alike, speed)
    assert values.measured(campaign) == {"hoard": "b", "a": "a", "b": "b"}
    assert values.measured(made()) == {"a": "a", "b": "b"}


# ---- values over blocks


def test_values_are_keyed_by_block_and_named() -> None:
    observed = read(made())
    assert observed == Observed("ops_per_s of a shift=5 1T", {0: 105.0, 1: 205.0, 2: 305.0}, {}, "1/s")
    assert read(made(), "b").values == {0: 205.0, 1: 405.0, 2: 605.0}
    assert read(made(), metric="room_bytes") == Observed(
        "room_bytes of a shift=5 1T", {0: 32.0, 1: 32.0, 2: 32.0}, {}, "B"
    )


def test_a_ratio_of_counts_comes_with_its_counts_and_no_other_does() -> None:
    observed = read(made(), metric="aborts_per_attempt")
    assert observed.counts == {0: (0.0, 11.0), 1: (1.0, 11.0), 2: (2.0, 11.0)}
    assert observed.values == {0: 0.0, 1: 1 / 11, 2: 2 / 11}
    assert read(made(), metric="aborts").counts == {}
    campaign = made(lambda cell, block: {**speed(cell, block), "aborts": 1} if block else {"operations": 1.0})
    assert list(read(campaign, metric="aborts_per_attempt").counts) == [1, 2], "a run without the counts has none"
    lost = made()
    lost.runs(lost.cells[0])[1].state = "failed"
    with pytest.raises(Undecided) as undecided:
        read(lost)
    assert undecided.value.reason == NotGood("a shift=5 1T", "failed")


def test_a_run_that_failed_has_no_counts() -> None:
    campaign = claimed.campaign(claimed.study([]), lambda c, b: None if b == 4 else speed(c, b), blocks=20)
    observed = read(campaign, metric="aborts_per_attempt")
    assert 4 not in observed.counts and 4 not in observed.values and len(observed.counts) == 19
    # It may have counted much before it failed.
    late = claimed.campaign(claimed.study([]), speed, blocks=20)
    late.runs(late.cells[0])[4].state = "failed"
    observed = read(late, metric="aborts_per_attempt")
    assert late.runs(late.cells[0])[4].sums["attempts"] > 0
    assert 4 not in observed.counts and 4 not in observed.values and len(observed.counts) == 19


def test_the_labs_own_figures_are_metrics_too() -> None:
    campaign = made()
    for run in campaign.runs(campaign.cells[0]):
        run.process[runs._PLACES["wall_s"]] = 2.0 + run.block
    assert read(campaign, metric="wall_s") == Observed("wall_s of a shift=5 1T", {0: 2.0, 1: 3.0, 2: 4.0}, {}, "s")
    with pytest.raises(Undecided) as undecided:
        read(campaign, metric="user_s")
    assert undecided.value.reason == NoValue("a shift=5 1T", "user_s")


def test_what_simulated_cores_count_is_read_by_block() -> None:
    def counted(cell: Cell, block: int) -> dict[str, float]:
        counts = {"counted_misses": 3.0 + block, "counted_accesses": 60.0, "counted_transfers": 5.0}
        return {**speed(cell, block), **(counts if block else {})}

    observed = read(made(counted), source="simulator", metric="l1d_miss_ratio")
    assert observed.counts == {1: (4.0, 60.0), 2: (5.0, 60.0)}, "a run without the counts has none"
    assert observed.values == {1: 4 / 60, 2: 5 / 60} and not observed.exact
    assert read(made(counted), source="simulator", metric="transfers").values == {1: 5 / 205, 2: 5 / 305}
    for metric in ("upgrades", "l1d_misses_of_none", "operations"):
        with pytest.raises(Undecided) as undecided:
            read(made(counted), source="simulator", metric=metric)
        assert undecided.value.reason == NoValue("a shift=5 1T", metric, "simulator")
    lost = made(counted)
    lost.runs(lost.cells[0])[1].state = "failed"
    with pytest.raises(Undecided) as undecided:
        read(lost, source="simulator", metric="l1d_miss_ratio")
    assert undecided.value.reason == NotGood("a shift=5 1T", "failed")


# ---- values over the levels of a parameter


def test_over_a_parameter_each_level_has_its_median() -> None:
    observed = read(made(), parameters={}, over="shift")
    assert observed == Observed("ops_per_s of a 1T", {"5": 205.0, "4": 204.0}, {}, "1/s")
    rate = read(made(), parameters={}, over="shift", metric="aborts_per_attempt")
    assert rate.values == {"5": 1 / 11, "4": 1 / 11} and rate.counts == {}
    campaign = made(lambda c, b: speed(c, b) if ("shift", 5) in c.parameters else {"operations": 1.0})
    assert list(read(campaign, parameters={}, over="shift", metric="room_bytes").values) == ["5"]


# ---- counters


def test_counters_are_read_by_their_source() -> None:
    campaign = made()
    five, four = (next(c for c in campaign.cells if c.threads == 1 and ("shift", n) in c.parameters) for n in (5, 4))
    counters = {
        five.key: [
            {"source": "perf_event", "cycles": 7, "hitm": None}, {"source": "cachegrind", "cycles": 8},
            {"source": "perf_event", "hitm": 3, "cycles": 9},
        ],
        four.key: [{"source": "cachegrind", "cycles": 5}],
    }  # fmt: skip
    evidence = Evidence(campaign, claimed.counts(counters))
    assert read(campaign, evidence=evidence, source="counters", metric="cycles") == Observed(
        "cycles of a shift=5 1T", {0: 7.0}, {}, "1"
    )
    assert read(campaign, evidence=evidence, source="cachegrind", metric="cycles").values == {0: 8.0}
    assert read(campaign, evidence=evidence, source="counters", metric="hitm").values == {0: 3.0}, "none is no value"
    over = read(campaign, evidence=evidence, source="cachegrind", metric="cycles", parameters={}, over="shift")
    assert over.values == {"5": 8.0, "4": 5.0}
    for source, tool in (("tlb", "lackey"), ("profile", "profile")):
        both = [{"source": "perf_event", "calls": 1}, {"source": tool, "calls": 2}]
        counted = Evidence(campaign, claimed.counts({five.key: both}))
        assert read(campaign, evidence=counted, source=source, metric="calls").values == {0: 2.0}, source
    with pytest.raises(Undecided) as undecided:
        read(campaign, evidence=evidence, source="counters", metric="llc_misses", parameters={}, over="shift")
    assert undecided.value.reason == NoValue("a 1T", "llc_misses", "counters")


def test_counted_values_need_no_good_timing() -> None:
    campaign = made(lambda cell, block: None)
    evidence = Evidence(campaign, claimed.counts({campaign.cells[0].key: [{"source": "cachegrind", "cycles": 8}]}))
    assert read(campaign, evidence=evidence, source="cachegrind", metric="cycles").values == {0: 8.0}


# ---- why not


def test_each_reason_for_no_value_is_told() -> None:
    def refused(reason: Reason, campaign: Campaign, **selection: Any) -> None:
        with pytest.raises(Undecided) as caught:
            read(campaign, **selection)
        assert caught.value.reason == reason

    place = "a shift=5 1T"
    refused(NotMeasured("a shift=6 1T"), made(), parameters={"shift": 6})
    refused(NotMeasured("a shift=5 1T on far"), made(), machine="far")
    refused(NoMetric("intset", "stm", "colour"), made(), metric="colour")
    refused(NotGood(place, "failed", "gave up"), made(lambda cell, block: None))
    unproven = made()
    unproven.runs(unproven.cells[0])[1].state = "unproven"
    refused(NotGood(place, "unproven"), unproven)
    unproven.runs(unproven.cells[0])[1].detail = "another library"
    refused(NotGood(place, "unproven", "another library"), unproven)
    unproven.runs(unproven.cells[0])[0].detail = "all is well"
    refused(NotGood(place, "unproven", "another library"), unproven)
    skipped = made()
    skipped.timed.clear()
    refused(NotGood(place, "skipped"), skipped)
    silent = made(lambda cell, block: {"attempts": 1})
    refused(NoValue(place, ""), silent)
    two = {"threads": 2}
    refused(Oversubscribed("a shift=5 2T", 2, 1), made(cores=1), **two)
    assert len(read(made(cores=2), **two).values) == 3, "as many threads as there are processors"
    assert len(read(made(cores=1)).values) == 3
