"""The page of what hardening costs real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.errors import LoamError
from loam_lab.programs import cost
from loam_lab.programs.running import Outcome, Program

ALLOCATORS = ("glibc", "loam", "loam:hardened=1")
SECONDS = {"glibc": 2.0, "loam": 1.0, "loam:hardened=1": 1.5}


def program(name: str) -> Program:
    return Program(name, (), "", lambda here: here.output("true"), 3, 7, ("true",))


def test_each_block_runs_each_program_once_under_each_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str, str, int]] = []

    def run(program: Program, allocator: str, amount: int, environment: dict[str, str]) -> Outcome:
        runs.append((program.name, allocator, amount))
        return Outcome(b"same", None, SECONDS[allocator])

    monkeypatch.setattr(cost, "run_apart", run)
    times = cost.measure([program("one"), program("two")], ALLOCATORS, 8, short=False)
    assert times == {name: {a: [SECONDS[a]] * 8 for a in ALLOCATORS} for name in ("one", "two")}
    blocks = [runs[i : i + 3] for i in range(0, len(runs), 3)]
    assert all({allocator for _, allocator, _ in block} == set(ALLOCATORS) for block in blocks)
    assert len({tuple(allocator for _, allocator, _ in block) for block in blocks}) > 2, "the order is drawn"
    assert {amount for _, _, amount in runs} == {7}
    cost.measure([program("one")], ALLOCATORS, 1, short=True)
    assert runs[-1][2] == 3


def test_a_run_that_fails_or_comes_to_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: dict[str, Outcome | None] = {"glibc": Outcome(b"a", None, 1.0), "loam": Outcome(b"b", None, 1.0)}
    monkeypatch.setattr(cost, "run_apart", lambda program, allocator, *_: outcomes[allocator])
    with pytest.raises(LoamError, match="one: comes to something else under"):
        cost.measure([program("one")], ["glibc", "loam"], 1, short=True)
    outcomes["loam"] = None
    with pytest.raises(LoamError, match="one: fails under loam"):
        cost.measure([program("one")], ["glibc", "loam"], 1, short=True)


def test_the_page_has_ratios_to_the_first_and_of_the_last_to_the_one_before() -> None:
    times = {name: {a: [SECONDS[a] * block for block in range(1, 9)] for a in ALLOCATORS} for name in ("one", "two")}
    text = cost.page(times, ALLOCATORS, 8)
    assert "| program | glibc, s | loam / glibc | loam:hardened=1 / glibc | loam:hardened=1 / loam |" in text
    assert "| `one` | 9.00 | 0.500 [0.500, 0.500] | 0.750 [0.750, 0.750] | 1.500 [1.500, 1.500] |" in text
    assert "| geometric mean | | 0.500 [0.500, 0.500] | 0.750 [0.750, 0.750] | 1.500 [1.500, 1.500] |" in text


def test_what_is_asked_for_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    for arguments, message in (
        (["--program", "awkk"], "did you mean awk"),
        (["--blocks", "0"], "--blocks=0: must be 1 or more"),
        (["--allocator", "glibc"], "--allocator=glibc: must be two names or more"),
    ):
        assert cost.main([*arguments, "--page", str(page)]) == 2
        assert message in capsys.readouterr().err
    assert not page.exists()


def test_real_programs_are_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    few = ["--program", "awk,sort", "--allocator", "glibc,glibc:tcache=0", "--blocks", "1", "--short"]
    assert cost.main([*few, "--page", str(page)]) == 0
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == 2
    assert all(float(row.split("|")[2]) > 0 for row in rows)
