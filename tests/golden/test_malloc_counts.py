"""Instructions of malloc and free of libloam-malloc.so, counted exactly by callgrind.

malloc_paths.toml holds the accepted counts and an upper bound for each size of block, as in test_instruction_counts.py.
docs/malloc-instruction-counts.md is written from it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from loam_lab.setup import build

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("malloc_paths.toml")
PAGE = ROOT / "docs" / "malloc-instruction-counts.md"
UPDATE = os.environ.get("LOAM_GOLDEN_UPDATE") == "1"
SIZES = (16, 64, 256, 1024, 4096, 16384, 32768)
WHATS = ("malloc", "free", "pair")
# The library is built with other compilers too; they may take an instruction or two more.
ROOM = 2

DUMP = re.compile(r"^desc: Trigger: Client Request: (\d+);(\w+);(\d+)$", re.MULTILINE)
TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)

Counts = dict[int, dict[str, float]]


def count(preload: Path, folder: Path) -> Counts:
    """Instructions of each call of an allocator, by size and kind; calling and counting them not included."""
    program = ROOT / "build" / "release" / "loam-golden-malloc-paths"
    sizes = [str(size) for size in SIZES]
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder / 'out'}", str(program), *sizes],
        capture_output=True, text=True, check=False, timeout=250,
        env={**build.tool_environment(), "LD_PRELOAD": str(preload)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    totals: dict[tuple[int, str], float] = {}
    for file in folder.glob("out.*"):
        text = file.read_text()
        dump, total = DUMP.search(text), TOTAL.search(text)
        if dump and total:
            totals[int(dump[1]), dump[2]] = int(total[1]) / int(dump[3])
    # The function of the empty loops is one instruction for each call.
    calls = {"malloc": 1, "free": 1, "pair": 2}
    return {
        size: {what: round(totals[size, what] - totals[0, what] + calls[what], 2) for what in WHATS} for size in SIZES
    }


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counts:
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    build.configure("release", again=True)
    build.build("release", ["loam-golden-malloc-paths", "loam-malloc"], label="the counting program")
    return count(ROOT / "build" / "release" / "libloam-malloc.so", tmp_path_factory.mktemp("malloc"))


def compiler() -> str:
    done = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return f"GCC {done.stdout.strip()}"


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def accept(found: Counts) -> None:
    """Write the counts; a bound that is there stays."""
    before = tomllib.loads(GOLDEN.read_text()).get("sizes", {})
    head = GOLDEN.read_text().partition("compiler =")[0]
    lines = [f'compiler = "{compiler()}"']
    for size, counts in found.items():
        lines += ["", f"[sizes.{size}]"]
        for what in WHATS:
            bound = before.get(str(size), {}).get(f"bound_{what}", counts[what] + ROOM)
            lines += [f"{what} = {number(counts[what])}", f"bound_{what} = {number(bound)}"]
    GOLDEN.write_text(head + "\n".join(lines) + "\n")


def page() -> str:
    golden = tomllib.loads(GOLDEN.read_text())
    lines = [
        "# Instruction counts of malloc and free",
        "",
        "Written by `./loam test --golden-update`; kept by `tests/golden/test_malloc_counts.py`.",
        "",
        f"`libloam-malloc.so`, {golden['compiler']}, counted exactly by callgrind, without the call itself. `malloc` and `free`:",
        "the mean over 1000 blocks of a size that are allocated, then freed in order. `pair`: both, one block at a time. In",
        "brackets the upper bounds.",
        "",
        "| bytes | malloc | free | pair |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for size, counts in golden["sizes"].items():
        cells = [f"{number(counts[what])} ({number(counts[f'bound_{what}'])})" for what in WHATS]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def test_counts_are_the_accepted_ones(counted: Counts) -> None:
    if UPDATE:
        accept(counted)
        PAGE.write_text(page())
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
    assert PAGE.read_text() == page(), "./loam test --golden-update writes docs/malloc-instruction-counts.md"
