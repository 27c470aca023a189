"""The run that is explained: one process under one allocator, with blame, its records and its allocator's proof."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab import workloads
from loam_lab.errors import LoamError
from loam_lab.measure.execute import RECORDS_FD, execute
from loam_lab.measure.instruments import Machine, scratch_folder, signal_name, workload_environment
from loam_lab.model.records import parse

if TYPE_CHECKING:
    from loam_lab.measure.instruments import Instruments
    from loam_lab.workloads import Executable

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


def check(
    workload: str,
    *,
    allocator: str,
    executable: Executable,
    threads: int | None,
    parameters: Sequence[tuple[str, Sequence[str]]],
    seed: int,
    every: int,
    oversubscribe: bool,
) -> Asked:
    """The run to make.

    threads: None for as many as the machine has
    raises: LoamError for an unknown name (with the nearest), a bad value, or a run in which nothing could be explained
    """
    executable.workload(workload)
    if not executable.description.sync.blame:
        raise LoamError(
            "--sync", executable.label, "cannot tell the causes of its aborts apart, so there is nothing to explain",
            "choose a transactional memory of loam list syncs, such as etl-wb",
        )  # fmt: skip
    if threads == 1:
        raise LoamError(
            "--threads", 1, "a thread alone meets nobody and never aborts", "use --threads 2 or more"
        )  # fmt: skip
    count = threads or max(2, len(os.sched_getaffinity(0)))
    workloads.check_threads([count], [executable], oversubscribe=oversubscribe)
    levels: dict[str, list[str]] = {}
    for name, values in parameters:
        levels.setdefault(name, []).extend(values)
    checked = workloads.check_parameters(levels, workload, [executable])
    for name, found in checked.items():
        if len(found) > 1:
            raise LoamError(f"-p {name}", ",".join(map(str, found)), "one run has one value of each parameter",
                            "explain each in a run of its own")  # fmt: skip
    if DURATION in executable.parameters(workload) and not {DURATION, "operations"} & set(levels):
        checked[DURATION] = [DURATION_MS]
    return Asked(
        workload, allocator, executable, count, {name: found[0] for name, found in checked.items()}, seed, every
    )


def perform(asked: Asked, instruments: Instruments | None = None) -> list[dict[str, Any]]:
    """Run it once and return its records.

    instruments: None for the real machine
    raises: LoamError if it fails, if it is not verified, or if another allocator served it
    """
    machine = instruments or Machine()
    chosen = machine.allocator(asked.allocator)
    argv = [str(asked.executable.path), asked.workload, "--threads", str(asked.threads), "--seed", str(asked.seed)]
    argv += ["--blame", "--explain", str(asked.every), "--records", str(RECORDS_FD)]
    for name, value in asked.parameters.items():
        argv += ["-p", f"{name}={value}"]
    with tempfile.TemporaryDirectory(prefix="loam-explain-", dir=scratch_folder()) as folder:
        proof_file = Path(folder) / "proof"
        environment = {**workload_environment(), **machine.environment(chosen, proof_file)}
        duration_s = int(asked.parameters.get(DURATION, 0)) / 1000
        outcome = execute(argv, environment, timeout_s=TIMEOUT_S + 5 * duration_s, records=True, keep_stdout=True)
        proof = machine.proof(proof_file, chosen, outcome, argv)
    said = outcome.stderr_tail.strip().splitlines()
    tail = f": {said[-1]}" if said else ""
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
    return parsed.lines
