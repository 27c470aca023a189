"""loam explain of a workload that reports no aborts: the sampler on the host, the simulator's counts on a simulated machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from campaigns import asking

from loam_lab.cli import main
from loam_lab.commands.explain import run, shared_lines
from loam_lab.commands.explain.sharing import commands as sharing
from loam_lab.model.description import Description
from loam_lab.model.schema import SCHEMA
from loam_lab.subjects.subject import Subject
from loam_lab.subjects.workloads import Executable


def line(transfers: int, **changed: Any) -> dict[str, Any]:
    by = [{"place": "runtime/heap/remote.hpp:5 (push)", "count": 3}]
    return {"transfers": transfers, "sharing": "true", "cores": [0, 2, 3], "asked_by": by, **changed}


def test_the_line_that_stands_out_is_told_first() -> None:
    assert shared_lines.sentences([line(50), line(40)]) == [
        "One cache line moved 50 times between 3 cores, asked for most often by runtime/heap/remote.hpp:5 (push); a core "
        "used what another had written."
    ]
    assert shared_lines.sentences([line(50, sharing="false", asked_by=[])]) == [
        "One cache line moved 50 times between 3 cores; the cores used different bytes of it: false sharing."
    ]


def test_nothing_is_named_where_nothing_stands_out() -> None:
    assert shared_lines.sentences([]) == shared_lines.sentences([line(0)])
    assert shared_lines.sentences([])[0].startswith("No cache line moved")
    assert shared_lines.sentences([line(2)] * 41)[0].startswith(
        "No cache line stands out: the one that moved most has 2 of the 82"
    )
    assert shared_lines.sentences([line(2)] * 20)[0].startswith("One cache line moved 2 times")


def test_on_the_host_the_workload_is_watched_as_any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    described = Description.model_validate({
        "schema": SCHEMA, "sync": {"name": "none", "kind": "none", "threads_max": 9, "blame": False},
        "workloads": [{"name": "threadtest", "kinds": ["none"], "metrics": [{"name": "ops", "kind": "count"}],
                       "parameters": [{"name": "size", "type": "integer", "min": 1, "max": 99, "default": 1}]}],
    })  # fmt: skip
    executable = Executable("none", Subject.of(Path("/nowhere/none")), described, "id")
    request = asking(threads=[2], parameters=[("size", ["16"])], seed=3, oversubscribe=True)
    asked = run.check("threadtest", request, allocator="jemalloc", executable=executable, every=1)
    calls: list[tuple[list[str], str]] = []

    def watched(command: Sequence[str], *, allocator: str, **_: Any) -> int:
        calls.append((list(command), allocator))
        return 0

    monkeypatch.setattr(sharing, "explain", watched)
    assert not asked.blames and shared_lines.explain(asked) == 0
    command = ["/nowhere/none", "threadtest", "--threads", "2", "--seed", "3", "-p", "size=16"]
    assert calls == [(command, "jemalloc")]


def test_on_a_simulated_machine_moved_lines_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks that one thread allocates and another frees: the inbox of a heap moves."""
    command = [
        "explain",
        "xmalloc",
        "--machine",
        "sim:xeon-e5405",
        "--allocator",
        "loam",
        "--threads",
        "4",
        "-p",
        "duration_ms=1",
    ]
    assert main.run([*command, "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["run"] | {"parameters": {}} == {
        "workload": "xmalloc", "allocator": "loam", "sync": "none", "threads": 4, "seed": 1, "machine": "sim:xeon-e5405",
        "parameters": {},
    }  # fmt: skip
    moved = explained["moved"]
    assert moved[0]["transfers"] >= moved[-1]["transfers"] > 0
    named = {one["place"] for moved_line in moved for one in moved_line["asked_by"]}
    assert any(place.startswith("runtime/heap/") for place in named), named
    assert main.run(command) == 0
    printed = capsys.readouterr().out
    assert explained["words"][0] in " ".join(printed.split()) and "Cache lines that moved most between cores" in printed
