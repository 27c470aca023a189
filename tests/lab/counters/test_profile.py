"""Counting runs behind the library that counts what is asked of an allocator: per operation, of programs, proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from campaigns import cells

from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.campaign import Runner
from loam_lab.campaign.measure.instruments import RealInstruments
from loam_lab.judging.result import counting, summarise
from loam_lab.judging.statistics import data
from loam_lab.model.study import Study
from loam_lab.setup import build
from loam_lab.subjects.programs import running
from loam_lab.subjects.programs.catalogue import PROGRAMS


def profiled(out: Path, group: dict[str, Any], *names: str) -> tuple[dict[str, Any], data.Campaign]:
    content: dict[str, Any] = {
        "schema": 2, "name": "asked", "title": "asked", "question": "?", "allocators": ["glibc", "jemalloc"],
        "profile": True, "blocks": 1, "warmup_ms": 0, "groups": [{"name": "g", **group}],
    }  # fmt: skip
    made = Study.model_validate(content)
    build.ensure_built(["probe", "profile", *names])
    Runner(made, plans.make(made), out, RealInstruments(), "x").run()
    return summarise.write(out, elapsed_s=0.0).as_json(), data.load(out)


def entries(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    by_allocator = {}
    for cell in cells(result, copy=0):
        (by_allocator[cell["factors"]["allocator"]],) = cell["counters"]
    return by_allocator


def test_blocks_and_bytes_for_each_operation_of_a_workload(tmp_path: Path) -> None:
    parameters = {"operations": 8000}
    result, campaign = profiled(
        tmp_path / "out", {"workload": "larson", "sync": ["none"], "threads": [2], "parameters": parameters}, "none"
    )
    assert result["failures"] == []
    assert {run.proof["status"] for runs in campaign.special["profile"].values() for run in runs} == {"proven"}
    by_allocator = entries(result)
    for entry in by_allocator.values():
        assert (entry["source"], entry["per"]) == ("profile", "operation")
        # A replacement frees a block and allocates one, of 8 to 1000 bytes; now and then a thread is made.
        assert entry["calls"] == pytest.approx(1, rel=0.05)
        assert 100 < entry["requested_bytes"] < 1000
        assert entry["peak"]["resident"] > 0 and entry["external"] >= 0 and entry["padding"] >= 0
    assert by_allocator["jemalloc"]["requested_bytes"] == pytest.approx(
        by_allocator["glibc"]["requested_bytes"], rel=0.01
    )


def test_a_program_asks_for_the_same_under_every_allocator(tmp_path: Path) -> None:
    if lacks := running.lacks(PROGRAMS["perl"]):
        pytest.skip(f"perl lacks {lacks}")
    group = {"workload": "perl", "sync": ["programs"], "parameters": {"amount": 2000}}
    result, campaign = profiled(tmp_path / "out", group, "programs")
    assert result["failures"] == []
    assert {run.proof["status"] for runs in campaign.special["profile"].values() for run in runs} == {"proven"}
    by_allocator = entries(result)
    assert {entry["per"] for entry in by_allocator.values()} == {"run"}
    assert by_allocator["glibc"]["calls"] > 2000
    assert by_allocator["jemalloc"]["calls"] == pytest.approx(by_allocator["glibc"]["calls"], rel=1e-3)
    # jemalloc brings libstdc++, which asks for a pool of 72 704 bytes at its start.
    more = by_allocator["jemalloc"]["requested_bytes"] - by_allocator["glibc"]["requested_bytes"]
    assert 72_704 <= more < 80_000


def test_counts_become_values_for_an_operation() -> None:
    assert counting.from_profile({"calls": 30.0, "requested_bytes": 2400.0}, 10.0) == {
        "calls": 3.0,
        "requested_bytes": 240.0,
    }
    assert counting.from_profile({"calls": -1.0, "requested_bytes": 0.0}, 10.0) == {
        "calls": 0.0,
        "requested_bytes": 0.0,
    }
