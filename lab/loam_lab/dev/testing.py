"""`loam test`: every suite of the project behind one command, with one plain line at the end.

Suites: style (formatters, linters, types, layers), the C++ tests in three builds (checked, asan, tsan), a tiny run of
every workload on every synchronisation (smoke), the lab's tests (lab), instruction counts (golden), fuzzing of the heap
(fuzz) and mutants. Each leaves its whole output in build/test/<suite>.log; what failed is shown with the way to re-run
it. A suite that ran nothing has failed.

A test of the lab that failed is run once more, alone, when all else is over: it starts programs and measures, and may
have met a busy machine. If it passes then, it is named as unsteady and does not fail the run. The tests of the runtime
have no second try: what fails there one time in a hundred is a race.

Suites that use one core and measure nothing run beside each other (results: those of the lab's tests that read results
and neither measure nor run what is built). All others run alone: what measures is not to be disturbed, and what
compiles uses all cores.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.model.description import Workload
from loam_lab.setup import build, debian

_TOTAL = re.compile(r"^(\d+) passed, (\d+) failed", re.MULTILINE)
_TAIL_LINES = 60
_PYTHON = ".venv/bin/python"  # the tree's own, for the commands that are shown
# What GoogleTest says of tests that pass, and around all of them.
_NO_COMPLAINT = re.compile(r"\[( RUN  *|  *OK |-+|=+|  PASSED  )\]|Running main\(\) from|Note: |\s*$")
_COMPLAINT_LINES = 25
# What --replay runs with the seed that a failure names.
CHECKER = [f"tests/lab/simulator/test_{name}.py" for name in ("checker", "transactional_orders")]


@dataclass
class Outcome:
    """What one suite came to.

    failures: (test, words of the command that runs it again); unsteady: those that passed when run again
    """

    suite: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    elapsed_s: float = 0.0
    failures: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    unsteady: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    detail: str = ""

    def fail(self, test: str, again: Sequence[str]) -> None:
        """Count one failure."""
        self.failed += 1
        self.failures.append((test, again))


def run(mode: str, *, as_json: bool) -> int:
    """Run the suites of a mode ("ci", "fast", "all", "smoke", "golden-update", "replay"); 1 if anything failed.

    raises: LoamError if what the tests need is missing and cannot be set up
    """
    debian.ensure("test")
    try:
        import pytest  # noqa: F401
    except ImportError:
        raise LoamError("pytest", None, "not in this Python environment", "start the tests with ./loam test") from None
    started = time.monotonic()
    outcomes: list[Outcome] = []
    for lanes in _turns(mode):
        with ThreadPoolExecutor(min(len(lanes), len(os.sched_getaffinity(0)))) as pool:
            for done in pool.map(lambda lane: [_run_suite(suite, mode) for suite in lane], lanes):
                outcomes += done
    for outcome in outcomes:
        if outcome.suite in _MEASURING:
            try_again(outcome, paths.root())
    return _finish(outcomes, time.monotonic() - started, as_json)


def _run_suite(suite: _Suite, mode: str) -> Outcome:
    name, work = suite
    console.err().print(f"[aside]{name} ...[/aside]")
    begun = time.monotonic()
    outcome = Outcome(name)
    carry_out(work, outcome, ["./loam", "test", *([] if mode == "ci" else [f"--{mode}"])])
    outcome.elapsed_s = time.monotonic() - begun
    _show(outcome)
    return outcome


# Suites whose tests start programs and measure, and the most failures that a busy machine may explain.
_MEASURING, _SECOND_TRIES_MAX = ("results", "lab", "golden"), 5


def try_again(outcome: Outcome, root: Path) -> None:
    """Run what failed once more; what passes now is unsteady. Many failures are no accident and stay."""
    if len(outcome.failures) > _SECOND_TRIES_MAX:
        return
    failures, outcome.failures = outcome.failures, []
    with (root / "build" / "test" / f"{outcome.suite}-again.log").open("w") as log:
        for test, again in failures:
            done = subprocess.run(
                list(again), cwd=root, env=build.tool_environment(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            (outcome.failures if done.returncode else outcome.unsteady).append((test, again))
    outcome.failed = len(outcome.failures)
    outcome.passed += len(outcome.unsteady)


def carry_out(suite: Callable[[Outcome], None], outcome: Outcome, again: Sequence[str]) -> None:
    """Run one suite; it has failed if it cannot be run, or ran no test at all."""
    try:
        suite(outcome)
    except LoamError as error:
        outcome.fail(error.line(), again)
    if not (outcome.passed or outcome.failed or outcome.skipped):
        outcome.fail("no test of this suite ran", again)


_Suite = tuple[str, Callable[[Outcome], None]]


def _turns(mode: str) -> list[list[list[_Suite]]]:
    """What runs, one turn after the other: the lanes of a turn run beside each other, the suites of a lane do not."""
    if mode == "smoke":
        return [[[("smoke", _smoke)]]]
    if mode == "replay":
        return [[[("checker", lambda outcome: _pytest(outcome, CHECKER))]]]
    if mode == "golden-update":
        return [[[("golden", lambda outcome: _folder(outcome, "golden", {"LOAM_GOLDEN_UPDATE": "1"}))]]]
    style = ("style", lambda outcome: _pytest(outcome, ["tests/lab/test_style.py"]))
    if mode == "fast":
        return [
            [[style]],
            [[("checked", lambda outcome: _ctest(outcome, "checked", ("unit",)))]],
            [[("lab", lambda outcome: _pytest(outcome, _LAB, marks="not slow and not browser and not exhaustive"))]],
        ]
    whole = mode == "all"
    everything = {"LOAM_TEST_ALL": "1"} if whole else {}
    os.environ.update(everything)  # what is compiled depends on it too

    def lab(marks: str) -> Callable[[Outcome], None]:
        chosen = marks if whole else f"{marks} and not exhaustive"
        return lambda outcome: _pytest(outcome, _LAB, marks=chosen, environment=everything)

    golden = ("golden", lambda outcome: _folder(outcome, "golden", everything))
    alone: list[_Suite] = [
        ("checked", lambda outcome: _ctest(outcome, "checked", _LABELS, everything)),
        ("asan", lambda outcome: _ctest(outcome, "asan", _LABELS, everything, programs=whole)),
        ("tsan", lambda outcome: _ctest(outcome, "tsan", _LABELS, everything, programs=whole)),
        ("lab", lab("not beside")),
        ("fuzz", lambda outcome: _folder(outcome, "fuzz", everything)),
        ("mutants", lambda outcome: _folder(outcome, "mutants", everything or {"LOAM_MUTANTS_SHARE": _MUTANTS_SHARE})),
    ]
    # Smoke and golden build in the same folder.
    return [[[style, ("results", lab("beside"))], [("smoke", _smoke), golden]], *([[suite]] for suite in alone)]


# One in so many mutants, another lot with each change of the runtime; all of them by ./loam test --all.
_MUTANTS_SHARE = "10"
_LABELS = ("unit", "model", "stress", "fuzz")
_LAB = ["tests/lab", "--ignore=tests/lab/test_style.py"]


def _log(suite: str) -> Path:
    folder = paths.root() / "build" / "test"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{suite}.log"


def _logged(outcome: Outcome, command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a command with its output in the suite's log. Returns its status and the output."""
    log = _log(outcome.suite)
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


