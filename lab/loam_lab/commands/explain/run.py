"""The run that is explained: one process under one allocator, with blame, its records and its allocator's proof."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import RealInstruments, scratch_folder, signal_name
from loam_lab.campaign.measure.launch import WorkloadLauncher
from loam_lab.campaign.moves import STATISTICS
from loam_lab.campaign.process.execute import RECORDS_FD, execute
from loam_lab.commands.run.selecting import SIMULATED_MS, SIMULATED_WARMUP_MS
from loam_lab.model.records import parse
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.allocators import costs, preloading

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.commands.request import Request
    from loam_lab.subjects.workloads import Executable

TIMEOUT_S = 120.0
# Where the workload takes a duration and none was asked for: long enough for some thousand conflicts.
DURATION, DURATION_MS = "duration_ms", 2000


@dataclass(frozen=True)
class Asked:
    """What to run, every name and value checked.

    parameters: as given, not the defaults; every: n of which every n-th abort of a thread is recorded
    """

    workload: str
    allocator: str
    executable: Executable
    threads: int
    parameters: dict[str, int | str]
    seed: int
    every: int
    machine: str = machines.HOST

    @property
    def blames(self) -> bool:
        """Whether the run reports why it aborts; else it is explained by the cache lines that its threads share."""
        return self.executable.description.sync.blame

    def command(self) -> list[str]:
        """The executable and its arguments, without what is to be recorded."""
        argv = [*self.executable.subject.argv, self.workload, "--threads", str(self.threads), "--seed", str(self.seed)]
        if machines.find(self.machine).simulated:
            argv += ["--warmup-ms", str(SIMULATED_WARMUP_MS)]
        for name, value in self.parameters.items():
            argv += ["-p", f"{name}={value}"]
        return argv


def check(workload: str, request: Request, *, allocator: str, executable: Executable, every: int) -> Asked:
    """The run to make.

    request: without threads as many as the machine has
    raises: LoamError for an unknown name (with the nearest), a bad value, or a run in which nothing could be explained
    """
    selection = request.selection
    threads, machine = next(iter(selection.threads), None), next(iter(selection.machines), machines.HOST)
    workloads.fitting([executable], workload)
    if threads == 1:
        raise LoamError(
            "--threads", 1, "a single thread meets no other, so nothing is to be explained", "use --threads 2 or more"
        )
    where = machines.find(machine)
    count = threads or max(2, where.threads)
    workloads.check_instrumented([executable], where)
    workloads.check_threads([count], [executable], where, oversubscribe=selection.oversubscribe)
    levels: dict[str, list[str]] = {}
    for name, values in selection.parameters:
        levels.setdefault(name, []).extend(values)
    checked = workloads.check_parameters(levels, workload, [executable])
    for name, choices in checked.items():
        if len(choices) > 1:
            raise LoamError(f"-p {name}", ",".join(map(str, choices)), "explain takes one value of each parameter",
                            "explain each value in a separate run")  # fmt: skip
    if DURATION in executable.parameters(workload) and not {DURATION, "operations"} & set(levels):
        checked[DURATION] = [SIMULATED_MS if where.simulated else DURATION_MS]
    only = {name: choices[0] for name, choices in checked.items()}
    return Asked(workload, allocator, executable, count, only, request.effort.seed, every, machine)


@dataclass(frozen=True)
class Performed:
    """What a run wrote. statistics: of the simulator, "" on a machine that exists."""

    records: list[dict[str, Any]]
    statistics: str = ""


def perform(asked: Asked, instruments: Instruments | None = None) -> Performed:
    """Run it once and return what it wrote.

    instruments: None for those of this checkout
    raises: LoamError if it fails, if it is not verified, or if another allocator served it
    """
    using = instruments or RealInstruments()
    machine = using.machine(asked.machine)
    chosen = using.allocator(asked.allocator, machine.preset)
    argv = [*asked.command(), "--records", str(RECORDS_FD)]
    if asked.blames:
        argv += ["--blame", "--explain", str(asked.every)]
    with (
        tempfile.TemporaryDirectory(prefix="loam-explain-", dir=scratch_folder()) as folder,
        preloading.place(scratch_folder()) as proof_file,
    ):
        launcher = WorkloadLauncher(asked.executable)
        environment = {
            **launcher.environment(using.environment(chosen, proof_file)),
            **machine.environment_of(asked.seed),
            **costs.environment(chosen, machine.description),
        }
        statistics_file = Path(folder) / "statistics"
        if machine.simulated:
            environment[STATISTICS] = str(statistics_file)
        duration_s = int(asked.parameters.get(DURATION, 0)) / 1000
        command = machine.command(argv)
        timeout_s = TIMEOUT_S + 5 * duration_s * machine.slowdown
        outcome = execute(command, environment, timeout_s=timeout_s, records=True, keep_stdout=True)
        proof = using.proof(proof_file, chosen, outcome, argv)
        statistics = statistics_file.read_text() if statistics_file.exists() else ""
    stderr_lines = outcome.stderr_tail.strip().splitlines()
    tail = f": {stderr_lines[-1]}" if stderr_lines else ""
    if outcome.timed_out:
        raise LoamError(asked.workload, None, f"did not end within {outcome.wall_s:.0f} s{tail}", exit_code=1)
    if outcome.signal is not None:
        raise LoamError(asked.workload, None, f"was ended by {signal_name(outcome.signal)}{tail}", exit_code=1)
    parsed = parse(outcome.records)
    if outcome.exit_code != 0 and not parsed.message:
        raise LoamError(asked.workload, None, f"ended with status {outcome.exit_code}{tail}", exit_code=1)
    if parsed.problem:
        raise LoamError(asked.workload, None, f"its records cannot be used: {parsed.problem}", exit_code=1)
    if not parsed.verified:
        raise LoamError(asked.workload, None, f"its result is wrong: {parsed.message}", exit_code=1)
    if proof.status != "proven":
        raise LoamError(
            "--allocator", asked.allocator, f"is not proven to have served the run: {'; '.join(proof.reasons)}",
            f"see loam allocators verify {asked.allocator}", exit_code=1,
        )  # fmt: skip
    return Performed(parsed.lines, statistics)
