"""Instructions of creating, destroying and undoing in transactions, counted exactly by callgrind.

stock_paths.toml holds the accepted counts over libloam-malloc.so, which lends its blocks to transactions, and an upper bound
of each, as in test_malloc_counts.py. An undo costs the same whatever the number of blocks.
`.venv/bin/python tests/golden/test_stock_counts.py NAME...` prints the same counts over other allocators.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from steps_table import compiler
from test_instruction_counts import wrong

from loam_lab.campaign.counters import valgrind
from loam_lab.setup import build
from loam_lab.subjects.allocators import building, registry

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("stock_paths.toml")
UPDATE = os.environ.get("LOAM_GOLDEN_UPDATE") == "1"
ROOM = 2
PAIR, TWO, EMPTY = "pairs, in one transaction", "pairs, in two transactions", "empty pair"
UNDOS = ("undo of 1", "undo of 10", "undo of 1000")


def count(libraries: Sequence[str | Path], environment: Mapping[str, str]) -> dict[str, float]:
    """Instructions of each case. libraries: what is preloaded; environment: variables on top of this process's"""
    program = ROOT / "build" / "release" / "loam-golden-stock-paths"
    with tempfile.TemporaryDirectory() as folder:
        done, stretches = valgrind.requested(
            [str(program)], Path(folder),
            {**build.tool_environment(), **environment, "LD_PRELOAD": ":".join(map(str, libraries))}, 250.0,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for stretch, total in stretches.items():
        if stretch.startswith("warm"):
            continue
        case, which, times = stretch.rsplit(";", 2)
        counted.setdefault(case, {})[which] = (int(times), total)
    by_case = {}
    for case, two in counted.items():
        few, less = two.get("few", (0, 0))
        more, greater = two["more"]
        by_case[case] = round((greater - less) / (more - few), 2)
    by_case[TWO] = round(by_case[TWO] - by_case.pop(EMPTY), 2)
    return by_case


def build_program() -> None:
    build.configure("release", again=True)
    build.build("release", ["loam-golden-stock-paths", "loam-malloc"], label="the counting program")


@pytest.fixture(scope="module")
def counted() -> dict[str, float]:
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    build_program()
    return count([ROOT / "build" / "release" / "libloam-malloc.so"], {})


def accept(by_case: dict[str, float]) -> None:
    """Write the counts; a bound that is there stays."""
    before = tomllib.loads(GOLDEN.read_text()).get("cases", {}) if GOLDEN.exists() else {}
    lines = [
        "# Instructions over libloam-malloc.so, etl-wb, blocks of 48 bytes, by callgrind; see test_stock_counts.py.",
        "# count: accepted value.  upper_bound: never to be exceeded, whatever the compiler.",
        f'compiler = "{compiler()}"',
    ]
    for case, value in by_case.items():
        bound = before.get(case, {}).get("upper_bound", round(value + ROOM))
        lines += ["", f'[cases."{case}"]', f"count = {value}", f"upper_bound = {bound}"]
    GOLDEN.write_text("\n".join(lines) + "\n")


def test_counts_are_the_accepted_ones(counted: dict[str, float]) -> None:
    if UPDATE:
        accept(counted)
    golden = tomllib.loads(GOLDEN.read_text())
    assert sorted(counted) == sorted(golden["cases"])
    beyond = wrong(counted, golden["cases"], same_compiler=golden["compiler"] == compiler())
    assert not beyond, "\n" + "\n".join(beyond)


def test_an_undo_does_not_depend_on_the_number_of_blocks(counted: dict[str, float]) -> None:
    assert len({counted[case] for case in UNDOS}) == 1, {case: counted[case] for case in UNDOS}


def main(names: Sequence[str]) -> int:
    """Print the counts over these allocators."""
    building.ensure(names)
    build_program()
    for name in names:
        loaded = registry.load(name)
        print(name, count(loaded.libraries, loaded.environment))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
