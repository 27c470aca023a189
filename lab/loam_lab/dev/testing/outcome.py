"""What one suite of tests came to, and what failed of it run once more."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.setup import build

# The most failures that a busy machine may explain.
_SECOND_TRIES_MAX = 5


@dataclass
class Outcome:
    """What one suite came to.

    failures: (test, words of the command that runs it again); unsteady: those that passed when run again
    budget_s: how long it may take (command.BUDGETS_S); None where the mode has none
    """

    suite: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    elapsed_s: float = 0.0
    budget_s: int | None = None
    failures: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    unsteady: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    detail: str = ""

    @property
    def over(self) -> bool:
        """Whether it took longer than it may. That fails nothing: the machine may have been busy."""
        return self.budget_s is not None and self.elapsed_s > self.budget_s

    def fail(self, test: str, again: Sequence[str]) -> None:
        """Count one failure."""
        self.failed += 1
        self.failures.append((test, again))

    def add(self, part: Outcome) -> None:
        """Count what a part of this suite came to."""
        self.passed += part.passed
        self.failed += part.failed
        self.skipped += part.skipped
        self.failures += part.failures
        self.detail += part.detail


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
