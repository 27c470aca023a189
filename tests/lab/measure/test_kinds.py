"""Which synchronisation can run which workload: by kinds, by what the executables say, and what is said otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import plan as plans
from loam_lab.model.schema import SCHEMA
from loam_lab.model.study import SCHEMA as STUDY_SCHEMA
from loam_lab.model.study import Group, Study
from loam_lab.subjects import workloads
from loam_lab.subjects.subject import Subject

ON = {"ops": ["transactional", "lock"], "malloc": ["none"]}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The executables of a checkout: a transactional memory, a lock, and one for workloads that share nothing."""
    files: dict[str, Any] = {}
    for name, kind, more in (
        ("etl-wb", "transactional", {"cpus_reserved": 0}), ("mutex", "lock", {"cpus_reserved": 1}), ("none", "none", {}),
    ):  # fmt: skip
        offered = [
            {"name": workload, "kinds": kinds, "metrics": [{"name": "operations", "kind": "count"}]}
            for workload, kinds in ON.items() if kind in kinds
        ]  # fmt: skip
        answer = {
            "schema": SCHEMA,
            "sync": {"name": name, "kind": kind, "threads_max": 64, **more},
            "workloads": offered,
        }
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
        file.chmod(0o755)
        files[name] = Subject.of(file).as_json()
    monkeypatch.setattr(paths, "load_paths", lambda preset="release": {"executables": files, "libraries": {}})
    return files


def study(workload: str, *syncs: str, **changed: Any) -> Study:
    group = Group(name="g", workload=workload, sync=syncs, **changed)
    return Study(
        schema=STUDY_SCHEMA,
        name="s",
        title="s",
        question="?",
        baseline="a",
        allocators=("a",),
        blocks=1,
        groups=(group,),
    )


def syncs_of(made: plans.Plan) -> list[str]:
    return list(dict.fromkeys(cell.sync for cell in made.cells()))


def test_a_workload_gets_its_synchronisation_where_none_is_named(built: dict[str, str]) -> None:
    assert syncs_of(plans.make(study("ops"))) == ["etl-wb"]
    assert syncs_of(plans.make(study("malloc"))) == ["none"]
    with pytest.raises(LoamError, match=r"WORKLOAD=mallok: .*did you mean malloc\?"):
        plans.make(study("mallok"))


def test_a_wrong_kind_is_refused_with_those_that_would_do(built: dict[str, str]) -> None:
    with pytest.raises(LoamError) as refused:
        plans.make(study("malloc", "etl-wb"))
    assert refused.value.line() == (
        "--sync=etl-wb: malloc runs on synchronisations of kind none; etl-wb is of kind transactional (use --sync none)"
    )
    with pytest.raises(LoamError, match=r"of kind lock or transactional; none is of kind none .*: etl-wb, mutex\)"):
        plans.make(study("ops", "none"))


@pytest.mark.parametrize("syncs", [("all",), ("etl-wb", "none", "mutex")])
def test_of_several_what_cannot_run_is_skipped_with_the_reason(built: dict[str, str], syncs: tuple[str, ...]) -> None:
    made = plans.make(study("ops", *syncs))
    assert syncs_of(made) == ["etl-wb", "mutex"]
    assert made.notes == [
        "ops runs on synchronisations of kind lock or transactional; none is of kind none; it is skipped; "
        "name another workload for it"
    ]


def test_processors_that_a_synchronisation_keeps_are_not_there_for_threads(
    built: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert plans.make(study("ops", "mutex", threads=(1,))).notes == []
    assert plans.make(study("ops", "etl-wb", "mutex", threads=(1, 2))).notes == [
        "mutex keeps 1 of this machine's 2 hardware threads for itself; with 2 its times describe the scheduler; they "
        "decide no claim"
    ]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with pytest.raises(LoamError, match="--threads=1: mutex keeps 1 of this machine's 1 hardware threads for itself"):
        plans.make(study("ops", "mutex", threads=(1,)))


def test_a_description_of_schema_1_is_refused_with_what_changed(tmp_path: Path) -> None:
    peer = tmp_path / "peer"
    peer.write_text('#!/bin/sh\necho \'{"schema": 1, "sync": {"name": "p", "threads_max": 1}, "workloads": []}\'\n')
    peer.chmod(0o755)
    with pytest.raises(LoamError, match="has schema 1, this lab reads 2; since schema 2 a synchronisation has a kind"):
        workloads.describe(Subject.of(peer))
