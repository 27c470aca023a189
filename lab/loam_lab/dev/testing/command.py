"""`loam test`: every suite of the project behind one command, with one plain line at the end.

Suites: style (formatters, linters, types, layers), the C++ tests in three builds (checked, asan, tsan), a tiny run of
every workload on the synchronisations as they are measured (smoke), the lab's tests (lab), instruction counts
(golden), fuzzing of the heap (fuzz) and mutants. Each leaves its whole output in build/test/<suite>.log; what failed
is shown with the way to re-run it. A suite that ran nothing has failed.

A test of the lab that failed is run once more, alone, when all else is over: it starts programs and measures, and may
have met a busy machine. If it passes then, it is named as unsteady and does not fail the run. The tests of the runtime
have no second try: what fails there one time in a hundred is a race.

Of the lab's tests, those that read results and neither measure nor run what is built (results) run beside other suites.
Those that do not mind others (lab) run in as many processes as there are cores. Those that measure on this machine and
judge by it (measured) run one at a time, and nothing beside them. The suites that compile use all cores. Each suite has
a budget of time; one that took longer is named at the end.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.dev.testing.lots import build_simulated
from loam_lab.dev.testing.outcome import Outcome, carry_out, try_again
from loam_lab.dev.testing.smoke import smoke
from loam_lab.dev.testing.suites import run_ctest, run_folder, run_pytest
from loam_lab.setup import debian

_TAIL_LINES = 60
# Suites whose tests start programs and measure: a busy machine may explain some failures.
_MEASURING = ("results", "lab", "measured", "golden")
# How many seconds a suite may take in `./loam test`, on two idle cores with a compiler cache that knows most objects.
# docs/internals/testing.md says what they are spent on. Lower one when its suite got faster; raise one only together with
# another that is lowered: the whole stays within WHOLE_S.
BUDGETS_S = {
    "style": 60, "results": 240, "smoke": 150, "golden": 60, "checked": 380, "asan": 100, "tsan": 120, "lab": 720,
    "measured": 230, "fuzz": 130, "mutants": 220,
}  # fmt: skip
WHOLE_S = 40 * 60
# What --replay runs with the seed that a failure names.
CHECKER = [f"tests/lab/simulator/test_{name}.py" for name in ("checker", "transactional_orders")]


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
    outcome = Outcome(name, budget_s=BUDGETS_S[name] if mode == "ci" else None)
    carry_out(work, outcome, ["./loam", "test", *([] if mode == "ci" else [f"--{mode}"])])
    outcome.elapsed_s = time.monotonic() - begun
    _show(outcome)
    return outcome


_Suite = tuple[str, Callable[[Outcome], None]]


def _turns(mode: str) -> list[list[list[_Suite]]]:
    """What runs, one turn after the other: the lanes of a turn run beside each other, the suites of a lane do not."""
    if mode == "smoke":
        return [[[("smoke", lambda outcome: smoke(outcome, whole=True))]]]
    if mode == "replay":
        return [[[("checker", lambda outcome: run_pytest(outcome, CHECKER))]]]
    if mode == "golden-update":
        return [[[("golden", lambda outcome: run_folder(outcome, "golden", {"LOAM_GOLDEN_UPDATE": "1"}))]]]
    style = ("style", lambda outcome: run_pytest(outcome, ["tests/lab/test_style.py"]))
    whole = mode == "all"
    everything = {"LOAM_TEST_ALL": "1"} if whole else {}
    os.environ.update(everything)  # what is compiled depends on it too
    cores = len(os.sched_getaffinity(0))

    def lab(marks: str, workers: int = 1) -> Callable[[Outcome], None]:
        chosen = marks if whole else f"{marks} and not exhaustive"

        def run(outcome: Outcome) -> None:
            if workers > 1:
                build_simulated()
            run_pytest(outcome, _LAB, marks=chosen, environment=everything, workers=workers)

        return run

    if mode == "fast":
        quick = "not slow and not browser"
        return [
            [[style]],
            [[("checked", lambda outcome: run_ctest(outcome, "checked", ("unit",)))]],
            [[("lab", lab(f"not alone and {quick}", cores))]],
            [[("measured", lab(f"alone and {quick}"))]],
        ]
    sanitized = 1 if whole else _SANITIZED_SHARE
    smoked = ("smoke", lambda outcome: smoke(outcome, whole=whole))
    golden = ("golden", lambda outcome: run_folder(outcome, "golden", everything))
    alone: list[_Suite] = [
        ("checked", lambda outcome: run_ctest(outcome, "checked", _LABELS, everything)),
        ("asan", lambda outcome: run_ctest(outcome, "asan", _LABELS, everything, programs=whole, share=sanitized)),
        ("tsan", lambda outcome: run_ctest(outcome, "tsan", _LABELS, everything, programs=whole, share=sanitized)),
        ("lab", lab("not beside and not alone", cores)),
        ("measured", lab("alone")),
        ("fuzz", lambda outcome: run_folder(outcome, "fuzz", everything)),
        (
            "mutants",
            lambda outcome: run_folder(outcome, "mutants", everything or {"LOAM_MUTANTS_SHARE": _MUTANTS_SHARE}),
        ),
    ]
    if whole:  # where their compilers are; else each names what is missing
        for name in ("emulated", "compilers"):
            alone.append((name, partial(run_folder, name=name, environment=everything)))
    # Smoke and golden build in the same folder.
    return [[[style, ("results", lab("beside"))], [smoked, golden]], *([[suite]] for suite in alone)]


# One in so many, another lot with each change of the runtime; all of them by ./loam test --all. The suite checked runs
# every one of the sanitizers' tests, without a sanitizer.
_SANITIZED_SHARE = 9
_MUTANTS_SHARE = "80"
_LABELS = ("unit", "model", "stress", "fuzz")
_LAB = ["tests/lab", "--ignore=tests/lab/test_style.py"]


# ---- what is shown


def _show(outcome: Outcome) -> None:
    """One line per suite; where something failed, what was said of it too."""
    from rich.text import Text

    good = not outcome.failed
    line = Text.assemble(
        ("✓ " if good else "✗ ", "good" if good else "bad"), (f"{outcome.suite:<8}", "head"), f"{outcome.passed:>5} passed",
        (f", {outcome.failed} failed" if outcome.failed else "", "bad"),
        (f", {outcome.skipped} skipped" if outcome.skipped else "", "doubt"), (f"   {outcome.elapsed_s:.1f} s", "aside"),
        (f" of {outcome.budget_s} s" if outcome.budget_s else "", "doubt" if outcome.over else "aside"),
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
    if over := [f"{o.suite} {o.elapsed_s:.0f} s of {o.budget_s} s" for o in outcomes if o.over]:
        console.note(f"over budget (or the machine was busy; docs/internals/testing.md): {', '.join(over)}")
    if not passed and not failed:
        raise LoamError("test", None, "there is nothing to test", "check tests/")
    if as_json:
        console.print_json({
            "schema": 1, "passed": passed, "failed": failed, "elapsed_s": round(elapsed_s, 1),
            "suites": [{
                "suite": o.suite, "passed": o.passed, "failed": o.failed, "skipped": o.skipped,
                "elapsed_s": round(o.elapsed_s, 1), "budget_s": o.budget_s,
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
