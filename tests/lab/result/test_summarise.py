"""From journal to Result: known effects are found, by the right cells, in words and numbers that others rely on."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from campaigns import OTHER, SEQUENTIAL, STM, FakeInstruments, cells, measure, study
from typed import typed

from loam_lab.commands.run import tables
from loam_lab.judging.result import summarise
from loam_lab.model import words

ALLOCATORS = ["plain", "fast", "slow"]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = study(
        parameters={"structure": ["list", "tree"], "mapping": ["table", "shadow"], "spread": 5},
        allocators=ALLOCATORS, blocks=10, blame=True,
    )  # fmt: skip
    return measure(made, tmp_path_factory.mktemp("campaign"))[1]


def test_a_known_effect_lies_in_its_interval_and_gets_its_verdict(result: dict[str, Any]) -> None:
    for name, truth, verdict in (("fast", 1.3, "better"), ("slow", 0.7, "worse")):
        for cell in cells(result, allocator=name):
            ratio = cell["ratio_to_baseline"]
            assert ratio["low"] - 0.01 <= truth <= ratio["high"] + 0.01
            assert ratio["n"] == 10
            assert cell["verdict"] == verdict
    assert {cell["verdict"] for cell in cells(result, allocator="plain", copy=0)} == {"baseline"}


def test_the_sentinel_is_one_cell_per_column_and_equivalent(result: dict[str, Any]) -> None:
    sentinels = cells(result, copy=1)
    assert {cell["parameters"]["structure"] for cell in sentinels} == {"list", "tree"}
    assert len(sentinels) == 2
    assert {cell["verdict"] for cell in sentinels} == {"equivalent"}
    assert all(cell["blame"] is None for cell in sentinels)


def test_metrics_carry_unit_direction_interval_and_raw_values(result: dict[str, Any]) -> None:
    metric = cells(result, allocator="fast")[0]["metrics"]["ops_per_s"]
    assert (metric["unit"], metric["better"]) == ("1/s", "higher")
    assert len(metric["values"]) == 10
    assert metric["low"] <= metric["estimate"] <= metric["high"]
    assert metric["estimate"] == pytest.approx(13e6, rel=0.02)
    for name in ("wall_s", "user_s", "system_s", "faults_minor", "faults_major"):
        assert name in cells(result, allocator="fast")[0]["metrics"]
    assert cells(result, allocator="fast")[0]["metrics"]["records_rss_bytes"]["estimate"] == 8192


def test_counts_are_pooled_and_causes_come_from_the_blame_run(result: dict[str, Any]) -> None:
    (table,) = cells(result, allocator="fast", structure="list", mapping="table")
    (shadow,) = cells(result, allocator="fast", structure="list", mapping="shadow")
    assert table["metrics"]["aborts_per_attempt"]["estimate"] == pytest.approx(0.1)
    assert (table["blame"]["aborts_other_block"], table["blame"]["aborts_per_attempt"]) == (30, pytest.approx(0.1))
    assert (shadow["blame"]["aborts_other_block"], shadow["blame"]["aborts"]) == (0, 70)
    assert tables.false_share(table["blame"]) == pytest.approx(0.3)


def test_contrasts_pair_levels_within_blocks(result: dict[str, Any]) -> None:
    contrasts = {(c["allocator"], c["parameters"]["structure"]): c for c in result["contrasts"]}
    assert len(contrasts) == len(result["contrasts"]) == result["multiplicity"]["contrasts"]["size"] == 6
    for contrast in contrasts.values():
        assert contrast["what"] == "shadow against table"
        assert contrast["p"] <= contrast["q"] < 0.05
        assert contrast["low"] - 0.01 <= 1.1 <= contrast["high"] + 0.01
        assert contrast["verdict"] == "better"


def test_headlines_name_best_and_worst_in_words(result: dict[str, Any]) -> None:
    assert len(result["headlines"]) == 4
    for headline in result["headlines"]:
        assert (headline["best"], headline["worst"], headline["verdict"]) == ("fast", "slow", "better")
        assert headline["ratio"]["estimate"] == pytest.approx(1.3 / 0.7, rel=0.02)
        assert headline["comparisons"] == 4
        assert headline["p"] < headline["p_holm"] < 0.05
        assert re.search(
            r"fast is best, 1\.8. times as fast as slow, the worst \[1\.\d\d, [12]\.\d\d\]", headline["text"]
        )
    assert result["headlines"][0]["parameters"] == {"structure": "list", "mapping": "table"}


def test_the_result_is_json_with_every_field_of_the_contract(result: dict[str, Any]) -> None:
    assert set(result) >= {
        "schema", "study", "title", "question", "created_utc", "folder", "baseline", "primary_metrics", "command",
        "commands", "blocks", "elapsed_s", "machine", "build", "allocators", "cells", "contrasts", "headlines", "warnings",
        "failures",
    }  # fmt: skip
    assert set(result["cells"][0]) >= {
        "factors", "parameters", "copy", "runs", "failed", "state", "metrics", "ratio_to_baseline", "verdict", "blame",
        "warnings",
    }  # fmt: skip
    assert result["primary_metrics"] == {"intset": "ops_per_s"}
    assert (result["baseline"], result["blocks"]) == ("plain", 10)
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_summarising_again_gives_the_same(result: dict[str, Any]) -> None:
    again = summarise.summarise(Path(result["folder"])).as_json()
    same = {key for key in result if key not in ("created_utc", "elapsed_s", "commands")}
    assert {key: again[key] for key in same} == {key: result[key] for key in same}


def test_too_few_blocks_have_no_interval_and_decide_nothing(tmp_path: Path) -> None:
    _, result = measure(study(blocks=5), tmp_path)
    (cell,) = cells(result, allocator="fast")
    assert cell["ratio_to_baseline"]["low"] is None
    assert cell["verdict"] == "inconclusive"
    assert "too few for a 95 % interval" in cell["warnings"][0]
    assert any("sentinel has too few blocks" in warning for warning in result["warnings"])


def test_a_wide_interval_decides_where_it_excludes_one_and_the_width_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, result = measure(study(blocks=10, parameters={"spread": 150}, allocators=["plain", "slow"]), tmp_path)
    (cell,) = cells(result, allocator="slow")
    ratio = cell["ratio_to_baseline"]
    assert ratio["high"] / ratio["low"] - 1 > 0.05 and ratio["high"] < 1
    assert (cell["verdict"], cell["rough"]) == ("worse", True)
    assert result["headlines"][0]["rough"] and result["headlines"][0]["text"].endswith("], roughly.")
    tables.show(typed(result))
    assert "worse, roughly" in capsys.readouterr().out


def test_an_interval_that_holds_one_is_inconclusive_with_advice(tmp_path: Path) -> None:
    made = study(blocks=8, parameters={"spread": 300}, allocators=["plain", "moody"])
    for attempt in range(4):  # one interval in twenty excludes the true ratio, which is 1
        _, result = measure(made, tmp_path / str(attempt))
        (cell,) = cells(result, allocator="moody")
        if cell["ratio_to_baseline"]["low"] < 1 < cell["ratio_to_baseline"]["high"]:
            break
    ratio = cell["ratio_to_baseline"]
    assert ratio["high"] / ratio["low"] - 1 > 0.05
    assert cell["verdict"] == "inconclusive"
    assert "a quieter machine (loam doctor) or longer runs would tell more" in cell["warnings"][0]
    assert any("two copies of the baseline agree only within" in warning for warning in result["warnings"])


def test_synchronisations_and_threads_are_contrasted_too(tmp_path: Path) -> None:
    made = study(sync=[STM, OTHER], threads=[1, 2], blocks=6, allocators=["plain"])
    _, result = measure(made, tmp_path, oversubscribe=True)
    whats = sorted((c["what"], c["sync"], c["threads"]) for c in result["contrasts"])
    assert whats == [
        ("2 threads against 1 thread", "fake-other", 2), ("2 threads against 1 thread", "fake-stm", 2),
        ("fake-other against fake-stm", "fake-other", 1), ("fake-other against fake-stm", "fake-other", 2),
    ]  # fmt: skip
    assert result["headlines"] == [], "one allocator is no contest"


def test_the_sequential_group_gives_the_layout_effect_and_no_headline(tmp_path: Path) -> None:
    _, result = measure(study(sync=[SEQUENTIAL], role="sequential", blocks=6), tmp_path)
    (contrast,) = result["contrasts"]
    assert (contrast["factor"], contrast["allocator"]) == ("sequential", "fast")
    assert contrast["estimate"] == pytest.approx(1.3, rel=0.05)
    assert result["headlines"] == []


def test_equivalent_allocators_are_called_so(tmp_path: Path) -> None:
    _, result = measure(study(allocators=["plain", "same"], blocks=10, parameters={"spread": 3}), tmp_path)
    assert result["headlines"][0]["verdict"] == "equivalent"
    assert "the allocator makes no difference above 2.0 %" in result["headlines"][0]["text"]


def test_allocators_that_measure_exactly_alike_are_compared_too(tmp_path: Path) -> None:
    _, result = measure(study(allocators=["plain", "same"], blocks=10, parameters={"spread": 0}), tmp_path)
    (headline,) = result["headlines"]
    assert (headline["best"], headline["worst"]) == ("plain", "same")
    assert headline["ratio"] == {"estimate": 1.0, "low": 1.0, "high": 1.0} and headline["verdict"] == "equivalent"


@pytest.mark.parametrize(("cpu_s", "cores", "warned"), [("0.2", 4, False), ("0.15", 4, True), ("0.15", 1, False)])
def test_starved_threads_are_told(tmp_path: Path, cpu_s: str, cores: int, warned: bool) -> None:
    """Two threads, 0.1 s: 0.15 s of CPU time is a quarter too little, unless the machine has fewer cores than threads."""
    instruments = FakeInstruments(cores=cores, variables={"FAKE_CPU_S": cpu_s})
    _, result = measure(study(threads=[2], blocks=6), tmp_path, instruments, oversubscribe=True)
    warnings = [
        warning for cell in result["cells"] for warning in cell["warnings"] if "off the CPU for 25.0 %" in warning
    ]
    assert len(warnings) == (len(result["cells"]) if warned else 0)
    assert (
        any("stop other programs" in warning and "cells threads" in warning for warning in result["warnings"]) == warned
    )


def test_a_damaged_line_is_counted_and_told(tmp_path: Path) -> None:
    measure(study(blocks=6), tmp_path)
    file = tmp_path / "journal" / "local.jsonl"
    rows = file.read_text().splitlines()
    file.write_text("\n".join(['{"broken"', *rows[1:]]) + "\n")
    result = summarise.summarise(tmp_path).as_json()
    assert any("1 lines of the journal cannot be read" in warning for warning in result["warnings"])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.234e6, "1/s", "1.23 M/s"), (999.6e3, "1/s", "1000 k/s"), (12, "1/s", "12/s"), (3, "1", "3"), (2500, "1", "2.5 k"),
        (0.5, "s", "0.500 s"), (0.00123, "s", "1.23 ms"), (3 << 20, "B", "3.0 MiB"), (100, "B", "100 B"),
    ],
)  # fmt: skip
def test_quantities_are_readable(value: float, unit: str, text: str) -> None:
    assert words.quantity(value, unit) == text
    assert math.isfinite(value)


def test_the_table_shows_every_allocator(result: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    tables.show(typed(result))
    shown = capsys.readouterr().out
    assert shown.count("plain (again)") == 2
    assert shown.count("\n slow ") == 4
    assert "Within the same blocks" in shown
