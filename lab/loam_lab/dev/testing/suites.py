"""How the suites are run: GoogleTest programs by ctest, files of pytest, folders of tests/ with a run.py."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.dev.testing.lots import lot, sources_hash
from loam_lab.dev.testing.outcome import Outcome
from loam_lab.setup import build

_TOTAL = re.compile(r"^(\d+) passed, (\d+) failed", re.MULTILINE)
_PYTHON = ".venv/bin/python"  # the tree's own, for the commands that are shown
# The plugin that shares modules out, and the variable that tells it where; importing it takes pytest.
WORKER = "loam_lab.dev.testing.workers"
TAKEN = "LOAM_TEST_TAKEN"
# Some machines tell Python to write no compiled modules; each pytest and each ./loam of a test would compile all of them.
_CACHED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(paths.root() / "build" / "test" / "pycache")}
# A line of CTestTestfile.cmake that adds a test, and the words of its command.
_ADDED_TEST = re.compile(r"^add_test\(\[=\[(.+?)\]=\] (.*)\)$", re.MULTILINE)
_QUOTED = re.compile(r'"([^"]*)"')
# What GoogleTest says of tests that pass, and around all of them.
_NO_COMPLAINT = re.compile(r"\[( RUN  *|  *OK |-+|=+|  PASSED  )\]|Running main\(\) from|Note: |\s*$")
_COMPLAINT_LINES = 25


def log_of(suite: str) -> Path:
    folder = paths.root() / "build" / "test"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{suite}.log"


def _logged(log: Path, command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a command with its output in a log. Returns its status and the output."""
    with log.open("w") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        done = subprocess.run(
            list(command), cwd=paths.root(), env={**build.tool_environment(), **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    return done.returncode, log.read_text(errors="replace")


def _junit(file: Path, outcome: Outcome) -> ElementTree.Element | None:
    """Counts of a JUnit file added to the outcome (failures are left to the caller). None where there is no file."""
    try:
        top = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for case in top.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            continue
        if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return top


# ---- C++


def _has_tests(labels: Sequence[str]) -> bool:
    """Whether these folders of tests/ hold a C++ test (a test's label is its folder)."""
    return any(True for label in labels for _ in (paths.root() / "tests" / label).rglob("*_test.cpp"))


def _fixed_layout() -> list[str]:
    """The prefix that switches address randomisation off: the thread sanitizer of GCC 12 refuses to start where the
    kernel uses more than 28 random bits. Empty where the system forbids it."""
    prefix = ["setarch", "-R"]
    allowed = (
        shutil.which("setarch") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    )
    return prefix if allowed else []


def added_tests(file: str, folder: Path, wanted: Collection[str]) -> dict[str, list[str]]:
    """The wanted tests by the program in `folder` that runs them: several where a program is tested with settings.

    file: the text of CTestTestfile.cmake (ctest's own listing names no program that is not built yet)
    """
    tests: dict[str, list[str]] = {}
    for name, command in _ADDED_TEST.findall(file):
        programs = [word for word in _QUOTED.findall(command) if Path(word).is_relative_to(folder)]
        if name in wanted and programs:
            tests.setdefault(Path(programs[0]).name, []).append(name)
    return tests


def _lot_of_tests(preset: str, labels: Sequence[str], share: int) -> tuple[list[str], list[str]]:
    """This tree's lot of the test programs that loam-tests names: targets of the build, and tests of ctest."""
    folder = paths.build_folder(preset)
    listed = subprocess.run(
        ["ctest", "--preset", preset, "-L", f"^({'|'.join(labels)})$", "-LE", "^program$", "--show-only=json-v1"],
        cwd=paths.root(), env=build.tool_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = {test["name"] for test in json.loads(listed.stdout)["tests"]}
    tests = added_tests((folder / "CTestTestfile.cmake").read_text(), folder, wanted)
    if not tests:
        raise LoamError(
            f"tests of {preset}", None, "CMake wrote none that can be built", f"see {folder}/CTestTestfile.cmake"
        )
    targets = lot(list(tests), share, sources_hash())
    return targets, [name for target in targets for name in tests[target]]


def run_ctest(
    outcome: Outcome,
    preset: str,
    labels: Sequence[str],
    environment: dict[str, str] | None = None,
    *,
    programs: bool = True,
    share: int = 1,
) -> None:
    """Build the tests of a preset and run them with ctest.

    programs: with the workload executables and the tests that start them; they take most of a build
    share: one in so many tests is built and run, another lot with each change of the runtime (lots.py)
    """
    if not _has_tests(labels):
        return
    paths.build_folder(preset).mkdir(parents=True, exist_ok=True)
    build.configure(preset, again=True)  # a test file may have come or gone since
    if share == 1:
        build.build(preset, () if programs else ("loam-tests",))
        narrowed = []
    else:
        targets, names = _lot_of_tests(preset, labels, share)
        build.build(preset, targets)
        narrowed = ["-R", f"^({'|'.join(names)})$"]
    report = log_of(outcome.suite).with_suffix(".xml")
    report.unlink(missing_ok=True)
    prefix = _fixed_layout() if preset == "tsan" else []
    command = [
        *prefix,
        "ctest", "--preset", preset, "-L", f"^({'|'.join(labels)})$",
        "-j", str(len(os.sched_getaffinity(0))), "--output-junit", str(report),
        *(() if programs else ("-LE", "^program$")), *narrowed,
    ]  # fmt: skip
    status, output = _logged(log_of(outcome.suite), command, environment)
    top = _junit(report, outcome)
    for case in top.iter("testcase") if top is not None else ():
        if case.get("status") == "fail":
            name = case.get("name", "?")
            outcome.fail(f"{preset}: {name}", [*prefix, "ctest", "--preset", preset, "-R", f"^{name}$"])
            outcome.detail += f"{name}\n{complaints(case.findtext('system-out') or '')}\n"
    if status != 0 and not outcome.failed:
        outcome.fail(f"{preset}: ctest ended with status {status}", command)
        outcome.detail = output


def complaints(output: str) -> str:
    """What a failed GoogleTest program says of what failed: the beginning of it, and the test that it did not end."""
    lines = [line for line in output.splitlines() if not _NO_COMPLAINT.match(line)]
    shown = [*lines[:_COMPLAINT_LINES], *(["..."] if len(lines) > _COMPLAINT_LINES else [])]
    _, began, last = output.rpartition("[ RUN      ] ")
    if began and "[       OK ]" not in last and "[  FAILED  ]" not in last:
        test, _, _ = last.partition("\n")
        shown.append(f"did not end: {test}")
    return "\n".join(f"  {line}" for line in shown)


# ---- Python


def run_pytest(
    outcome: Outcome,
    arguments: Sequence[str],
    *,
    marks: str = "",
    environment: dict[str, str] | None = None,
    workers: int = 1,
) -> None:
    """Run pytest on files of the tree.

    workers: so many processes of it, which share the modules out between them (workers.py)
    """
    log = log_of(outcome.suite)
    chosen = [*arguments, "-rfE", *(["-m", marks] if marks else [])]
    if workers == 1:
        run_worker(outcome, log, chosen, environment)
        return
    logs = [log.with_stem(f"{log.stem}-{number}") for number in range(1, workers + 1)]
    with tempfile.TemporaryDirectory(prefix="loam-test-") as taken, ThreadPoolExecutor(workers) as pool:
        shared = {**(environment or {}), TAKEN: taken}
        parts = [Outcome(outcome.suite) for _ in logs]
        words = [*chosen, "-p", WORKER]
        list(pool.map(lambda part, file: run_worker(part, file, words, shared), parts, logs))
    for part in parts:
        outcome.add(part)
    log.write_text("".join(file.read_text(errors="replace") for file in logs))


def run_worker(outcome: Outcome, log: Path, arguments: Sequence[str], environment: dict[str, str] | None) -> None:
    """Run one process of pytest, with its log and beside that its report."""
    report = log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *arguments, f"--junitxml={report}"]
    status, output = _logged(log, command, {**_CACHED, **(environment or {})})
    _junit(report, outcome)
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        if kind in ("FAILED", "ERROR") and "::" in rest:
            test = rest.split(" - ")[0]
            outcome.fail(test, [_PYTHON, "-m", "pytest", test])
    if status not in (0, 5) and not outcome.failed:  # 5: no test was chosen
        outcome.fail(f"{outcome.suite}: pytest ended with status {status}", command)
    if outcome.failed:
        outcome.detail = output


def run_folder(outcome: Outcome, name: str, environment: dict[str, str] | None = None) -> None:
    """Run a folder of tests/ that brings pytest files, or a run.py whose last line says "N passed, M failed"."""
    folder = paths.root() / "tests" / name
    if list(folder.glob("test_*.py")):
        run_pytest(outcome, [f"tests/{name}"], environment=environment)
    script = folder / "run.py"
    if not script.is_file():
        return
    status, output = _logged(log_of(outcome.suite), [sys.executable, str(script)], environment)
    totals = _TOTAL.findall(output)
    if totals:
        outcome.passed += int(totals[-1][0])
        for _ in range(int(totals[-1][1])):
            outcome.fail(f"tests/{name}/run.py", [_PYTHON, f"tests/{name}/run.py"])
    for line in output.splitlines():
        if line.startswith("skipped: "):
            outcome.skipped += 1
            console.note(f"    {name} {line}")
    if status != 0 and not outcome.failed:
        outcome.fail(f"tests/{name}/run.py ended with status {status}", [_PYTHON, f"tests/{name}/run.py"])
    if outcome.failed:
        outcome.detail = output
