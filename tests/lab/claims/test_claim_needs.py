"""What a claim needs at its limits, how several predicates are put together, and what a campaign says of a paper."""

from __future__ import annotations

import dataclasses
from typing import Any

import claimed
import pytest
from test_claims import A1, claim, decided, speeds, verdict, wobble

from loam_lab.judging.claims import evaluate, judges, predicates
from loam_lab.judging.claims.judges import FAILS, HOLDS, OPEN
from loam_lab.judging.claims.predicates import Comparison, Decision
from loam_lab.judging.claims.values import Evidence
from loam_lab.judging.reasons import Unmet
from loam_lab.judging.statistics.data import Campaign
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Claim, Predicate
from loam_lab.model.result import CounterSource

ABOVE = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}


def unmet(made: Campaign, sources: list[dict[str, Any]] | None = None, **needs: Any) -> list[Unmet]:
    stated = Claim.model_validate(claim(ABOVE, needs=needs))
    return evaluate.unmet(Evidence(made, {}, [CounterSource(**one) for one in sources or []]), stated)


@pytest.mark.parametrize(
    ("cores", "needed", "met"), [(2, 1, True), (2, 2, True), (2, 3, False), (1, 2, False), (8, 8, True)]
)
def test_as_many_cores_as_are_needed_are_enough(cores: int, needed: int, met: bool) -> None:
    lacking = unmet(claimed.campaign(claimed.study([]), speeds(a=1, b=1), cores=cores), cores=needed)
    assert lacking == ([] if met else [Unmet("cores", needed, cores, "host")])


def test_cores_are_asked_of_the_machine_that_the_selections_run_on() -> None:
    made = claimed.campaign(claimed.study([]), speeds(a=1, b=1))
    made.manifest["machines"]["sim:far"] = {"cores": 16}
    made.manifest["machines"]["odd"] = {}
    assert unmet(made, cores=8) == [Unmet("cores", 8, 2, "host")], "its cells are on the host"
    made.cells += [dataclasses.replace(cell, machine="sim:far") for cell in made.cells]
    assert unmet(made, cores=8) == [], "blocks of several machines are pooled"
    on_host = {**A1, "machine": "host"}
    both = Claim.model_validate(
        claim({**ABOVE, "of": on_host}, {**ABOVE, "of": {**A1, "machine": "sim:far"}}, needs={"cores": 8})
    )
    assert evaluate.unmet(Evidence(made), both) == [Unmet("cores", 8, 2, "host")], "each selection has to have them"
    far = Claim.model_validate(claim({**ABOVE, "of": {**A1, "machine": "sim:far"}}, needs={"cores": 17}))
    assert evaluate.unmet(Evidence(made), far) == [Unmet("cores", 17, 16, "sim:far")]
    made.cells = []
    assert unmet(made, cores=16) == [] and unmet(made, cores=17) == [Unmet("cores", 17, 16, "sim:far")]
    made.manifest["machines"] = {}
    assert unmet(made, cores=1) == [Unmet("cores", 1, 0, "host")]


def test_a_claim_whose_groups_did_not_run_was_not_asked() -> None:
    group = {"workload": "intset", "sync": ["stm"], "threads": [1, 2], "parameters": {"shift": [5, 4]}}
    groups = [{**group, "name": "list"}, {**group, "name": "far"}]
    elsewhere = {**ABOVE, "of": {**A1, "group": "far"}}
    claims = [
        claim(elsewhere),
        claim(elsewhere, id="000-02", needs={"cores": 4}),
        claim(ABOVE, elsewhere, id="000-03"),
        claim(ABOVE, id="000-04"),
    ]
    made = claimed.campaign(claimed.study(claims, groups=groups), speeds(a=100, b=50))
    made.cells = [cell for cell in made.cells if cell.group == "list"]
    entries = claimed.ledger(made, {})["claims"]
    assert [(one["verdict"], one["reason"]) for one in entries[:3]] == [
        ("not asked", "group far did not run"),
        ("not asked", "needs 4 cores (this machine has 2)"),
        ("not asked", "group far did not run: 1 of its 2 predicates were not asked"),
    ]
    assert entries[3]["verdict"] == "reproduced"