def _ctest(
    outcome: Outcome,
    preset: str,
    labels: Sequence[str],
    environment: dict[str, str] | None = None,
    *,
    programs: bool = True,
) -> None:
    """Build the tests of a preset and run them with ctest.

    programs: with the workload executables and the tests that start them; they take most of a build
    """
    if not _has_tests(labels):
        return
    paths.build_folder(preset).mkdir(parents=True, exist_ok=True)
    build.configure(preset, again=True)  # a test file may have come or gone since
    build.build(preset, () if programs else ("loam-tests",))
    report = _log(outcome.suite).with_suffix(".xml")
    report.unlink(missing_ok=True)
    prefix = _fixed_layout() if preset == "tsan" else []
    command = [
        *prefix,
        "ctest", "--preset", preset, "-L", f"^({'|'.join(labels)})$", "-j", str(len(os.sched_getaffinity(0))),
        "--output-junit", str(report), *(() if programs else ("-LE", "^program$")),
    ]  # fmt: skip
    status, output = _logged(outcome, command, environment)
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


def _pytest(
    outcome: Outcome, arguments: Sequence[str], *, marks: str = "", environment: dict[str, str] | None = None
) -> None:
    """Run pytest on files of the tree."""
    report = _log(outcome.suite).with_suffix(".xml")
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        *arguments,
        "-rfE",
        f"--junitxml={report}",
        *(["-m", marks] if marks else []),
    ]
    status, output = _logged(outcome, command, environment)
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


def _folder(outcome: Outcome, name: str, environment: dict[str, str] | None = None) -> None:
    """Run a folder of tests/ that brings pytest files, or a run.py whose last line says "N passed, M failed"."""
    folder = paths.root() / "tests" / name
    if list(folder.glob("test_*.py")):
        _pytest(outcome, [f"tests/{name}"], environment=environment)
    script = folder / "run.py"
    if not script.is_file():
        return
    status, output = _logged(outcome, [sys.executable, str(script)], environment)
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


# ---- every workload on every synchronisation

