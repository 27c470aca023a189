"""A campaign: run what the plan says and the journal lacks, one process at a time, whatever becomes of each.

Everything that happens to one cell (a crash, a timeout, a failed verification, an allocator that cannot be proven) is
a line in the journal, and the rest goes on.  Only the disk and the user stop a campaign.
"""

from __future__ import annotations

import contextlib
import json
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import loam_lab
from loam_lab.measure import folder as folders
from loam_lab.measure import journal, observe, warmup
from loam_lab.measure.execute import execute
from loam_lab.measure.instruments import Instruments, revision, scratch_folder
from loam_lab.measure.launch import OVERHEAD_GUESS_S, Launcher, WorkloadLauncher, outcome_json, proof_json
from loam_lab.measure.plan import Plan
from loam_lab.measure.progress import Progress, Remaining
from loam_lab.measure.schedule import Schedule
from loam_lab.measure.stopping import Narrow
from loam_lab.measure.watched import Watched
from loam_lab.model.cell import SCHEMA, SIMULATED, PlannedRun, digest, identity
from loam_lab.model.study import Study

if TYPE_CHECKING:
    from loam_lab.allocators.registry import Allocator

TIMEOUT_S = 60.0
# A cell that hangs is given this many chances; each further one would cost a whole timeout and tell nothing new.
TIMEOUTS_MAX = 2
# Repetitions leave a tenth of a time budget alone: later turns may take longer than those so far.
REPEATS_BUDGET_SHARE = 0.9
# The fewest pairs that have a 95 % signed-rank interval.
BLOCKS_FOR_INTERVAL = 6


@dataclass
class Ended:
    """How a campaign ended.

    done, total: runs in the journal, runs planned with those that disturbance added; skipped: given up with their cell
    measured: runs of this start; repeated: runs of blocks that were run again; refused: blocks that stayed disturbed
    because the campaign had spent what it may on repetitions
    """

    done: int
    total: int
    skipped: int
    interrupted: bool
    measured: int = 0
    repeated: int = 0
    refused: int = 0


