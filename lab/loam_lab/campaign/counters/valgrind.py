"""Callgrind, with and without a model of the caches: its command lines, and what its output files say.

Both purposes run callgrind, because cachegrind cannot be told what to count: "cachegrind" is its model of the caches
inside callgrind, which simulates all accesses, so that the caches are warm, and counts those of the work (marks.py).
The allocator and the probe are preloaded into the program inside valgrind as into any other; neither tool replaces
malloc, so the allocator's own instructions and accesses are what is counted, and the probe proves it run by run.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters.marks import WORK, marked

# Debian's `valgrind` is a shell script that executes this one: one process less for the probe to account for.
NAMES = ("valgrind.bin", "valgrind")
OUTPUT = "counted"
LOG = "valgrind.log"
TOOLS = {"callgrind": ("--cache-sim=no",), "cachegrind": ("--cache-sim=yes",)}
REQUESTED = re.compile(r"^desc: Trigger: Client Request: (.*)$", re.MULTILINE)


@functools.cache
def available() -> tuple[bool, str]:
    """(True, its version) or (False, why not)."""
    program = _program()
    if program is None:
        return False, "valgrind is not installed (Debian package valgrind)"
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return False, f"valgrind does not start: {problem}"
    output = (done.stdout or done.stderr).strip()
    return done.returncode == 0, output or f"valgrind ended with status {done.returncode}"


def _program() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def command(tool: str, argv: Sequence[str], folder: Path, options: Iterable[str] = ()) -> list[str]:
    """The command that runs a program inside valgrind, and counts its work alone where it says what that is.

    tool: "callgrind" or "cachegrind"; folder: for its files; options: further ones, such as --D1=32768,8,64
    raises: LoamError if valgrind is not installed
    """
    program = _program()
    if program is None:
        raise LoamError(f"--{tool}", None, "valgrind is not installed", "as root: apt-get install valgrind")
    within = ("--collect-atstart=no", f"--toggle-collect={WORK}") if marked(argv[0]) else ()
    return [
        program, "--tool=callgrind", *TOOLS[tool], *within, *options, f"--callgrind-out-file={folder / OUTPUT}.%p",
        f"--log-file={folder / LOG}", "--", *argv,
    ]  # fmt: skip


def lackey(argv: Sequence[str], trace: Path) -> list[str]:
    """The command that runs a program inside lackey, which writes down every access. trace: where to

    raises: LoamError if valgrind is not installed
    """
    program = _program()
    if program is None:
        raise LoamError("--tlb", None, "valgrind is not installed", "as root: apt-get install valgrind")
    # A forked child would write between the lines of its parent.
    return [
        program, "--tool=lackey", "--basic-counts=no", "--trace-mem=yes", "--child-silent-after-fork=yes",
        f"--log-file={trace}", "--", *argv,
    ]  # fmt: skip


def requested(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> tuple[subprocess.CompletedProcess[str], dict[str, int]]:
    """Run a program that asks callgrind itself when to count (tests/golden/*_paths.*).

    folder: an empty one, for valgrind's files
    returns: how it ended, and the instructions of each stretch by the name that the program gave it
    """
    done, stretches = requested_events(argv, folder, environment, timeout_s, ("--instr-atstart=no",))
    return done, {name: events["Ir"] for name, events in stretches.items()}


def requested_events(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float, options: Iterable[str]
) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, int]]]:
    """The same, with all events of each stretch. options: of callgrind"""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", *options, f"--callgrind-out-file={folder / 'out'}", *argv],
        capture_output=True, text=True, check=False, timeout=timeout_s, env=dict(environment),
    )  # fmt: skip
    totals = {}
    for file in folder.glob("out.*"):
        text = file.read_text()
        name, (counted, _) = REQUESTED.search(text), parse(text)
        if name and counted:
            totals[name[1]] = counted
    return done, totals


def clear(folder: Path) -> None:
    """Remove the files of an earlier run."""
    for file in (*folder.glob(f"{OUTPUT}.*"), folder / LOG):
        file.unlink(missing_ok=True)


def read(folder: Path, pid: int) -> tuple[dict[str, int], dict[str, str], str]:
    """What a run left: (events, the caches it modelled, why it cannot be used or "").

    pid: the process that was started; its forked children are left out, because their files repeat what it had counted
    events: by valgrind's names (Ir, Dr, D1mr, ...); caches: "I1", "D1", "LL" -> "bytes,ways,line"
    """
    try:
        text = (folder / f"{OUTPUT}.{pid}").read_text(errors="replace")
    except OSError:
        return {}, {}, f"valgrind wrote no output{_complaint(folder)}"
    counted, caches = parse(text)
    return counted, caches, "" if counted else f"valgrind's output has no totals{_complaint(folder)}"


def parse(text: str) -> tuple[dict[str, int], dict[str, str]]:
    """(totals by event, caches) of one output file of either tool; empty where it was cut short."""
    names: list[str] = []
    totals: dict[str, int] = {}
    caches: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, rest = line.partition(":")
        if not colon:
            continue
        if key == "events":
            names = rest.split()
        elif key in ("summary", "totals"):
            numbers = rest.split()
            if numbers and all(number.isdigit() for number in numbers) and len(numbers) <= len(names):
                # A tool leaves out zeros at the end.
                totals = dict(zip(names, [*map(int, numbers), *[0] * (len(names) - len(numbers))], strict=True))
        elif key == "desc" and (cache := _CACHE.match(rest)):
            caches[cache[1]] = f"{cache[2]},{cache[4] or 1},{cache[3]}"
    return totals, caches


_CACHE = re.compile(r" (I1|D1|LL) cache: +(\d+) B, (\d+) B, (?:(\d+)-way|direct)")


def _complaint(folder: Path) -> str:
    try:
        lines = (folder / LOG).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f": {lines[-1]}" if lines else ""
