"""Instructions that the libraries in front of an allocator add to each malloc and free, counted exactly by callgrind.

interposer_paths.toml holds the accepted counts and an upper bound of each, as in test_malloc_counts.py: what a profile costs
a program follows from them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from loam_lab.commands.bench.profiling import SAMPLE_BYTES
from loam_lab.presenting.pages.malloc_instructions import WHATS, Counts, build_program, count
from loam_lab.setup import build

GOLDEN = Path(__file__).with_name("interposer_paths.toml")
UPDATE = os.environ.get("LOAM_GOLDEN_UPDATE") == "1"
# Library, variables and sizes of each mode.  No file is named, so nothing is written.  Long blocks are sampled so often
# that the counts are those of samples.  stacks samples at random, with a seed that depends on an address, and a walk of
# the stack takes thousands of instructions.  So its mean distance between samples is so long here that none is taken.
MODES: dict[str, tuple[str, dict[str, str], tuple[int, ...]]] = {
    "profile": ("profile", {}, (16, 256, 4096, 16384)),
    "profile-sample": ("profile-sample", {"LOAM_PROFILE_SAMPLE": str(SAMPLE_BYTES)}, (16, 256)),
    "stacks": ("stacks", {"LOAM_STACKS_SAMPLE": str(2**40)}, (16,)),
    "record": ("record", {}, (16,)),
    # A file that cannot be made, so no thread watches.
    "sharing": ("sharing", {"LOAM_SHARING": "/nonexistent/sharing"}, (16, 256)),
}
ROOM = 2
# A sample, or a part of the shadow that is new, comes now and then; whether one falls into a stretch depends on addresses and
# on what ran before.
TOLERANCE = 1.0


@pytest.fixture(scope="module")
def added() -> dict[str, Counts]:
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    build_program()
    libraries = build.ensure_built(sorted({library for library, _, _ in MODES.values()}))["libraries"]
    own = Path(libraries["profile"]).parent / "libloam-malloc.so"
    alone = count([own], {})
    by_mode = {}
    for mode, (library, variables, sizes) in MODES.items():
        whole = count([libraries[library], own], variables)
        by_mode[mode] = {
            size: {what: round(whole[size][what] - alone[size][what], 2) for what in WHATS} for size in sizes
        }
    return by_mode


def compiler() -> str:
    done = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return f"GCC {done.stdout.strip()}"


def accept(by_mode: dict[str, Counts]) -> None:
    """Write the counts; a bound that is there stays."""
    golden = tomllib.loads(GOLDEN.read_text())
    head = GOLDEN.read_text().partition("compiler =")[0]
    lines = [f'compiler = "{compiler()}"']
    for mode, sizes in by_mode.items():
        for size, counts in sizes.items():
            before = golden.get("modes", {}).get(mode, {}).get(str(size), {})
            lines += ["", f"[modes.{mode}.{size}]"]
            for what in WHATS:
                bound = before.get(f"bound_{what}", round(counts[what] + ROOM, 2))
                lines += [f"{what} = {counts[what]}", f"bound_{what} = {bound}"]
    GOLDEN.write_text(head + "\n".join(lines) + "\n")


def test_counts_are_the_accepted_ones(added: dict[str, Counts]) -> None:
    if UPDATE:
        accept(added)
    golden = tomllib.loads(GOLDEN.read_text())
    same_compiler = golden["compiler"] == compiler()
    wrong = []
    for mode, sizes in added.items():
        for size, counts in sizes.items():
            accepted = golden["modes"][mode][str(size)]
            for what, value in counts.items():
                place = f"{mode}, {what} of {size} bytes: {value} instructions"
                if value > accepted[f"bound_{what}"]:
                    wrong.append(f"{place}, bound {accepted[f'bound_{what}']}")
                elif same_compiler and abs(value - accepted[what]) > TOLERANCE:
                    wrong.append(
                        f"{place}, accepted are {accepted[what]} (./loam test --golden-update accepts the new one)"
                    )
    assert not wrong, "\n" + "\n".join(wrong)
