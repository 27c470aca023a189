"""Does the ranking hold across machines: planted answers are given, none is invented, and what cannot be told is said."""

from __future__ import annotations

from typing import Any

import pytest
from several_machines import result
from typed import typed

from loam_lab.judging.across import cases, judge
from loam_lab.model.result import Ranking

ALIKE = {"fast": 1.2, "slow": 0.8}


def one(made: dict[str, Any]) -> dict[str, Any]:
    (answer,) = judge.of_result(typed(made))
    return answer.as_json()


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_ranking_that_holds_is_said_to_hold(better: str) -> None:
    answer = one(
        result({"alpha": ALIKE, "beta": ALIKE}, better=better, blocks={"alpha": 12, "beta": 20}, speed={"beta": 3.0})
    )
    assert answer["holds"] == "yes", answer["text"]
    assert answer["text"].startswith("Yes, as far as was measured across alpha and beta")
    assert answer["pairs"] == {"all": 6, "same": 6, "some": 0, "reversed": 0, "open": 0, "nowhere": 0}
    assert [case["interaction"] for case in answer["cases"]] == ["not shown"] * 2
    assert answer["cases"][0]["blocks"] == {"alpha": 12, "beta": 20}
    for ranking in answer["cases"][0]["ranking"].values():
        assert judge.ranked(Ranking(**ranking)) == "fast > plain > slow"
    ratios = {(ratio["allocator"], ratio["machine"]): ratio for ratio in answer["cases"][0]["ratios"]}
    assert ratios["fast", "beta"]["estimate"] == pytest.approx(1.2, abs=0.02), "good is above 1, whatever the direction"
    assert ratios["slow", "alpha"]["verdict"] == "worse"


def test_sizes_that_differ_in_one_order_are_an_interaction_and_no_reversal() -> None:
    answer = one(result({"alpha": ALIKE, "beta": {"fast": 1.6, "slow": 0.8}}, cases=1))
    assert answer["holds"] == "order", answer["text"]
    (case,) = answer["cases"]
    assert case["interaction"] == "shown" and case["p_holm"] < 0.01
    differing = {one["allocator"]: one for one in case["differing"]}
    assert differing["fast"]["shown"] and not differing["slow"]["shown"]
    assert differing["fast"]["between"] == ["alpha", "beta"]
    assert differing["fast"]["low"] < 1.6 / 1.2 < differing["fast"]["high"]
    assert answer["reversals"] == []
    assert "the ratio of fast to plain on beta is 1.3" in answer["text"]


def test_allocators_that_change_places_are_named() -> None:
    answer = one(result({"alpha": ALIKE, "beta": {"fast": 0.9, "slow": 0.8}, "gamma": ALIKE}))
    assert answer["holds"] == "no"
    assert {(line["better"], line["than"], line["on"], line["but_worse_on"]) for line in answer["reversals"]} == {
        ("fast", "plain", "alpha", "beta"), ("fast", "plain", "gamma", "beta"),
    }  # fmt: skip
    assert answer["text"].startswith(
        "No. The ranking of allocators does not hold across alpha, beta and gamma: in 2 of 2 cases"
    )
    assert answer["pairs"]["reversed"] == 2
    assert answer["multiplicity"]["reversals"] == {"method": "Holm", "size": 2 * 3 * 3}


def test_equal_machines_are_not_told_apart_at_the_stated_rate() -> None:
    """Each result asks 6 questions of interaction; in 40 results at most 7 claim one (5 % of results: once in a thousand)."""
    claims = [
        one(
            result(
                {"alpha": ALIKE, "beta": ALIKE, "gamma": ALIKE}, seed=seed, blocks={"alpha": 8, "beta": 20, "gamma": 12}
            )
        )
        for seed in range(40)
    ]
    assert sum(any(case["interaction"] == "shown" for case in claim["cases"]) for claim in claims) <= 7
    assert not any(claim["reversals"] for claim in claims)


def test_few_blocks_decide_nothing() -> None:
    answer = one(result({"alpha": ALIKE, "beta": {"fast": 0.8}}, blocks=5))
    assert answer["holds"] == "undecided"
    assert "No case has 6 blocks on two of the machines" in answer["text"]
    assert {case["interaction"] for case in answer["cases"]} == {"too few blocks"}


def test_allocators_without_any_difference_have_no_ranking() -> None:
    answer = one(result({"alpha": {}, "beta": {}}, noise=0.05))
    assert answer["holds"] == "undecided"
    assert "No two allocators are told apart" in answer["text"]
    assert "≈" in judge.ranked(Ranking(**answer["cases"][0]["ranking"]["alpha"]))


def test_one_machine_has_no_answer_and_simulated_machines_have_their_own() -> None:
    assert judge.of_result(typed(result({"alpha": ALIKE}))) == []
    effects = dict.fromkeys(("alpha", "sim:a", "sim:b"), ALIKE)
    simulated = {name: {"simulated": True} for name in ("sim:a", "sim:b")}
    (answer,) = judge.of_result(typed(result(effects, facts=simulated)))
    assert answer.machines == ["sim:a", "sim:b"]


def test_cells_that_did_not_run_well_take_no_part() -> None:
    made = result({"alpha": ALIKE, "beta": ALIKE}, cases=1)
    broken = made["cells"][-1]
    assert broken["factors"]["allocator"] == "slow"
    broken.update(state="failed", metrics={})
    (case,) = cases.read(typed(made), ["alpha", "beta"])
    assert case.allocators == ("plain", "fast")
    assert case.absent == {"slow": "beta"}
    made["groups"][0]["role"] = "counted"
    assert cases.read(typed(made), ["alpha", "beta"]) == []


def test_blocks_pair_by_their_numbers() -> None:
    made = result({"alpha": ALIKE, "beta": ALIKE}, cases=1, blocks=10)
    metric = made["cells"][1]["metrics"]["m"]
    metric["values"], metric["blocks"] = metric["values"][3:], metric["blocks"][3:]
    (case,) = cases.read(typed(made), ["alpha", "beta"])
    assert len(case.logs["alpha"]) == 7 and len(case.logs["beta"]) == 10
