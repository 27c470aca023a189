"""Flame graphs of `bench --flame`: where the processor's time goes, and who allocates, under two allocators.

One run more under the baseline and one under the allocator that is recommended (or, where that is the baseline, the one
beside it) is sampled by perf with the software clock, which works without hardware counters; one more has
lab/interposer/stacks.cpp in front of the allocator.  Times of these runs count for nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from loam_lab.base import console, paths
from loam_lab.campaign.counters import profile
from loam_lab.campaign.measure.instruments import Instruments, scratch_folder
from loam_lab.commands.bench import profiling, stacks
from loam_lab.model.result import Flame, Result
from loam_lab.setup import build
from loam_lab.subjects.allocators import preloading

if TYPE_CHECKING:
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.commands.bench.target import Target
    from loam_lab.model.cell import PlannedRun

# So many samples make a picture that further ones do not change; the rate is theirs within these limits.
SAMPLES = 2000
PER_S_MIN, PER_S_MAX = 49, 997
# Of each sample so much of the stack is kept for unwinding: programs are compiled without frame pointers.
STACK_BYTES = 16 * 1024
SCRIPT_TIMEOUT_S = 300.0


def flames(goal: Target, plan: Plan, instruments: Instruments, result: Result, *, timeout_s: float) -> list[Flame]:
    """Trees of call stacks, one for each kind of stacks.KINDS and each of two allocators."""
    wanted = chosen(result)
    library = paths.load_paths()["libraries"]["stacks"]
    trees: list[Flame] = []
    for run, named in profiling.once_each(plan):
        if run.cell.allocator not in wanted:
            continue
        trees.append(replace(_time(goal, run, instruments, timeout_s), **named, kind="time", unit="s"))
        kinds = _allocations(goal, run, instruments, library, timeout_s)
        trees += [
            replace(kinds[kind], **named, kind=kind, unit="1" if kind == "blocks" else "B") for kind in stacks.KINDS[1:]
        ]
    return trees


def chosen(result: Result) -> tuple[str, ...]:
    """The baseline and the allocator that it is compared with."""
    baseline = result.baseline
    advised = result.recommendation.allocator if result.recommendation else ""
    others = [cell.allocator for cell in result.cells if cell.allocator != baseline]
    second = advised if advised not in ("", baseline) else next(iter(others), "")
    return (baseline, second) if second else (baseline,)


def _time(goal: Target, run: PlannedRun, instruments: Instruments, timeout_s: float) -> Flame:
    """The tree of the processor's time in seconds, by perf."""
    perf = shutil.which("perf")
    if perf is None:
        return Flame(problem="perf is missing: install the Debian package linux-perf")
    with tempfile.TemporaryDirectory(prefix="loam-", dir=scratch_folder()) as scratch:
        data = Path(scratch) / "perf.data"
        allocator = instruments.allocator(run.cell.allocator)
        variables = instruments.environment(allocator, Path(scratch) / "proof")
        libraries = [file for file in allocator.libraries if allocator.path is not None]
        per_s = round(min(PER_S_MAX, max(PER_S_MIN, SAMPLES / goal.run_s)))
        record = [
            perf, "record", "--quiet", "--event", "cpu-clock", "--freq", str(per_s),
            "--call-graph", f"dwarf,{STACK_BYTES}", "--output", str(data), "--",
        ]  # fmt: skip
        outcome, judged = profiling.observed(goal, run, variables, timeout_s, record)
        if not data.is_file() or data.stat().st_size == 0:
            detail = " ".join(outcome.stderr_tail.split())[-200:]
            return Flame(problem=f"perf recorded nothing ({detail or 'see /proc/sys/kernel/perf_event_paranoid'})")
        if judged.state != "ok":
            return Flame(problem=judged.detail)
        script = [perf, "script", "--no-inline", "--fields", "comm,ip,sym,symoff,dso", "--input", str(data)]
        try:
            script_output = subprocess.run(
                script, capture_output=True, text=True, errors="replace", timeout=SCRIPT_TIMEOUT_S, check=False,
                env=build.tool_environment(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Flame(problem=f"perf did not name its samples within {SCRIPT_TIMEOUT_S:g} s")
    samples = [
        (frames, value)
        for frames, value in stacks.of_perf(script_output.stdout, 1 / per_s, libraries)
        if frames[0] != "perf-exec"
    ]
    return Flame(tree=stacks.tree(samples)) if samples else Flame(problem="perf has no sample of it: too short")


def _allocations(
    goal: Target, run: PlannedRun, instruments: Instruments, library: str, timeout_s: float
) -> dict[str, Flame]:
    """For each kind the tree of what was asked for; processes are added up."""
    with preloading.folder(scratch_folder()) as scratch:
        variables = instruments.environment(instruments.allocator(run.cell.allocator), scratch / "proof")
        variables = profiling.in_front(library, variables)
        variables["LOAM_STACKS"] = str(scratch / "stacks")
        _, judged = profiling.observed(goal, run, variables, timeout_s)
        sampled = [stacks.of_allocations(file.read_text()) for file in sorted(scratch.glob("stacks.*"))]
    problem = ""
    if judged.state != "ok":
        problem = judged.detail
    elif not any(one.stacks for one in sampled):
        problem = profile.silent(goal.programs)
    if problem:
        return {kind: Flame(problem=problem) for kind in stacks.KINDS[1:]}
    return {
        kind: Flame(tree=stacks.tree(stack for one in sampled for stack in one.named(kind)))
        for kind in stacks.KINDS[1:]
    }


def warn(trees: Sequence[Flame]) -> None:
    """Say which flame graphs there are not, and why, each reason once."""
    reasons = dict.fromkeys((one.allocator, one.problem) for one in trees if one.problem)
    for allocator, problem in reasons:
        console.warn(f"no flame graph under {allocator}: {problem}")
