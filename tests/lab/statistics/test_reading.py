"""Journals are read line by line: what each field becomes, what runs of a cell share, what is damaged or there twice."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loam_lab.base.errors import LoamError
from loam_lab.judging.statistics import reader as lines
from loam_lab.judging.statistics import runs as reading
from loam_lab.judging.statistics.reader import Reader
from loam_lab.judging.statistics.runs import Run
from loam_lab.model.description import Metric
from loam_lab.model.schema import SCHEMA


def run(reader: Reader | None = None, **line: Any) -> Run:
    return (reader or Reader(Path())).run(json.dumps({"cell": "c", "state": "ok", **line}).encode())


def read(folder: Path, *files: str) -> Reader:
    """A reader that has read journals of these contents."""
    reader = Reader(folder)
    for number, text in enumerate(files):
        (folder / f"{number}.jsonl").write_text(text)
    reader.read(sorted(folder.glob("*.jsonl")))
    return reader


def line(name: str, **values: Any) -> str:
    return json.dumps({"id": name, "schema": SCHEMA, "cell": "c", "state": "ok", **values}) + "\n"


# ---- fields


def test_what_a_line_does_not_say_is_empty() -> None:
    empty = run()
    assert (empty.cell, empty.block, empty.copy, empty.attempt, empty.order) == ("c", 0, 0, 0, 0)
    assert (empty.purpose, empty.state, empty.failure, empty.detail) == ("timing", "ok", "", "")
    assert (empty.started_utc, empty.t_s, empty.warnings, empty.observed) == ("", None, (), {})
    assert (empty.begin, empty.iterations, empty.result, empty.others) == ({}, (), None, ())
    assert empty.disturbance == {} and empty.proof == {"status": None, "reasons": []}
    assert empty.identity == dict.fromkeys(("parameters", "warmup_ms", "allocator", "sync", "preset"))
    assert [empty.figure(metric.name) for metric in reading.PROCESS_METRICS] == [None] * 9
    assert (empty.sums, empty.rated_by_slices, list(empty.records())) == ({}, False, [])


def test_what_a_line_says_is_kept() -> None:
    full = run(
        block=3, copy=1, attempt=2, order=17, purpose="blame", state="failed", failure="exit", detail="gave up",
        t_s=4, started_utc="2026", warnings=["a", 5], observed={"peak": 1},
        proof={"status": "wrong", "reasons": ["r"], "more": 1}, identity={"sync": "stm", "seed": 9, "warmup_ms": 5},
    )  # fmt: skip
    assert (full.block, full.copy, full.attempt, full.order, full.purpose) == (3, 1, 2, 17, "blame")
    assert (full.state, full.failure, full.detail) == ("failed", "exit", "gave up")
    assert (full.t_s, full.started_utc) == (4.0, ""), "where the campaign's own clock is known no other is kept"
    assert run(started_utc="2026").started_utc == "2026"
    assert full.warnings == ("a", "5") and full.observed == {"peak": 1}
    assert full.proof == {"status": "wrong", "reasons": ["r"]}
    assert full.identity["sync"] == "stm" and full.identity["warmup_ms"] == 5 and "seed" not in full.identity


def test_the_labs_own_figures_are_numbers_and_counts_are_whole() -> None:
    figures = {
        "wall_s": 1.5, "user_s": 0.25, "system_s": 0.5, "rss_peak_bytes": 4096, "faults_minor": 7, "faults_major": 0,
        "switches_voluntary": 2, "switches_involuntary": 3,
    }  # fmt: skip
    known = run(**figures)
    assert {name: known.figure(name) for name in figures} == figures
    assert known.figure("processor_s") == 0.75
    for metric in reading.PROCESS_METRICS:
        whole = metric.kind in ("bytes", "count")
        assert type(known.value(metric)) is (int if whole else float), metric.name
    assert run(user_s=1.0).figure("processor_s") is None and run(system_s=1.0).figure("processor_s") is None
    own = Metric(name="ops", kind="count")
    assert type(reading.whole(own, 3.0)) is float, "a workload's count may be a sum of parts"


# ---- records


def test_iterations_are_summed_and_rated_together() -> None:
    slices = {"rated_by": "slices"}
    two = run(records=[
        {"kind": "iteration", "index": 0, "a": 1, "b": 2, **slices},
        {"kind": "iteration", "index": 1, "a": 3.5, "tm": {"aborts": 4}, "word": "no number", **slices},
    ])  # fmt: skip
    assert two.sums == {"a": 4.5, "b": 2.0, "aborts": 4.0} and two.rated_by_slices
    assert list(two.records()) == [{"kind": "iteration", "a": 1, "b": 2}, {"kind": "iteration", "a": 3.5, "aborts": 4}]
    one = run(records=[{"kind": "iteration", "a": 1}])
    assert one.sums == {"a": 1.0} and not one.rated_by_slices
    mixed = run(records=[{"kind": "iteration", **slices}, {"kind": "iteration", "rated_by": "all"}])
    assert not mixed.rated_by_slices
    ratio = Metric(name="r", kind="ratio", of=("a", "b"))
    assert two.value(ratio) == 4.5 / 2 and one.value(ratio) is None and one.value(Metric(name="a", kind="count")) == 1


def test_a_result_is_what_the_first_end_that_has_one_says() -> None:
    def of(*results: Any) -> str | None:
        return run(records=[{"kind": "end", "result": result} for result in results]).result

    assert (of(), of(None), of(""), of("a"), of(7)) == (None, None, None, "a", "7")
    assert (of("a", "b"), of(None, "b")) == ("a", "b")
    assert run(records=[{"kind": "end", "result": "a"}, {"kind": "end"}, {"kind": "begin"}]).others == ()


def test_begin_and_end_are_no_other_records() -> None:
    others = [{"kind": "series", "name": "s"}, {"kind": "site", "n": 1}]
    known = run(
        records=[{"kind": "begin", "seed": 1}, others[0], {"kind": "begin", "seed": 2}, others[1], {"kind": "end"}]
    )
    assert known.others == tuple(others) and list(known.records()) == others
    assert known.begin == {"kind": "begin", "seed": 1}


def test_timed_runs_of_a_cell_share_the_begin_record_of_one_with_the_same_mapping() -> None:
    reader = Reader(Path())

    def begin(seed: int, mapping: str = "table", **where: Any) -> Any:
        record = {"kind": "begin", "seed": seed, "tm": {"records_mapping": mapping}}
        return run(reader, records=[record], **where).begin["seed"]

    assert (begin(1), begin(2)) == (1, 1)
    assert (begin(3, "shadow"), begin(4, "shadow"), begin(5)) == (3, 3, 1)
    assert begin(6, copy=1) == 6 and begin(7, cell="d") == 7
    assert begin(8, purpose="blame") == 8, "its own: there is one of it per cell"


# ---- what runs share


def test_what_is_equal_in_runs_is_one_object() -> None:
    reader = Reader(Path())

    def made(**values: Any) -> Run:
        bounds = {"kind": "histogram", "bounds": values.pop("bounds", [1, 2]), "counts": [0, 0]}
        record = {"kind": "iteration", values.pop("name", "a"): 1}
        return run(reader, records=[record, bounds], proof={"status": "proven"}, warnings=["w"], **values)

    first, second = made(identity={"sync": "one"}), made(identity={"sync": "two"})
    assert second.identity is first.identity and second.identity["sync"] == "one"
    assert second.proof is first.proof and second.warnings is first.warnings
    assert second.iterations[0].names is first.iterations[0].names
    assert second.others[0]["bounds"] is first.others[0]["bounds"] and first.others[0]["bounds"] == (1, 2)
    assert made(copy=1, identity={"sync": "two"}).identity["sync"] == "two", "of another copy its own"
    assert made(name="b").iterations[0].names == ("b",) and made(bounds=[1, 3]).others[0]["bounds"] == (1, 3)
    assert made(bounds="none").others[0]["bounds"] == "none"
    other = {"kind": "series", "bounds": [1, 2]}
    assert run(reader, records=[other]).others == (other,)
    reasons = [
        run(reader, proof={"status": "wrong", "reasons": [reason]}).proof["reasons"] for reason in ("x", "y", "x")
    ]
    assert reasons == [["x"], ["y"], ["x"]]


def test_a_quiet_run_keeps_what_is_asked_of_it_and_a_disturbed_one_all(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(Path())
    quiet = {"share": 0.01, "slices": 9, "slices_kept": 8, "steal_s": 0.5}
    kept = run(reader, disturbance=quiet).disturbance
    assert kept == {"share": 0.01, "slices": 9, "slices_kept": 8}
    assert run(reader, disturbance={**quiet, "steal_s": 0.7}).disturbance is kept
    assert run(reader, disturbance={**quiet, "share": 0.02}).disturbance == {**kept, "share": 0.02}
    for disturbed in ({**quiet, "contaminated": True}, {**quiet, "why": ["steal"]}):
        assert run(reader, disturbance=disturbed).disturbance == disturbed
    assert run(reader, disturbance={**quiet, "contaminated": False, "why": []}).disturbance is kept
    monkeypatch.setattr(lines, "_QUIET_MAX", len(reader._shared))
    full = run(reader, disturbance={**quiet, "share": 0.03}).disturbance
    assert run(reader, disturbance={**quiet, "share": 0.03}).disturbance is full
    one, other = (run(reader, disturbance={**quiet, "share": 0.04}).disturbance for _ in range(2))
    assert one == other and one is not other, "beyond the limit every run keeps its own"
    assert run(reader, disturbance=quiet).disturbance is kept


# ---- files


def test_runs_are_sorted_by_block_and_plan_over_all_files(tmp_path: Path) -> None:
    first = line("a", block=1, order=4) + line("b", block=0, order=3)
    second = line("c", block=0, order=1) + line("d", block=1, order=2)
    contents = read(tmp_path, first, second)
    assert [(each.block, each.order) for each in contents.runs] == [
        (0, 1),
        (0, 3),
        (1, 2),
        (1, 4),
    ] and contents.damaged == 0
    assert Reader(tmp_path).read([]) == []


def test_damaged_lines_are_counted_and_a_torn_end_is_none(tmp_path: Path) -> None:
    good = line("a")
    contents = read(
        tmp_path, good + "torn\n" + "\n" + " \n" + "[1]\n" + '{"cell": "c"}\n' + '{"id": null}\n' + '{"torn'
    )
    assert contents.damaged == 4 and len(contents.runs) == 1


def test_a_line_of_another_version_is_refused_and_one_of_none_is_read(tmp_path: Path) -> None:
    assert len(read(tmp_path, line("a", schema=None)).runs) == 1
    with pytest.raises(LoamError):
        read(tmp_path, line("a", schema=SCHEMA + 1))
    assert gc.isenabled(), "whatever happens"


def test_a_run_that_is_there_twice_counts_once_as_the_plan_has_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    once, late, early = line("x", order=9), line("y", order=5, detail="late"), line("y", order=2, detail="early")
    for folder, files in (("a", (once + late, early)), ("b", (once + early, late))):
        contents = read(tmp_path / folder, *files)
        assert [(each.order, each.detail) for each in contents.runs] == [(2, "early"), (9, "")]
    same = read(tmp_path / "a", line("y", order=2, detail="first"), line("y", order=2, detail="second"))
    assert [each.detail for each in same.runs] == ["first"]
    # Names that only sound alike: what differs in cell, block or copy is another run.
    several = "".join(line("y", **place) for place in ({}, {"cell": "d"}, {"block": 1}, {"copy": 1}))
    assert len(read(tmp_path / "b", several, "").runs) == 4


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_left_as_it_was(tmp_path: Path, was_on: bool) -> None:
    try:
        if not was_on:
            gc.disable()
        read(tmp_path, line("a"))
        assert gc.isenabled() == was_on
    finally:
        gc.enable()


# ---- columns


def rated(reader: Reader, **values: Any) -> Run:
    return run(reader, wall_s=values.pop("wall_s", None), records=[{"kind": "iteration", **values}])


def test_columns_are_those_of_runs_with_one_iteration_of_the_same_numbers() -> None:
    reader = Reader(Path())
    columns = reading.columns([rated(reader, a=1, b=2, wall_s=0.5), rated(reader, a=3, b=4)])
    assert columns is not None
    assert (columns["a"].tolist(), columns["b"].tolist()) == ([1, 3], [2, 4])
    assert columns["wall_s"][0] == 0.5 and np.isnan(columns["wall_s"][1]) and np.isnan(columns["processor_s"]).all()
    assert set(columns) == {"a", "b", *(metric.name for metric in reading.PROCESS_METRICS)}
    assert reading.columns([]) is None
    assert reading.columns([rated(reader, a=1), run(reader)]) is None
    assert reading.columns([rated(reader, a=1), run(reader, records=[{"kind": "iteration", "a": 1}] * 2)]) is None
    assert reading.columns([rated(reader, a=1, b=2), rated(reader, a=1)]) is None


def test_a_column_says_what_each_run_says() -> None:
    reader = Reader(Path())
    made = [rated(reader, a=a, b=b, wall_s=b, r=9) for a, b in ((1, 2), (0, 4), (3, 0), (0, 0))]
    known = reading.columns(made)
    assert known is not None
    for metric in (
        Metric(name="a", kind="count"), Metric(name="wall_s", kind="time"), Metric(name="faults_minor", kind="count"),
        Metric(name="r", kind="ratio", of=("a", "b")), Metric(name="a_per_c", kind="ratio", of=("a", "c")),
        # Where the parts are not in the records its own value counts, unless what there is is 0.
        Metric(name="r", kind="ratio", of=("c", "a")), Metric(name="r", kind="ratio", of=("a", "c")),
        Metric(name="c", kind="time"), Metric(name="b", kind="bytes"),
    ):  # fmt: skip
        column = reading.column(metric, known)
        each = [None] * 4 if column is None else [None if np.isnan(v) else v for v in column.tolist()]
        assert each == [one.value(metric) for one in made], metric
