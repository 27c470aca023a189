"""The lines that moved in a simulated run: read from what the simulator writes, and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typed import typed_cell

from loam_lab.campaign import moves
from loam_lab.campaign.process.observer import Observer
from loam_lab.model.result import Cell
from loam_lab.presenting.report import moves as drawn

COLUMNS = 4


def line(transfers: int, true_sharing: int, false_sharing: int, **more: Any) -> dict[str, Any]:
    """One line of the simulator's statistics, between cores 0 and 5."""
    return {
        "address": 4096, "transfers": transfers, "true_sharing": true_sharing, "false_sharing": false_sharing,
        "aborts": 0, "cores": [0, 5], "sites": [{"object": "/no/such/object", "address": 16, "count": 3}],
        "arrived": [{"core": 0, "counts": [0, 2, 0, 0]}, {"core": 5, "counts": [0, 1, 3, 0]}],
        "between": [{"from": 0, "to": 5, "count": 4}, {"from": 5, "to": 0, "count": 2}], **more,
    }  # fmt: skip


def statistics(*lines: dict[str, Any]) -> str:
    return json.dumps(
        {
            "cycles": 8_000_000,
            "megahertz": 2000,
            "moves_one_in": 8,
            "moves_begin": 2_000_000,
            "moves_end": 8_000_000,
            "lines": list(lines),
        }
    )


def test_statistics_are_read_in_milliseconds_of_the_machine(tmp_path: Path) -> None:
    read = moves.read(statistics(line(48, 40, 2)), tmp_path / "program")
    assert (read["begin_ms"], read["end_ms"], read["one_in"], read["columns"]) == (1.0, 4.0, 8, COLUMNS)
    assert read["lines"] == [{
        "transfers": 48, "true_sharing": 40, "false_sharing": 2, "asked_by": "",
        "arrived": {"0": [0, 2, 0, 0], "5": [0, 1, 3, 0]}, "between": [[0, 5, 4], [5, 0, 2]],
    }]  # fmt: skip


def test_lines_without_a_course_are_left_out_and_few_are_kept(tmp_path: Path) -> None:
    """The simulator has the course of the first eight alone."""
    many = [line(100 - i, 1, 1) for i in range(8)] + [line(5, 1, 1, arrived=[])]
    assert len(moves.read(statistics(*many), tmp_path)["lines"]) == moves.LINES_MAX
    assert moves.read(statistics(line(5, 1, 1, arrived=[])), tmp_path)["lines"] == []


@pytest.mark.parametrize("text", ["", "{}", '{"lines": [1]}', None])
def test_a_run_that_wrote_nothing_useful_is_observed_without_lines(text: str | None, tmp_path: Path) -> None:
    observer = moves.MovesObserver(tmp_path, tmp_path / "program")
    observer.begin()
    file = Path(observer.environment[moves.STATISTICS])
    if text is not None:
        file.write_text(text)
    assert observer.end(SimpleNamespace()) == ({}, "")  # type: ignore[arg-type]
    assert isinstance(observer, Observer)


def cell(**kept: Any) -> Cell:
    return typed_cell({"moves": kept} if kept else {})


def picture(*lines: dict[str, Any]) -> drawn.Moves:
    picture_of_moves = drawn.of_cell(cell(**moves.read(statistics(*lines), Path("program"))))
    assert picture_of_moves is not None
    return picture_of_moves


def test_a_drawing_says_its_numbers() -> None:
    picture_of_moves = picture(line(48, 40, 2), line(12, 0, 9))
    drawing = drawn.draw("glibc", picture_of_moves, "name")
    assert "line A, of unknown code: 48 transfers, true sharing, cores 0, 5" in drawing.description
    assert "line B, of unknown code: 12 transfers, false sharing" in drawing.description
    assert "core 0" in drawing.body and "core 5" in drawing.body and "1 ms" in drawing.body and "4 ms" in drawing.body
    assert drawn.remark("glibc", picture_of_moves).startswith(
        "glibc: line A moved 48 times between 2 cores (true sharing)"
    )


def test_what_came_most_often_is_darkest() -> None:
    """Three of core 5's columns differ: 1, 3 and nothing."""
    body = drawn.draw("glibc", picture(line(48, 40, 2)), "name").body
    darkest, lightest = (key.colour for key in reversed(drawn.legend()))
    strip = body.split("<text")[1:]
    assert darkest in body
    assert lightest != darkest and any(darkest in part for part in strip)


def test_many_cores_share_rows() -> None:
    cores = [{"core": core, "counts": [1, 0, 0, 0]} for core in range(128)]
    picture_of_moves = picture(line(128, 0, 0, arrived=cores, between=[{"from": 0, "to": 127, "count": 1}]))
    drawing = drawn.draw("loam", picture_of_moves, "name")
    assert "0–7" in drawing.body and "120–127" in drawing.body
    assert drawing.height < 250
    assert "no miss by sharing" in drawing.description


def test_a_cell_of_a_machine_that_exists_has_no_picture() -> None:
    assert drawn.of_cell(cell()) is None
    assert drawn.of_cell(cell(begin_ms=0.0, end_ms=1.0, columns=4, lines=[])) is None
