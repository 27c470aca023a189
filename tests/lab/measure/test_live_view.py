"""Between runs a terminal shows the intervals so far, within a long one a bar moves; a pipe gets plain lines."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaigns import FakeInstruments, forked, measure, runner, study

from loam_lab.campaign.measure import progress, ticks
from loam_lab.campaign.measure.live_view import Watched
from loam_lab.campaign.measure.progress import Remaining
from loam_lab.campaign.process import output
from loam_lab.model import words


def on_a_terminal(folder: Path, long_s: float = 1e9, lines: int = 40, **changed: object) -> str:
    """What a campaign writes on a terminal of 100 columns; long_s: from which on runs are long."""
    ours, its = os.openpty()

    def action() -> None:
        os.dup2(its, 2)
        os.environ.update(COLUMNS="100", LINES=str(lines), TERM="xterm")
        progress.INTERVALS_S = progress.REDRAW_S = ticks.TICK_S = 0.0
        progress.LONG_S = long_s
        sys.stderr = os.fdopen(2, "w", buffering=1)
        runner(study(**changed), folder).run()

    child = forked(action)
    os.close(its)
    screen = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the last writer closed the terminal
            break
        if not part:
            break
        screen += part
    os.close(ours)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, screen.decode()
    return screen.decode()


def test_a_terminal_shows_the_intervals_so_far(tmp_path: Path) -> None:
    screen = on_a_terminal(tmp_path, parameters={"structure": ["list", "tree"], "spread": 20}, blocks=7)
    assert "Medians and ratios to the baseline so far" in screen
    assert "in this run" not in screen, "runs of milliseconds"
    for text in ("intset list fake-stm 1T", "intset tree fake-stm 1T", "plain (again)", "42/42"):
        assert text in screen
    last = Watched(tmp_path)
    last.poll()
    fast = next(row for row in last.intervals() if row["allocator"] == "fast")
    assert f"{fast['estimate']:.3f}" in screen
    assert words.quantity(fast["value"], "1/s") in screen
    assert "spread" not in screen, "what does not vary is not shown"


def test_a_low_terminal_has_room_for_the_bar(tmp_path: Path) -> None:
    screen = on_a_terminal(tmp_path, lines=9, parameters={"structure": ["list", "tree", "hash"]}, blocks=6)
    assert "the 3 widest" in screen and "54/54" in screen


def test_what_does_not_fit_is_left_out_widest_first(tmp_path: Path) -> None:
    measure(study(parameters={"structure": ["list", "tree", "hash"]}, blocks=6), tmp_path)
    watched = Watched(tmp_path)
    watched.poll()
    rows = sorted(watched.intervals(), key=lambda row: -row["half_width"])
    title, table = progress.table(watched, 2).renderables  # type: ignore[union-attr]
    cells = [list(column.cells) for column in table.columns]
    assert [str(text) for text in cells[2]] == [words.quantity(row["value"], "1/s") for row in rows[:2]]
    assert [float(str(text)) for text in cells[3]] == [round(row["estimate"], 3) for row in rows[:2]]
    assert "the 2 widest" in str(title)


def test_within_a_long_run_the_line_of_the_bar_is_written_again(tmp_path: Path) -> None:
    screen = on_a_terminal(tmp_path, long_s=0.0, blocks=6)
    again = re.findall(r"\r(tiny [━╸─]+ \d+/18 [^\r\x1b]* of about [^\r\x1b]* in this run)\x1b\[K", screen)
    assert len(again) >= 18, "at the beginning of each run, at least"
    assert max(map(len, again)) < 100
    assert [int(line.partition("/")[0].rpartition(" ")[2]) for line in again] == sorted(
        int(line.partition("/")[0].rpartition(" ")[2]) for line in again
    )


def test_a_terminal_that_takes_nothing_holds_up_nobody() -> None:
    """Nobody reads: a write that waited would never return."""
    ours, its = os.openpty()

    def action() -> None:
        os.dup2(its, 2)
        with ticks.Terminal() as terminal:
            for _ in range(20_000):
                terminal.write("x" * 90)
        assert os.get_blocking(2), "others who write there still wait"

    child = forked(action)
    _, status = os.waitpid(child, 0)
    os.close(ours)
    os.close(its)
    assert os.waitstatus_to_exitcode(status) == 0


def test_ticks_come_once_a_second_and_seldom_where_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0, used=0.0, cost=0.0)
    monkeypatch.setattr(ticks, "time", SimpleNamespace(monotonic=lambda: clock.now, thread_time=lambda: clock.used))
    reported: list[float] = []

    def tick(gone_s: float) -> None:
        reported.append(gone_s)
        clock.used += clock.cost

    watch = ticks.Ticks(tick, lambda pid: 0.25)
    alone = ticks.Ticks(tick)
    assert watch.look(1) == 0.25, "who else watches is asked in any case"
    assert alone.look(1) == 1.0
    assert reported == [], "not at the beginning"
    clock.now += 1.0
    assert alone.look(1) == 1.0
    clock.now += 0.5
    assert alone.look(1) == 0.5, "woken by another"
    clock.now, clock.cost = clock.now + 0.5, 0.002
    assert alone.look(1) == pytest.approx(4.0), "two milliseconds are a two-thousandth of four seconds"
    assert reported == [1.0, 2.0]


def test_nothing_is_drawn_while_a_short_process_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = False
    drawn_while_running = 0
    real = output.ended

    def ended(handle: int, timeout_s: float, tail: output.Tail) -> bool:
        nonlocal running
        running = True
        try:
            return real(handle, timeout_s, tail)
        finally:
            running = False

    class Stream:
        def write(self, text: str) -> int:
            nonlocal drawn_while_running
            drawn_while_running += running
            return len(text)

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(output, "ended", ended)
    monkeypatch.setattr(progress, "INTERVALS_S", 0.0)
    monkeypatch.setattr(progress, "REDRAW_S", 0.0)
    monkeypatch.setattr(sys, "stderr", Stream())
    runner(study(blocks=6), tmp_path, FakeInstruments()).run()
    assert drawn_while_running == 0


def test_repetitions_are_part_of_the_estimate() -> None:
    remaining = Remaining([("a", 1.0)] * 20)
    for _ in range(10):
        remaining.done("a", 2.0)
    assert remaining.seconds() == pytest.approx(20)
    remaining.add("a", 1.0)
    remaining.done("a", 2.0)
    assert remaining.seconds() == pytest.approx(20 * 1.1), (
        "one repeated for ten planned: expect one more in the next ten"
    )
    assert remaining.words() == "22 s left"
    assert remaining.words(gone_s=1.4) == "21 s left"
    assert remaining.expected("a") == 2.0
    capped = Remaining([("a", 1.0)] * 20, at_most=True)
    assert capped.seconds() == pytest.approx(25)
    assert capped.words() == "at most 25 s left"
