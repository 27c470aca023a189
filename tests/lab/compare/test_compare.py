"""Comparing two results: planted changes are found, the day is cancelled, gates decide, what cannot be is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import several_machines
from campaigns import FakeInstruments, measure, study

from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.commands.compare import commands, judge, machines, sides
from loam_lab.model.schema import SCHEMA

BLOCKS = 12
HOST = {"cpu": "made up", "cores": 2, "fingerprint": "aa", "kernel": "6.1"}


def made(
    *, slower: dict[str, float] | None = None, day: float = 1.0, seed: int = 1, noise: float = 0.005, better: str = "higher",
    build: str = "build-1", machine: dict[str, Any] = HOST, allocators: tuple[str, ...] = ("plain", "fast", "slow"),
) -> dict[str, Any]:  # fmt: skip
    """A result with three allocators. slower: per allocator how many times as fast; day: a factor on everything."""
    random = np.random.default_rng(seed)
    drift = np.exp(random.normal(0, 0.01, BLOCKS))
    cells = []
    for name in allocators:
        truth = {"plain": 100.0, "fast": 130.0, "slow": 70.0}.get(name, 90.0) * (slower or {}).get(name, 1.0) * day
        values = list(truth * drift * np.exp(random.normal(0, noise, BLOCKS)))
        identity = {
            "parameters": {"size": 16, "default": 3}, "warmup_ms": 5, "preset": "release",
            "allocator": {"name": name, "sha256": f"sha-{name}"}, "sync": {"name": "stm", "build_id": build},
        }  # fmt: skip
        cells.append({
            "group": "one", "copy": 0, "state": "ok", "runs": BLOCKS, "failed": 0, "parameters": {"size": 16},
            "factors": {"workload": "w", "allocator": name, "sync": "stm", "machine": "host", "threads": 1},
            "identity": identity,
            "metrics": {"m": {
                "estimate": truth, "low": truth, "high": truth, "unit": "1/s", "better": better, "values": values,
                "blocks": list(range(BLOCKS)),
            }},
        })  # fmt: skip
    return {
        "schema": SCHEMA, "study": "s", "created_utc": "2026-01-01T00:00:00Z", "baseline": "plain",
        "machine": machine, "machines": {"host": machine}, "primary_metrics": {"w": "m"},
        "build": {"revision": build}, "cells": cells,
        "syncs": [{"name": "stm", "build_id": build}], "allocators": [],
    }  # fmt: skip


def side(tmp_path: Path, name: str, result: dict[str, Any]) -> Path:
    (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / name / "result.json").write_text(json.dumps(result))
    return tmp_path / name


def compared(tmp_path: Path, first: dict[str, Any], second: dict[str, Any], **options: Any) -> dict[str, Any]:
    pair = sides.read(side(tmp_path, "a", first)), sides.read(side(tmp_path, "b", second))
    return judge.compare(*pair, **options)


def cell(comparison: dict[str, Any], allocator: str) -> dict[str, Any]:
    (one,) = (cell for cell in comparison["cells"] if cell["allocator"] == allocator)
    return dict(one)


def test_an_unchanged_baseline_cancels_the_day(tmp_path: Path) -> None:
    """The machine is 10 % slower on the second day, and the allocator "slow" became 6 % slower."""
    comparison = compared(tmp_path, made(), made(slower={"slow": 0.94}, day=0.9, seed=2), gate=0.97)
    assert cell(comparison, "fast")["by"] == cell(comparison, "slow")["by"] == "baseline"
    assert cell(comparison, "fast")["verdict"] == "equivalent"
    assert cell(comparison, "slow")["verdict"] == "worse"
    ratio = cell(comparison, "slow")["ratio_of_ratios"]
    assert ratio["low"] < 0.94 < ratio["high"] and ratio["estimate"] == pytest.approx(0.94, abs=0.01)
    assert cell(comparison, "slow")["ratio"]["estimate"] == pytest.approx(0.846, abs=0.02)
    plain = cell(comparison, "plain")
    assert (plain["by"], plain["verdict"], plain["gate"]) == ("day", "baseline", "not asked"), "it shows the day alone"
    assert plain["ratio"]["estimate"] == pytest.approx(0.9, abs=0.02)
    assert comparison["gate"]["failed"] == [cell(comparison, "slow")["cell"]]
    assert comparison["warnings"] == []


def test_a_lone_baseline_is_compared_by_its_values(tmp_path: Path) -> None:
    comparison = compared(
        tmp_path, made(allocators=("plain",)), made(allocators=("plain",), day=0.9, seed=2), gate=0.97
    )
    assert (cell(comparison, "plain")["by"], cell(comparison, "plain")["gate"]) == ("values", "failed")


def test_a_changed_baseline_cannot_cancel_anything(tmp_path: Path) -> None:
    """Another build that is 6 % slower under every allocator: ratios to the baseline would hide it."""
    comparison = compared(tmp_path, made(), made(day=0.94, build="build-2", seed=2), gate=0.97)
    assert {cell["by"] for cell in comparison["cells"]} == {"values"}
    assert {cell["verdict"] for cell in comparison["cells"]} == {"worse"}
    assert len(comparison["gate"]["failed"]) == 3
    assert "stm: another build" in comparison["changed"]
    assert any("have no unchanged baseline" in warning for warning in comparison["warnings"])
    settings = compared(tmp_path, made(), made(day=0.94, seed=2, machine={**HOST, "kernel": "6.2"}))
    assert {cell["by"] for cell in settings["cells"]} == {"values"}
    assert "kernel: 6.1, now 6.2" in settings["changed"]


@pytest.mark.parametrize(
    ("better", "factor", "gate", "word"),
    [
        ("higher", 0.90, 0.97, "failed"), ("higher", 0.97, 0.97, "open"), ("higher", 1.0, 0.97, "passed"),
        ("higher", 1.2, 1.05, "passed"), ("higher", 1.0, 1.05, "failed"),
        ("lower", 1.10, 0.97, "failed"), ("lower", 0.9, 0.97, "passed"), ("neither", 0.5, 0.97, "not asked"),
    ],
)  # fmt: skip
def test_the_gate_asks_for_the_whole_interval_in_the_good_direction(
    tmp_path: Path, better: str, factor: float, gate: float, word: str
) -> None:
    comparison = compared(
        tmp_path, made(better=better), made(better=better, slower={"fast": factor}, seed=2), gate=gate
    )
    assert cell(comparison, "fast")["gate"] == word
    assert (cell(comparison, "fast")["cell"] in comparison["gate"]["failed"]) == (word == "failed")
    assert (cell(comparison, "fast")["cell"] in comparison["gate"]["open"]) == (word == "open")


def test_the_gate_is_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, good = side(tmp_path, "a", made()), side(tmp_path, "b", made(seed=2))
    bad = side(tmp_path, "c", made(slower={"fast": 0.9}, seed=2))
    assert main.run(["compare", str(first), str(good), "--gate", "0.97"]) == 0
    assert "gate passed: 2 cells at or above 0.97, 0 below, 0 open" in capsys.readouterr().out
    assert main.run(["compare", str(first), str(bad), "--gate", "0.97"]) == 1
    shown = capsys.readouterr().out
    assert "below the gate of 0.97: w size=16 stm 1T fast" in shown
    assert main.run(["compare", str(first), str(bad)]) == 0, "without a gate nothing fails"
    assert main.run(["compare", str(first), str(first), "--gate", "-1"]) == 2
    assert "must be a ratio above 0" in capsys.readouterr().err


def test_a_strict_gate_has_a_status_for_what_it_cannot_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, good = side(tmp_path, "a", made()), side(tmp_path, "b", made(seed=2))
    gate = ["--gate", "0.97"]
    assert main.run(["compare", str(first), str(good), *gate, "--strict"]) == 0
    wide = side(tmp_path, "wide", made(seed=2, noise=0.2))
    assert main.run(["compare", str(first), str(wide), *gate]) == 3, "a gate that decided no cell has not passed"
    assert "gate undecided: 0 cells at or above 0.97, 0 below, 2 open" in capsys.readouterr().out
    before = made()
    before["cells"][1].update(state="unproven", failed=BLOCKS, metrics={})
    unproven = side(tmp_path, "unproven", before)
    assert main.run(["compare", str(unproven), str(good), *gate]) == 0
    assert main.run(["compare", str(unproven), str(good), *gate, "--strict"]) == 3
    shown = capsys.readouterr().out
    assert "not measured: 1 cells without good runs before: w size=16 stm 1T fast" in shown
    fewer = side(tmp_path, "fewer", made(seed=2, allocators=("plain", "fast")))
    assert main.run(["compare", str(first), str(fewer), *gate]) == 0
    capsys.readouterr()
    assert main.run(["compare", str(first), str(fewer), *gate, "--strict", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)["gate"]
    assert document["verdict"] == "undecided" and document["strict"] and document["passed"] == 1
    bad = side(tmp_path, "bad", made(slower={"fast": 0.9}, seed=2, allocators=("plain", "fast")))
    assert main.run(["compare", str(first), str(bad), *gate, "--strict"]) == 1, "what is certain comes first"
    assert main.run(["compare", str(first), str(good), "--strict"]) == 2


def test_of_many_open_cells_three_are_named_below_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = ("plain", *"abcdef")
    first, wide = (
        side(tmp_path, name, made(allocators=many, seed=seed, noise=0.2)) for name, seed in (("x", 1), ("y", 2))
    )
    assert main.run(["compare", str(first), str(wide), "--gate", "0.97"]) == 3
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not decided: ")]
    assert line.startswith("not decided: 6 cells, whose intervals contain 0.97: w size=16 stm 1T a; ")
    assert line.endswith(" 1T c; and 3 more; more blocks would tell")


def test_a_cell_that_fails_now_fails_the_gate(tmp_path: Path) -> None:
    broken = made(seed=2)
    broken["cells"][1].update(state="failed", failed=BLOCKS, metrics={})
    comparison = compared(tmp_path, made(), broken, gate=0.9)
    assert (cell(comparison, "fast")["gate"], cell(comparison, "fast")["verdict"]) == ("failed", "failed")
    # The other way round there is nothing that it could have become worse than.
    assert cell(compared(tmp_path, broken, made(seed=2), gate=0.9), "fast")["gate"] == "not asked"


def test_two_machines_are_compared_on_request_only_and_by_ratios(tmp_path: Path) -> None:
    other = made(day=3.0, seed=2, slower={"slow": 1.2}, machine={**HOST, "cpu": "another", "fingerprint": "bb"})
    with pytest.raises(LoamError, match=r"two machines: made up, 2 hardware threads and another.*--across-machines"):
        compared(tmp_path, made(), other)
    comparison = compared(tmp_path, made(), other, across_machines=True, gate=0.97)
    assert not comparison["same_machine"]
    assert cell(comparison, "slow")["verdict"] == "better"
    assert cell(comparison, "slow")["ratio_of_ratios"]["estimate"] == pytest.approx(1.2, abs=0.02)
    assert (cell(comparison, "plain")["by"], cell(comparison, "plain")["gate"]) == ("day", "not asked")


def test_cells_of_one_side_only_are_listed(tmp_path: Path) -> None:
    comparison = compared(tmp_path, made(), made(allocators=("plain", "slow"), seed=2))
    assert (comparison["only_first"], comparison["only_second"]) == (["w size=16 stm 1T fast"], [])
    with pytest.raises(LoamError, match="no cell is in both"):
        compared(tmp_path, made(allocators=("fast",)), made(allocators=("slow",)))


def test_defaults_count_where_both_results_know_them(tmp_path: Path) -> None:
    """One result was given default=3 on the command line, the other had it by default; a third had another default."""
    given = made(seed=2)
    for item in given["cells"]:
        item["parameters"] = {"size": 16, "default": 3}
    assert len(compared(tmp_path, made(), given)["cells"]) == 3
    changed = made(seed=2)
    for item in changed["cells"]:
        item["identity"]["parameters"]["default"] = 4
    with pytest.raises(LoamError, match="no cell is in both"):
        compared(tmp_path, made(), changed)


def test_older_results_are_matched_by_what_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = made()
    for item in old["cells"]:
        del item["identity"], item["metrics"]["m"]["blocks"]
    paths = side(tmp_path, "old", old), side(tmp_path, "new", made(seed=2))
    assert commands.compare(*paths, as_json=True) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert len(comparison["cells"]) == 3
    assert {cell["by"] for cell in comparison["cells"]} == {"values"}, (
        "nobody knows whether the baseline is the same build"
    )


def test_what_is_no_result_is_named(tmp_path: Path) -> None:
    whole = made()
    older, torn = {**copy.deepcopy(whole), "schema": 1}, copy.deepcopy(whole)
    del torn["cells"][0]["factors"]
    good = side(tmp_path, "good", whole)
    for name, content, message in (
        ("older", older, f"has schema 1, this lab reads {SCHEMA}"), ("torn", torn, "missing required field `factors`"),
    ):  # fmt: skip
        with pytest.raises(LoamError, match=message):
            commands.compare(good, side(tmp_path, name, content))
    with pytest.raises(LoamError, match="no such file or folder"):
        commands.compare(good, tmp_path / "nowhere")


def test_too_few_blocks_decide_nothing(tmp_path: Path) -> None:
    few = made()
    for item in few["cells"]:
        item["metrics"]["m"].update(values=item["metrics"]["m"]["values"][:3], blocks=[0, 1, 2])
    comparison = compared(tmp_path, few, copy.deepcopy(few), gate=0.5)
    assert [cell["gate"] for cell in comparison["cells"]] == ["not asked", "open", "open"]
    assert any("too few blocks" in warning for warning in comparison["warnings"])


def test_campaigns_measured_here_compare_with_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From real folders; the second one was interrupted before its result was written."""
    for name, seed in (("a", 1), ("b", 2)):
        measure(study(blocks=8, seed=seed, parameters={"spread": 5}), tmp_path / name, FakeInstruments())
    (tmp_path / "b" / "result.json").unlink()
    assert main.run(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", "--gate", "0.9"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert [(c["allocator"], c["by"], c["gate"]) for c in comparison["cells"]] == [
        ("plain", "day", "not asked"), ("fast", "baseline", "passed"),
    ]  # fmt: skip
    assert comparison["changed"] == []


