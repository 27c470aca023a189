"""The predicates of the studies hold for the numbers that their papers print, and what is said of those that do not."""

from __future__ import annotations

import dataclasses
from typing import Any

import claimed
import pytest
from pydantic import ValidationError
from test_claims import claim, speeds, verdict

from loam_lab.judging.claims import printed as judging
from loam_lab.judging.claims.judges import FAILS, HOLDS, OPEN
from loam_lab.model import studies
from loam_lab.model.claim import CANNOT_BE_DECIDED, SELF_CONTRADICTING, Claim

# Claims of papers: those of Loam's own studies have the study's name before their number.
STATED = [
    (name, claim)
    for name, file in studies.registry().items()
    for claim in studies.load(file).claims
    if claim.id[:3].isdecimal()
]


@pytest.mark.parametrize(("study", "claim"), [pytest.param(name, one, id=one.id) for name, one in STATED])
def test_no_predicate_is_failed_by_the_numbers_of_its_own_paper(study: str, claim: Claim) -> None:
    assert list(judging.faults(claim)) == []


# ---- how numbers are fed

A = {"group": "list", "allocator": "a", "threads": 1, "parameters": {"shift": 5}}
OVER_B = {"kind": "ratio_above", "of": A, "to": {"allocator": "b"}, "limit": 2}


def number(value: Any, **cells: Any) -> dict[str, Any]:
    return {"where": "table 1", "value": value, **cells}


def made(*predicates: dict[str, Any], printed: Any, **changed: Any) -> Claim:
    return Claim.model_validate(claim(*predicates, printed=printed, **changed))


def outcome(predicate: dict[str, Any], *numbers: dict[str, Any]) -> str:
    (tested,) = judging.judged(made(predicate, printed=list(numbers)))
    return tested.outcome


@pytest.mark.parametrize(
    ("predicate", "value", "expected"),
    [
        ({}, 2.1, HOLDS), ({}, 2.0, HOLDS), ({}, 1.99, FAILS),
        ({"kind": "ratio_below"}, 1.9, HOLDS), ({"kind": "ratio_below"}, 2.0, HOLDS), ({"kind": "ratio_below"}, 2.01, FAILS),
        ({"kind": "band", "limit": None, "low": 2, "high": 3}, 2.0, HOLDS),
        ({"kind": "band", "limit": None, "low": 2, "high": 3}, 3.0, HOLDS),
        ({"kind": "band", "limit": None, "low": 2, "high": 3}, 3.1, FAILS),
    ],
)  # fmt: skip
def test_a_printed_number_meets_a_limit_that_is_that_number(
    predicate: dict[str, Any], value: float, expected: str
) -> None:
    whole = {name: given for name, given in {**OVER_B, **predicate}.items() if given is not None}
    assert outcome(whole, number(value, allocator="a"), number(1, allocator="b")) == expected


def test_both_ends_of_a_printed_range_have_to_hold() -> None:
    one = number(1, allocator="b")
    assert outcome(OVER_B, number([2.5, 6], allocator="a"), one) == HOLDS
    assert outcome(OVER_B, number([1.5, 6], allocator="a"), one) == FAILS
    assert outcome(OVER_B, number([6, 1.5], allocator="a"), one) == FAILS
    # The lowest of one side stands against the highest of the other.
    assert outcome(OVER_B, number([4, 5], allocator="a"), number([1, 3], allocator="b")) == FAILS
    assert outcome(OVER_B, number([6, 7], allocator="a"), number([1, 3], allocator="b")) == HOLDS


def test_a_time_is_the_reciprocal_of_a_rate() -> None:
    faster = [number(10, allocator="a", inverse=True), number(30, allocator="b", inverse=True)]
    assert outcome(OVER_B, *faster) == HOLDS
    assert outcome(OVER_B, *({**one, "inverse": False} for one in faster)) == FAILS
    with pytest.raises(ValidationError, match="0 has no reciprocal"):
        made(OVER_B, printed=[number(0, inverse=True)])


