"""Mutants that need the simulator: of memory orders, of attempts in hardware, which most processors lack, and of the
simulator itself.

x86 keeps stores and loads in order, so a weak order fails nowhere but under the schedule checker. Attempts in hardware run on
a simulated machine with hardware transactions instead, in its own order; so do programs that show faults of the simulator.

What a mutant touches is compiled again with the commands of the preset sim; the rest is what that preset has built. A piece of
a program of tests/simulator runs in the order of one seed after the other, with the values that C++20 allows, until one fails.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mutant import ROOT, Broken, Mutant, class_of

from loam_lab.setup import build

PRESET = "sim"
FOLDER = ROOT / "build" / PRESET
MALLOC = "libloam-malloc.so"
SIMULATOR = "libloam-simulator.so"
MODES = ("random", "pct")
# What is found at all is found within a tenth of them; unmutated, tests/lab/simulator/test_*.py run more.
SEEDS, SEEDS_UNMUTATED = 200, 3
TIMEOUT_S = 60
MACHINE = "name=check\ncores=8\nl1.bytes=32768\nl1.ways=8\nl1.cycles=3\nmemory.cycles=200"
# The programs whose pieces are about attempts in hardware, and what their machine has beside the above; and the others that
# run in the machine's own order.
HARDWARE = ("simulated-hybrid", "simulated-elided", "simulated-transactions")
IN_ITS_ORDER = (*HARDWARE, "simulated-threads")
TRANSACTIONS = "\n".join(
    f"transactions.{key}"
    for key in ("policy=requester-wins", "reads=l1", "begin_cycles=40", "commit_cycles=40", "abort_cycles=100")
)
COMPILES = re.compile(r"-MD -MT \S+ -MF \S+ -o (\S+\.o) -c (\S+)$")


def call(command: list[str] | str) -> str:
    """The output of a tool, run in the preset's folder; text is a line for the shell.

    raises: Broken
    """
    done = subprocess.run(
        command, shell=isinstance(command, str), cwd=FOLDER, env=build.tool_environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise Broken(f"{command}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return done.stdout


@functools.cache
def commands(target: str) -> list[str]:
    """What ninja runs to make a target, the link last."""
    return call(["ninja", "-t", "commands", target]).splitlines()


@functools.cache
def depends_on(target: str) -> frozenset[str]:
    """The sources that an object was made of."""
    words = call(["ninja", "-t", "deps", target]).split("\n")[1:]
    return frozenset(os.path.normpath(FOLDER / word.strip()) for word in words if word.strip())


@functools.cache
def linked(target: str) -> frozenset[str]:
    """The objects that a target is made of: those that its link names, and by name alone those that it takes from archives."""
    link = commands(target)[-1]
    with tempfile.TemporaryDirectory(prefix="loam-link-") as scratch:
        map_file = Path(scratch) / "map"
        call(link.replace(f" -o {target} ", f" -Wl,-Map={map_file} -o {scratch}/linked ", 1))
        taken, _, _ = map_file.read_text().partition("Discarded input sections")
    return frozenset([*re.findall(r"\S+\.o\b", link), *re.findall(r"\(([^()\s]+\.o)\)", taken)])


def program_of(mutant: Mutant) -> str:
    """The executable that has the piece which kills it."""
    return f"simulated-{mutant.test}"


def ensure_built(mutants: Iterable[Mutant]) -> None:
    """Build what they have in common."""
    build.ensure_built([*sorted({program_of(mutant) for mutant in mutants}), "malloc"], PRESET)


def defines_of(mutant: Mutant) -> str:
    """What is compiled with: of the transactional algorithms the one that the piece runs."""
    _, _, algorithm = mutant.filter.partition("/")
    stem = algorithm.replace("-", "_")
    return f" -DLOAM_TEST_ALGORITHMS=::loam::tm::{class_of(stem)}" if stem else ""


def make(target: str, copy: Path, touched: set[str], folder: Path, defines: str) -> Path:
    """A target with the changed files of `copy`; the one of the preset where they do not concern it.

    raises: Broken
    """
    objects: dict[str, str] = {}
    changed = {str(ROOT / file) for file in touched}
    for command in commands(target):
        match = COMPILES.search(command)
        if match is None or depends_on(match[1]).isdisjoint(changed):
            continue
        if linked(target).isdisjoint({match[1], Path(match[1]).name}):
            continue
        own = folder / f"{target}-{match[1].replace('/', '-')}"
        source = str(copy / Path(match[2]).relative_to(ROOT)) if match[2] in changed else match[2]
        call(f"{command[: match.start()].replace(' -I', f' -I{copy} -I', 1)}{defines} -o {own} -c {source}")
        objects[match[1]] = str(own)
    if not objects:
        return FOLDER / target
    # Those of archives stand before the archives, which then need not give theirs.
    link = commands(target)[-1]
    for of_preset in [name for name in objects if f" {name} " in link]:
        link = link.replace(f" {of_preset} ", f" {objects.pop(of_preset)} ")
    made = folder / target
    call(link.replace(f" -o {target} ", f" -o {shlex.quote(str(made))} {' '.join(objects.values())} ", 1))
    return made


def failures(made: Mapping[str, Path], program: str, words: str, seeds: int) -> Iterator[str]:
    """How the runs of a piece ended that did not end well, seed by seed. made: where each target is."""
    machine = f"{MACHINE}\n{TRANSACTIONS}" if program in HARDWARE else MACHINE
    libraries = f"{made[SIMULATOR].parent}:{FOLDER}"
    for seed in range(1, seeds + 1):
        for mode in ("",) if program in IN_ITS_ORDER else MODES:
            environment = {"PATH": os.environ["PATH"], "LOAM_SIM_MACHINE": machine, "LOAM_SIM_SEED": str(seed),
                           "LD_LIBRARY_PATH": libraries, **({"LOAM_SIM_CHECK": mode} if mode else {})}  # fmt: skip
            if "remote-frees" in words:
                environment["LD_PRELOAD"] = str(made[MALLOC])
            try:
                done = subprocess.run(
                    [made[program], *words.split()], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                yield f"seed {seed} {mode}: did not end"
                continue
            if done.returncode != 0 or done.stdout != "done\n":
                yield f"seed {seed} {mode}: status {done.returncode}\n{done.stdout}{done.stderr[:2000]}"


def examine(mutant: Mutant, folder: Path, repeat: int) -> str:
    """Nothing ("") if the mutant was killed, else why not. Runs of one seed are the same, so that `repeat` changes nothing."""
    copy = folder / "copy"
    touched = mutant.apply(copy)
    program = program_of(mutant)
    # The simulator is made of some headers of the runtime, but its own copy of them is not what a mutant means.
    targets = (SIMULATOR,) if any(file.startswith("simulator/") for file in touched) else (program, MALLOC)
    made = {target: make(target, copy, touched, folder, defines_of(mutant)) for target in targets}
    if all(file.parent == FOLDER for file in made.values()):
        raise Broken(f"none of {', '.join(targets)} is made of {', '.join(sorted(touched))}")
    killed = next(failures({**of_preset(program), **made}, program, mutant.filter, SEEDS), None)
    return "" if killed else f"survived {SEEDS} seeds"


def of_preset(program: str) -> dict[str, Path]:
    """Where the targets of the preset are."""
    return {target: FOLDER / target for target in (program, MALLOC, SIMULATOR)}


def unmutated_passes(mutant: Mutant, repeat: int) -> str:
    """Nothing ("") if the piece passes as it is, else what happened."""
    program = program_of(mutant)
    return next(failures(of_preset(program), program, mutant.filter, SEEDS_UNMUTATED * repeat), "")