def test_what_ran_is_told_of_a_claim_that_is_asked_in_part() -> None:
    """What ran may contradict it; what ran and is open makes it undecided; a spared predicate needs no other run."""
    group = {"workload": "intset", "sync": ["stm"], "threads": [1, 2], "parameters": {"shift": [5, 4]}}
    groups = [{**group, "name": name} for name in ("list", "far", "further")]
    far, further = ({**ABOVE, "of": {**A1, "group": name}} for name in ("far", "further"))

    def of(*together: dict[str, Any], **changed: Any) -> tuple[str, str]:
        made = claimed.campaign(claimed.study([claim(*together, **changed)], groups=groups), speeds(a=100, b=50))
        made.cells = [cell for cell in made.cells if cell.group == "list"]
        judged = verdict(made)
        return judged["verdict"], judged["reason"]

    assert of(ABOVE, far, further, far) == (
        "not asked", "groups far, further did not run: 3 of its 4 predicates were not asked",
    )  # fmt: skip
    assert of({**ABOVE, "limit": 3}, far)[0] == "contradicted"
    assert of({**ABOVE, "limit": 2}, far)[0] == "undecided"
    assert of(ABOVE, ABOVE, far, all_but=1)[0] == "reproduced"
    assert of(ABOVE, far, further, all_but=1)[0] == "not asked"
    assert of(ABOVE, {**ABOVE, "limit": 3}, far, all_but=1)[0] == "not asked"


def test_one_machine_that_has_it_is_enough() -> None:
    made = claimed.campaign(claimed.study([]), speeds(a=1, b=1))
    none = [Unmet("rtm")]
    assert unmet(made, rtm=True) == none and unmet(made) == []
    made.manifest["machines"]["far"] = {"cores": 1, "rtm": "works"}
    assert unmet(made, rtm=True) == []
    made.manifest["machines"] = {"far": {"cores": 1}}
    assert unmet(made, rtm=True) == none


def test_counters_are_those_of_the_processor_and_must_count() -> None:
    made = claimed.campaign(claimed.study([]), speeds(a=1, b=1))
    works, fails = (
        {"source": "perf_event", "counts": counts, "why": "" if counts else "refused"} for counts in (True, False)
    )
    other = {"source": "cachegrind", "counts": True, "why": "model"}
    assert unmet(made, [other], counters=True) == [Unmet("counters", has="not looked for")]
    assert unmet(made, [other, fails], counters=True) == [Unmet("counters", has="refused")]
    assert unmet(made, [fails, works], counters=True) == []
    assert unmet(made, [fails]) == []


def test_every_need_that_is_not_met_is_named() -> None:
    made = claimed.campaign(claimed.study([], lookalikes={"hoard": "b"}), speeds(a=1, b=1))
    assert unmet(
        made, allocators=["a", "hoard", "x", "y"], workloads=["intset", "v", "w"], syncs=["stm", "t", "u"], machine="far"
    ) == [
        Unmet("allocator", "x"), Unmet("allocator", "y"), Unmet("workloads", ("v", "w")), Unmet("sync", "t"), Unmet("sync", "u"),
        Unmet("machine", "far"),
    ]  # fmt: skip
    assert unmet(made, machine="host") == []
    judged = decided(speeds(a=1, b=1), ABOVE, needs={"cores": 4, "machine": "far"})
    assert judged["reason"] == "needs 4 cores (this machine has 2); machine far"


# ---- several predicates


def test_two_reasons_are_said_and_more_are_counted() -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": 100 * wobble(cell, block), "aborts": 1, "attempts": 2, "room_bytes": 3}

    metrics = ["ops_per_s", "aborts", "attempts", "room_bytes"]
    unsure = [{"kind": "ratio_above", "of": {**A1, "metric": name}, "to": {"allocator": "b"}} for name in metrics]
    for count, more in ((1, ""), (2, ""), (3, "; and 1 more"), (4, "; and 2 more")):
        reason = decided(values, *unsure[:count], blocks=5)["reason"]
        assert reason.count("too few") == min(count, 2)
        assert reason.endswith(f"blocks are too few for an interval{more}")
        assert reason.count("; ") == min(count, 3) - 1
    all_hold = [{**one, "limit": 0.5} for one in unsure[:3]]
    judged = decided(values, *all_hold, blocks=8)
    assert judged["verdict"] == "reproduced" and judged["reason"].endswith("; and 1 more") and len(judged["ours"]) == 3