def test_a_number_is_of_the_cells_that_it_names() -> None:
    b = number(1, allocator="b")
    for other in (
        {"threads": 2},
        {"parameters": {"shift": 4}},
        {"metric": "aborts"},
        {"group": "tree"},
        {"sync": "stm"},
    ):
        assert outcome(OVER_B, number(9, allocator="a", **other), b) == OPEN
    same = {"threads": 1, "parameters": {"shift": 5}, "group": "list"}
    assert outcome(OVER_B, number(9, allocator="a", **same), b) == HOLDS
    aborts = {**OVER_B, "of": {**A, "metric": "aborts"}}
    assert outcome(aborts, number(9, allocator="a"), b) == OPEN
    assert (
        outcome(aborts, number(9, allocator="a", metric="aborts"), number(1, allocator="b", metric="aborts")) == HOLDS
    )


def test_a_trend_and_an_order_take_what_is_printed() -> None:
    rises = {"kind": "trend", "of": A, "along": "shift", "levels": [3, 4, 5], "direction": "rises"}
    steps = [number(level, parameters={"shift": level}) for level in (3, 4, 5)]
    assert outcome(rises, *steps) == HOLDS
    assert outcome(rises, *steps[:2], number(3.5, parameters={"shift": 5})) == FAILS
    assert outcome(rises, *steps[:2]) == OPEN
    cells = {"group": "list", "threads": 1, "parameters": {"shift": 5}}
    order = {"kind": "order", "of": cells, "tiers": [["a"], ["b", "c"]]}
    assert outcome(order, number(3, allocator="a"), number(2, allocator="b")) == HOLDS
    assert outcome(order, number(3, allocator="a"), number(2, allocator="b"), number(4, allocator="c")) == FAILS


def test_of_a_predicate_that_takes_one_of_several_one_has_to_hold() -> None:
    some = {"kind": "ratio_below", "of": A, "to": {"allocator": ["b", "c"]}, "some": True}
    one = number(2, allocator="a")
    assert outcome(some, one, number(3, allocator="b"), number(1, allocator="c")) == HOLDS
    assert outcome({**some, "some": False}, one, number(3, allocator="b"), number(1, allocator="c")) == FAILS
    assert outcome(some, one, number(1, allocator="b"), number(1, allocator="c")) == FAILS
    assert outcome(some, one, number(3, allocator="b")) == HOLDS


def test_a_ratio_over_the_same_ratio_elsewhere_takes_what_is_printed() -> None:
    than = {**OVER_B, "than": {"threads": 2}}
    b = number(1, allocator="b")
    assert outcome(than, number(6, allocator="a", threads=1), number(2, allocator="a", threads=2), b) == HOLDS
    assert outcome(than, number(6, allocator="a", threads=1), number(4, allocator="a", threads=2), b) == FAILS
    assert outcome(than, number(6, allocator="a", threads=1), b) == OPEN


# ---- what is wrong between a claim and its paper

GOOD = [number(3, allocator="a"), number(1, allocator="b")]


def faults(*predicates: dict[str, Any], printed: Any, **changed: Any) -> list[str]:
    return list(judging.faults(made(*predicates, printed=printed, **changed)))


def test_a_claim_has_numbers_or_says_that_there_are_none() -> None:
    assert faults(OVER_B, printed=GOOD) == []
    assert faults(OVER_B, printed="none: the paper draws bars") == []
    assert faults(OVER_B, printed="") == [
        'printed is missing: the numbers of the paper, or "none: " and what it has instead'
    ]
    with pytest.raises(ValidationError, match="none: figure 4 has curves"):
        made(OVER_B, printed="nothing")


def test_a_predicate_that_the_paper_fails_is_wrong() -> None:
    (fault,) = faults(OVER_B, printed=[number(1.5, allocator="a"), number(1, allocator="b")])
    assert fault.startswith("the paper itself fails ratio_above") and "= 1.5" in fault


def test_a_number_that_nothing_reads_is_a_mistake() -> None:
    (fault,) = faults(OVER_B, printed=[*GOOD, number(7, threads=8)])
    assert fault == "no predicate reads the number of table 1: 8T 7.0"


