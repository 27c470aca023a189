"""How many blocks `run` and `study run` take: asked for exactly, or as many as narrow intervals need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, asking

from loam_lab.cli import main
from loam_lab.commands.request import Request
from loam_lab.commands.run import commands
from loam_lab.model.study import Study


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Study, str]]:
    """Studies and commands that would have been run."""
    seen: list[tuple[Study, str]] = []

    def perform(study: Study, _: Request, *, command: str, **__: Any) -> int:
        seen.append((study, command))
        return 0

    monkeypatch.setattr(commands, "perform", perform)
    return seen


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (10, 0.02, 60)),
        ({"blocks": 7}, (7, None, 7)),
        ({"blocks": 7, "target_width": 0.05}, (7, 0.05, 60)),
        ({"target_width": 0.05, "max_blocks": 30}, (10, 0.05, 30)),
        ({"allocators": [f"a{n}" for n in range(8)]}, (10, 0.02, 60)),
    ],
)
def test_blocks_of_a_run(
    performed: list[tuple[Study, str]], options: dict[str, Any], expected: tuple[int, float | None, int]
) -> None:
    commands.run("intset", asking(syncs=[STM], **{"allocators": ["plain", "fast"], **options}))
    (study, command) = performed[0]
    assert (study.blocks, study.target_width, study.cap_of(study.groups[0])) == expected
    assert f"--blocks {expected[0]}" in command
    assert ("--target-width" in command) == (expected[1] is not None)


def test_the_command_that_repeats_a_run_asks_for_the_same(performed: list[tuple[Study, str]]) -> None:
    widths: dict[str, Any] = {"target_width": 0.03, "max_blocks": 25, "budget_s": 9}
    commands.run("intset", asking(syncs=[STM], allocators=["glibc", "jemalloc"], **widths))
    assert main.run(performed[0][1].split()[1:]) == 0
    assert performed[0] == performed[1]


def test_quick_effort_takes_a_fixed_number_unless_a_width_is_asked_for(performed: list[tuple[Study, str]]) -> None:
    commands.study_run("tour", asking(quick=True))
    commands.study_run("tour", asking(quick=True, target_width=0.04, max_blocks=9))
    assert performed[0][0].target_width is None
    study, command = performed[1]
    assert (study.target_width, study.max_blocks) == (0.04, 9)
    assert command.endswith("--effort quick --target-width 0.04 --max-blocks 9")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target-width", "2"], "--target-width=2.0: must lie between 0 and 1"),
        (["--max-blocks", "0"], "--max-blocks=0: must be at least 1"),
        (["--budget", "0"], "--budget=0.0: must be above 0 seconds"),
    ],
)
def test_what_makes_no_sense_is_named(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run", "intset"], ["study", "run", "tour"]):
        assert main.run([*command, *options]) == 2
        assert message in capsys.readouterr().err


def test_a_budget_ends_before_the_cap(tmp_path: Path) -> None:
    """No block beyond the sixth is begun that would end later."""
    study = Study.model_validate({
        "schema": 2, "name": "tiny", "title": "t", "question": "?", "baseline": "plain", "allocators": ["plain", "fast"],
        "blocks": 5, "target_width": 0.0001, "max_blocks": 60, "budget_s": 0.01, "warmup_ms": 0,
        "groups": [{"name": "one", "workload": "intset", "sync": [STM], "parameters": {"spread": 400}}],
    })  # fmt: skip
    request = asking(out=tmp_path, report=False)
    assert commands.perform(study, request, command="x", instruments=FakeInstruments()) == 0
    assert (tmp_path / "journal" / "local.jsonl").read_bytes().count(b"\n") == 6 * 3
