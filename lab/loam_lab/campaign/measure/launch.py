"""How a planned run becomes a process, and how its end is judged: subjects that speak records, and any command."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from loam_lab.campaign.measure.instruments import signal_name, without_allocator_settings, workload_environment
from loam_lab.campaign.process.execute import RECORDS_FD, Outcome
from loam_lab.model.cell import IN_VALGRIND
from loam_lab.model.protocol import ALLOCATOR_VARIABLES
from loam_lab.model.records import Records, parse
from loam_lab.subjects.subject import digest_of

if TYPE_CHECKING:
    from loam_lab.model.cell import Cell, PlannedRun
    from loam_lab.subjects.allocators.probe import Proof
    from loam_lab.subjects.subject import Subject
    from loam_lab.subjects.workloads import Executable

OVERHEAD_GUESS_S = 0.06
TIMEOUT_S = 60.0
# A real program may do much work in one run, and says nothing of how long it takes.
PROGRAM_TIMEOUT_S = 1800.0
# Of a workload's counting run, and how many times as long a command takes inside valgrind, or where that writes down
# every access. The model that reads along shares the processors with it.
VALGRIND_GUESS_S, VALGRIND_FACTOR, LACKEY_FACTOR = 5.0, 50.0, 4000.0


@dataclass(frozen=True)
class Judged:
    """What became of a run without regard to its allocator's proof.

    state: ok | failed | timeout | killed; failure: "" | timeout | signal | verification | exit | records
    """

    state: str
    failure: str
    detail: str
    records: list[dict[str, Any]]


class Launcher(Protocol):
    """Turns runs into processes."""

    speaks_records: bool

    def argv(self, run: PlannedRun) -> list[str]:
        """Program (a path) and arguments."""

    def environment(self, allocator: Mapping[str, str]) -> dict[str, str]:
        """The environment of the process. allocator: variables that put the allocator under test into a process"""

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """Parameters for the identity, defaults included."""

    def duration_s(self, run: PlannedRun) -> float:
        """How long the run should take at least, for the first estimate of the remaining time."""

    def timeout_s(self, run: PlannedRun) -> float:
        """When a run has hung, where the study does not say."""

    def judge(self, outcome: Outcome, run: PlannedRun) -> Judged:
        """What became of the run."""


class WorkloadLauncher:
    """A subject that speaks records: `ARGV... WORKLOAD --threads ... --records FD`."""

    speaks_records = True

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self._parameters: dict[str, dict[str, int | str]] = {}

    def argv(self, run: PlannedRun) -> list[str]:
        """See Launcher; records go to the inherited descriptor."""
        cell = run.cell
        arguments = [*self._executable.subject.argv, cell.workload, "--threads", str(cell.threads)]
        arguments += ["--seed", str(run.seed), "--warmup-ms", str(cell.warmup_ms), "--records", str(RECORDS_FD)]
        if run.blame:
            arguments.append("--blame")
        for name, value in run.parameters:
            arguments += ["-p", f"{name}={value}"]
        return arguments

    def environment(self, allocator: Mapping[str, str]) -> dict[str, str]:
        """See Launcher; small and constant, because a workload reads none of it."""
        own = {**workload_environment(), **dict(self._executable.subject.environment)}
        if self._executable.description.starts_others:
            return {**own, ALLOCATOR_VARIABLES: json.dumps(dict(allocator))}
        return {**own, **allocator}

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """See Launcher; a file is known by the contents that it had when it was first asked for, wherever it lies."""
        if cell.key not in self._parameters:
            described = self._executable.parameters(cell.workload)
            own = dict(cell.parameters)
            for name, value in own.items():
                if value and described[name].type == "file":
                    own[name] = digest_of([str(value)])
            self._parameters[cell.key] = {**{name: one.default for name, one in described.items()}, **own}
        return self._parameters[cell.key]

    def duration_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        if run.purpose in IN_VALGRIND:
            return VALGRIND_GUESS_S
        timed = self.parameters(run.cell).get("duration_ms", 0)
        return ((timed if isinstance(timed, int) else 0) + run.cell.warmup_ms) / 1000

    def timeout_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        least_s = PROGRAM_TIMEOUT_S if self._executable.description.starts_others else TIMEOUT_S
        return max(least_s, 5 * self.duration_s(run))

    def judge(self, outcome: Outcome, run: PlannedRun) -> Judged:
        """See Launcher."""
        parsed = parse(outcome.records)
        return Judged(*_judge_workload(outcome, parsed, run), parsed.lines)


class CommandLauncher:
    """One command of the user's, the same for every run but for the allocator.

    subject: the command; environment: the user's; expected_s: what one run took
    """

    speaks_records = False

    def __init__(self, subject: Subject, environment: Mapping[str, str], expected_s: float) -> None:
        self._subject = subject
        self._environment, self.dropped = without_allocator_settings(environment)
        self._expected_s = expected_s

    def argv(self, run: PlannedRun) -> list[str]:
        """See Launcher."""
        return list(self._subject.argv)

    def environment(self, allocator: Mapping[str, str]) -> dict[str, str]:
        """See Launcher: the user's without what would disturb the allocator under test."""
        return {**self._environment, **allocator}

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """See Launcher; the same words in another folder are another command."""
        return {**dict(cell.parameters), "folder": os.getcwd()}  # noqa: PTH109

    def duration_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        if run.purpose not in IN_VALGRIND:
            return self._expected_s
        return self._expected_s * (LACKEY_FACTOR if run.purpose == "tlb" else VALGRIND_FACTOR)

    def timeout_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        return max(TIMEOUT_S, 5 * self.duration_s(run))

    def judge(self, outcome: Outcome, run: PlannedRun | None) -> Judged:
        """See Launcher: any status but 0 is a failure."""
        return Judged(*(_judge_end(outcome) or ("ok", "", "")), [])


