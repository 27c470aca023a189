"""A job: whole blocks for one host, as a file of the campaign's folder that the agent on that host reads.

The agent writes a second file when it ends.  Both are replaced in one step, so that a reader never sees a part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab.model.cell import PlannedRun
from loam_lab.model.store import journal

# Hidden, so that it belongs to no archive of the result.
FOLDER = ".fleet"
# In it: the process of the agent that works on a host of its own folder.
PID = "agent.pid"
SCHEMA = 1


@dataclass(frozen=True)
class Job:
    """Runs for one host, in order.

    name: unique within the campaign; t_s: when it was submitted, on the campaign's own clock
    """

    name: str
    host: str
    runs: tuple[PlannedRun, ...]
    t_s: float

    def write(self, folder: Path) -> Path:
        """Write the job's file into a campaign's folder.

        raises: LoamError if that cannot be written
        """
        file = file_of(folder, self.name)
        with journal.writable(folder / FOLDER):
            file.parent.mkdir(exist_ok=True)
        runs = [run.as_json() for run in self.runs]
        own = {"schema": SCHEMA, "name": self.name, "host": self.host, "t_s": self.t_s, "runs": runs}
        journal.write_whole(file, json.dumps(own, ensure_ascii=False) + "\n")
        return file

    @staticmethod
    def read(folder: Path, name: str) -> Job:
        """The inverse of write(); raises: OSError, ValueError or KeyError for a file that is no such job"""
        value: Mapping[str, Any] = json.loads(file_of(folder, name).read_text())
        runs = tuple(PlannedRun.from_json(run) for run in value["runs"])
        return Job(value["name"], value["host"], runs, value["t_s"])


@dataclass(frozen=True)
class End:
    """How an agent ended.

    problem: why the host cannot go on and what to do, "" where it can; utc: the host's own time
    """

    problem: str
    utc: str

    def write(self, folder: Path, name: str) -> None:
        """Write it beside the job."""
        own = {"schema": SCHEMA, "problem": self.problem, "utc": self.utc}
        journal.write_whole(end_of(folder, name), json.dumps(own, ensure_ascii=False) + "\n")

    @staticmethod
    def read(folder: Path, name: str) -> End | None:
        """The end of a job; None while there is none."""
        try:
            value = json.loads(end_of(folder, name).read_text())
        except (OSError, ValueError):
            return None
        return End(value["problem"], value["utc"])


def file_of(folder: Path, name: str) -> Path:
    """Where a job is written down."""
    return folder / FOLDER / f"{name}.json"


def end_of(folder: Path, name: str) -> Path:
    """Where its end is."""
    return folder / FOLDER / f"{name}.end.json"


def log_of(folder: Path, name: str) -> Path:
    """What the agent printed."""
    return folder / FOLDER / f"{name}.log"