SMOKE_LIMIT_S = 60.0
_SHORT = {"duration_ms": 20, "tracks": 20}


def _smoke(outcome: Outcome) -> None:
    """Run every workload on every executable of the release build for a few milliseconds; each must verify."""
    from loam_lab.subjects import workloads

    build.ensure_built()
    built = paths.build_folder("release")
    log = []
    for name, subject in sorted(workloads.subjects_of().items()):
        if not Path(subject.argv[0]).is_relative_to(built):  # a script: tests/lab/programs, tests/lab/jvm
            continue
        description = workloads.describe(subject)
        if description.sync.lacks:
            outcome.skipped += 1
            continue
        for workload in description.workloads:
            short = [word for value in _short_forms(workload) for word in ("-p", value)]
            threads = min(2, description.sync.threads_max)
            for count in dict.fromkeys((threads, 1)):
                command = [*subject.argv, workload.name, "--threads", str(count), "--warmup-ms", "1", *short]
                verified, output = verifies(command)
                log.append(f"$ {' '.join(command)}\n{output}")
                if "\nerror: --threads" not in output:
                    break  # or nothing protects what the threads of this workload share
            if verified:
                outcome.passed += 1
            else:
                outcome.fail(
                    f"smoke: {workload.name} on {name}",
                    [os.path.relpath(command[0], paths.root()), *command[1:]],
                )
    _log("smoke").write_text("\n".join(log))
    if outcome.failed:
        outcome.detail = "\n".join(log)


def _short_forms(workload: Workload) -> list[str]:
    """The parameters that make a run of a workload last a moment."""
    known = {parameter.name: parameter for parameter in workload.parameters}
    forms = [f"{name}={value}" for name, value in _SHORT.items() if name in known]
    return forms + [f"{name}=sim" for name, parameter in known.items() if "sim" in (parameter.choices or ())]


def verifies(command: Sequence[str], limit_s: float = SMOKE_LIMIT_S) -> tuple[bool, str]:
    """Whether a run of a workload ends and says that its result is right, and what it printed."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"did not end within {limit_s:g} s\n"
    last = (done.stdout.splitlines() or [""])[-1]
    try:
        verified = done.returncode == 0 and json.loads(last)["verified"] is True
    except (json.JSONDecodeError, KeyError, TypeError):
        verified = False
    return verified, done.stdout + done.stderr


# ---- what is shown


def _show(outcome: Outcome) -> None:
    """One line per suite; where something failed, what was said of it too."""
    from rich.text import Text

    good = not outcome.failed
    line = Text.assemble(
        ("✓ " if good else "✗ ", "good" if good else "bad"), (f"{outcome.suite:<8}", "head"), f"{outcome.passed:>5} passed",
        (f", {outcome.failed} failed" if outcome.failed else "", "bad"),
        (f", {outcome.skipped} skipped" if outcome.skipped else "", "doubt"), (f"   {outcome.elapsed_s:.1f} s", "aside"),
    )  # fmt: skip
    console.err().print(line)
    if outcome.detail:
        console.note("\n".join(f"    {text}" for text in outcome.detail.splitlines()[-_TAIL_LINES:]))


def _finish(outcomes: Sequence[Outcome], elapsed_s: float, as_json: bool) -> int:
    passed, failed = sum(o.passed for o in outcomes), sum(o.failed for o in outcomes)
    for outcome in outcomes:
        for test, again in outcome.unsteady:
            console.err().print(
                f"[doubt]unsteady[/doubt] {_plain(test)}: failed, then passed\n"
                f"       again: [command]{_plain(shlex.join(again))}[/command]", soft_wrap=True,
            )  # fmt: skip
        for test, again in outcome.failures:
            console.err().print(
                f"[bad]failed[/bad] {_plain(test)}\n       again: [command]{_plain(shlex.join(again))}[/command]",
                soft_wrap=True,
            )
        if outcome.failed or outcome.unsteady:
            console.note(f"       all of its output: build/test/{outcome.suite}.log")
    if not passed and not failed:
        raise LoamError("test", None, "there is nothing to test", "check tests/")
    if as_json:
        console.print_json({
            "schema": 1, "passed": passed, "failed": failed, "elapsed_s": round(elapsed_s, 1),
            "suites": [{
                "suite": o.suite, "passed": o.passed, "failed": o.failed, "skipped": o.skipped,
                "elapsed_s": round(o.elapsed_s, 1),
                "failures": [{"test": test, "again": shlex.join(again)} for test, again in o.failures],
                "unsteady": [{"test": test, "again": shlex.join(again)} for test, again in o.unsteady],
            } for o in outcomes],
        })  # fmt: skip
    else:
        console.note(f"{elapsed_s:.0f} s")
        sys.stderr.flush()
        print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