def test_two_numbers_of_the_same_cells_are_a_mistake() -> None:
    mistakes = faults(OVER_B, printed=[*GOOD, number(4, allocator="a", threads=1)])
    assert any("2 printed numbers fit" in one for one in mistakes)


def test_each_predicate_is_tested_or_marked() -> None:
    other = {"kind": "band", "of": {**A, "metric": "aborts"}, "low": 0, "high": 1}
    (fault,) = faults(OVER_B, other, printed=GOOD)
    assert fault.startswith("not tested: band: aborts")
    assert faults(OVER_B, {**other, "printed": "none: a picture"}, printed=GOOD) == []
    (fault,) = faults({**OVER_B, "printed": "none: a picture"}, printed=GOOD)
    assert fault.startswith("tested, and marked")


def test_a_paper_that_contradicts_itself_fails_its_own_predicate() -> None:
    against = [number(1, allocator="a"), number(1, allocator="b")]
    assert faults(OVER_B, printed=against, self_contradicting="its data say the opposite") == []
    assert faults(OVER_B, printed=GOOD, self_contradicting="its data say the opposite") == [
        "self_contradicting, but the printed numbers fail no predicate"
    ]


def test_almost_all_is_all_but_as_many_as_said() -> None:
    higher, more = {**OVER_B, "limit": 1}, {**OVER_B, "limit": 5}
    wide = {"kind": "band", "of": {**A, "threads": 2}, "low": 1, "high": 1e9}
    numbers = [*GOOD, number(3, threads=2, allocator="a", parameters={"shift": 3})]
    assert faults(higher, more, printed=GOOD, all_but=1) == []
    assert len(faults(higher, more, printed=GOOD)) == 1
    assert "no predicate reads" in faults(higher, more, printed=numbers, all_but=1)[0]
    against = faults(higher, more, printed=GOOD, all_but=1, self_contradicting="table 2")
    assert against == ["self_contradicting, but the printed numbers fail no predicate"]
    with pytest.raises(ValidationError, match="holds though all but 2 of 2"):
        made(higher, more, printed="", all_but=2)

    def measured(*predicates: dict[str, Any], all_but: int) -> str:
        stated = claimed.study([claim(*predicates, all_but=all_but)])
        word: str = verdict(claimed.campaign(stated, speeds(a=100, b=50)))["verdict"]
        return word

    unsure = {**OVER_B, "limit": 2}
    assert measured(higher, wide, more, all_but=1) == "reproduced"
    assert measured(higher, wide, more, all_but=0) == "contradicted"
    assert measured(higher, more, more, all_but=1) == "contradicted"
    assert measured(higher, unsure, more, all_but=1) == "undecided"
    assert measured(higher, unsure, wide, all_but=1) == "reproduced"


# ---- what no measurement decides


def test_where_the_paper_contradicts_itself_no_measurement_decides() -> None:
    for b, here in ((30, "reproduced"), (130, "contradicted")):
        stated = claim(OVER_B, self_contradicting="table 1 has the opposite")
        judged = verdict(claimed.campaign(claimed.study([stated]), speeds(a=100, b=b)))
        assert (judged["verdict"], judged["self_contradicting"]) == (SELF_CONTRADICTING, True)
        assert judged["reason"].startswith(f"table 1 has the opposite; here: {here}, ops_per_s of a")
        assert judged["ours"]


def test_what_the_model_lacks_is_not_contradicted_there_and_decided_on_a_real_machine() -> None:
    stated = claim(OVER_B, model_lacks="stores cost nothing there")
    campaign = claimed.campaign(claimed.study([stated]), speeds(a=100, b=130))
    assert verdict(campaign)["verdict"] == "contradicted"
    campaign.cells = [dataclasses.replace(cell, machine="sim:xeon") for cell in campaign.cells]
    campaign.timed = {(cell.key, 0): runs for cell, runs in zip(campaign.cells, campaign.timed.values(), strict=True)}
    campaign.manifest["machines"]["sim:xeon"] = {"cores": 2}
    judged = verdict(campaign)
    assert (judged["verdict"], judged["self_contradicting"]) == (CANNOT_BE_DECIDED, False)
    assert judged["reason"].startswith("stores cost nothing there; here: ")