def test_what_fails_is_said_before_what_is_open() -> None:
    fails, unsure = {**ABOVE, "limit": 3}, {**ABOVE, "limit": 2}
    judged = decided(speeds(a=100, b=50), unsure, fails, {**ABOVE, "limit": 1})
    assert judged["verdict"] == "contradicted" and judged["reason"].count("ops_per_s") == 1
    assert decided(speeds(a=100, b=50), unsure, {**ABOVE, "limit": 1})["verdict"] == "undecided"


def test_a_claim_without_a_predicate_waits_though_its_needs_are_met() -> None:
    judged = decided(speeds(a=1, b=1), needs={"workloads": ["intset"]})
    assert (judged["verdict"], judged["ours"], judged["predicate"]) == ("undecided", [], "none yet")
    assert judged["reason"] == "its needs are met, but the study states no predicate yet"


def test_an_entry_says_all_that_the_study_says() -> None:
    stated = claim(
        ABOVE,
        figure="5",
        note="n",
        self_contradicting="table 2",
        paper=[{"what": "w", "value": "v"}],
        needs={"cores": 2},
    )
    made = claimed.campaign(claimed.study([stated]), speeds(a=100, b=50))
    made.manifest["machines"] |= {"far": {"cores": 1, "fingerprint": "g"}, "nameless": {"cores": 1}}
    judged = verdict(made)
    ours, reason = judged.pop("ours"), judged.pop("reason")
    assert judged == {
        "id": "000-01", "section": "1", "figure": "5", "sentence": "It is so.",
        "predicate": "ratio_above: first metric of a shift=5 1T / b > 1", "verdict": "self-contradicting", "note": "n",
        "needs": ["2 cores"], "paper": [{"what": "w", "value": "v"}], "machine": "f g ", "groups": ["list"], "by_preset": False,
        "self_contradicting": True, "follows_from": [], "machines": ["host"], "allocators": ["a", "b"], "inputs": ["intset"],
        "assumed": [], "guessed": {},
    }  # fmt: skip
    assert reason.startswith("table 2; here: reproduced, ops_per_s of a shift=5 1T / b shift=5 1T = ")
    assert [sorted(one) for one in ours] == [["estimate", "high", "low", "unit", "what"]]


def test_an_entry_names_what_its_cells_were() -> None:
    """Machines, allocators, and the workload's own parameters: those of the synchronisation are no input."""
    made = claimed.campaign(claimed.study([claim(ABOVE)]), speeds(a=100, b=50))
    (workload,) = claimed.DESCRIPTION.workloads
    shift = claimed.DESCRIPTION.sync.parameters
    own = claimed.DESCRIPTION.model_copy(update={"workloads": (workload.model_copy(update={"parameters": shift}),)})
    made.descriptions = {"stm": own}
    judged = verdict(made)
    assert (judged["machines"], judged["allocators"], judged["inputs"]) == (["host"], ["a", "b"], ["intset shift=5"])
    assert evaluate._levels(list("1234")) == "1,2,3,4" and evaluate._levels(list("12345")) == "1..5"
    trend = {"kind": "ratio_above", "of": A1, "to": {"parameters": {"shift": 4}}}
    judged = verdict(claimed.campaign(claimed.study([claim(trend)]), speeds(a=100, b=50)))
    assert (judged["allocators"], judged["inputs"]) == (["a"], ["intset"])


def test_a_look_alike_is_named_only_where_something_was_decided() -> None:
    alike = {"kind": "ratio_above", "of": A1, "to": {"allocator": "hoard"}}
    for limit, expected in ((1.0, ("reproduced", True)), (3.0, ("contradicted", True)), (2.0, ("undecided", False))):
        made = claimed.study([claim({**alike, "limit": limit})], lookalikes={"hoard": "b"})
        judged = verdict(claimed.campaign(made, speeds(a=100, b=50)))
        assert (judged["verdict"], judged["by_preset"]) == expected
    both = claimed.study([claim(ABOVE, alike)], lookalikes={"hoard": "b"})
    assert verdict(claimed.campaign(both, speeds(a=100, b=50)))["by_preset"]


