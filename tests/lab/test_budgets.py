"""Each suite of `./loam test` has a budget of time, which it prints and docs/internals/testing.md explains."""

from __future__ import annotations

import json
import re

import pytest

from loam_lab.base import paths
from loam_lab.dev.testing import command
from loam_lab.dev.testing.outcome import Outcome

PAGE = paths.root() / "docs" / "internals" / "testing.md"


def test_each_suite_has_a_budget_and_together_they_keep_within_the_whole() -> None:
    turns = [[[name for name, _ in lane] for lane in lanes] for lanes in command._turns("ci")]
    assert {name for lanes in turns for lane in lanes for name in lane} == set(command.BUDGETS_S)
    whole = sum(max(sum(command.BUDGETS_S[name] for name in lane) for lane in lanes) for lanes in turns)
    assert whole <= command.WHOLE_S, "a suite that may take longer takes it from another one"


def test_the_page_has_the_budgets() -> None:
    rows = re.findall(r"^\| ([a-z]+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert {name: int(seconds) for name, seconds in rows} == command.BUDGETS_S
    assert f"{command.WHOLE_S // 60} minutes" in PAGE.read_text()


def test_a_suite_that_took_longer_is_named_and_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    within, over = (
        Outcome("style", passed=1, elapsed_s=59.0, budget_s=60),
        Outcome("lab", passed=1, elapsed_s=720.1, budget_s=720),
    )
    free = Outcome("checked", passed=1, elapsed_s=1e6)
    assert [one.over for one in (within, over, free)] == [False, True, False]
    command._show(over)
    assert "720.1 s of 720 s" in capsys.readouterr().err
    assert command._finish([within, over, free], 1.0, True) == 0
    shown = capsys.readouterr()
    assert [suite["budget_s"] for suite in json.loads(shown.out)["suites"]] == [60, 720, None]
    (warning,) = [line for line in shown.err.splitlines() if "over budget" in line]
    assert "lab 720 s of 720 s" in warning and "style" not in warning and "checked" not in warning
