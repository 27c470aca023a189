"""The run that is watched: any command under one allocator, with the sampler in front, and the allocator's proof."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import events
from loam_lab.campaign.measure.instruments import (
    RealInstruments,
    scratch_folder,
    signal_name,
    without_allocator_settings,
)
from loam_lab.campaign.process.execute import execute
from loam_lab.commands.bench import job, linkage, once, target
from loam_lab.commands.bench.job import Job
from loam_lab.commands.explain.sharing import provider, refusals, watches
from loam_lab.commands.explain.sharing.provider import Provider
from loam_lab.commands.explain.sharing.watches import Process
from loam_lab.subjects.allocators import preflight, preloading

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.campaign.process.execute import Outcome

TIMEOUT_S = 3600.0
LIBRARY, VARIABLE = "sharing", "LOAM_SHARING"
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_PARANOID_MOST = 2
MACHINE = "x86_64"


@dataclass(frozen=True)
class Performed:
    """A run: its processes that had a second thread, how it ended ("" if well), the end of its standard error.

    provider: what served it, where no allocator was chosen
    """

    processes: list[Process] = field(default_factory=list)
    ending: str = ""
    wall_s: float = 0.0
    stderr_tail: str = ""
    provider: Provider = field(default_factory=Provider)


def check_machine() -> None:
    """Nothing where the sampler works; raises: LoamError where it does not, with what to do"""
    if platform.machine() != MACHINE:
        raise LoamError(
            "explain", platform.machine(), f"the sampler reads instructions of {MACHINE} only",
            "run it on such a machine, or explain a workload on a simulated one (--machine)",
        )  # fmt: skip
    try:
        paranoid = int(PARANOID.read_text())
    except (OSError, ValueError):
        raise LoamError(
            "explain", None, "this kernel has no events to watch memory with (perf_event_open)",
            "use a kernel with CONFIG_PERF_EVENTS",
        ) from None  # fmt: skip
    if paranoid > _PARANOID_MOST and os.geteuid() != 0:
        raise LoamError(
            "kernel.perf_event_paranoid", paranoid, "forbids the events by which threads are watched",
            f"as root: sysctl kernel.perf_event_paranoid={_PARANOID_MOST}",
        )  # fmt: skip
    # A container's filter holds for the command, too: it is told before the command runs.
    if number := events.clock_refused():
        raise refusals.error(None, refusals.CLOCK, number)


def words(what: Sequence[str] | Job) -> list[str]:
    """The command line that is watched: of a server under a load the server's."""
    return list(what.server if isinstance(what, Job) else what)


def perform(
    what: Sequence[str] | Job,
    allocator: str | None,
    instruments: Instruments | None = None,
    extra: Mapping[str, str] | None = None,
) -> Performed:
    """Run the command once, or the server under its load, and return what the sampler saw.

    allocator: None for the program as it is; extra: variables of its environment beyond the user's
    raises: LoamError if it does not start, or if nothing could be watched, with the reason
    """
    first, *rest = words(what)
    argv = [target.program(first, "explain"), *rest]
    text = job.joined(words(what))
    # A program that is linked with another allocator is served by libc only if that is preloaded, too.
    before = linkage.find([argv]).before_own if allocator == provider.LIBC else ()
    using = instruments or RealInstruments(before_own=before)
    # In front of the allocator: the probe knows it, and judges what is behind.  libc's is never preloaded, so that the
    # program as it is keeps its own.
    chosen = replace(using.allocator(allocator or provider.LIBC), front=paths.load_paths()["libraries"][LIBRARY])
    user, dropped = without_allocator_settings(os.environ)
    if dropped:
        console.warn(f"{', '.join(sorted(dropped))} of your environment is not passed on")
    with (
        tempfile.TemporaryDirectory(prefix="loam-sharing-", dir=scratch_folder()) as folder,
        preloading.place(scratch_folder()) as proof_file,
    ):
        variables = {**using.environment(chosen, proof_file), VARIABLE: str(Path(folder) / "watches"), **(extra or {})}
        try:
            if isinstance(what, Job):
                outcome, ending = _serve(what, user, variables)
            else:
                outcome = execute(argv, {**user, **variables}, timeout_s=TIMEOUT_S)
                ending = ended(outcome)
        except OSError as problem:
            raise LoamError(
                "explain", text, f"does not start: {problem.strerror}", "try it without loam first"
            ) from None
        proof = using.proof(proof_file, chosen, outcome, argv)
        processes = _read(sorted(Path(folder).glob("watches.*")))
        by = provider.find(proof_file, chosen.front, {process.pid for process in processes})
    # A malloc of the program's own keeps allocators out, not the sampler.
    own = allocator is None and proof.status == "wrong"
    if proof.status != "proven" and not processes and not own:
        # Each obstacle says what to do about it.
        obstacles = "; ".join(preflight.obstacles(argv))
        hint = "" if obstacles else "explain a program that is linked dynamically"
        raise LoamError("explain", text, f"cannot be watched: {obstacles or '; '.join(proof.reasons)}", hint)
    if proof.status == "wrong" and not own:
        raise LoamError(
            "--allocator", allocator, f"is not proven to have served the run: {'; '.join(proof.reasons)}",
            f"leave --allocator out to explain the program as it is, or see loam allocators verify {allocator}",
            exit_code=1,
        )  # fmt: skip
    if not processes:
        raise LoamError(
            "explain", text, ending or "never started a second thread, so nothing can be shared",
            "explain a run with several threads", exit_code=1,
        )  # fmt: skip
    refusals.check(text, processes, ending)
    return Performed(processes, ending, outcome.wall_s, outcome.stderr_tail, by)


def _serve(what: Job, user: Mapping[str, str], variables: Mapping[str, str]) -> tuple[Outcome, str]:
    """Run a server under its load: how that ended, and what went wrong ("" for nothing)."""
    outcome, end = once.serve(what, user, variables)
    if end is None:
        return outcome, ended(outcome)
    return outcome, "" if end["verified"] else f"failed: {end['message']}"


def _read(files: Sequence[Path]) -> list[Process]:
    processes = []
    for file in files:
        content = file.read_bytes()
        if not any(content[: watches.HEAD.size]):
            continue  # its process ended before a word was written
        try:
            processes.append(watches.read(content))
        except ValueError as problem:
            raise LoamError(
                "explain", file.name, f"what the sampler wrote cannot be used: it {problem}",
                "build this checkout anew: ./loam setup", exit_code=1,
            ) from None  # fmt: skip
    return processes


def ended(outcome: Outcome) -> str:
    """How a run ended; "" if well."""
    stderr_lines = outcome.stderr_tail.strip().splitlines()
    tail = f": {stderr_lines[-1]}" if stderr_lines else ""
    if outcome.timed_out:
        return f"was ended after {outcome.wall_s:.0f} s"
    if outcome.signal is not None:
        return f"was ended by {signal_name(outcome.signal)}{tail}"
    return f"ended with status {outcome.exit_code}{tail}" if outcome.exit_code else ""
