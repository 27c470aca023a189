"""A paper's figures beside ours, made of values that the test knows, and pictures of addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import claimed
import msgspec
import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.judging.claims import listing
from loam_lab.judging.statistics.data import Campaign
from loam_lab.model import studies
from loam_lab.model.cell import Cell
from loam_lab.model.result import PaperTable
from loam_lab.model.schema import SCHEMA
from loam_lab.model.study import Study
from loam_lab.presenting.report import ledger


def figure(*ours: dict[str, Any], kind: str = "table") -> dict[str, Any]:
    return {
        "id": "table 9", "title": "t", "kind": kind, "groups": ["list"], "ours": list(ours),
        "paper": {"columns": ["a"], "rows": [[1]], "note": "n"},
    }  # fmt: skip


def speed(cell: Cell, block: int) -> dict[str, float]:
    """a is twice as fast as b with shift 5, half as fast with shift 4; two threads double both."""
    favoured = (cell.allocator == "a") == (dict(cell.parameters)["shift"] == 5)
    return {
        "operations": 100 * cell.threads * (2 if favoured else 1),
        "room_bytes": 32 if cell.allocator == "a" else 16,
    }


def made(*ours: dict[str, Any], values: claimed.Values = speed, kind: str = "table") -> Campaign:
    return claimed.campaign(claimed.study([], paper_figures=[figure(*ours, kind=kind)]), values)


def table(*ours: dict[str, Any], **options: Any) -> tuple[list[str], list[list[Any]]]:
    campaign = made(*ours, **options)
    (shown,) = claimed.ledger(campaign, claimed.entries(campaign))["paper_figures"]
    assert shown["paper"] == {"columns": ["a"], "rows": [[1]], "note": "n"}
    rows = [[cell["estimate"] if isinstance(cell, dict) else cell for cell in row] for row in shown["ours"]["rows"]]
    return shown["ours"]["columns"], rows


FIVE = {"group": "list", "parameters": {"shift": 5}}


def test_a_grid_has_a_row_per_level_and_a_column_per_allocator() -> None:
    assert table({"select": FIVE, "rows": "threads"}) == (["threads", "a", "b"], [[1, 200, 100], [2, 400, 200]])
    one = {"group": "list", "threads": 1}
    assert table({"select": one, "rows": "shift"}) == (["shift", "a", "b"], [[5, 200, 100], [4, 100, 200]])


def test_a_grid_by_allocator_has_a_column_per_metric() -> None:
    of_one = {"select": {**FIVE, "threads": 1}, "metrics": ["ops_per_s", "room_bytes"]}
    assert table(of_one) == (["allocator", "ops_per_s", "room_bytes"], [["a", 200, 32], ["b", 100, 16]])


def test_shares_are_shown_as_per_cent_where_the_paper_does() -> None:
    columns, rows = table({"select": FIVE, "rows": "threads", "percent": True})
    assert (columns, rows) == (["threads", "a", "b"], [[1, 20_000, 10_000], [2, 40_000, 20_000]])
    share = {"columns": ["threads", "a", "b", "c"], "rows": [[8, {"estimate": 10.5, "low": 9.4, "high": 11.9, "unit": "%"},
             {"estimate": 0, "low": None, "high": None, "unit": "%"}, None]]}  # fmt: skip
    shown = ledger._table("Here", msgspec.convert(share, PaperTable))
    assert shown is not None and shown.rows == (("8", "10.5 % [9.4, 11.9]", "0 %", "–"),)
    with pytest.raises(ValueError, match="percent is for a grid"):
        made({"kind": "reach", "select": FIVE, "rows": "threads", "percent": True})


def test_a_relative_grid_is_over_the_baseline_paired_by_block() -> None:
    one = {"select": {**FIVE, "threads": 1}, "metrics": ["ops_per_s", "room_bytes"], "relative": True}
    columns, rows = table(one)
    assert columns == ["allocator", "ops_per_s / a", "room_bytes / a"]
    assert rows == [["a", 1, 1], ["b", pytest.approx(0.5), pytest.approx(0.5)]]
    missing = {**one, "select": {**one["select"], "source": "profile"}, "metrics": ["calls"]}
    assert table(missing)[1] == [["a", None], ["b", None]]
    with pytest.raises(ValueError, match="a row per allocator"):
        table({**one, "rows": "threads"})


def test_what_never_varies_has_no_interval() -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": 100 + block, "room_bytes": 32}

    campaign = made({"select": {**FIVE, "threads": 1}, "metrics": ["ops_per_s", "room_bytes"]}, values=values)
    (shown,) = claimed.ledger(campaign, claimed.entries(campaign))["paper_figures"]
    assert shown["ours"]["rows"][0] == ["a", {"estimate": 104.5, "low": 100, "high": 109}, 32]


def test_extremes_name_best_and_worst_with_the_paired_ratio() -> None:
    columns, rows = table({"kind": "extremes", "select": {"group": "list", "threads": 2}, "rows": "shift"})
    assert columns == ["shift", "best", "worst", "times better"]
    assert rows == [[5, "a", "b", pytest.approx(2)], [4, "b", "a", pytest.approx(2)]]


def test_reach_is_the_last_level_that_keeps_its_share() -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": 100 if cell.threads == 1 or cell.allocator == "a" else 40}

    columns, rows = table({"kind": "reach", "select": FIVE, "rows": "threads"}, values=values)
    assert columns == ["allocator", "threads up to which 50 % of the rate is kept"]
    assert rows == [["a", 2], ["b", 1]]


def test_tables_of_the_same_columns_lie_below_each_other_and_others_beside() -> None:
    four = {"group": "list", "parameters": {"shift": 4}}
    columns, rows = table(
        {"label": "32 B", "select": FIVE, "rows": "threads"}, {"label": "16 B", "select": four, "rows": "threads"}
    )
    assert columns == ["of", "threads", "a", "b"]
    assert rows == [["32 B", 1, 200, 100], ["32 B", 2, 400, 200], ["16 B", 1, 100, 200], ["16 B", 2, 200, 400]]
    beside = table(
        {"select": {**FIVE, "threads": 1}, "metrics": ["room_bytes"]},
        {"kind": "reach", "select": FIVE, "rows": "threads"},
    )
    assert beside[1] == [["a", 32, 2], ["b", 16, 2]]


def test_a_cell_that_failed_leaves_a_gap() -> None:
    def values(cell: Cell, block: int) -> dict[str, float] | None:
        return speed(cell, block) if cell.allocator == "a" else None

    assert table({"select": FIVE, "rows": "threads"}, values=values)[1] == [[1, 200, None], [2, 400, None]]
    assert table({"kind": "extremes", "select": FIVE, "rows": "threads"}, values=values)[1] == []


def test_a_run_that_did_nothing_leaves_no_ratio() -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": 0 if block == 0 or cell.threads == 2 else speed(cell, block)["operations"]}

    extremes = {"kind": "extremes", "select": FIVE, "rows": "threads"}
    assert table(extremes, values=values)[1] == [[1, "a", "b", pytest.approx(2)]]
    assert table({"kind": "reach", "select": FIVE, "rows": "threads"}, values=values)[1] == [["a", 1], ["b", 1]]


def test_pictures_show_the_blocks_of_the_first_good_run() -> None:
    campaign = made({"kind": "records", "select": {**FIVE, "threads": 2}}, kind="placement")
    rows = [[block % 2, 4096 + 16 * block, 16, 128 + block // 2] for block in range(70)]
    columns = ["thread", "address", "usable_bytes", "record"]
    for runs in campaign.timed.values():
        runs[0].state = "failed"
        runs[1].begin = {"kind": "begin", "parameters": {"stripe_log2": 4}}
        runs[1].others = ({"kind": "series", "name": "blocks", "columns": columns, "rows": rows},)
    placements = claimed.ledger(campaign, {})["placements"]
    assert [(one["allocator"], one["kind"], one["threads"], one["shift"]) for one in placements] == [
        ("a", "records", 2, 4), ("b", "records", 2, 4),
    ]  # fmt: skip
    assert len(placements[0]["blocks"]) == 64
    assert placements[0]["blocks"][3] == {"thread": 1, "address": 4144, "bytes": 16, "record": 129}


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        ({"select": {"group": "list", "threads": 1}}, "group list has several levels of shift"),
        ({"select": FIVE, "rows": "shft"}, "does not vary shft .*did you mean shift"),
        ({"select": {"group": "lst"}}, "has no group 'lst' .*did you mean list"),
    ],
)
def test_a_figure_that_names_what_is_not_there_is_refused(ours: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    base = claimed.study([]).model_dump(by_alias=True, mode="json", exclude_unset=True)
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in base.items() if key not in ("groups", "claims"))
    text += '\n[[groups]]\nname = "list"\nworkload = "intset"\nthreads = [1, 2]\nparameters = { shift = [5, 4] }\n'
    select = "{ " + ", ".join(f"{key} = {_toml(value)}" for key, value in ours["select"].items()) + " }"
    rows = f', rows = "{ours["rows"]}"' if "rows" in ours else ""
    text += '[[paper_figures]]\nid = "f"\ntitle = "t"\nkind = "bar"\npaper = { columns = ["a"] }\n'
    file.write_text(text + f"ours = [{{ select = {select}{rows} }}]\n")
    with pytest.raises(LoamError, match=message):
        studies.load(file)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def test_the_listing_of_claims_has_the_last_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert listing.show(as_json=True) == 0
    before = json.loads(capsys.readouterr().out)["claims"]
    assert "stm" in {claim["study"] for claim in before}
    known = {claim["verdict"] for claim in before if not claim["self_contradicting"]}
    assert known == {None}
    folder = tmp_path / "results" / "latest"
    folder.mkdir(parents=True)
    predicate = next(claim["predicate"] for claim in before if claim["id"] == "000-08")
    verdicts = [{"id": "000-08", "verdict": "reproduced", "reason": "because", "predicate": predicate}]
    content = {"schema": SCHEMA, "study": "stm", "cells": [], "claims": verdicts}
    (folder / "result.json").write_text(json.dumps(content))
    listing.show(as_json=True)
    after = {claim["id"]: claim for claim in json.loads(capsys.readouterr().out)["claims"]}
    assert (after["000-08"]["verdict"], after["000-08"]["reason"]) == ("reproduced", "because")
    assert after["000-09"]["verdict"] is None
    listing.show(as_json=False)
    assert "needs 8 cores" in capsys.readouterr().out


def test_the_report_compares_no_speed_of_a_counted_group(tmp_path: Path) -> None:
    import campaigns

    from loam_lab.presenting.report import findings, view

    group = {"name": "one", "workload": "intset", "sync": [campaigns.STM], "parameters": {"structure": "list"}}
    counted = {**group, "name": "two", "role": "counted", "parameters": {"structure": "hash"}}
    made = campaigns.study(blocks=6).model_dump(by_alias=True, mode="json")
    _, result = campaigns.measure(Study.model_validate({**made, "groups": [group, counted]}), tmp_path)
    study = view.read(typed(result))
    assert [one.plain["structure"] for one in study.groups] == ["list"]
    assert [one.plain["structure"] for case in study.cases for one in case.groups] == ["list"]
    (other,) = study.counted
    assert other.plain["structure"] == "hash"
    assert "hash" in findings.group_label(study, other)
    assert "sequential" not in findings.group_label(study, other)


def test_a_figure_of_one_of_several_synchronisations_shows_that_one() -> None:
    groups = [{"name": "list", "workload": "intset", "sync": ["stm", "other"], "threads": [1],
               "parameters": {"shift": [5, 4]}}]  # fmt: skip

    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": 100 if cell.sync == "stm" else 300}

    for sync, rate in (("stm", 100), ("other", 300)):
        shown = figure({"select": {**FIVE, "sync": sync}})
        campaign = claimed.campaign(claimed.study([], groups=groups, paper_figures=[shown]), values)
        campaign.descriptions["other"] = claimed.DESCRIPTION
        (table,) = claimed.ledger(campaign, claimed.entries(campaign))["paper_figures"]
        assert table["ours"]["rows"] == [["a", rate], ["b", rate]]