def used_by(outcome: Outcome, records: list[dict[str, Any]]) -> Outcome:
    """The outcome with what the processes used that the subject started, where its records say so."""
    record = next((line for line in records if line["kind"] == "process"), None)
    if record is None:
        return outcome
    known = {field.name for field in fields(Outcome)}
    return replace(outcome, **{name: value for name, value in record.items() if name in known})


def _judge_end(outcome: Outcome) -> tuple[str, str, str] | None:
    """(state, failure, detail) of a process that did not end well; None if it did."""
    lines = outcome.stderr_tail.strip().splitlines()
    tail = f": {lines[-1][:300]}" if lines else ""
    if outcome.timed_out:
        return "timeout", "timeout", f"did not end within {outcome.wall_s:.0f} s{tail}"
    if outcome.signal is not None:
        return "killed", "signal", f"ended by {signal_name(outcome.signal)}{tail}"
    if outcome.exit_code != 0:
        return "failed", "exit", f"ended with status {outcome.exit_code}{tail}"
    return None


def _judge_workload(outcome: Outcome, parsed: Records, run: PlannedRun) -> tuple[str, str, str]:
    ended = _judge_end(outcome)
    if (ended is None or ended[1] == "exit") and not parsed.problem and not parsed.verified:
        return "failed", "verification", parsed.message or "the workload's verification failed"
    if ended is not None:
        return ended
    if parsed.problem:
        return "failed", "records", parsed.problem
    begin = parsed.first("begin") or {}
    asked = {"workload": run.cell.workload, "threads": run.cell.threads, "seed": run.seed, "blame": run.blame}
    for name, value in asked.items():
        if begin.get(name, value) != value:
            return "failed", "records", f"the records say {name}={begin[name]}, but {value} was requested"
    return "ok", "", ""


def outcome_json(outcome: Outcome, proof: Proof) -> dict[str, Any]:
    """What a process used, as the journal has it.

    The peak memory is the probe's, which looks from inside; wait4's figure stands in where no probe reported.
    """
    fields = asdict(outcome)
    for name in ("records", "timed_out", "pid", "leftover"):
        del fields[name]
    peak_bytes = max((int(process.get("rss_peak_bytes", 0)) for process in proof.processes), default=0)
    if peak_bytes:
        fields["rss_peak_bytes"] = peak_bytes
    return fields


def proof_json(proof: Proof) -> dict[str, Any]:
    """A proof as the journal has it; the list of processes only where it says more than the status."""
    fields: dict[str, Any] = {
        "status": proof.status,
        "reasons": list(proof.reasons),
        "notes": list(proof.notes),
        "cpu_share_proven": proof.cpu_share_proven,
    }
    if proof.status != "proven" or len(proof.processes) > 1:
        fields["processes"] = proof.processes
    return fields