@dataclass
class Campaign:
    """All that is needed to run a plan into a folder.

    launcher: None for workload executables; kind, command: go into the manifest
    enough: asked after each block whether the measured blocks suffice; None to run all that are planned
    counter_sources: what the machine can count with, for the manifest
    """

    study: Study
    plan: Plan
    folder: Path
    instruments: Instruments
    command: str
    preset: str = "release"
    resume: bool = False
    kind: str = "study"
    launcher: Launcher | None = None
    enough: Callable[[int], bool] | None = None
    counter_sources: Sequence[Mapping[str, Any]] = ()
    _allocators: dict[str, Allocator] = field(default_factory=dict)
    _began_s: float = 0.0
    _measured: int = 0
    # Where on the campaign's own clock its last run ended before this start; that clock stands still in between.
    _before_s: float = 0.0

    def __post_init__(self) -> None:
        self._launcher = self.launcher or WorkloadLauncher(self.plan)

    def run(self) -> Ended:
        """Run what is missing.  Ctrl-C ends it with everything kept.

        raises: LoamError if the folder is locked, used, not writable, or (with resume) of another machine or version
        """
        with journal.lock(self.folder):
            manifest = self._manifest()
            if self.resume:
                folders.check_same(self.folder, folders.read_manifest(self.folder), manifest)
            else:
                folders.check_unused(self.folder)
                journal.write_whole(self.folder / folders.MANIFEST, json.dumps(manifest, ensure_ascii=False) + "\n")
            folders.point_latest(self.folder)
            return self._run(manifest["machine"])

    def _manifest(self) -> dict[str, Any]:
        for cell in self.plan.cells():
            if cell.allocator not in self._allocators:
                self._allocators[cell.allocator] = self.instruments.allocator(cell.allocator)
        executables = list(self.plan.executables.values())
        return {
            "schema": SCHEMA,
            "lab": loam_lab.__version__,
            "kind": self.kind,
            "created_utc": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "command": self.command,
            "machine": self.instruments.machine(),
            "revision": revision(),
            "preset": self.preset,
            "counter_sources": [dict(source) for source in self.counter_sources],
            "allocators": [allocator_json(allocator) for allocator in self._allocators.values()],
            "executables": [
                {
                    "name": executable.label,
                    "path": str(executable.path),
                    "build_id": executable.build_id,
                    "description": executable.description.model_dump(by_alias=True, mode="json"),
                }
                for executable in executables
            ],
            # Only this part must be the same for a resumed campaign; JSON text, so that reading it back compares equal.
            "plan": {
                "study": self.study.model_dump(by_alias=True, mode="json"),
                "cells": [cell.as_json() for cell in self.plan.cells()],
                "notes": self.plan.notes,
                "runs": len(self.plan.runs),
            },
        }

    def _run(self, machine: Mapping[str, Any]) -> Ended:
        given_up = _GivenUp()
        finished: dict[str, Mapping[str, Any]] = {}
        self._before_s = 0.0
        for line in journal.read(self.folder):
            given_up.note(line["cell"], line["identity"]["allocator"]["name"], line["identity"]["sync"]["name"], line)
            finished[line["id"]] = _outline(line)
            self._before_s = max(self._before_s, line.get("t_s", 0.0) + line.get("wall_s", 0.0))
        self._began_s = time.monotonic()
        self._measured = 0
        names: dict[PlannedRun, str] = {}

        def known(run: PlannedRun) -> Mapping[str, Any] | None:
            if run not in names:
                names[run] = digest(self._identity(run, machine))
            return finished.get(names[run])

        adaptive = self.study.target_width is not None
        schedule = Schedule(
            self.plan, known, stops=self._stops_before, sensitive=self._sensitive, spare=self._spare,
            close=Narrow(self.study, self.plan, self.folder).close if adaptive else lambda turn, closed: frozenset(),
            minimum=min(self.study.blocks_of(group) for group in self.study.groups) if adaptive else None,
        )  # fmt: skip
        todo = [run for run in self.plan.runs if known(run) is None]
        remaining = Remaining([(self._kind(run), self._guess_s(run)) for run in todo], at_most=adaptive)
        ended = Ended(len(finished), 0, 0, interrupted=False)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_ends_like_ctrl_c())
            writer = stack.enter_context(journal.Journal(self.folder))
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loam-", dir=scratch_folder())))
            progress = stack.enter_context(Progress(self.study.name, len(todo), remaining, Watched(self.folder)))
            closed: set[int] = set()
            try:
                for run in schedule:
                    cell = run.cell
                    if schedule.closed != closed:
                        spared = self._spared(run.block, schedule.closed - closed)
                        closed |= schedule.closed
                        for other in spared:
                            remaining.done(self._kind(other), None)
                        progress.grow(-len(spared))
                    if run.attempt:
                        remaining.add(self._kind(run), self._guess_s(run))
                        progress.grow(1)
                    if given_up.reason(cell.key, cell.allocator, cell.sync):
                        ended.skipped += 1
                        remaining.done(self._kind(run), None)
                    else:
                        began = time.monotonic()
                        line = self._one(run, self._identity(run, machine), scratch)
                        writer.append(line)
                        finished[line["id"]] = _outline(line)
                        given_up.note(cell.key, cell.allocator, cell.sync, line)
                        remaining.done(self._kind(run), time.monotonic() - began)
                        self._measured += 1
                    progress.step()
            except KeyboardInterrupt:
                ended.interrupted = True
            # An interrupt may have come between the journal's line and its being noted.
            ended.done = len({line["id"] for line in journal.read(self.folder)}) if ended.interrupted else len(finished)
        ended.measured = self._measured
        ended.repeated, ended.refused = schedule.repeated, schedule.refused
        ended.total = len(self.plan.runs) + schedule.repeated
        return ended

    def _stops_before(self, block: int) -> bool:
        """Whether the blocks measured suffice, or the next one would not fit into the time budget."""
        if self.enough is not None and self.enough(block):
            return True
        budget_s = self.study.budget_s
        if budget_s is None or block < BLOCKS_FOR_INTERVAL:
            return False
        return not self._time_for(sum(len(one) for one in self.plan.turns[block]), budget_s)

    def _spare(self, turn: int, runs: int) -> bool:
        """Whether the time budget leaves room to repeat so many runs of a turn after all that is planned."""
        budget_s = self.study.budget_s
        if budget_s is None:
            return True
        planned = sum(len(block) for blocks in self.plan.turns[turn + 1 :] for block in blocks)
        return self._time_for(planned + runs, REPEATS_BUDGET_SHARE * budget_s)

    def _time_for(self, runs: int, budget_s: float) -> bool:
        """Whether so many more runs, each as long as those of this start were on average, fit into the time budget."""
        used_s = time.monotonic() - self._began_s
        return used_s * (1 + runs / max(1, self._measured)) <= budget_s

    def _sensitive(self, run: PlannedRun) -> bool:
        """Counts of addresses or aborts are what they are, however long they took."""
        cell = run.cell
        return self.plan.executables[cell.sync].workload(cell.workload).depends_on_time

    def _spared(self, block: int, columns: AbstractSet[int]) -> list[PlannedRun]:
        """Runs from a block on that columns which were closed before it will not need."""
        return [run for run in self.plan.runs if run.timing and run.block >= block and run.column in columns]

    def _identity(self, run: PlannedRun, machine: Mapping[str, Any]) -> dict[str, Any]:
        executable = self.plan.executables[run.cell.sync]
        allocator = self._allocators[run.cell.allocator]
        return identity(
            run,
            parameters=self._launcher.parameters(run.cell),
            allocator={"name": allocator.name, "settings": allocator.settings, "sha256": allocator.sha256},
            build_id=executable.build_id,
            machine={"cpu": machine.get("cpu"), "cores": machine.get("cores")},
            preset=executable.description.build.preset,
        )

    def _guess_s(self, run: PlannedRun) -> float:
        return self._launcher.duration_s(run) + OVERHEAD_GUESS_S

    @staticmethod
    def _kind(run: PlannedRun) -> tuple[object, ...]:
        return (run.cell.group, run.cell.sync, run.cell.parameters, run.cell.threads, run.purpose)

    def _one(self, run: PlannedRun, run_identity: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
        allocator = self._allocators[run.cell.allocator]
        proof_file = scratch / "proof"
        proof_file.unlink(missing_ok=True)
        environment = self._launcher.environment()
        environment.update(self.instruments.environment(allocator, proof_file))
        # The size of the environment moves the stack; all runs of a block get the same, blocks differ.
        environment["LOAM_PADDING"] = "x" * run.padding
        observer = observe.observer(run, scratch)
        if self._launcher.speaks_records:
            environment["LOAM_STACK_OFFSET"] = f"{run.stack:04d}"
        timeout_s = self.study.timeout_s or max(TIMEOUT_S, 5 * self._launcher.duration_s(run))
        timeout_s = max(timeout_s, observer.timeout_min_s)
        line: dict[str, Any] = {
            "schema": journal.SCHEMA,
            "id": digest(run_identity),
            "identity": run_identity,
            "cell": run.cell.key,
            "block": run.block,
            "copy": run.copy,
            "attempt": run.attempt,
            "purpose": run.purpose,
            "order": run.order,
            "t_s": round(self._before_s + time.monotonic() - self._began_s, 6),
            "offsets": {"environment": run.padding, "stack": run.stack},
        }
        argv, records = self._launcher.argv(run), self._launcher.speaks_records
        try:
            observer.begin()
            before = self.instruments.load()
            outcome = execute(
                observer.command(argv), environment, timeout_s=timeout_s, records=records, keep_stdout=records,
                watch=observer.watch,
            )  # fmt: skip
            after = self.instruments.load()
            observed, unobserved = observer.end(outcome)
        except OSError as problem:
            return {**line, **_not_started(problem)}
        finally:
            observer.close()
        proof = self.instruments.proof(proof_file, allocator, outcome, argv)
        judged = self._launcher.judge(outcome, run)
        state, failure, detail = judged.state, judged.failure, judged.detail
        if state == "ok" and proof.status != "proven":
            state, failure, detail = "unproven", "unproven", "; ".join(proof.reasons) or proof.status
        if state == "ok" and unobserved:
            state, failure, detail = "failed", "observation", unobserved
        if observed:
            line["observed"] = observed
        threads = run.cell.threads if records else None
        disturbance = self.instruments.disturbance(before, after, outcome, judged.records, threads)
        warnings = [*proof.warnings, *([outcome.leftover] if outcome.leftover else [])]
        course = warmup.of_records(judged.records)
        if course is not None:
            line["course"] = course.as_json()
            warnings += [warmup.ADVICE[course.kind]] if course.kind in warmup.ADVICE else []
        return {
            **line, **outcome_json(outcome, proof), "state": state, "failure": failure, "detail": detail,
            "disturbance": disturbance.as_json(), "proof": proof_json(proof), "records": judged.records,
            "warnings": warnings,
        }  # fmt: skip


def _outline(line: Mapping[str, Any]) -> dict[str, Any]:
    """What the schedule asks of a line; the rest, records above all, need not stay in memory."""
    return {"state": line["state"], "disturbance": line.get("disturbance", {})}


@contextlib.contextmanager
def _ends_like_ctrl_c() -> Iterator[None]:
    """TERM and HUP end a campaign as Ctrl-C does; their default would leave the measured process running alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _GivenUp:
    """Cells for which further runs would only repeat what is known."""

    def __init__(self) -> None:
        self._timeouts: dict[str, int] = {}
        self._unproven: set[tuple[str, str]] = set()
        self._proven: set[tuple[str, str]] = set()

    def note(self, cell: str, allocator: str, sync: str, line: Mapping[str, Any]) -> None:
        if line["purpose"] in SIMULATED:
            return
        if line["state"] == "timeout":
            self._timeouts[cell] = self._timeouts.get(cell, 0) + 1
        # One that was proven before works; a later run that is not was disturbed, and the next one may be fine.
        if line["state"] == "ok":
            self._proven.add((allocator, sync))
        if line["state"] == "unproven" and (allocator, sync) not in self._proven:
            self._unproven.add((allocator, sync))

    def reason(self, cell: str, allocator: str, sync: str) -> str:
        if (allocator, sync) in self._unproven:
            return "unproven"
        return "timeout" if self._timeouts.get(cell, 0) >= TIMEOUTS_MAX else ""


def _not_started(problem: OSError) -> dict[str, Any]:
    return {"state": "failed", "failure": "exit", "detail": f"does not start: {problem.strerror}", "records": [],
            "started_utc": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "proof": {"status": "unproven", "reasons": [], "cpu_share_proven": 0.0}, "warnings": []}  # fmt: skip


def allocator_json(allocator: Allocator) -> dict[str, Any]:
    """An allocator as manifests and results have it."""
    return {
        "name": allocator.name,
        "version": allocator.version,
        "path": allocator.path or "",
        "soname": allocator.soname,
        "build_id": allocator.build_id,
        "sha256": allocator.sha256,
        "package": allocator.package,
        "settings": dict(allocator.settings),
    }
