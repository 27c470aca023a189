"""How a planned run becomes a process, and how its end is judged: workloads that speak records, and any command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loam_lab.measure.execute import RECORDS_FD, Outcome
from loam_lab.measure.instruments import signal_name, without_allocator_settings, workload_environment
from loam_lab.model.cell import SIMULATED
from loam_lab.model.records import Records, parse

if TYPE_CHECKING:
    from loam_lab.allocators.probe import Proof
    from loam_lab.measure.plan import Plan
    from loam_lab.model.cell import Cell, PlannedRun

OVERHEAD_GUESS_S = 0.06
# Of a workload's counting run, and how many times as long a command takes inside valgrind.
VALGRIND_GUESS_S, VALGRIND_FACTOR = 5.0, 50.0


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

    def environment(self) -> dict[str, str]:
        """Environment before the allocator's variables are added."""

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """Parameters for the identity, defaults included."""

    def duration_s(self, run: PlannedRun) -> float:
        """How long the run should take at least, for time limits and the first estimate of the remaining time."""

    def judge(self, outcome: Outcome, run: PlannedRun) -> Judged:
        """What became of the run."""


class WorkloadLauncher:
    """Workload executables: `NAME WORKLOAD --threads ... --records FD`."""

    speaks_records = True

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def argv(self, run: PlannedRun) -> list[str]:
        """See Launcher; records go to the inherited descriptor."""
        cell = run.cell
        arguments = [str(self._plan.executables[cell.sync].path), cell.workload, "--threads", str(cell.threads)]
        arguments += ["--seed", str(run.seed), "--warmup-ms", str(cell.warmup_ms), "--records", str(RECORDS_FD)]
        if run.blame:
            arguments.append("--blame")
        for name, value in run.parameters:
            arguments += ["-p", f"{name}={value}"]
        return arguments

    def environment(self) -> dict[str, str]:
        """See Launcher; small and constant, because a workload reads none of it."""
        return workload_environment()

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """See Launcher."""
        described = self._plan.executables[cell.sync].parameters(cell.workload)
        return {**{name: parameter.default for name, parameter in described.items()}, **dict(cell.parameters)}

    def duration_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        if run.purpose in SIMULATED:
            return VALGRIND_GUESS_S
        timed = self.parameters(run.cell).get("duration_ms", 0)
        return ((timed if isinstance(timed, int) else 0) + run.cell.warmup_ms) / 1000

    def judge(self, outcome: Outcome, run: PlannedRun) -> Judged:
        """See Launcher."""
        parsed = parse(outcome.records)
        return Judged(*_judge_workload(outcome, parsed, run), parsed.lines)


class CommandLauncher:
    """One command of the user's, the same for every run but for the allocator.

    argv: program as a path, and arguments; environment: the user's; expected_s: what one run took
    """

    speaks_records = False

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], expected_s: float) -> None:
        self._argv = list(argv)
        self._environment, self.dropped = without_allocator_settings(environment)
        self._expected_s = expected_s

    def argv(self, run: PlannedRun) -> list[str]:
        """See Launcher."""
        return list(self._argv)

    def environment(self) -> dict[str, str]:
        """See Launcher: the user's without what would disturb the allocator under test."""
        return dict(self._environment)

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """See Launcher; the same words in another folder are another command."""
        return {**dict(cell.parameters), "folder": os.getcwd()}  # noqa: PTH109

    def duration_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        return self._expected_s * (VALGRIND_FACTOR if run.purpose in SIMULATED else 1)

    def judge(self, outcome: Outcome, run: PlannedRun | None) -> Judged:
        """See Launcher: any status but 0 is a failure."""
        return Judged(*(_judge_end(outcome) or ("ok", "", "")), [])


def _judge_end(outcome: Outcome) -> tuple[str, str, str] | None:
    """(state, failure, detail) of a process that did not end well; None if it did."""
    said = outcome.stderr_tail.strip().splitlines()
    tail = f": {said[-1][:300]}" if said else ""
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
            return "failed", "records", f"the records say {name}={begin[name]}, asked was {value}"
    return "ok", "", ""


def outcome_json(outcome: Outcome, proof: Proof) -> dict[str, Any]:
    """What a process used, as the journal has it.

    The peak memory is the probe's, which looks from inside; wait4's figure stands in where no probe reported.
    """
    fields = asdict(outcome)
    for name in ("records", "timed_out", "pid", "leftover"):
        del fields[name]
    told = max((int(process.get("rss_peak_bytes", 0)) for process in proof.processes), default=0)
    if told:
        fields["rss_peak_bytes"] = told
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
