"""What a verdict rests on that its paper does not say: the claim at other values, and what reports and the ledger tell of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import claimed
import pytest
from test_claims import A1, claim, verdict, wobble

from loam_lab.judging.statistics.data import Campaign
from loam_lab.model import consistent, result
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Claim
from loam_lab.presenting.report import ledger
from loam_lab.subjects import machines, simulated

ABOVE = {"kind": "ratio_above", "of": {**A1, "machine": "sim:x"}, "to": {"allocator": "b"}}
READS = {"parameter": "reads", "value": "any", "instead": [
    {"value": "few", "machine": "sim:y"}, {"value": "fewer", "machine": "sim:z"}, {"value": "odd", "parameters": {"shift": 4}},
]}  # fmt: skip
SIZE = {"parameter": "size", "value": "2"}


def campaign(**changed: Any) -> Campaign:
    """On x allocator a is ahead with shift 5, behind with shift 4; on y it is behind; on z nothing ran."""

    def values(cell: Cell, block: int) -> dict[str, float]:
        ahead = cell.allocator == "a" and ("shift", 5) in cell.parameters
        return {"operations": (100 if ahead else 50) * wobble(cell, block) * (1 + 0.2 * (cell.allocator == "b"))}

    def other(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": (100 if cell.allocator == "b" else 50) * wobble(cell, block)}

    study = claimed.study([claim(ABOVE, **{"assumes": [READS, SIZE], **changed})])
    made = claimed.campaign(study, values)
    for machine, how in (("sim:x", values), ("sim:y", other)):
        there = claimed.campaign(study, how)
        moved = {cell.key: dataclasses.replace(cell, machine=machine) for cell in there.cells}
        made.cells += moved.values()
        made.timed.update({(moved[key].key, copy): runs for (key, copy), runs in there.timed.items()})
        made.manifest["machines"][machine] = {"cores": 8, "assumed": ["l1", "line"] if machine == "sim:x" else []}
    made.cells = [cell for cell in made.cells if cell.machine != "host"]
    return made


def test_a_claim_is_decided_at_each_other_value_of_what_it_assumes() -> None:
    judged = verdict(campaign())
    assert judged["verdict"] == "reproduced"
    reads, size = judged["assumed"]
    assert [(one["value"], one["verdict"]) for one in reads["tried"]] == [
        ("few", "contradicted"), ("fewer", "undecided"), ("odd", "contradicted"),
    ]  # fmt: skip
    assert "was not measured" in reads["tried"][1]["reason"]
    assert size == {"parameter": "size", "value": "2", "tried": []}


def test_the_machines_own_guesses_are_named() -> None:
    assert verdict(campaign())["guessed"] == {"sim:x": ["l1", "line"]}
    facts = machines.find("sim:mppa16").facts()
    assert {"line", "l1", "transactions"} <= set(facts["assumed"]) and "cores" not in facts["assumed"]
    assert len(facts["assumed"]) == len(set(facts["assumed"]))
    tables = {key.partition(".")[0] for key in simulated.registry()["mppa16"].assumed()}
    assert {key.partition(".")[0] for key in facts["assumed"]} == tables
    # Of a table that is a guess in part, the keys are named.
    assert {"memory.cycles", "atomic"} <= set(machines.find("sim:many-128").facts()["assumed"])


def test_reports_tell_over_which_values_a_verdict_holds() -> None:
    tried = [result.Tried("few", "contradicted"), result.Tried("odd", "reproduced")]
    sentence = result.Assumed("reads", "any", tried).words()
    assert sentence == "assumed: reads, any; with few it is contradicted and with odd it is reproduced"
    assert result.Assumed("size", "2").words() == "assumed: size, 2; no other value was tried"
    item = result.Claim("000-01", assumed=[result.Assumed("size", "2")], guessed={"sim:x": ["l1", "line"]}, note="n")
    assert ledger.claim(item, ()).notes == (
        "assumed: size, 2; no other value was tried", "rests on assumed numbers of sim:x (l1, line)", "n",
    )  # fmt: skip


def test_other_values_have_cells_of_the_study() -> None:
    group = {
        "name": "list", "workload": "intset", "sync": ["stm"], "threads": [1, 2], "parameters": {"shift": [5, 4]},
        "machines": ["sim:x", "sim:y"],
    }  # fmt: skip
    good = {**READS, "instead": [READS["instead"][0], READS["instead"][2]]}  # type: ignore[index]
    for assumed, mistakes in ((good, 0), (READS, 1)):
        made = claimed.study([claim(ABOVE, assumes=[assumed])], groups=[group])
        faults = list(consistent.mistakes(made))
        assert bool(faults) == bool(mistakes), faults
    with pytest.raises(ValueError, match="instead names no other cells"):
        Claim.model_validate(claim(ABOVE, assumes=[{**READS, "instead": [{"value": "none"}]}]))


def test_another_group_may_be_read_without_the_levels_that_are_named_for_the_first() -> None:
    instead = {"value": "the original", "groups": {"list": "original"}}
    of = {**ABOVE["of"], "parameters": {"shift": 5}}  # type: ignore[dict-item]
    made = Claim.model_validate(
        claim({**ABOVE, "of": of}, assumes=[{"parameter": "program", "value": "ours", "instead": [instead]}])
    )
    (moved,) = made.at(made.assumes[0].instead[0]).predicates
    assert [(one.group, one.parameters) for one in moved.selections()] == [("original", {}), ("original", {})]
    assert [one.allocator for one in moved.selections()] == [("a",), ("b",)]


def test_a_group_that_did_not_run_tells_nothing() -> None:
    odd = {"value": "the original", "groups": {"list": "original"}}
    there = {"value": "itself", "groups": {"list": "list"}, "machine": "sim:y"}
    judged = verdict(campaign(assumes=[{"parameter": "program", "value": "ours", "instead": [odd, there]}]))
    ((tried,),) = [one["tried"] for one in judged["assumed"]]
    assert (tried["value"], tried["verdict"]) == ("itself", "contradicted")
