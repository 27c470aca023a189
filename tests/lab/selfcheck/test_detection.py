"""The evidence on a real machine, with made-up studies: goals are judged rightly, nothing is lost, time is bounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from campaigns import measure, study
from typed import typed

from loam_lab.dev.selfcheck import detection, exit_status
from loam_lab.dev.selfcheck.detection import Trial


def outcome(planted: int, blocks: int, number: int, ratio: float | None = None, verdict: str = "worse") -> Trial:
    if ratio is None:
        ratio = 1 / (1 + planted / 100)
    return Trial(planted, blocks, number, ratio, ratio * 0.99, ratio * 1.01, verdict)


def good(planted: int, blocks: int, number: int) -> list[Trial]:
    return [outcome(planted, blocks, number), outcome(0, blocks, number, verdict="equivalent")]


def all_good(studies: int = detection.STUDIES_MIN) -> list[Trial]:
    return [o for kind in detection.KINDS for number in range(studies) for o in good(*kind, number)]


def test_perfect_studies_reach_every_goal() -> None:
    rows = detection.rows(all_good())
    assert [row.what for row in rows if row.kept is not True] == []
    assert len(rows) == 13


def test_few_blocks_may_change_their_verdict() -> None:
    spoilt = [
        outcome(5, 10, o.study, verdict="inconclusive") if (o.planted, o.blocks, o.study) == (5, 10, 4) else o
        for o in all_good()
    ]
    (row,) = [
        row for row in detection.rows(spoilt) if row.what == "planted 5 %, 10 blocks: another verdict the second time"
    ]
    assert (row.value, row.goal, row.kept) == (10.0, detection.NO_GOAL, True)


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (lambda o: outcome(5, o.blocks, o.study, verdict="inconclusive") if o.study < 3 else o, "planted 5 %, 10 blocks: found"),
        (lambda o: outcome(5, o.blocks, o.study, ratio=1 / 1.0551), "planted 5 %, 10 blocks: bias"),
        (lambda o: outcome(5, o.blocks, o.study, verdict="better") if o.study == 4 else o, "better one time and worse the other"),
        (lambda o: outcome(5, o.blocks, o.study, verdict="inconclusive") if o.study == 4 else o, "planted 5 %, 20 blocks: an"),
    ],
)  # fmt: skip
def test_each_goal_can_be_missed(change: object, missed: str) -> None:
    assert callable(change)
    rows = detection.rows([change(o) if o.planted == 5 else o for o in all_good()])
    assert any(row.what.startswith(missed) and row.kept is False for row in rows)


def test_a_false_alarm_in_the_sentinel_counts() -> None:
    spoilt = [
        outcome(0, o.blocks, o.study, verdict="better") if (o.planted, o.study) == (0, 1) else o for o in all_good()
    ]
    rows = {row.what: row for row in detection.rows([*spoilt, outcome(0, 10, 99, verdict="worse")])}
    assert rows["planted 0 %: better or worse"].kept is False


def test_it_goes_on_where_it_stopped_and_takes_all_kinds_in_turn(tmp_path: Path) -> None:
    file, seen = tmp_path / "new" / "outcomes.jsonl", []

    def one(planted: int, blocks: int, number: int) -> list[Trial]:
        seen.append((planted, blocks, number))
        if len(seen) == 5:
            raise KeyboardInterrupt
        return good(planted, blocks, number)

    detection.run(file, minutes=1, studies=3, one=one)
    assert seen == [(5, 10, 0), (5, 20, 0), (3, 30, 0), (5, 10, 1), (5, 20, 1)]
    with file.open("a") as lines:
        lines.write('{"planted": 5, "torn')
    file.write_text(file.read_text() + "\n")
    detection.run(file, minutes=1, studies=3, one=one)
    assert seen[5:] == [(5, 20, 1), (3, 30, 1), (5, 10, 2), (5, 20, 2), (3, 30, 2)]
    assert sum(o.planted == 5 for o in detection.read(file)) == 6


def test_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(detection.time, "monotonic", lambda: clock[0])

    def one(planted: int, blocks: int, number: int) -> list[Trial]:
        clock[0] += 50
        return good(planted, blocks, number)

    trials = detection.run(tmp_path / "outcomes.jsonl", minutes=2, studies=99, one=one)
    assert len({(o.blocks, o.study) for o in trials}) == 2, "a third study would end after 150 s"


def test_the_exit_status_tells_reached_missed_and_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def status(outcomes: list[Trial]) -> int:
        (tmp_path / "outcomes.jsonl").write_text("".join(json.dumps(o.__dict__) + "\n" for o in outcomes))
        return detection.main(["--minutes", "0", "--out", str(tmp_path)])

    assert status(all_good()) == 0
    assert "| planted 5 %, 10 blocks: found | 20 | 100.00 % | at least 90 % | reached |" in capsys.readouterr().out
    assert status(all_good(3)) == exit_status.TOO_FEW
    assert "too few studies" in capsys.readouterr().out
    assert status([outcome(o.planted, o.blocks, o.study, ratio=0.5) for o in all_good()]) == 1


def test_outcomes_come_from_results(tmp_path: Path) -> None:
    _, result = measure(study(blocks=6, parameters={"spread": 5}), tmp_path)
    trials = detection.outcomes_of(typed(result), 5, 6, 7)
    assert [(o.planted, o.blocks, o.study) for o in trials] == [(0, 6, 7), (5, 6, 7)]
    assert trials[1].ratio == pytest.approx(1.3, rel=0.02) and trials[1].verdict == "better"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_real_study_runs(tmp_path: Path) -> None:
    """One study of each kind on this machine; how well it finds what is planted is for a quiet one to say."""
    trials = detection.run(tmp_path / "outcomes.jsonl", minutes=5, studies=1)
    assert {(o.planted, o.blocks) for o in trials} == {(0, 10), (5, 10), (0, 20), (5, 20), (0, 30), (3, 30)}
    assert all(0.8 < o.ratio < 1.2 for o in trials)
