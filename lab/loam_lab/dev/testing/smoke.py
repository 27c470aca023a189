"""Every workload on the synchronisations of the release build, for a moment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loam_lab.base import paths
from loam_lab.dev.testing import lots
from loam_lab.dev.testing.outcome import Outcome
from loam_lab.dev.testing.suites import log_of
from loam_lab.model.description import Description, Workload
from loam_lab.subjects.subject import Subject

SMOKE_LIMIT_S = 60.0
_SHORT = {"duration_ms": 20, "tracks": 20}


def smoke(outcome: Outcome, *, whole: bool) -> None:
    """Run every workload on the executables of the release build for a few milliseconds; each must verify.

    whole: on every one; else on those of this tree's lot (lots.py)
    """
    from loam_lab.subjects import workloads

    chosen = lots.build_release(whole=whole)
    built = paths.build_folder("release")
    runs: list[tuple[str, Subject, Description, Workload]] = []
    for name, subject in sorted(workloads.subjects_of().items()):
        # A script: tests/lab/programs, tests/lab/jvm.
        if name not in chosen or not Path(subject.argv[0]).is_relative_to(built):
            continue
        description = workloads.describe(subject)
        if description.sync.lacks:
            outcome.skipped += 1
            continue
        runs += [(name, subject, description, workload) for workload in description.workloads]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # nothing is measured
        done = list(pool.map(lambda run: _smoked(*run[1:]), runs))
    for (name, _, _, workload), (command, verified, _) in zip(runs, done, strict=True):
        if verified:
            outcome.passed += 1
        else:
            outcome.fail(
                f"smoke: {workload.name} on {name}",
                [os.path.relpath(command[0], paths.root()), *command[1:]],
            )
    log = "\n".join(f"$ {' '.join(command)}\n{output}" for command, _, output in done)
    log_of("smoke").write_text(log)
    if outcome.failed:
        outcome.detail = log


def _smoked(subject: Subject, description: Description, workload: Workload) -> tuple[list[str], bool, str]:
    """Run a workload for a moment. Returns the command, whether the run verified, and all that was printed."""
    short = [word for value in _short_forms(workload) for word in ("-p", value)]
    printed = ""
    for count in dict.fromkeys((min(2, description.sync.threads_max), 1)):
        command = [*subject.argv, workload.name, "--threads", str(count), "--warmup-ms", "1", *short]
        verified, output = verifies(command)
        printed += output
        if "\nerror: --threads" not in output:
            break  # or nothing protects what the threads of this workload share
    return command, verified, printed


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
