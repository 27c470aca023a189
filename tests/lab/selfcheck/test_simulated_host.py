"""The comparison of a host with its simulated self: what counts as a difference, what agrees, and how it is told."""

from __future__ import annotations

import json
import math

import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import exit_status, simulated
from loam_lab.dev.selfcheck.simulated import SIMULATED, Pair, Question, Value, Values
from loam_lab.model.result import Result
from loam_lab.subjects.machines import HOST


def near(estimate: float, share: float = 0.01) -> Value:
    return Value(estimate, estimate * (1 - share), estimate * (1 + share))


def cell(allocator: str, threads: int, rate: float, **parameters: str) -> dict[str, object]:
    interval = {"estimate": rate, "low": rate * 0.9, "high": rate * 1.1}
    metrics = {"pairs_per_s": interval, "aborts_per_attempt": {"estimate": rate, "low": None, "high": None}}
    factors = {"workload": "w", "allocator": allocator, "threads": threads}
    return {"copy": 0, "factors": factors, "parameters": parameters, "metrics": metrics}


def test_a_pair_counts_if_the_host_tells_it_apart() -> None:
    host = {"a": near(100), "b": near(80), "c": near(78), "d": near(90, 0.2)}
    made = {"a": near(3), "b": near(2), "c": near(9), "d": near(1)}
    assert simulated.pairs(host, made) == [Pair("a", "b", 1.25, 1.5), Pair("a", "c", 100 / 78, 1 / 3)]
    assert [pair.agrees for pair in simulated.pairs(host, made)] == [True, False]


def test_equal_values_on_the_simulated_machine_do_not_agree() -> None:
    host = {"a": near(2), "b": near(1)}
    assert not simulated.pairs(host, {"a": near(5), "b": near(5)})[0].agrees


def test_a_rate_of_zero_is_the_smaller_one() -> None:
    host = {"none": Value(0, 0, 0), "some": near(0.1)}
    (pair,) = simulated.pairs(host, {"none": Value(0, 0, 0), "some": near(0.2)})
    assert (pair.first, pair.ratio, pair.agrees, pair.near) == ("some", math.inf, True, True)
    (other,) = simulated.pairs(host, {"none": Value(0, 0, 0), "some": Value(0, 0, 0)})
    assert not other.agrees


def result(*cells: dict[str, object]) -> Result:
    return typed({"primary_metrics": {"w": "pairs_per_s"}, "cells": list(cells)})


def test_what_is_compared_comes_from_the_cells_but_the_second_copy() -> None:
    second = {**cell("a", 1, 999.0), "copy": 1}
    speed_ups = simulated.speed_ups(
        result(cell("a", 1, 10.0), cell("a", 2, 15.0), cell("b", 1, 10.0), cell("b", 2, 20.0), second)
    )
    assert {name: value.estimate for name, value in speed_ups.items()} == {"a": 1.5, "b": 2.0}
    assert speed_ups["a"].low == pytest.approx(13.5 / 11) and speed_ups["a"].high == pytest.approx(16.5 / 9)
    aborts = simulated.abort_rates(result(cell("a", 2, 0.25), second))
    assert aborts == {"a": Value(0.25, 0.25, 0.25)}
    lines = simulated.patterns(result(cell("a", 2, 1.0, pattern="same"), cell("a", 2, 9.0, pattern="apart")))
    assert {name: value.estimate for name, value in lines.items()} == {"same": 1.0, "apart": 9.0}


def test_a_cell_without_the_metric_is_named() -> None:
    factors = {"workload": "w", "allocator": "a", "machine": HOST}
    with pytest.raises(LoamError, match="w with a on host: gave no pairs_per_s: its runs are unproven"):
        simulated.patterns(result({"copy": 0, "factors": factors, "parameters": {"pattern": "same"}, "metrics": {},
                                   "state": "unproven"}))  # fmt: skip


def answers(on_host: float, on_simulated: float) -> simulated.Ask:
    def one(question: Question, machine: str, blocks: int) -> Values:
        assert blocks == simulated.BLOCKS
        return {"x": near(on_host if machine == HOST else on_simulated), "y": near(1.0)}

    return one


@pytest.mark.parametrize(
    ("on_host", "on_simulated", "status", "message"),
    [
        (2.0, 1.3, 0, f"1 pairs differ on the host, 1 of them in the same order on {SIMULATED}"),
        (2.0, 0.8, 1, "x to y: 2.00, simulated 0.80 (the other way)"),
        (4.2, 21.0, 1, "x to y: 4.20, simulated 21.00 (too far off)"),
        (4.2, 2.0, 1, "x to y: 4.20, simulated 2.00 (too far off)"),
        (4.2, 8.3, 0, "x to y: 4.20, simulated 8.30\n"),
        (4.2, 8.3, 0, f"1 pairs differ on the host, 1 of them in the same order on {SIMULATED}"),
        (1.01, 1.5, exit_status.TOO_FEW, "0 pairs differ on the host"),
        (1.01, 5.0, 1, f"x: {SIMULATED} has 4.95 times the host's factor (too far off)"),
    ],
)
def test_the_status_says_whether_they_agree(
    on_host: float, on_simulated: float, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated.main([], answers(on_host, on_simulated)) == status
    output = capsys.readouterr().out
    assert message in output
    assert output.count(f"| {HOST} | {SIMULATED} |") == len(simulated.QUESTIONS)
    assert simulated.main(["--json"], answers(on_host, on_simulated)) == status
    content = json.loads(capsys.readouterr().out)
    assert [question["question"] for question in content["questions"]] == [q.what for q in simulated.QUESTIONS]
    assert content["questions"][0]["values"]["x"][HOST]["estimate"] == on_host


@pytest.mark.slow
@pytest.mark.parametrize("question", simulated.QUESTIONS, ids=lambda question: question.values.__name__)
def test_each_question_has_an_answer_on_both_machines(question: Question) -> None:
    host, made = (simulated.ask(question, machine, 1) for machine in (HOST, SIMULATED))
    assert len(host) > 1 and host.keys() == made.keys()
    assert all(value.estimate >= 0 for value in (*host.values(), *made.values()))
    assert any(value.estimate > 0 for value in host.values()) and any(value.estimate > 0 for value in made.values())


def test_no_block_is_refused() -> None:
    with pytest.raises(LoamError, match="at least 1"):
        simulated.main(["--blocks", "0"], answers(1, 1))
