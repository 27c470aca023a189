"""Machines that were declared identical: pooled only after an A/A comparison that can fail."""

from __future__ import annotations

import re
from typing import Any

import pytest
from several_machines import result
from typed import typed

from loam_lab.judging.across import pooling
from loam_lab.model.result import Identical

ALIKE = {"fast": 1.1, "slow": 0.9}
BOTH = {"alpha": ALIKE, "beta": ALIKE}
DECLARED = (("alpha", "beta"),)


def test_machines_that_are_alike_are_pooled_by_ratios() -> None:
    judged = pooling.of_result(typed(result(BOTH, blocks=20)), DECLARED)[0].as_json()
    assert judged["passed"] and judged["reasons"] == []
    assert all(line["within"] for line in judged["baseline"]) and len(judged["baseline"]) == 2
    pooled = {(line["case"], line["allocator"]): line for line in judged["pooled"]}
    assert len(pooled) == 4
    fast = pooled["w, size\u00a0=\u00a01, stm, 1\u00a0thread", "fast"]
    assert fast["n"] == 40 and fast["low"] < 1.1 < fast["high"] and fast["verdict"] == "better"
    assert pooling.warnings([Identical(**judged)]) == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"speed": {"beta": 1.1}}, r"plain on beta has 1\.\d+ times"),
        ({"facts": {"beta": {"cpu": "another"}}}, "not of one kind: cpu is made up on alpha and another on beta"),
        ({"blocks": 4}, "has 4 blocks on one of them, and the comparison needs 6"),
        ({"noise": 0.2}, "which may differ by more than 5.0 %"),
    ],
)
def test_machines_that_may_differ_are_not_pooled(changed: dict[str, Any], reason: str) -> None:
    made = result(BOTH, **{"blocks": 20, **changed})
    judged = pooling.of_result(typed(made), DECLARED)[0].as_json()
    assert not judged["passed"] and judged["pooled"] == []
    assert any(re.search(reason, text) for text in judged["reasons"]), judged["reasons"]
    (warning,) = pooling.warnings([Identical(**judged)])
    assert warning.startswith("alpha and beta were declared identical and do not pass their A/A comparison")
    assert warning.count("; ") == 2, "fact; consequence; step"


def test_an_allocator_that_behaves_otherwise_on_one_of_them_forbids_pooling() -> None:
    made = result({"alpha": ALIKE, "beta": {"fast": 1.3, "slow": 0.9}}, blocks=20)
    judged = pooling.of_result(typed(made), DECLARED)[0].as_json()
    assert not judged["passed"]
    assert any("ratios differ between alpha and beta" in reason for reason in judged["reasons"])


def test_declared_machines_that_measured_nothing_take_no_part() -> None:
    assert pooling.of_result(typed(result(BOTH)), (("alpha", "gamma"),)) == []
    assert pooling.of_result(typed(result(BOTH)), ()) == []