def test_one_result_of_several_machines_is_compared_machine_by_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several = several_machines.result({"alpha": {"fast": 1.2}, "beta": {"fast": 0.9}}, cases=1)
    folder = side(tmp_path, "several", several)
    assert main.run(["compare", str(folder)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "alpha: fast > plain ≈ slow" in shown or "alpha: fast > slow ≈ plain" in shown
    assert "Does the ranking hold across machines? No." in shown
    assert main.run(["compare", str(folder), "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["across_machines"]
    assert answer["holds"] == "no"
    assert main.run(["compare", str(side(tmp_path, "a", made()))]) == 2
    assert "no case of it was measured on two machines" in capsys.readouterr().err
    assert main.run(["compare", str(folder), "--gate", "0.97"]) == 2
    assert "needs two results" in capsys.readouterr().err


def test_two_machines_of_two_results_are_asked_whether_the_ranking_holds(tmp_path: Path) -> None:
    other = made(day=3.0, seed=2, slower={"slow": 1.6}, machine={**HOST, "cpu": "another", "fingerprint": "bb"})
    pair = sides.read(side(tmp_path, "a", made())), sides.read(side(tmp_path, "b", other))
    (answer,) = machines.of_two(*pair)
    assert answer.machines == ["host (first)", "host (second)"]
    assert answer.holds == "no"
    assert (answer.reversals[0].better, answer.reversals[0].than) == ("slow", "plain")
