"""Text of a stranger's result, journal or trace is text: it moves no cursor, starts no formula, chooses no library."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import HOSTILE, hostile, tour
from typed import typed

from loam_lab.base import console
from loam_lab.cli.main import run
from loam_lab.presenting.report import tables, view
from loam_lab.subjects.allocators import preloading

# Colours, a title, a clear screen by one byte, a link, the direction of writing, a return that hides a line.
EVIL = "a\x1b[31mred\x1b]0;title\x07\x9b2J\x1b]8;;http://x\x1b\\\u202egnp\rlies\x08\x7f"
BAD = {letter for letter in EVIL if not letter.isprintable()}


def poisoned(value: Any) -> Any:
    """The same value with EVIL in every place that a user, a program or a file name can fill."""
    if isinstance(value, dict):
        return {poisoned(key): poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return value.replace(HOSTILE, EVIL) if isinstance(value, str) else value


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(poisoned(hostile())))
    return folder


@pytest.mark.parametrize("command", [["compare"], ["compare", "--json"], ["cite"], ["report"], ["compare", "{}"]])
def test_a_strangers_result_prints_no_control_character(
    command: list[str], foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for clear in (console.out, console.err):
        clear.cache_clear()
    more = ["--out", str(tmp_path / "report")] if command == ["report"] else []
    run([*(word.format(foreign) for word in command), str(foreign), *more])
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert not BAD & set(printed.out + printed.err)
    for file in tmp_path.glob("report/**/*.*"):
        if file.suffix in (".html", ".csv", ".md", ".svg", ".txt"):
            assert not BAD & set(file.read_text()), file


def test_every_way_of_printing_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    for clear in (console.out, console.err):
        clear.cache_clear()
    from rich.text import Text

    with console.guard():
        print(EVIL)
        console.note(EVIL)
        console.warn(EVIL)
        console.out().print(EVIL, markup=False)
        console.out().print(Text(EVIL))
        console.out().print(console.table([EVIL], [[EVIL], [Text(EVIL)]], title=EVIL.replace("[", "")))
        console.print_json({EVIL: [EVIL]})
    printed = capsys.readouterr()
    assert not BAD & set(printed.out + printed.err)
    assert "\ufffd" in printed.out and "\ufffd" in printed.err
    assert json.loads("{" + printed.out.rpartition("\n{")[2]) == {EVIL: [EVIL]}, "data stays what it is"


def test_our_own_colours_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console._console(stream).print(f"[bad]x[/bad]{EVIL}", markup=True)
    assert stream.getvalue().startswith("\x1b[1;31mx\x1b[0ma\ufffd")


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1"])
def test_a_table_starts_no_formula(text: str) -> None:
    raw = copy.deepcopy(tour())
    raw["study"] = text
    for cell in raw["cells"]:
        cell["parameters"] = {"given": text, "number": -2}
    rows = list(csv.reader(io.StringIO(tables.to_csv(view.read(typed(raw), "result")))))
    cells = {cell for row in rows for cell in row}
    assert f"'{text}" in cells
    assert "-2" in cells, "numbers stay numbers"
    for cell in cells - {"-2"}:
        assert not cell.startswith(("=", "+", "@", "\t")), cell
        assert not cell.startswith("-") or float(cell) <= 0


def test_what_is_preloaded_lies_where_nobody_else_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preloading.tempfile, "tempdir", str(tmp_path))
    preloading._folder.cache_clear()
    # Somebody was here before: under the name of old, with a library of his own.
    bait = tmp_path / f"loam-links-{os.getuid()}"
    bait.mkdir(mode=0o777)
    target = f"{tmp_path}/with blank/lib.so"
    try:
        link = Path(preloading.preloadable(target))
        assert link == Path(preloading.preloadable(target))
        assert str(link.readlink()) == target
        folder = link.parent
        assert folder != bait
        state = folder.lstat()
        assert stat.S_ISDIR(state.st_mode) and stat.S_IMODE(state.st_mode) & 0o066 == 0 and state.st_uid == os.getuid()
        preloading._remove(folder, os.getpid() + 1)
        assert link.is_symlink(), "a forked copy does not remove it"
        preloading._remove(folder, os.getpid())
        assert not folder.exists()
    finally:
        preloading._folder.cache_clear()
