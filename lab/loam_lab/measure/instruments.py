"""What a campaign needs from the machine: allocators, their proof, the machine's name.  Tests bring their own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from loam_lab import paths
from loam_lab.measure import disturbance

if TYPE_CHECKING:
    from loam_lab.allocators.probe import Proof
    from loam_lab.allocators.registry import Allocator
    from loam_lab.measure.disturbance import Disturbance, Load
    from loam_lab.measure.execute import Outcome

# Variables by which a user's shell could change the allocator under test or put another one in its place.
ALLOCATOR_PREFIXES = ("MALLOC_", "MIMALLOC_", "TCMALLOC_", "JEMALLOC_", "HOARD_", "SCUDO_", "RPMALLOC_", "SNMALLOC_")
ALLOCATOR_VARIABLES = {"GLIBC_TUNABLES", "LD_PRELOAD", "LD_AUDIT", "LOAM_PROBE"}
# All that a workload of ours gets from the user's environment: it reads none of it, libraries might.
WORKLOAD_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH")


class Instruments(Protocol):
    """Access to allocators, their proof and the machine."""

    def allocator(self, name: str) -> Allocator:
        """The allocator of that name; raises: LoamError if it is unknown or cannot be used."""

    def environment(self, allocator: Allocator, proof_file: Path) -> dict[str, str]:
        """Variables that put the allocator and the probe into a process."""

    def proof(self, proof_file: Path, allocator: Allocator, outcome: Outcome, argv: Sequence[str]) -> Proof:
        """What the probe saw in a run of argv with that outcome."""

    def machine(self) -> dict[str, Any]:
        """The machine as results record it."""

    def load(self) -> Load:
        """What the machine as a whole is doing; asked before and after each run."""

    def disturbance(
        self, before: Load, after: Load, outcome: Outcome, records: Sequence[Mapping[str, Any]], threads: int | None
    ) -> Disturbance:
        """What others took from a run; threads: that it keeps busy, None where nobody knows."""


class Machine:
    """The real instruments.

    probe: the built probe library; None to find it in the build (LoamError where it is not built)
    """

    def __init__(self, preset: str = "release", probe: Path | None = None) -> None:
        self.preset = preset
        self._probe = probe

    def allocator(self, name: str) -> Allocator:
        """See Instruments."""
        from loam_lab.allocators import registry

        return registry.load(name)

    def environment(self, allocator: Allocator, proof_file: Path) -> dict[str, str]:
        """See Instruments."""
        from loam_lab.allocators import probe

        if self._probe is None:
            self._probe = Path(paths.load_paths(self.preset)["libraries"]["probe"])
        return probe.environment(allocator, self._probe, proof_file)

    def proof(self, proof_file: Path, allocator: Allocator, outcome: Outcome, argv: Sequence[str]) -> Proof:
        """See Instruments."""
        from loam_lab.allocators import probe

        return probe.read(proof_file, allocator, outcome.user_s + outcome.system_s, pid=outcome.pid, command=argv)

    def machine(self) -> dict[str, Any]:
        """See Instruments."""
        from loam_lab import machine

        return machine.fingerprint()

    def load(self) -> Load:
        """See Instruments."""
        return disturbance.read()

    def disturbance(
        self, before: Load, after: Load, outcome: Outcome, records: Sequence[Mapping[str, Any]], threads: int | None
    ) -> Disturbance:
        """See Instruments."""
        return disturbance.judge(
            before, after, wall_s=outcome.wall_s, cpu_s=outcome.user_s + outcome.system_s,
            main_delay_s=outcome.run_delay_s, records=records, threads=threads, cores=len(os.sched_getaffinity(0)),
        )  # fmt: skip


def without_allocator_settings(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """An environment without what would disturb the allocator under test, and the names left out."""
    from loam_lab.allocators import registry

    known = registry.setting_variables()
    dropped = [
        name
        for name in environment
        if name in known or name in ALLOCATOR_VARIABLES or name.startswith(ALLOCATOR_PREFIXES)
    ]
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


def revision() -> str:
    """Git revision of the checkout, with "+" where files were changed since; "" outside git."""
    try:
        # Without optional locks: another git command in the same checkout must not find the index taken.
        command = ["git", "--no-optional-locks", "-C", str(paths.root()), "describe"]
        command += ["--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
