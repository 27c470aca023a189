"""Lines of journals that are none, or of older labs; and numbers against the standard library's reading. See test_reading.py."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loam_lab.base.errors import LoamError
from loam_lab.judging.statistics.reader import Reader
from loam_lab.judging.statistics.runs import Run
from loam_lab.model.records import totals
from loam_lab.model.schema import SCHEMA

ITERATION = {"kind": "iteration", "index": 3, "operations": 10, "elapsed_s": 0.5, "tm": {"commits": 7}}


def line(number: int = 0, **changed: Any) -> dict[str, Any]:
    return {
        "schema": SCHEMA, "id": f"run {number}", "cell": "c", "block": 2, "copy": 0, "attempt": 1, "purpose": "timing",
        "order": number, "state": "ok", "failure": "", "detail": "", "t_s": 1.5, "started_utc": "now", "wall_s": 0.25,
        "user_s": 0.5, "system_s": 0.25, "rss_peak_bytes": 4096, "faults_minor": None, "exit_code": 0,
        "identity": {"parameters": {"size": 16}, "preset": "release", "seed": number}, "stderr_tail": "",
        "proof": {"status": "proven", "reasons": [], "pid": number}, "disturbance": {"share": 0.0, "why": [], "steal_s": 0.5},
        "warnings": ["late"], "records": [{"kind": "begin", "seed": number}, ITERATION, {"kind": "end", "result": 5}],
        **changed,
    }  # fmt: skip


def read(folder: Path, *lines: dict[str, Any] | str) -> Reader:
    """A reader that has read one journal of these lines; a text stands as it is."""
    file = folder / "j.jsonl"
    texts = (one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines)
    file.write_text("".join(texts))
    reader = Reader(folder)
    reader.read([file])
    return reader


def alone(folder: Path, **changed: Any) -> Run:
    (run,) = read(folder, line(**changed)).runs
    return run


def test_a_line_becomes_a_run(tmp_path: Path) -> None:
    run = alone(tmp_path)
    assert (run.cell, run.block, run.copy, run.attempt, run.order, run.state) == ("c", 2, 0, 1, 0, "ok")
    assert (run.t_s, run.started_utc) == (1.5, ""), "the time of day is of use in old journals only"
    assert run.identity == {
        "parameters": {"size": 16}, "warmup_ms": None, "allocator": None, "sync": None, "preset": "release",
    }  # fmt: skip
    assert run.proof == {"status": "proven", "reasons": []}
    assert run.disturbance == {"share": 0.0}
    assert run.warnings == ("late",)
    assert run.result == "5"
    assert run.sums == {"operations": 10.0, "elapsed_s": 0.5, "commits": 7.0}
    assert (run.figure("wall_s"), run.figure("processor_s"), run.figure("rss_peak_bytes")) == (0.25, 0.75, 4096)
    assert isinstance(run.figure("rss_peak_bytes"), int)
    assert run.figure("faults_minor") is None
    assert run.figure("switches_voluntary") is None


def test_lines_of_older_labs_lack_what_came_later(tmp_path: Path) -> None:
    (run,) = read(tmp_path, {"id": "x", "cell": "c", "started_utc": "2026-01-01T00:00:00Z"}).runs
    assert (run.purpose, run.block, run.started_utc, run.t_s) == ("timing", 0, "2026-01-01T00:00:00Z", None)
    assert run.identity == dict.fromkeys(("parameters", "warmup_ms", "allocator", "sync", "preset"))
    assert run.proof == {"status": None, "reasons": []}
    assert (run.disturbance, run.observed, run.warnings, run.iterations, run.others) == ({}, {}, (), (), ())
    assert run.figure("processor_s") is None


@pytest.mark.parametrize(
    "wrong",
    ["[1]\n", "1\n", "{}\n", '{"id": null}\n', '{"id": "x", "block": "three"}\n', '{"id": "x", "records": [1]}\n', "{\n", "x\n",
     '{"id": "x", "wall_s": NaN}\n', '{"id": "x", "records": {}}\n'],
)  # fmt: skip
def test_a_line_that_is_none_is_counted(tmp_path: Path, wrong: str) -> None:
    reader = read(tmp_path, line(1), wrong, line(2))
    assert reader.damaged == 1
    assert [run.order for run in reader.runs] == [1, 2]


@pytest.mark.parametrize("end", ['{"id": "x"', "", "\n", "  \n"])
def test_a_torn_end_is_no_damage(tmp_path: Path, end: str) -> None:
    reader = read(tmp_path, line(1), end)
    assert (reader.damaged, len(reader.runs)) == (0, 1)


@pytest.mark.parametrize("changed", [{}, {"block": "first"}, {"records": None, "copy": [1]}])
def test_another_schema_is_refused_whatever_else_the_line_has(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(LoamError, match="schema"):
        read(tmp_path, line(1), line(2, schema=SCHEMA + 1, **changed))


JSON = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


@given(iterations=st.lists(st.dictionaries(st.text(), JSON | st.dictionaries(st.text(), JSON)), max_size=3))
def test_sums_are_those_of_the_plain_text(iterations: list[dict[str, Any]]) -> None:
    """Against the standard library's reading of the same line."""
    records = [{**one, "kind": "iteration"} for one in iterations]
    run = Reader(Path()).run(json.dumps({"id": "x", "records": records}).encode())
    expected = totals(json.loads(json.dumps(records)))
    assert run.sums.keys() == expected.keys()
    assert all(math.isclose(run.sums[name], value, abs_tol=1e-300) for name, value in expected.items())
