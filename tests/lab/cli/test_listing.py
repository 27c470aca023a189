"""`loam list syncs`: what each synchronisation guarantees and how many threads it runs, from its description alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loam_lab.cli import listing
from loam_lab.model.description import Description
from loam_lab.model.schema import SCHEMA
from loam_lab.setup import build, debian
from loam_lab.subjects import workloads
from loam_lab.subjects.subject import Subject

DESCRIPTIONS = listing._descriptions
WORKLOAD = {"name": "intset", "kinds": ["transactional"], "metrics": [{"name": "operations", "kind": "count"}]}


def _description(**sync: Any) -> Description:
    return Description.model_validate(
        {"schema": SCHEMA, "sync": {"kind": "transactional", **sync}, "workloads": [WORKLOAD]}
    )


@pytest.fixture(autouse=True)
def _two_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    known = _description(
        name="tm", summary="reads and writes", paper="PPoPP 2008", threads_max=1023, blame=True,
        guarantees="opacity; [privatization] safe",
    )  # fmt: skip
    old = _description(name="old-peer", kind="lock", threads_max=1)  # built before there was such a field
    monkeypatch.setattr(listing, "_descriptions", lambda: [old, known])


def test_syncs_are_shown_with_guarantees_and_threads(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.show("syncs", as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(number for number, line in enumerate(lines) if line.split()[:1] == ["tm"])
    assert lines[row].split()[1:3] == ["transactional", "1023"]
    assert "reads and writes (PPoPP 2008)" in lines[row]
    assert "guarantees: opacity; [privatization] safe" in lines[row + 1]


def test_a_description_without_guarantees_is_read_and_said_to_state_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.show("syncs", as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(number for number, line in enumerate(lines) if line.split()[:1] == ["old-peer"])
    assert lines[row].split()[1:3] == ["lock", "1"]
    assert "guarantees: not stated" in lines[row + 1]


def test_as_json_the_guarantees_are_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.show("syncs", as_json=True) == 0
    syncs = {sync["name"]: sync for sync in json.loads(capsys.readouterr().out)["syncs"]}
    assert syncs["tm"]["guarantees"] == "opacity; [privatization] safe"
    assert syncs["tm"]["threads_max"] == 1023
    assert syncs["old-peer"]["guarantees"] == ""


def test_what_is_not_set_up_yet_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fresh checkout has no jar: its synchronisations are known by name, and cannot say what they are."""
    there = tmp_path / "loam-workload-tm"
    there.touch()
    known = {
        "jvm-word": Subject((str(there),), (str(tmp_path / "loam-jvm.jar"),)),
        "tm": Subject((str(there),), (str(there),)),
    }
    monkeypatch.setattr(debian, "ensure", lambda *_: None)
    monkeypatch.setattr(build, "ensure_built", lambda *_: {})
    monkeypatch.setattr(workloads, "subjects_of", lambda: known)
    monkeypatch.setattr(workloads, "describe", lambda subject: _description(name=subject.program.name, threads_max=1))
    assert [one.sync.name for one in DESCRIPTIONS()] == ["loam-workload-tm"]
    assert "jvm-word" in capsys.readouterr().err
