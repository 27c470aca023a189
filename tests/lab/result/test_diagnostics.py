"""Repeated blocks, disturbed blocks, the order of runs and the reach of a campaign, from journals written here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from campaigns import cells, measure, study

from loam_lab.judging.result import summarise

BLOCKS, REPEATED = 8, 3
CALM = {"run_delay_s": 0.0, "steal_s": 0.0, "pressure_s": 0.0, "share": 0.0, "contaminated": False, "why": []}
BUSY = {**CALM, "run_delay_s": 0.02, "steal_s": 0.01, "share": 0.2, "contaminated": True, "why": ["run_delay", "steal"]}

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lines]:
    """A campaign of two structures, and the lines of its journal, none disturbed."""
    folder = tmp_path_factory.mktemp("measured")
    measure(study(blocks=BLOCKS, parameters={"structure": ["list", "tree"]}), folder)
    lines = [json.loads(line) for line in (folder / "journal" / "local.jsonl").read_text().splitlines()]
    # Where this machine was busy, blocks were run again; here only what is written below is disturbed.
    return folder, [{**line, "disturbance": CALM} for line in lines if line["attempt"] == 0]


@pytest.fixture
def summary(measured: tuple[Path, Lines], tmp_path: Path) -> Iterator[Callable[[Lines], dict[str, Any]]]:
    """Summarises these lines as if they were the campaign's journal."""

    def made(lines: Lines) -> dict[str, Any]:
        (tmp_path / "journal").mkdir(exist_ok=True)
        (tmp_path / "campaign.json").write_text((measured[0] / "campaign.json").read_text())
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / "journal" / "local.jsonl").write_text(text)
        return summarise.summarise(tmp_path).as_json()

    yield made


def of_block(lines: Lines, structure: str = "list", block: int = REPEATED) -> Lines:
    return [x for x in lines if x["block"] == block and x["identity"]["parameters"]["structure"] == structure]


def changed(line: dict[str, Any], factor: float = 1.0, **fields: Any) -> dict[str, Any]:
    """The line with other fields; factor: on the operations of its iterations"""
    records = [
        {**record, "operations": record["operations"] * factor} if record["kind"] == "iteration" else record
        for record in line["records"]
    ]
    return {**line, "records": records, **fields}


def disturbed_first(lines: Lines) -> tuple[Lines, Lines]:
    """The lines with one block slowed down fourfold and disturbed, and that block as it was, as its second attempt."""
    block = of_block(lines)
    spoilt = [changed(line, 0.25, disturbance=BUSY) if line in block else line for line in lines]
    again = [{**line, "id": f"{line['id']}-1", "attempt": 1, "t_s": 1000.0} for line in block]
    return spoilt, again


def test_the_last_attempt_of_a_block_counts_and_all_are_kept(
    measured: tuple[Path, Lines], summary: Callable[[Lines], dict[str, Any]]
) -> None:
    before = summary(measured[1])
    spoilt, again = disturbed_first(measured[1])
    result = summary(spoilt + again)
    for cell, same in zip(cells(result), cells(before), strict=True):
        assert cell["metrics"]["ops_per_s"] == same["metrics"]["ops_per_s"]
        assert (cell["contaminated"], cell["ratio_without_contaminated"]) == (0, None)
    assert result["disturbed"] == {
        "blocks": 2 * BLOCKS, "repeated": 1, "contaminated": 0, "by": {"run_delay": 1, "steal": 1, "pressure": 0},
        "slices": 0, "slices_left_out": 0,
    }  # fmt: skip
    assert len(result["timeline"]) == len(spoilt) + len(again)


def test_an_interrupted_attempt_does_not_count(
    measured: tuple[Path, Lines], summary: Callable[[Lines], dict[str, Any]]
) -> None:
    spoilt, again = disturbed_first(measured[1])
    result = summary(spoilt + again[:-1])
    assert result["disturbed"]["contaminated"] == 1
    assert {cell["runs"] for cell in cells(result)} == {BLOCKS}
    for cell in cells(result, structure="list"):
        values = cell["metrics"]["ops_per_s"]["values"]
        assert values[REPEATED] < 0.5 * max(values), "the first attempt's value"


def test_contaminated_blocks_are_counted_and_the_ratio_is_given_without_them(
    measured: tuple[Path, Lines], summary: Callable[[Lines], dict[str, Any]]
) -> None:
    spoilt = [
        changed(line, 0.1 if line["identity"]["allocator"]["name"] == "fast" else 1.0, disturbance=BUSY)
        if line in of_block(measured[1])
        else line
        for line in measured[1]
    ]
    result = summary(spoilt)
    (fast,) = cells(result, allocator="fast", structure="list")
    assert fast["contaminated"] == 1
    assert fast["ratio_to_baseline"]["n"] == BLOCKS and fast["ratio_without_contaminated"]["n"] == BLOCKS - 1
    assert fast["ratio_without_contaminated"]["low"] > 1.2 > fast["ratio_to_baseline"]["low"]
    assert {cell["contaminated"] for cell in cells(result, structure="tree")} == {0}


def test_the_timeline_has_every_run_in_the_order_of_its_start(
    measured: tuple[Path, Lines], summary: Callable[[Lines], dict[str, Any]]
) -> None:
    result = summary(measured[1])
    line = result["timeline"][5]
    assert set(line) == {"order", "t_s", "cell", "block", "copy", "attempt", "value", "share"}
    assert [entry["t_s"] for entry in result["timeline"]] == sorted(entry["t_s"] for entry in result["timeline"])
    for entry in result["timeline"]:
        cell = result["cells"][entry["cell"]]
        assert cell["metrics"]["ops_per_s"]["values"][entry["block"]] == entry["value"]
        assert cell["copy"] == entry["copy"]


def test_older_journals_lack_what_came_later(
    measured: tuple[Path, Lines], summary: Callable[[Lines], dict[str, Any]]
) -> None:
    """Without attempts, disturbance and times since the start; the clock is set back in the middle."""
    old = []
    for number, line in enumerate(measured[1]):
        kept = {key: value for key, value in line.items() if key not in ("attempt", "disturbance", "t_s")}
        old.append({**kept, "started_utc": f"2026-01-01T00:{10 if number < 9 else 5:02}:{number % 60:02}Z"})
    result = summary(old)
    assert result["disturbed"]["repeated"] == result["disturbed"]["contaminated"] == 0
    assert all(entry["t_s"] >= 0 and entry["share"] is None for entry in result["timeline"])
    assert len(result["timeline"]) == len(old)


@pytest.mark.parametrize(("target", "reached"), [(0.5, True), (1e-9, False)])
def test_stopping_says_whether_the_width_was_reached(tmp_path: Path, target: float, reached: bool) -> None:
    made = study(blocks=6, target_width=target, max_blocks=6, parameters={"spread": 5})
    _, result = measure(made, tmp_path)
    assert result["stopping"] == {"target_width": target, "reached": reached, "cap_blocks": 6, "blocks": 6}


def test_a_study_without_target_has_no_stopping(
    measured: tuple[Path, Lines], summary: Callable[[Lines], dict[str, Any]]
) -> None:
    assert summary(measured[1])["stopping"] is None
