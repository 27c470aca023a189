"""The ledger on the terminal, the listing of claims, and a paper's tables beside ours where something is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import claimed
import msgspec
import pytest
from test_paper_figures import FIVE, made, speed, table

from loam_lab.judging.claims import figures, listing, tables
from loam_lab.judging.claims.values import Evidence
from loam_lab.model import result as results
from loam_lab.model import studies
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Ours
from loam_lab.model.schema import SCHEMA

# ---- the ledger


def value(estimate: float, **changed: Any) -> results.Compared:
    return results.Compared(**{"what": "rate", "estimate": estimate, "low": 1.0, "high": 2.5, "unit": "1", **changed})


def entry(**changed: Any) -> results.Claim:
    made = {
        "id": "000-01", "verdict": "reproduced", "by_preset": False, "self_contradicting": False, "sentence": "It is so.",
        "figure": "", "paper": [], "ours": [], "reason": "because", "note": "", **changed,
    }  # fmt: skip
    return msgspec.convert(msgspec.to_builtins(made), results.Claim)


def test_a_value_has_its_interval_and_its_unit_where_it_has_them() -> None:
    assert tables._ours([value(1.23456)]) == ["rate = 1.23 [1, 2.5]"]
    assert tables._ours([value(1.5, unit="s")]) == ["rate = 1.5 [1, 2.5] s"]
    for lacking in ({"low": None}, {"high": None}, {"low": None, "high": None}):
        assert tables._ours([value(1.5, **lacking)]) == ["rate = 1.5"]
    assert tables._ours([]) == []


def test_three_values_are_shown_and_more_are_counted() -> None:
    lines = [f"rate = {n} [1, 2.5]" for n in range(1, 6)]
    for count in (1, 2, 3):
        assert tables._ours([value(float(n + 1)) for n in range(count)]) == lines[:count]
    assert tables._ours([value(float(n + 1)) for n in range(4)]) == [*lines[:3], "1 more in the report"]
    assert tables._ours([value(float(n + 1)) for n in range(5)]) == [*lines[:3], "2 more in the report"]


def test_a_claim_is_told_with_what_was_found_for_or_against_it() -> None:
    def shown(**changed: Any) -> str:
        return tables._text(entry(**changed)).plain

    assert shown(figure="5") == "It is so. (5)" and shown() == "It is so."
    assert shown(paper=[{"what": "a", "value": "1"}, {"what": "b", "value": "2"}]) == "It is so.\npaper: a 1; b 2"
    assert shown(ours=[value(2.0)], note="n") == "It is so.\nours: rate = 2 [1, 2.5]"
    against = {"ours": [value(2.0)], "note": "n"}
    assert shown(verdict="undecided", **against) == "It is so.\nundecided: because\nnote: n"
    assert shown(verdict="contradicted", **against) == "It is so.\nagainst it: because\nnote: n"
    assert shown(verdict="not asked") == "It is so.\nnot asked: because"
    assert shown(verdict="undecided") == "It is so.\nundecided: because"
    assert shown(verdict="self-contradicting") == "It is so.\nthe paper against itself: because"
    assert shown(verdict="cannot be decided") == "It is so.\nnot in the model: because"


def test_a_verdict_has_its_colour_and_says_who_stood_in() -> None:
    styles = {
        "reproduced": "good", "contradicted": "bad", "undecided": "doubt", "not asked": "aside",
        "cannot be decided": "doubt", "self-contradicting": "bad",
    }  # fmt: skip
    for verdict, style in styles.items():
        plain = tables._verdict(entry(verdict=verdict))
        assert (plain.plain, plain.style) == (verdict, style)
    assert tables._verdict(entry(by_preset=True)).plain == "reproduced by preset"
    assert tables._verdict(entry(follows_from=["000-02", "000-03"])).plain == "reproduced\nfollows from\n000-02, 000-03"


def test_the_title_counts_each_verdict_that_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    claims = [entry(), entry(id="000-02", verdict="undecided"), entry(id="000-03")]
    tables.show(results.Result(schema=2, cells=[], study="tiny", claims=claims))
    shown = capsys.readouterr().out
    assert "claims of study tiny: 2 reproduced, 1 undecided" in shown and "contradicted" not in shown
    assert all(f"000-0{n}" in shown for n in (1, 2, 3))


def test_what_follows_from_other_claims_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    claims = [entry(), entry(id="000-02", follows_from=["000-01"]), entry(id="000-03", verdict="not asked")]
    tables.show(results.Result(schema=2, cells=[], study="tiny", claims=claims))
    assert "claims of study tiny: 1 reproduced, 1 not asked; 1 follows from others" in capsys.readouterr().out
    tables.show(results.Result(schema=2, cells=[], study="tiny", claims=[*claims, claims[1]]))
    assert "1 not asked; 2 follow from others" in capsys.readouterr().out


# ---- the listing


def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str | None) -> None:
    """A registry of one study with a claim, and results/latest with this text."""
    study = claimed.study([
        {"id": "000-01", "section": "1", "sentence": "It [is] so.", "needs": {"cores": 2}, "predicates": [
            {"kind": "band", "of": {"group": "list", "allocator": "a", "threads": 1, "parameters": {"shift": 5}}, "low": 1,
             "high": 2}]},
        {"id": "000-02", "section": "2", "sentence": "Or so.", "needs": {"workloads": ["yada"]}, "follows_from": ["000-01"]},
    ])  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "registry", lambda: {"tiny": tmp_path / "tiny.toml"})
    monkeypatch.setattr(studies, "load", lambda file: study)
    if result is not None:
        (tmp_path / "results" / "tiny-1").mkdir(parents=True)
        (tmp_path / "results" / "tiny-1" / "result.json").write_text(result)


CLAIM = {
    "id": "000-01", "verdict": "undecided", "reason": "needs 2 cores", "machines": ["host"],
    "predicate": "band: first metric of a shift=5 1T in [1, 2]",
}  # fmt: skip
VERDICTS = {"schema": SCHEMA, "study": "tiny", "cells": [], "claims": [CLAIM], "created_utc": "2026-11-02T10:00:00Z"}


def test_the_last_verdicts_are_those_of_the_same_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed(tmp_path, monkeypatch, json.dumps(VERDICTS))
    assert listing.show(as_json=True) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["schema"] == listing.SCHEMA
    first, second = shown["claims"]
    assert (first["study"], first["verdict"], first["reason"]) == ("tiny", "undecided", "needs 2 cores")
    assert (second["id"], second["verdict"], second["reason"]) == ("000-02", None, None)
    assert (first["needs"], first["predicate"]) == (["2 cores"], "band: first metric of a shift=5 1T in [1, 2]")
    assert listing.show(as_json=False) == 0
    text = capsys.readouterr().out
    assert "claims of study tiny" in text and "It [is] so." in text and "needs workload yada" in text
    assert "undecided on host, 2026-11-02" in text and "follows from 000-01, and is not counted again" in text
    assert [one["follows_from"] for one in shown["claims"]] == [[], ["000-01"]]
    (verdict,) = first["runs"]
    assert (verdict["verdict"], verdict["machines"], Path(verdict["folder"]).name) == ("undecided", ["host"], "tiny-1")


def test_verdicts_of_several_runs_are_listed_what_stands_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed(tmp_path, monkeypatch, json.dumps(VERDICTS))
    decided = {**CLAIM, "verdict": "reproduced", "machines": ["sim:far"], "reason": "2 of 2"}
    (tmp_path / "results/tiny-0").mkdir()
    older = {**VERDICTS, "claims": [decided], "created_utc": "2026-11-01T10:00:00Z"}
    (tmp_path / "results/tiny-0/result.json").write_text(json.dumps(older))
    listing.show(as_json=True)
    first = json.loads(capsys.readouterr().out)["claims"][0]
    assert (first["verdict"], first["reason"]) == ("reproduced", "2 of 2")
    assert [one["verdict"] for one in first["runs"]] == ["reproduced", "undecided"]
    listing.show(as_json=False)
    text = capsys.readouterr().out
    assert text.index("reproduced on sim:far, 2026-11-01") < text.index("undecided on host, 2026-11-02")


@pytest.mark.parametrize(
    "result", [None, "{", json.dumps({**VERDICTS, "study": "other"}), json.dumps({**VERDICTS, "claims": None})]
)
def test_where_there_is_no_such_result_there_is_no_verdict(
    result: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed(tmp_path, monkeypatch, result)
    listing.show(as_json=True)
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)["claims"]] == [None, None]
    listing.show(as_json=False)
    assert "undecided" not in capsys.readouterr().out


def test_a_claim_that_its_paper_contradicts_is_listed_as_that_measured_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed(tmp_path, monkeypatch, json.dumps(VERDICTS))
    study = studies.load(tmp_path)
    against = [one.model_copy(update={"self_contradicting": "table 2 has [it]"}) for one in study.claims]
    monkeypatch.setattr(studies, "load", lambda file: study.model_copy(update={"claims": tuple(against)}))
    listing.show(as_json=True)
    shown = json.loads(capsys.readouterr().out)["claims"]
    assert [one["verdict"] for one in shown] == ["self-contradicting"] * 2
    assert shown[0]["self_contradicting"] == "table 2 has [it]"
    listing.show(as_json=False)
    assert "the paper against itself: table 2 has [it]" in " ".join(capsys.readouterr().out.split())


def test_without_any_claim_the_listing_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed(tmp_path, monkeypatch, None)
    monkeypatch.setattr(studies, "registry", dict)
    assert listing.show(as_json=False) == 0
    assert capsys.readouterr().out == "no study states a claim; ./loam list studies shows their questions\n"
    listing.show(as_json=True)
    assert json.loads(capsys.readouterr().out)["claims"] == []


# ---- tables of figures


def test_several_metrics_have_a_column_each_under_each_allocator() -> None:
    columns, rows = table({"select": FIVE, "rows": "threads", "metrics": ["ops_per_s", "room_bytes"]})
    assert columns == ["threads", "a ops_per_s", "a room_bytes", "b ops_per_s", "b room_bytes"]
    assert rows == [[1, 200, 32, 100, 16], [2, 400, 32, 200, 16]]
    one = table({"select": FIVE, "rows": "threads", "metrics": ["room_bytes"]})
    assert one == (["threads", "a", "b"], [[1, 32, 16], [2, 32, 16]])
    first = table({"select": {**FIVE, "threads": 2}})
    assert first == (["allocator", "value"], [["a", 400], ["b", 200]])
    wanted = table({"select": {**FIVE, "allocator": "b"}, "rows": "threads"})
    assert wanted == (["threads", "b"], [[1, 100], [2, 200]])


def test_over_a_parameter_a_value_is_the_median_of_its_levels() -> None:
    over = {"select": {"group": "list", "threads": 1, "over": "shift"}, "metrics": ["ops_per_s", "room_bytes"]}
    assert table(over) == (["allocator", "ops_per_s", "room_bytes"], [["a", 150, 32], ["b", 150, 16]])


def test_tables_of_two_machines_stand_below_each_other_with_gaps_where_an_allocator_is_missing() -> None:
    here = (["of", "threads", "a", "b"], [["host", 1, "a1", "b1"]])
    there = (["of", "threads", "b", "c"], [["sim", 1, "b2", "c2"], ["sim", 8, "b8", "c8"]])
    assert figures._joined([here, there]) == (
        ["of", "threads", "a", "b", "c"],
        [["host", 1, "a1", "b1", None], ["sim", 1, None, "b2", "c2"], ["sim", 8, None, "b8", "c8"]],
    )
    unmeasured = (["of", "threads"], [])
    assert figures._joined([unmeasured, there]) == there
    assert figures._joined([unmeasured, unmeasured]) == unmeasured


def test_tables_beside_each_other_leave_gaps_where_a_row_is_missing() -> None:
    left, right = (["x", "a"], [[1, "a1"], [2, "a2"]]), (["x", "b", "c"], [[2, "b2", "c2"], [3, "b3", "c3"]])
    assert figures._joined([]) == ([], [])
    assert figures._joined([left]) == left
    assert figures._joined([left, right]) == (["x", "a", "b", "c"], [[1, "a1", None, None], [2, "a2", "b2", "c2"]])
    assert figures._joined([left, left]) == (["x", "a"], [[1, "a1"], [2, "a2"], [1, "a1"], [2, "a2"]])


def test_of_a_metric_that_is_better_low_the_lowest_is_best() -> None:
    def aborts(cell: Cell, block: int) -> dict[str, float]:
        return {**speed(cell, block), "operations": 1.0 if cell.allocator == "a" else 4.0}

    description = claimed.DESCRIPTION.model_copy(
        update={
            "workloads": (
                claimed.DESCRIPTION.workloads[0].model_copy(
                    update={
                        "metrics": tuple(
                            metric.model_copy(update={"better": "lower"})
                            for metric in claimed.DESCRIPTION.workloads[0].metrics
                        )
                    }
                ),
            )
        }
    )
    campaign = made({"kind": "extremes", "select": FIVE, "rows": "threads"}, values=aborts)
    campaign.descriptions = {"stm": description}
    (shown,) = claimed.ledger(campaign, claimed.entries(campaign))["paper_figures"]
    assert [row[:3] for row in shown["ours"]["rows"]] == [[1, "a", "b"], [2, "a", "b"]]
    assert [row[3]["estimate"] for row in shown["ours"]["rows"]] == pytest.approx([4.0, 4.0])


@pytest.mark.parametrize(("second", "reached"), [(50, 2), (49, 1), (51, 2), (100, 2)])
def test_a_level_that_keeps_exactly_its_share_is_reached(second: int, reached: int) -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        # Powers of two, so that a half is a half.
        return {"operations": 64.0 if cell.threads == 1 else 64.0 * second / 100}

    _, rows = table({"kind": "reach", "select": FIVE, "rows": "threads"}, values=values)
    assert rows == [["a", reached], ["b", reached]]


def test_reach_ends_at_the_first_level_that_is_missing_and_starts_only_where_the_first_is_there() -> None:
    groups = [
        {"name": "list", "workload": "intset", "sync": ["stm"], "threads": [1, 2, 4], "parameters": {"shift": [5, 4]}}
    ]

    def reached(lost: int, share: float = 0.5) -> list[list[Any]]:
        ours = {"kind": "reach", "select": FIVE, "rows": "threads", "share": share, "metrics": ["ops_per_s"]}
        study = claimed.study([], groups=groups)
        campaign = claimed.campaign(
            study,
            lambda cell, block: None if cell.threads == lost else {"operations": 100.0 / cell.threads},
            cores=4,
        )
        return figures._reach(Evidence(campaign), {}, Ours.model_validate(ours))[1]

    assert reached(0) == [["a", 2], ["b", 2]]
    assert reached(0, 0.2) == [["a", 4], ["b", 4]]
    assert reached(2, 0.2) == [["a", 1], ["b", 1]]
    assert reached(4, 0.2) == [["a", 2], ["b", 2]]
    assert reached(1) == [["a", None], ["b", None]]


def test_counters_are_shown_as_values_and_gaps() -> None:
    select = {**FIVE, "threads": 1, "source": "cachegrind"}
    campaign = made({"select": select, "metrics": ["cycles"]})
    first = campaign.cells[0]
    cells = {first.key: {"counters": [{"source": "cachegrind", "cycles": 7}]}}
    (shown,) = claimed.ledger(campaign, cells)["paper_figures"]
    assert shown["ours"] == {
        "columns": ["allocator", "cycles"], "rows": [["a", {"estimate": 7.0, "low": None, "high": None}], ["b", None]],
    }  # fmt: skip


def test_what_failed_or_is_not_in_the_result_is_a_gap() -> None:
    campaign = made({"select": {**FIVE, "threads": 1}, "metrics": ["ops_per_s", "aborts"]})
    cells = claimed.entries(campaign)
    a, b = (
        next(c for c in campaign.cells if c.allocator == n and c.threads == 1 and ("shift", 5) in c.parameters)
        for n in "ab"
    )
    cells[a.key] = msgspec.structs.replace(cells[a.key], state="failed")
    assert claimed.ledger(campaign, cells)["paper_figures"][0]["ours"]["rows"] == [
        ["a", None, None],
        ["b", 100.0, None],
    ]
    del cells[b.key]
    assert claimed.ledger(campaign, cells)["paper_figures"][0]["ours"]["rows"] == [
        ["a", None, None],
        ["b", None, None],
    ]


# ---- pictures


def test_pictures_are_left_out_where_a_run_has_no_whole_series() -> None:
    columns = ["thread", "address", "usable_bytes", "record"]

    def shown(**ours: Any) -> list[tuple[str, int, int]]:
        campaign = made(
            {"kind": "neighbours", "select": {**FIVE, "threads": 1, **ours.pop("select", {})}}, kind="placement"
        )
        for (key, _), runs in campaign.timed.items():
            series = {
                "kind": "series",
                "name": "blocks",
                "columns": columns,
                "rows": [[0, 64, 16, 2]] * ours.get("rows", 1),
            }
            allocator = next(cell.allocator for cell in campaign.cells if cell.key == key)
            runs[0].others = ({**series, **(ours.get("changed", {}) if allocator == "a" else {})},)
        placements = claimed.ledger(campaign, {})["placements"]
        return [(one["allocator"], one["shift"], len(one["blocks"])) for one in placements]

    assert shown() == [("a", 5, 1), ("b", 5, 1)], "without a begin record the usual stripe"
    assert shown(select={"allocator": "b"}) == [("b", 5, 1)]
    assert shown(changed={"name": "other"}) == shown(changed={"kind": "histogram"}) == [("b", 5, 1)]
    for column in columns:
        assert shown(changed={"columns": [c for c in columns if c != column]}) == [("b", 5, 1)]
    assert shown(rows=64) == [("a", 5, 64), ("b", 5, 64)] and shown(rows=65) == shown(rows=64)
    campaign = made({"kind": "neighbours", "select": FIVE}, values=lambda cell, block: None, kind="placement")
    assert claimed.ledger(campaign, {})["placements"] == []
