"""Blocks of runs of programs: their order, what is refused, and the journal that a later call goes on from."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.errors import LoamError
from loam_lab.programs import blocks
from loam_lab.programs.running import Outcome, Program

ALLOCATORS = ("glibc", "glibc:tcache=0", "glibc:arenas=1")
SECONDS = {"glibc": 2.0, "glibc:tcache=0": 1.0, "glibc:arenas=1": 1.5}


def program(name: str) -> Program:
    return Program(name, (), "", lambda here: here.output("true"), 3, 7, ("true",))


class Runner:
    """Stands in for run_apart: remembers what was run, and fails at one run, counted from 0."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: int = -1) -> None:
        self.runs: list[tuple[str, str, int]] = []
        self.fails_at = fails_at
        monkeypatch.setattr(blocks, "run_apart", self.run)

    def run(self, program: Program, allocator: str, amount: int, environment: dict[str, str] | None) -> Outcome | None:
        self.runs.append((program.name, allocator, amount))
        if len(self.runs) - 1 == self.fails_at:
            return None
        return Outcome(b"same", 4096 if allocator == "glibc" else None, SECONDS[allocator])


def test_each_block_runs_each_program_once_under_each_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(monkeypatch)
    runs = blocks.measure([program("one"), program("two")], ALLOCATORS, 8, short=False)
    assert runs.keys() == {"one", "two"}
    for by in runs.values():
        assert {name: [one.cpu_s for one in own] for name, own in by.items()} == {
            a: [SECONDS[a]] * 8 for a in ALLOCATORS
        }
    each = [runner.runs[i : i + 3] for i in range(0, len(runner.runs), 3)]
    assert all({allocator for _, allocator, _ in block} == set(ALLOCATORS) for block in each)
    assert len({tuple(allocator for _, allocator, _ in block) for block in each}) > 2, "the order is drawn"
    assert {amount for _, _, amount in runner.runs} == {7}
    blocks.measure([program("one")], ALLOCATORS, 1, short=True)
    assert runner.runs[-1][2] == 3


def test_a_run_that_fails_or_comes_to_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: dict[str, Outcome | None] = {"glibc": Outcome(b"a", None, 1.0), "loam": Outcome(b"b", None, 1.0)}
    monkeypatch.setattr(blocks, "run_apart", lambda program, allocator, *_: outcomes[allocator])
    with pytest.raises(LoamError, match="one: comes to something else under"):
        blocks.measure([program("one")], ["glibc", "loam"], 1, short=True)
    outcomes["loam"] = None
    with pytest.raises(LoamError, match="one: fails under loam in block 1"):
        blocks.measure([program("one")], ["glibc", "loam"], 1, short=True)


def test_what_was_interrupted_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Runner(monkeypatch)
    whole = blocks.measure([program("one")], ALLOCATORS, 4, short=True)
    first = Runner(monkeypatch, fails_at=7)
    with pytest.raises(LoamError, match="fails under"):
        blocks.measure([program("one")], ALLOCATORS, 4, short=True, folder=tmp_path)
    rest = Runner(monkeypatch)
    assert blocks.measure([program("one")], ALLOCATORS, 4, short=True, folder=tmp_path) == whole
    assert len(first.runs) + len(rest.runs) == 3 * 4 + 1, "only the failed one was run twice"
    more = Runner(monkeypatch)
    blocks.measure([program("one")], ALLOCATORS, 5, short=True, folder=tmp_path)
    assert len(more.runs) == 3, "another block is one block more"


def test_runs_of_something_else_are_not_mixed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Runner(monkeypatch)
    blocks.measure([program("one")], ALLOCATORS, 1, short=True, folder=tmp_path)
    for wrong in ({"short": False}, {"short": True, "environment": {"A": "b"}}):
        with pytest.raises(LoamError, match="holds runs of other libraries"):
            blocks.measure([program("one")], ALLOCATORS, 1, folder=tmp_path, **wrong)  # type: ignore[arg-type]
