"""A check of the method that was run with few studies says so, and does not call noise a broken promise."""

from __future__ import annotations

import json

import pytest

from loam_lab.dev.selfcheck import coverage, exit_status, slices
from loam_lab.dev.selfcheck.coverage import COVERAGE, FOUND, REPLICATES_MIN, Row


def test_few_replicates_do_not_break_a_promise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "BLOCKS", (10,))
    monkeypatch.setattr(coverage, "PROMISES", coverage.PROMISES[:1])
    monkeypatch.setattr(coverage.rows, "__defaults__", (coverage.REPLICATES, (10,)))
    assert coverage.main(["--replicates", "1"]) == exit_status.TOO_FEW
    assert "| 1 | 100.00 % | 93.5–96.5 % | too few replicates |" in capsys.readouterr().out
    assert coverage.main(["--replicates", "1", "--json"]) == exit_status.TOO_FEW
    assert [row["kept"] for row in json.loads(capsys.readouterr().out)["rows"]] == [None]


@pytest.mark.parametrize(
    ("value", "replicates", "bounds", "verdict"),
    [
        (0.80, REPLICATES_MIN - 1, COVERAGE, None),
        (0.80, REPLICATES_MIN, COVERAGE, False),
        (0.95, REPLICATES_MIN, COVERAGE, True),
        (0.30, 1, FOUND, True),
    ],
)
def test_a_promise_is_judged_where_replicates_suffice(
    value: float, replicates: int, bounds: tuple[float, float], verdict: bool | None
) -> None:
    assert Row("made up", 10, replicates, value, *bounds).verdict is verdict


def test_few_studies_of_slices_tell_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    biased = slices.Row("made up", 0.0, 1, 0.0, 0.02, 0.0, 0.05, 0.02, 0.0, 1.0)
    monkeypatch.setattr(slices, "rows", lambda studies: [biased])
    assert slices.main(["--studies", str(slices.STUDIES_MIN - 1)]) == exit_status.TOO_FEW
    assert "do not tell" in capsys.readouterr().err
    assert slices.main(["--studies", str(slices.STUDIES_MIN)]) == 1


def test_a_broken_promise_decides_the_exit_status_before_what_cannot_be_told() -> None:
    assert exit_status.of([True, True]) == exit_status.HOLDS == 0
    assert exit_status.of([True, None, False]) == exit_status.FAILS == 1
    assert exit_status.of([True, None]) == exit_status.of([]) == exit_status.TOO_FEW == 3
