"""What a campaign needs from its surroundings: allocators, their proof, machines, what else is going on.  Tests bring
their own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from loam_lab.base import paths
from loam_lab.campaign.measure import disturbance
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from loam_lab.campaign.measure.disturbance import Disturbance, Load
    from loam_lab.campaign.process.execute import Outcome
    from loam_lab.subjects.allocators.probe import Proof
    from loam_lab.subjects.allocators.registry import Allocator
    from loam_lab.subjects.machines import Machine

# Variables by which a user's shell could put another allocator, or another probe, in the place of the one under test.
PRELOADING = {"LD_PRELOAD", "LD_AUDIT", "LOAM_PROBE"}
# All that a workload of ours gets from the user's environment: it reads none of it, libraries might.
WORKLOAD_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH")


class Instruments(Protocol):
    """Access to allocators, their proof and the machine."""

    def allocator(self, name: str, preset: str | None = None) -> Allocator:
        """The allocator of that name; preset: the build of our own, None for the usual one.

        raises: LoamError if it is unknown or cannot be used
        """

    def environment(self, allocator: Allocator, proof_file: Path) -> dict[str, str]:
        """Variables that put the allocator and the probe into a process."""

    def proof(self, proof_file: Path, allocator: Allocator, outcome: Outcome, argv: Sequence[str]) -> Proof:
        """What the probe saw in a run of argv with that outcome."""

    def machine(self, name: str) -> Machine:
        """The machine of that name; raises: LoamError if there is none."""

    def load(self) -> Load:
        """What the host as a whole is doing; asked before and after each run."""

    def disturbance(
        self, before: Load, after: Load, outcome: Outcome, records: Sequence[Mapping[str, Any]], threads: int | None,
        cores: int, all_cpu_s: float | None,
    ) -> Disturbance:  # fmt: skip
        """What others took from a run.

        threads: that it keeps busy, None where nobody knows; cores: hardware threads that it may use
        all_cpu_s: CPU time of all its processes, those that are not measured as well
        """


class RealInstruments:
    """The instruments of this checkout.

    probe: the built probe library; None to find it in the build (LoamError where it is not built)
    before_own: preloaded where libc is to serve a program that is linked with another allocator
    """

    def __init__(self, preset: str = "release", probe: Path | None = None, before_own: Sequence[str] = ()) -> None:
        self.preset = preset
        self._probe = probe
        self._before_own = before_own

    def allocator(self, name: str, preset: str | None = None) -> Allocator:
        """See Instruments."""
        from loam_lab.subjects.allocators import registry

        return registry.load(name, preset or self.preset)

    def environment(self, allocator: Allocator, proof_file: Path) -> dict[str, str]:
        """See Instruments."""
        from loam_lab.subjects.allocators import preloading

        if self._probe is None:
            self._probe = Path(paths.load_paths(self.preset)["libraries"]["probe"])
        variables = preloading.environment(allocator, self._probe, proof_file)
        if allocator.path is None and self._before_own:
            variables["LD_PRELOAD"] = ":".join([variables["LD_PRELOAD"], *self._before_own])
        return variables

    def proof(self, proof_file: Path, allocator: Allocator, outcome: Outcome, argv: Sequence[str]) -> Proof:
        """See Instruments."""
        from loam_lab.subjects.allocators import probe

        return probe.read(proof_file, allocator, outcome.user_s + outcome.system_s, pid=outcome.pid, command=argv)

    def machine(self, name: str) -> Machine:
        """See Instruments."""
        return machines.find(name)

    def load(self) -> Load:
        """See Instruments."""
        return disturbance.read()

    def disturbance(
        self, before: Load, after: Load, outcome: Outcome, records: Sequence[Mapping[str, Any]], threads: int | None,
        cores: int, all_cpu_s: float | None,
    ) -> Disturbance:  # fmt: skip
        """See Instruments."""
        return disturbance.judge(
            before, after, wall_s=outcome.wall_s, cpu_s=outcome.user_s + outcome.system_s,
            main_delay_s=outcome.run_delay_s, records=records, threads=threads, cores=cores, all_cpu_s=all_cpu_s,
        )  # fmt: skip


def without_allocator_settings(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """An environment without what would disturb the allocator under test, and the names left out."""
    from loam_lab.subjects.allocators import registry

    dropped = [name for name in environment if name in PRELOADING or registry.is_read_by_some(name)]
    return {name: value for name, value in environment.items() if name not in dropped}, dropped


def workload_environment() -> dict[str, str]:
    """The small, constant environment of a workload."""
    kept = {name: os.environ[name] for name in WORKLOAD_VARIABLES if name in os.environ}
    return {**kept, "LANG": "C.UTF-8"}


def scratch_folder() -> Path | None:
    """Memory-backed folder for proof files, so that a run's exit does not wait for a disk; None where there is none."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else None


def signal_name(number: int) -> str:
    """11 -> "SIGSEGV"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
