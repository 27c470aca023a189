"""A long run that does not count: one line that changes on a terminal, lines of a log elsewhere."""

from __future__ import annotations

import os
import re
import sys

import pytest
from campaigns import forked

from loam_lab.commands.bench import trial
from loam_lab.commands.bench.trial import Trial


def test_on_a_terminal_one_line_changes_and_goes() -> None:
    ours, its = os.openpty()

    def action() -> None:
        os.dup2(its, 2)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        os.environ.update(COLUMNS="60", TERM="xterm")
        trial.DRAWN_S = 0.0
        with Trial(75.0) as one:
            assert one.look(1) == 0.0
            one.look(1)

    child = forked(action)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    output = os.read(ours, 1 << 12).decode()
    os.close(ours)
    os.close(its)
    lines = output.split("\x1b[K")
    assert [line[:41] for line in lines[:2]] == ["\rthe first run, which does not count, has"] * 2
    assert all(len(line) <= 60 for line in lines)
    assert lines[2:] == ["\r", ""], "nothing of it stays"


def test_elsewhere_it_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Trial(75.0, what="the recording") as one:
        assert 9 < one.look(1) <= trial.TOLD_S
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(trial, "TOLD_S", 0.0)
        one.look(1)
    stderr = capsys.readouterr().err
    assert re.fullmatch(r"the recording has taken 0 s so far; it is ended after 1 min 15 s \(--timeout\)\n", stderr)