def test_a_study_without_a_paper_says_nothing_and_one_with_figures_says_both() -> None:
    assert claimed.ledger(claimed.campaign(claimed.study([]), speeds(a=1, b=1)), {}) == {}
    figure = {
        "id": "f", "title": "t", "kind": "table", "groups": ["list"], "paper": {"columns": ["a"]}, "ours": [],
    }  # fmt: skip
    ledger = claimed.ledger(claimed.campaign(claimed.study([], paper_figures=[figure]), speeds(a=1, b=1)), {})
    assert (ledger["claims"], len(ledger["paper_figures"]), ledger["placements"]) == ([], 1, [])
    counted = {"kind": "band", "of": {**A1, "source": "cachegrind", "metric": "cycles"}, "low": 1, "high": 9}
    made = claimed.campaign(claimed.study([claim(counted)]), speeds(a=1, b=1))
    for counters, ours in (
        ({"counters": [{"source": "cachegrind", "cycles": 8}]}, [8.0]),
        ({"counters": None}, []),
        ({}, []),
    ):
        (one,) = claimed.ledger(made, {made.cells[0].key: counters})["claims"]
        assert [line["estimate"] for line in one["ours"]] == ours
        assert one["verdict"] == "undecided"


# ---- what is said of comparisons


def compared(outcome: str, estimate: float, low: float | None = 0.5, name: str = "x") -> Comparison:
    interval = Interval(estimate, low, None if low is None else estimate + 1, 4)
    return Comparison(name, interval, interval, "1", lambda one, apart: outcome)


def test_too_few_blocks_to_contradict_are_said() -> None:
    """Six blocks whose interval lies on the wrong side do not contradict a claim of several comparisons."""
    one, none = Interval(0.46, 0.39, 0.54, 6), Interval(0.46, None, None, 6)
    alone = Comparison("a / b", one, none, "1", judges.above(2.0))
    unsure = Comparison("c / d", Interval(2.1, 1.9, 2.3, 6), none, "1", judges.above(2.0))
    assert predicates._all((unsure, alone)) == (
        OPEN, "6 blocks are too few to contradict it: a / b = 0.46 [0.39, 0.54]",
    )  # fmt: skip
    assert predicates._all((unsure,)) == (OPEN, "the interval does not decide: c / d = 2.1 [1.9, 2.3]")
    apart = Comparison("a / b", one, Interval(0.46, 0.3, 0.6, 8), "1", judges.above(2.0))
    assert predicates._all((unsure, apart))[0] == FAILS


def test_all_of_many_comparisons_in_a_line() -> None:
    holds, unsure = compared(HOLDS, 3.0, name="far"), compared(OPEN, 1.0, name="open")
    near = compared(HOLDS, 0.5, name="near")
    assert predicates._all((holds,)) == (HOLDS, "far = 3 [0.5, 4]")
    assert predicates._all((holds, near)) == predicates._all((near, holds)) == (HOLDS, "near = 0.5 [0.5, 1.5]")
    nearest = compared(HOLDS, 1.25, name="nearest")
    assert predicates._all((near, nearest, holds)) == (HOLDS, "nearest = 1.25 [0.5, 2.25]")
    assert predicates._all((holds, unsure, near)) == (OPEN, "the interval does not decide: open = 1 [0.5, 2]")
    few = compared(OPEN, 1.0, None, "few")
    assert predicates._all((unsure, few)) == (OPEN, "few: 4 blocks are too few for an interval")
    fails = [compared(FAILS, n + 1.0, name=str(n)) for n in range(4)]
    texts = [predicates.in_words(one) for one in fails]
    assert texts[0] == "0 = 1 [0.5, 2]" and predicates.in_words(few) == "few = 1"
    assert predicates._all((holds, fails[0], unsure)) == (FAILS, texts[0])
    assert predicates._all(tuple(fails[:2])) == (FAILS, f"{texts[0]}; {texts[1]}")
    assert predicates._all(tuple(fails[:3])) == (FAILS, f"{texts[0]}; {texts[1]} and 1 more")
    assert predicates._all(tuple(fails)) == (FAILS, f"{texts[0]}; {texts[1]} and 2 more")


def test_a_comparison_is_written_with_its_own_interval() -> None:
    one = Comparison("w", Interval(2.0, 1.0, 3.0, 9), Interval(2.0, 0.5, 4.0, 9), "s", lambda one, apart: HOLDS)
    assert one.of_result().as_json() == {"what": "w", "estimate": 2.0, "low": 1.0, "high": 3.0, "unit": "s"}


