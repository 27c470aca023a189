"""One planned run on this machine: its process, what became of it, and the line that the journal gets.

A campaign that runs here uses it, and so does the agent that runs blocks on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.campaign.measure import disturbance, observe
from loam_lab.campaign.measure.instruments import Instruments, scratch_folder
from loam_lab.campaign.measure.launch import Launcher, WorkloadLauncher, outcome_json, proof_json, used_by
from loam_lab.campaign.measure.plan import Plan
from loam_lab.campaign.process.execute import Watch, execute
from loam_lab.judging.statistics import warmup
from loam_lab.model.cell import Cell, PlannedRun, digest, identity
from loam_lab.model.schema import SCHEMA
from loam_lab.model.study import Study
from loam_lab.subjects.allocators import costs, preloading
from loam_lab.subjects.subject import Unchanged, digest_of

if TYPE_CHECKING:
    from loam_lab.subjects.allocators.registry import Allocator
    from loam_lab.subjects.machines import Machine

# Of a simulated run, at least: its own clock is not the host's, which may be busy with other things.
SIMULATED_TIMEOUT_S = 900.0


class Execution:
    """All that turns planned runs of a study into lines.

    launchers: of executables that speak no records, by label; machines: of the cells seen so far, by name
    allocators: of the cells seen so far, by name and preset; unchanged: whether a cell's files are what they were
    """

    def __init__(
        self, study: Study, plan: Plan, instruments: Instruments, launchers: Mapping[str, Launcher] | None = None
    ) -> None:
        self._study, self._plan, self._instruments = study, plan, instruments
        self._launchers: dict[tuple[str, str], Launcher] = {
            place: (launchers or {}).get(executable.label) or WorkloadLauncher(executable)
            for place, executable in plan.executables.items()
        }
        self.machines: dict[str, Machine] = {}
        self.allocators: dict[tuple[str, str | None], Allocator] = {}
        self.unchanged = Unchanged()
        self._files: dict[str, tuple[str, ...]] = {}
        self._digests: dict[str, str] = {}

    def prepare(self, cell: Cell) -> list[str]:
        """Find the machine and the allocator of a cell, and remember its files; returns: files that its parameters name.

        raises: LoamError if there is no such machine, or the allocator cannot be used
        """
        if cell.machine not in self.machines:
            self.machines[cell.machine] = self._instruments.machine(cell.machine)
        preset = self.machines[cell.machine].preset
        if (cell.allocator, preset) not in self.allocators:
            self.allocators[cell.allocator, preset] = self._instruments.allocator(cell.allocator, preset)
        self.unchanged.problem(self.files_of(cell))
        return self._plan.executable(cell).named_files(cell.workload, dict(cell.parameters))

    def launcher(self, cell: Cell) -> Launcher:
        """What starts the cell's runs."""
        return self._launchers[cell.machine, cell.sync]

    def allocator(self, cell: Cell) -> Allocator:
        """The allocator of a cell."""
        return self.allocators[cell.allocator, self.machines[cell.machine].preset]

    def files_of(self, cell: Cell) -> tuple[str, ...]:
        """All files that decide what the cell's runs do."""
        if cell.key not in self._files:
            executable = self._plan.executable(cell)
            named = executable.named_files(cell.workload, dict(cell.parameters))
            self._files[cell.key] = (*executable.subject.files, *executable.workload(cell.workload).files, *named)
        return self._files[cell.key]

    def _contents(self, files: Sequence[str]) -> dict[str, str]:
        """Digests of files as they were when they were first asked for."""
        for file in files:
            if file not in self._digests:
                self._digests[file] = digest_of([file])
        return {file: self._digests[file] for file in files}

    def identity(self, run: PlannedRun) -> dict[str, Any]:
        """What can change the run's numbers, see model/cell.py."""
        executable = self._plan.executable(run.cell)
        allocator, machine = self.allocator(run.cell), self.machines[run.cell.machine]
        return identity(
            run,
            parameters=self.launcher(run.cell).parameters(run.cell),
            files=self._contents(executable.workload(run.cell.workload).files),
            allocator={
                "name": allocator.name,
                "settings": allocator.settings,
                "sha256": allocator.sha256,
                **costs.environment(allocator, machine.description),
            },
            build_id=executable.build_id,
            machine=machine.identity(),
            preset=executable.description.build.preset,
        )

    def name(self, run: PlannedRun) -> str:
        """The digest of its identity, by which the journal knows it."""
        return digest(self.identity(run))

    def one(
        self, run: PlannedRun, scratch: Path, t_s: float, watch: Callable[[Watch | None], Watch] | None = None
    ) -> dict[str, Any]:
        """Run it and return its line.

        scratch: a folder for its files; t_s: on the campaign's own clock; watch: who else watches it, given the observer
        """
        with preloading.place(scratch_folder()) as proof_file:
            return self._one(run, scratch, proof_file, t_s, watch)

    def _one(
        self, run: PlannedRun, scratch: Path, proof_file: Path, t_s: float, watch: Callable[[Watch | None], Watch] | None
    ) -> dict[str, Any]:  # fmt: skip
        run_identity = self.identity(run)
        allocator, machine = self.allocator(run.cell), self.machines[run.cell.machine]
        launcher = self.launcher(run.cell)
        observer = observe.observer(run, scratch)
        if machine.simulated:
            program = self._plan.executable(run.cell).subject.program
            observer = observe.of_simulated(run, scratch, program)
        if observer.front:
            allocator = replace(allocator, front=observer.front)
        served = {**self._instruments.environment(allocator, proof_file), **observer.variables}
        environment = launcher.environment(served)
        # The second copy of the baseline shows what another schedule makes of the same.
        environment.update(machine.environment_of(run.seed + run.copy))
        environment.update(costs.environment(allocator, machine.description))
        # The size of the environment moves the stack; all runs of a block get the same, blocks differ.
        environment["LOAM_PADDING"] = "x" * run.padding
        if launcher.speaks_records:
            environment["LOAM_STACK_OFFSET"] = f"{run.stack:04d}"
        slow_s = max(SIMULATED_TIMEOUT_S, launcher.duration_s(run) * machine.slowdown) if machine.simulated else 0.0
        timeout_s = max(self._study.timeout_s or launcher.timeout_s(run), observer.timeout_min_s, slow_s)
        line: dict[str, Any] = {
            "schema": SCHEMA,
            "id": digest(run_identity),
            "identity": run_identity,
            "cell": run.cell.key,
            "block": run.block,
            "copy": run.copy,
            "attempt": run.attempt,
            "purpose": run.purpose,
            "order": run.order,
            "t_s": round(t_s, 6),
            "offsets": {"environment": run.padding, "stack": run.stack},
        }
        argv, records = launcher.argv(run), launcher.speaks_records
        try:
            started = observer.command(argv)
            environment.update(observer.environment)
            observer.begin()
            before = self._instruments.load()
            outcome = execute(
                machine.command(started), environment, timeout_s=timeout_s, records=records, keep_stdout=records,
                watch=observer.watch if watch is None else watch(observer.watch),
            )  # fmt: skip
            after = self._instruments.load()
            observed, unobserved = observer.end(outcome)
        except OSError as problem:
            return {**line, **_not_started(problem)}
        finally:
            observer.close()
        judged = launcher.judge(outcome, run)
        all_cpu_s = outcome.user_s + outcome.system_s
        outcome = used_by(outcome, judged.records)
        proof = self._instruments.proof(proof_file, allocator, outcome, argv)
        state, failure, detail = judged.state, judged.failure, judged.detail
        if state == "ok" and proof.status != "proven":
            state, failure, detail = "unproven", "unproven", "; ".join(proof.reasons) or proof.status
        if state == "ok" and unobserved:
            state, failure, detail = "failed", "observation", unobserved
        if observed:
            line["observed"] = observed
        counted = records and not self._plan.executable(run.cell).description.starts_others
        threads = run.cell.threads if counted else None
        disturbed = disturbance.NONE
        if not machine.deterministic:
            disturbed = self._instruments.disturbance(
                before, after, outcome, judged.records, threads, machine.threads, all_cpu_s
            )
        warnings = [*proof.warnings, *([outcome.leftover] if outcome.leftover else [])]
        course = warmup.of_records(judged.records)
        if course is not None:
            line["course"] = course.as_json()
            warnings += [warmup.ADVICE[course.kind]] if course.kind in warmup.ADVICE else []
        return {
            **line, **outcome_json(outcome, proof), "state": state, "failure": failure, "detail": detail,
            "disturbance": disturbed.as_json(), "proof": proof_json(proof), "records": judged.records,
            "warnings": warnings,
        }  # fmt: skip


def _not_started(problem: OSError) -> dict[str, Any]:
    return {"state": "failed", "failure": "exit", "detail": f"does not start: {problem.strerror}", "records": [],
            "started_utc": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "proof": {"status": "unproven", "reasons": [], "cpu_share_proven": 0.0}, "warnings": []}  # fmt: skip
