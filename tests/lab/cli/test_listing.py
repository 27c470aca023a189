"""`loam list`: descriptions of what is built, names from the folders for the rest, and no build."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import listing
from loam_lab.model.description import Description
from loam_lab.model.schema import SCHEMA
from loam_lab.setup import build, debian
from loam_lab.subjects import sources, workloads
from loam_lab.subjects.sources import Source
from loam_lab.subjects.subject import Subject

WORKLOAD = {"name": "intset", "kinds": ["transactional"], "metrics": [{"name": "operations", "kind": "count"}]}


def _description(**sync: Any) -> Description:
    return Description.model_validate(
        {"schema": SCHEMA, "sync": {"kind": "transactional", **sync}, "workloads": [WORKLOAD]}
    )


@pytest.fixture
def two_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    known = _description(
        name="tm", summary="reads and writes", paper="PPoPP 2008", threads_max=1023, blame=True,
        guarantees="opacity; [privatization] safe",
    )  # fmt: skip
    old = _description(name="old-peer", kind="lock", threads_max=1)  # built before there was such a field
    monkeypatch.setattr(workloads, "built", lambda: [old, known])
    monkeypatch.setattr(sources, "syncs", dict)


@pytest.mark.usefixtures("two_syncs")
def test_syncs_are_shown_with_guarantees_and_threads(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.show("syncs", as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(number for number, line in enumerate(lines) if line.split()[:1] == ["tm"])
    assert lines[row].split()[1:3] == ["transactional", "1023"]
    assert "reads and writes (PPoPP 2008)" in lines[row]
    assert "guarantees: opacity; [privatization] safe" in lines[row + 1]


@pytest.mark.usefixtures("two_syncs")
def test_a_description_without_guarantees_is_read_and_said_to_state_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.show("syncs", as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(number for number, line in enumerate(lines) if line.split()[:1] == ["old-peer"])
    assert lines[row].split()[1:3] == ["lock", "1"]
    assert "guarantees: not stated" in lines[row + 1]


@pytest.mark.usefixtures("two_syncs")
def test_as_json_the_guarantees_are_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.show("syncs", as_json=True) == 0
    syncs = {sync["name"]: sync for sync in json.loads(capsys.readouterr().out)["syncs"]}
    assert syncs["tm"]["guarantees"] == "opacity; [privatization] safe"
    assert syncs["tm"]["threads_max"] == 1023
    assert syncs["old-peer"]["guarantees"] == ""


def test_a_fresh_checkout_names_everything_and_builds_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a listing builds and starts nothing")

    monkeypatch.setattr(paths, "build_folder", lambda preset="release": tmp_path / preset)
    for module, name in ((debian, "ensure"), (build, "ensure_built"), (build, "configure"), (subprocess, "Popen")):
        monkeypatch.setattr(module, name, refuse)
    for kind, some in (
        ("syncs", ("etl-wb", "cc-synch", "two-lock", "gc-heap", "none", "libitm", "loam-itm", "programs", "jvm-plain")),
        ("workloads", ("intset", "queue", "malloc-loop", "kmeans", "leetm", "sqlite3")),
    ):
        assert listing.show(kind, as_json=True) == 0
        document = json.loads(capsys.readouterr().out)
        assert document[kind] == []
        names = {source["name"]: source for source in document["not_built"]}
        assert set(some) <= names.keys()
        assert all(source["summary"] and (paths.root() / source["file"]).is_file() for source in names.values())
        assert listing.show(kind, as_json=False) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"{kind.replace('syncs', 'synchronisations')} that are not built yet: ./loam setup builds all of " \
            "them, ./loam run what it is asked for"  # fmt: skip
        assert set(some) <= {line.split()[0] for line in lines if line.strip()}
    assert listing.show("allocators", as_json=True) == 0
    names = [allocator["name"] for allocator in json.loads(capsys.readouterr().out)["allocators"]]
    assert {"glibc", "loam", "hoard"} <= set(names)


@pytest.mark.usefixtures("two_syncs")
def test_what_is_built_describes_itself_and_only_the_rest_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {name: Source(name, f"runtime/{name}.hpp", "what it is") for name in ("tm", "jvm-word", "later")}
    monkeypatch.setattr(sources, "syncs", lambda: known)
    monkeypatch.setattr(build, "sources_changed", lambda: True)
    assert listing.show("syncs", as_json=True) == 0
    captured = capsys.readouterr()
    assert [source["name"] for source in json.loads(captured.out)["not_built"]] == ["jvm-word", "later"]
    assert "sources changed since they were built" in captured.err
    assert listing.show("syncs", as_json=False) == 0
    assert "./loam run gcbench --sync jvm-word sets all of them up" in capsys.readouterr().out


def test_what_cannot_say_what_it_is_counts_as_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A jar that was never made, an executable of a revision with other records: neither stops the listing."""
    there = tmp_path / "loam-workload-tm"
    there.touch()
    old = tmp_path / "loam-workload-old"
    old.touch()
    known = {
        "jvm-word": Subject((str(there),), (str(tmp_path / "loam-jvm.jar"),)),
        "old": Subject.of(old),
        "tm": Subject.of(there),
    }

    def describe(subject: Subject) -> Description:
        if subject.program == old:
            raise LoamError("old", None, "has schema 1")
        return _description(name=subject.program.name, threads_max=1)

    monkeypatch.setattr(workloads, "subjects_of", lambda preset="release": known)
    monkeypatch.setattr(workloads, "describe", describe)
    assert [one.sync.name for one in workloads.built()] == ["loam-workload-tm"]


def test_the_folders_name_what_the_build_makes() -> None:
    try:
        made = workloads.subjects_of().keys()
    except LoamError:
        pytest.skip("the preset release is not configured")
    named = sources.syncs().keys()
    assert made <= named
    # They need a library or a compiler that is not everywhere.
    assert all(name.startswith(("gc-boehm", "libitm", "loam-itm")) for name in named - made)
    described = {workload.name for description in workloads.built() for workload in description.workloads}
    if {description.sync.name for description in workloads.built()} == made:
        assert described == sources.workloads().keys()