def test_pairs_are_the_keys_at_which_both_are_positive() -> None:
    above, below = {1: 4.0, 2: 9.0, 3: 0.0, 4: 0.5}, {1: 2.0, 2: 0.0, 3: 1.0, 4: 0.25, 5: 1.0}
    at = predicates.paired(above, below)
    assert at is not None
    assert (at(0.95).estimate, at(0.95).n) == (pytest.approx(2.0), 2)
    six = predicates.paired(dict.fromkeys(range(6), 2.0), dict.fromkeys(range(6), 1.0))
    assert six is not None and six(0.95).low == pytest.approx(2.0) and six(0.99).low is None
    assert predicates.paired({1: 0.0}, {1: 1.0}) is None and predicates.paired({1: 1.0}, {2: 1.0}) is None
    assert predicates.paired({}, {}) is None


# ---- who is absent


def test_absent_allocators_are_named_once_and_the_others_decide() -> None:
    of = {key: value for key, value in A1.items() if key != "allocator"}
    values = speeds(a=100, b=50)
    order = {"kind": "order", "of": of, "tiers": [["a", "x"], ["y"], ["b"]]}
    judged = decided(values, order)
    assert judged["verdict"] == "reproduced" and len(judged["ours"]) == 1, "a tier of absent ones is passed over"
    assert judged["reason"].startswith("ops_per_s of a shift=5 1T / b") and judged["reason"].endswith("; without x, y")
    gone = {"kind": "order", "of": of, "tiers": [["x"], ["y"]]}
    assert decided(values, gone)["reason"] == "needs x, y, which are missing here"
    band = {"kind": "band", "of": {**A1, "allocator": ["a", "x"]}, "low": 90, "high": 110}
    assert decided(values, band)["reason"].endswith("; without x")
    assert decided(values, {**band, "of": {**A1, "allocator": "x"}})["reason"] == "needs x, which is missing here"
    trend = {
        "kind": "trend", "of": {"group": "list", "allocator": ["x", "a"], "parameters": {"shift": 5}},
        "along": "threads", "levels": [1, 2], "direction": "flat", "margin": 0.5,
    }  # fmt: skip
    assert decided(values, trend)["reason"].endswith("; without x")
    # The same list on both sides: each against itself, and the absent one is named once.
    own = {"kind": "ratio_above", "of": {**A1, "allocator": ["a", "b", "x"]}, "to": {"parameters": {"shift": 4}}}
    judged = decided(values, {**own, "limit": 0.5})
    assert judged["verdict"] == "reproduced" and len(judged["ours"]) == 2 and judged["reason"].endswith("; without x")


def test_each_tier_is_compared_with_the_next_alone() -> None:
    of = {key: value for key, value in A1.items() if key != "allocator"}
    order = {"kind": "order", "of": of, "tiers": [["a"], ["b", "c"], ["d"]]}
    made = claimed.study([claim(order)], allocators=["a", "b", "c", "d"])
    judged = verdict(claimed.campaign(made, speeds(a=100, b=50, c=40, d=20)))
    assert judged["verdict"] == "reproduced"
    assert [round(one["estimate"], 1) for one in judged["ours"]] == [2.0, 2.5, 2.5, 2.0]


def test_a_decision_about_what_is_absent_compares_nothing() -> None:
    made = claimed.campaign(claimed.study([]), speeds(a=1, b=1))
    absent = Predicate.model_validate({"kind": "ratio_above", "of": A1, "to": {"allocator": "hoard"}})
    assert predicates.decide(Evidence(made), [absent]) == [Decision(OPEN, "needs hoard, which is missing here")]
    lost = Predicate.model_validate({"kind": "band", "of": {**A1, "metric": "colour"}, "low": 0, "high": 1})
    assert predicates.decide(Evidence(made), [lost]) == [Decision(OPEN, "intset of stm has no metric colour")]


def test_a_group_that_did_not_run_is_what_is_missing() -> None:
    """And not its allocators, which other machines of the study may not have had at all."""
    other = {"name": "other", "workload": "intset", "sync": ["stm"], "threads": [1], "parameters": {"shift": [5, 4]}}
    made = claimed.campaign(claimed.study([], groups=[other]), speeds(a=1, b=1))
    absent = Predicate.model_validate(
        {"kind": "ratio_above", "of": {**A1, "allocator": "jemalloc"}, "to": {"allocator": "hoard"}}
    )
    assert predicates.decide(Evidence(made), [absent]) == [
        Decision(OPEN, "group list was not measured", not_run=("list",))
    ]
    known = Predicate.model_validate({"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}})
    assert predicates.decide(Evidence(made), [known]) == [
        Decision(OPEN, "group list was not measured", not_run=("list",))
    ]
