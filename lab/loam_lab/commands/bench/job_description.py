"""A job as the rest of the lab knows what it runs: its description, its launcher, and the files that it consists of."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loam_lab.base import paths
from loam_lab.campaign.measure.instruments import without_allocator_settings
from loam_lab.campaign.measure.launch import WorkloadLauncher
from loam_lab.commands.bench.footprint import GROUP
from loam_lab.commands.bench.job import COMMAND, SYNC, Job
from loam_lab.judging.statistics.data import PROCESS_METRICS
from loam_lab.model.schema import SCHEMA
from loam_lab.subjects.subject import Subject, of_command

if TYPE_CHECKING:
    from loam_lab.model.cell import Cell, PlannedRun
    from loam_lab.subjects.workloads import Executable

PERCENTILES = ("p50", "p90", "p95", "p99", "p999", "max")
# Beside the command or load: starting, getting ready, stopping, and what prepares and checks.
AROUND_S = 60.0


def subject(job: Job) -> Subject:
    """The driver with a job; its files are those of the command lines that run under the allocator, and of the load."""
    files = [file for line in [*job.programs, *([job.load] if job.serves else [])] for file in of_command(line).files]
    argv = (sys.executable, "-m", "loam_lab.commands.bench.driver", job.as_json())
    return Subject(argv, tuple(dict.fromkeys(files)), (("PYTHONPATH", str(paths.root() / "lab")),))


def description(job: Job, name: str) -> dict[str, Any]:
    """What --describe would say. name: of the workload; its first metric is the one that decides."""
    own: list[Mapping[str, Any]] = []
    parameters = []
    if job.serves:
        # Printed by the load, and like its seconds worse where others take the processor away.
        own = [
            {"name": job.named(), "unit": _unit(job), "better": job.better, "kind": "ratio", "of": ("printed", "elapsed_s")},
            *({"name": f"latency_{which}_s", "unit": "s", "better": "lower", "kind": "time"} for which in PERCENTILES),
            {"name": "server_cpu_s", "unit": "s", "better": "lower", "kind": "time"},
            {"name": "rss_after_bytes", "unit": "B", "better": "lower", "kind": "bytes"},
            {"name": "pss_after_bytes", "unit": "B", "better": "lower", "kind": "bytes"},
        ]  # fmt: skip
    else:
        texts = list(job.commands)
        parameters = [
            {"name": COMMAND, "type": "choice", "choices": texts, "default": texts[0], "help": "the command line"}
        ]
    own += [metric.model_dump() for metric in PROCESS_METRICS]
    own.append({"name": "migrations", "unit": "1", "better": "lower", "kind": "count"})
    if any(file.startswith("memory.") for file in job.group):
        own.append({"name": GROUP, "unit": "B", "better": "lower", "kind": "bytes"})
    return {
        "schema": SCHEMA,
        "sync": {"name": SYNC, "summary": job.text, "kind": "none", "threads_max": 1},
        "starts_others": True,
        "workloads": [{"name": name, "summary": job.text, "kinds": ["none"], "parameters": parameters, "metrics": own}],
    }


def timeout_s(job: Job) -> float:
    """When the driver is ended that should have ended long before, and said which part took too long."""
    loads = 1 + job.warmup + bool(job.fill)
    return loads * job.timeout_s + job.ready_s + AROUND_S


def _unit(job: Job) -> str:
    return (
        "1/s" if job.better == "higher" and re.search(r"per.?s|/s|rps|ops|qps|tps", job.metric, re.IGNORECASE) else "1"
    )


class JobLauncher(WorkloadLauncher):
    """Starts the driver of a job with the user's environment, of which what disturbs the allocator under test is left out.

    environment: the user's; expected_s: what one run took
    """

    def __init__(self, executable: Executable, job: Job, environment: Mapping[str, str], expected_s: float) -> None:
        super().__init__(executable)
        self._job = job
        self._user, self.dropped = without_allocator_settings(environment)
        self._expected_s = expected_s

    def environment(self, allocator: Mapping[str, str]) -> dict[str, str]:
        """See Launcher."""
        return {**self._user, **super().environment(allocator)}

    def parameters(self, cell: Cell) -> dict[str, int | str]:
        """See Launcher; the same words in another folder, or with other work around them, are another job."""
        return {**super().parameters(cell), "folder": os.getcwd(), "job": self._job.as_json()}  # noqa: PTH109

    def duration_s(self, run: PlannedRun) -> float:
        """See Launcher."""
        return self._expected_s

    def timeout_s(self, run: PlannedRun) -> float:
        """See Launcher: the driver ends what takes too long itself, and says what it was."""
        return timeout_s(self._job)
