"""Instructions of malloc and free of libloam-malloc.so, counted exactly by callgrind.

malloc_paths.toml holds the accepted counts and an upper bound for each size of block, as in test_instruction_counts.py.
A section of docs/instruction-counts.md is written from it.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import counts_page
import pytest
from steps_table import compiler

from loam_lab.presenting.pages.malloc_instructions import WHATS, Counts, build_program, count
from loam_lab.setup import build

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("malloc_paths.toml")
TITLE = "Malloc and free"
UPDATE = os.environ.get("LOAM_GOLDEN_UPDATE") == "1"
# The library is built with other compilers too; they may take an instruction or two more.
ROOM = 2
REPEATS = 3


@pytest.fixture(scope="module")
def counted() -> Counts:
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    build_program()
    # The heap gives memory back by the clock, so a run that others slow down may count that, too: the least of each is
    # without it.
    repeats = [count([ROOT / "build" / "release" / "libloam-malloc.so"], {}) for _ in range(REPEATS)]
    return {size: {what: min(one[size][what] for one in repeats) for what in repeats[0][size]} for size in repeats[0]}


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def accept(by_size: Counts) -> None:
    """Write the counts; a bound that is there stays."""
    before = tomllib.loads(GOLDEN.read_text()).get("sizes", {})
    head = GOLDEN.read_text().partition("compiler =")[0]
    lines = [f'compiler = "{compiler()}"']
    for size, counts in by_size.items():
        lines += ["", f"[sizes.{size}]"]
        for what in WHATS:
            bound = before.get(str(size), {}).get(f"bound_{what}", counts[what] + ROOM)
            lines += [f"{what} = {number(counts[what])}", f"bound_{what} = {number(bound)}"]
    GOLDEN.write_text(head + "\n".join(lines) + "\n")


def section() -> list[str]:
    golden = tomllib.loads(GOLDEN.read_text())
    lines = [
        f"{golden['compiler']}, per call of `libloam-malloc.so`, without the call instruction. In brackets: upper bounds.",
        "Other allocators: [malloc-instructions](performance/malloc-instructions.md).",
        "",
        "| column | meaning |",
        "| --- | --- |",
        "| malloc, free | the mean over 1000 blocks that are allocated, then freed in order; refills of the list included |",
        "| pair | both, one block at a time |",
        "| remote | as free, but by another thread than the one that allocated the blocks |",
        "",
        "| bytes | " + " | ".join(WHATS) + " |",
        "| ---: |" + " ---: |" * len(WHATS),
    ]
    for size, counts in golden["sizes"].items():
        cells = [f"{number(counts[what])} ({number(counts[f'bound_{what}'])})" for what in WHATS]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return lines


def test_counts_are_the_accepted_ones(counted: Counts) -> None:
    if UPDATE:
        accept(counted)
        counts_page.put(TITLE, section())
    golden = tomllib.loads(GOLDEN.read_text())
    same_compiler = golden["compiler"] == compiler()
    wrong = []
    for size, counts in counted.items():
        accepted = golden["sizes"][str(size)]
        for what, value in counts.items():
            if value > accepted[f"bound_{what}"]:
                wrong.append(
                    f"{what} of {size} bytes: {number(value)} instructions, bound {number(accepted[f'bound_{what}'])}"
                )
            elif same_compiler and value != accepted[what]:
                wrong.append(f"{what} of {size} bytes: {number(value)} instructions, accepted are {number(accepted[what])}"
                             " (./loam test --golden-update accepts the new one)")  # fmt: skip
    assert not wrong, "\n" + "\n".join(wrong)


def test_page_shows_the_accepted_counts() -> None:
    counts_page.check(TITLE, section())
