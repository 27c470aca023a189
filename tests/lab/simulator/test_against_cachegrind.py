"""The model's first-level cache against valgrind's cachegrind: five programs on one core, same geometry.

Lackey writes a program's accesses, the model replays them. The two runs of valgrind see the same addresses. CI takes small
programs, ./loam test --all larger ones as well.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.setup import build

pytestmark = pytest.mark.slow
PROGRAMS = ("list", "table", "matrix", "sorted", "blocks")
SIZE, SIZE_WHOLE = "1000", "8000"
# Bytes, ways, line.
SHAPES = ((32768, 8, 64), (16384, 4, 32))
ALLOWED = 0.02


@pytest.fixture(scope="module")
def folder() -> Path:
    """Where the programs are."""
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    build.ensure_targets(
        "release", ["loam-simulator-kernels", "loam-simulator-replay"], label="what is compared with cachegrind"
    )
    return paths.root() / "build" / "release"


def valgrind(*words: str) -> list[str]:
    return [str(shutil.which("valgrind", path=build.tool_path())), *words]


def cachegrind(program: list[str], shape: tuple[int, int, int]) -> int:
    """Misses of the first-level data cache as cachegrind counts them."""
    size, ways, line = shape
    done = subprocess.run(
        [*valgrind("--tool=cachegrind", "--cache-sim=yes", f"--D1={size},{ways},{line}"), "--cachegrind-out-file=/dev/null",
         *program],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    match = re.search(r"D1 +misses: +([\d,]+)", done.stderr)
    assert match, done.stderr
    return int(match[1].replace(",", ""))


def model(folder: Path, trace: Path, shape: tuple[int, int, int]) -> int:
    """The same as the model counts them."""
    size, ways, line = shape
    machine = trace.with_suffix(".machine")
    machine.write_text(f"line.bytes={line}\nl1.bytes={size}\nl1.ways={ways}\nl1.cycles=3\nmemory.cycles=200\n")
    with trace.open() as accesses:
        done = subprocess.run(
            [folder / "loam-simulator-replay", machine], stdin=accesses, capture_output=True, text=True, check=True
        )
    return int(json.loads(done.stdout)["misses"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_misses_are_those_of_cachegrind(name: str, folder: Path, tmp_path: Path) -> None:
    sizes = [SIZE, SIZE_WHOLE] if os.environ.get("LOAM_TEST_ALL") else [SIZE]
    for size in sizes:
        program = [str(folder / "loam-simulator-kernels"), name, size]
        trace = tmp_path / f"{size}.trace"
        with trace.open("w") as file:
            command = [*valgrind("--tool=lackey", "--trace-mem=yes", "--log-fd=1"), *program]
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
        for shape in SHAPES:
            expected = cachegrind(program, shape)
            assert model(folder, trace, shape) == pytest.approx(expected, rel=ALLOWED), (name, size, shape)
