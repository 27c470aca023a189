"""The runtime on another processor: tests for AArch64, built by a cross compiler and run by an emulator of user programs.

    run.py          a few tests that reach each part that is written for the processor, with pages of 4 and of 64 KiB
    run.py --all    every unit, model and stress test (an hour of building and running on two cores); also what
                    ./loam test --all runs
    run.py NAME...  the tests of these names (as ctest has them: heap_test)

An emulator on x86 keeps the order of x86: it finds faults of code that is written for the processor, of page sizes and of
addresses, and no missing memory order (docs/internals/orders.md says what does). Without the tools it says so and is
skipped. Ends with "N passed, M failed".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRESET = "aarch64"
BUILD = ROOT / "build" / PRESET
TOOLS = {
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64": "qemu-user",
    "cmake": "cmake",
    "ninja": "ninja-build",
}
SOURCES = Path("/usr/src/googletest/googletest")
LARGE_PAGES = {"QEMU_PAGESIZE": "65536"}


def lacking() -> list[str]:
    """The Debian packages that are missing."""
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    return missing if SOURCES.is_dir() else [*missing, "googletest"]


def build(targets: list[str]) -> None:
    """Build targets of the preset; ends the program where it fails."""
    jobs = str(len(os.sched_getaffinity(0)))
    for command in (
        ["cmake", "--preset", PRESET], ["cmake", "--build", str(BUILD), "-j", jobs, "--target", *targets],
    ):  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}\n0 passed, 1 failed")


def run(chosen: list[str], environment: dict[str, str]) -> tuple[int, int]:
    """Run tests with ctest; how many passed, and how many failed, each with what it said."""
    report = BUILD / "emulated.xml"
    report.unlink(missing_ok=True)
    command = [
        "ctest",
        "--preset",
        PRESET,
        *chosen,
        "-j",
        str(len(os.sched_getaffinity(0))),
        "--output-junit",
        str(report),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if not report.exists():
        sys.exit(f"error: {' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}\n0 passed, 1 failed")
    passed = failed = 0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run":
            passed += 1
        elif case.get("status") == "fail":
            failed += 1
            print(f"failed: {case.get('name')} {' '.join(f'{k}={v}' for k, v in environment.items())}".rstrip())
            print((case.findtext("system-out") or "")[-3000:])
    return passed, failed


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    if missing := lacking():
        print(f"skipped: AArch64: {' '.join(missing)} not installed (as root: apt-get install {' '.join(missing)})")
        print("0 passed, 0 failed")
        return 0
    turns: list[tuple[list[str], dict[str, str]]]
    everything = arguments == ["--all"] or (not arguments and os.environ.get("LOAM_TEST_ALL"))
    if everything:
        targets, turns = ["loam-tests"], [(["-LE", "program"], {})]
    elif arguments:
        named = ["-R", f"^({'|'.join(re.escape(name) for name in arguments)})$"]
        targets, turns = arguments, [(named, {}), (named, LARGE_PAGES)]
    else:
        targets, turns = ["loam-short-tests"], [(["-L", "short"], {}), (["-L", "pages"], LARGE_PAGES)]
    build(targets)
    passed = failed = 0
    for chosen, environment in turns:
        good, bad = run(chosen, environment)
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
