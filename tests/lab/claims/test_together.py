"""Verdicts of several runs of a study: what stands, what is told beside it, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic_study
from typed import typed

from loam_lab.judging.claims import together
from loam_lab.model.schema import SCHEMA
from loam_lab.presenting import report
from loam_lab.presenting.report import ledger, view


def run(results: Path, day: int, verdict: str = "reproduced", *machines: str, name: str = "", **changed: Any) -> Path:
    folder = results / (name or f"tiny-{day:02}")
    folder.mkdir(parents=True, exist_ok=True)
    claim = {
        "id": "000-01",
        "predicate": "p",
        "verdict": verdict,
        "machines": list(machines),
        **changed.pop("claim", {}),
    }
    content = {
        "schema": SCHEMA, "study": "tiny", "created_utc": f"2026-11-{day:02}T10:00:00Z", "cells": [],
        "build": {"revision": "abc"}, "machine": {"cpu": "c"}, "claims": [claim], **changed,
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(content))
    return folder


def words(results: Path) -> list[str]:
    return [one.words() for one in together.verdicts(together.runs(results), "tiny", "000-01", "p")]


def test_the_newest_verdict_that_decides_stands(tmp_path: Path) -> None:
    run(tmp_path, 1, "reproduced", "host")
    run(tmp_path, 2, "contradicted", "sim:far")
    run(tmp_path, 3, "undecided", "host")
    run(tmp_path, 4, "cannot be decided", "sim:far", "sim:near")
    run(tmp_path, 5, "not asked")
    assert words(tmp_path) == [
        "contradicted on sim:far, 2026-11-02", "reproduced on host, 2026-11-01",
        "cannot be decided on sim:far, sim:near, 2026-11-04", "undecided on host, 2026-11-03", "not asked, 2026-11-05",
    ]  # fmt: skip


def test_of_two_that_decide_nothing_the_newest_stands(tmp_path: Path) -> None:
    run(tmp_path, 2, "undecided", "host")
    run(tmp_path, 1, "cannot be decided", "sim:far")
    assert words(tmp_path)[0] == "undecided on host, 2026-11-02"
    run(tmp_path, 3, "self-contradicting", "host")
    assert words(tmp_path)[0] == "self-contradicting on host, 2026-11-03"


def test_only_verdicts_on_the_claim_as_it_stands_count(tmp_path: Path) -> None:
    run(tmp_path, 1, "reproduced", "host")
    run(tmp_path, 2, "contradicted", claim={"predicate": "another"})
    run(tmp_path, 3, "contradicted", claim={"id": "000-02"})
    run(tmp_path, 4, "contradicted", study="other")
    run(tmp_path, 5, claims=None)
    (run(tmp_path, 6) / "result.json").write_text("{")
    (run(tmp_path, 7) / "result.json").write_bytes(b"\xff")
    (tmp_path / "latest").symlink_to("tiny-01")
    assert words(tmp_path) == ["reproduced on host, 2026-11-01"]
    assert [one.folder.name for one in together.runs(tmp_path)] == [
        "tiny-05",
        "tiny-04",
        "tiny-03",
        "tiny-02",
        "tiny-01",
    ]
    assert together.runs(tmp_path / "nowhere") == []


def test_other_runs_are_told_once_and_not_what_they_did_not_ask(tmp_path: Path) -> None:
    for day, verdict in enumerate(("undecided", "undecided", "not asked", "reproduced"), 1):
        run(tmp_path, day, verdict, "host")
    verdicts = together.verdicts(together.runs(tmp_path), "tiny", "000-01", "p")
    assert together.summaries(verdicts) == ["reproduced on host, 2026-11-04", "undecided on host, 2026-11-02"]
    assert ledger.notes_of(verdicts[1:]) == ["in other runs: undecided on host, 2026-11-02"]
    assert ledger.notes_of(verdicts[3:]) == ledger.notes_of([]) == []


def test_beside_a_result_lie_the_other_runs_of_its_study(tmp_path: Path) -> None:
    results = tmp_path / "results"
    own, other = run(results, 1), run(results, 2)
    run(results, 3, study="another")
    assert [one.folder for one in together.beside(own, "tiny")] == [other]
    elsewhere = run(tmp_path / "elsewhere", 1)
    run(tmp_path / "elsewhere", 2)
    assert together.beside(elsewhere, "tiny") == ()


@pytest.fixture
def two_runs(tmp_path: Path) -> view.Study:
    """A result, and beside it a newer run that decides what the first could not, and an older one that says otherwise."""
    content = synthetic_study.study()
    claims = [{**claim, "predicate": "p", "machines": ["host"]} for claim in content["claims"]]
    content |= {"claims": claims, "created_utc": "2026-11-02T10:00:00Z"}
    shared: dict[str, Any] = {"study": content["study"]}
    newer = [{**claims[2], "verdict": "contradicted", "machines": ["sim:\x1b[31mfar"]}]
    older = [{**claims[0], "verdict": "contradicted", "machines": ["sim:old"]}, {**claims[1], "verdict": "not asked"}]
    run(tmp_path, 3, claims=newer, **shared)
    run(tmp_path, 1, claims=older, **shared)
    return view.read(typed(content), others=together.runs(tmp_path))


def test_a_report_adds_up_the_verdicts_of_other_runs(two_runs: view.Study) -> None:
    first, second, third = ledger.claims(two_runs)
    assert "in other runs: contradicted on sim:old, 2026-11-01" in first.notes
    assert not any(note.startswith("in other runs") for note in second.notes)
    assert first.verdict == "reproduced" and third.verdict == "undecided", "its own verdicts are told first"
    (note_of_others,) = [note for note in third.notes if note.startswith("in other runs")]
    assert "contradicted on sim:" in note_of_others and "\x1b" not in note_of_others
    assert ledger.summary(two_runs) == (
        "Of 3 claims 1 reproduced, 1 contradicted and 1 undecided. "
        "With 2 other runs: of 3 claims 1 reproduced and 2 contradicted."
    )


def test_the_files_of_a_report_have_them(tmp_path: Path, two_runs: view.Study) -> None:
    written = report.build(two_runs.raw, tmp_path / "out", formats=("md", "html"), others=two_runs.others)
    for name in ("md", "html"):
        assert "With 2 other runs: of 3 claims 1 reproduced and 2 contradicted." in written[name].read_text()
    alone = report.build(two_runs.raw, tmp_path / "alone", formats=("md",))["md"].read_text()
    assert "other run" not in alone
