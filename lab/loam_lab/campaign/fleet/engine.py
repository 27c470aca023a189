"""What an engine must do so that blocks are measured on other machines.  `slurm` and `ssh` are engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from loam_lab.campaign.fleet.job import Job


@dataclass(frozen=True)
class Status:
    """What became of a job.

    state: "unknown" while the engine itself does not answer; "lost" where its agent ended before it said so
    reason: in the engine's words
    """

    state: Literal["waiting", "running", "ended", "lost", "unknown"]
    reason: str = ""


class Engine(Protocol):
    """Starts agents on hosts.

    name: as --engine takes it; poll_s: how often poll() may be asked
    """

    name: str
    poll_s: float

    def hosts(self) -> list[str]:
        """The hosts, in order; raises: LoamError if the engine is not there, or has none of that name"""

    def ask(self, host: str, question: dict[str, Any]) -> dict[str, Any]:
        """The answer of `loam agent describe` on a host; raises: LoamError if it cannot be reached or set up"""

    def open(self, folder: Path, hosts: Sequence[str]) -> None:
        """Bring what jobs need to the hosts, and end what an earlier start of the campaign left there."""

    def submit(self, job: Job) -> None:
        """Have a job run whose file is written; raises: LoamError if the engine refuses it"""

    def poll(self, jobs: Sequence[Job]) -> dict[str, Status]:
        """What became of each job, by its name."""

    def fetch(self, job: Job) -> None:
        """Bring what the job's host wrote into the campaign's folder; whole lines, each once."""

    def cancel(self, jobs: Sequence[Job]) -> None:
        """End jobs and wait until none of them runs any more."""

    def close(self) -> None:
        """Release what the engine holds."""
