"""What `bench` measures, as a plan: one command as it stands, or a job of loam_lab.commands.bench.job.

A target knows its study's group, tries a run that does not count, and brings the launcher of all others.
"""

from __future__ import annotations

import os
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import Instruments, scratch_folder
from loam_lab.campaign.measure.launch import CommandLauncher, Judged, used_by
from loam_lab.campaign.memory.sampler import Sampler
from loam_lab.campaign.process.execute import Outcome, execute
from loam_lab.commands.bench import job_description
from loam_lab.commands.bench.footprint import GROUP
from loam_lab.commands.bench.job import COMMAND, SYNC, Job
from loam_lab.commands.bench.trial import Trial
from loam_lab.model.description import Description
from loam_lab.model.records import totals
from loam_lab.model.schema import SCHEMA
from loam_lab.subjects import workloads
from loam_lab.subjects.allocators import preloading, wrappers
from loam_lab.subjects.subject import digest_of, of_command

if TYPE_CHECKING:
    from loam_lab.campaign.measure.launch import Launcher
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.model.study import Study
    from loam_lab.subjects.subject import Subject

AGAIN_S = 2.0


class Target(ABC):
    """What is measured.

    text: as typed; workload: its name; sync: the label of its executable; run_s: what one run takes
    apart: whether it was seen to have several processes whose memory nobody else adds up
    """

    text: str
    workload: str
    sync: str
    programs: Sequence[Sequence[str]]
    serves: bool = False
    apart: bool = False
    run_s: float
    launcher: Launcher
    dropped: Sequence[str]

    @abstractmethod
    def levels(self) -> dict[str, Any]:
        """The parameters of the study's group."""

    @abstractmethod
    def attempt(self, study: Study, instruments: Instruments, timeout_s: float) -> None:
        """Runs that do not count: they show that it works and how long it takes; raises: LoamError if it fails"""

    @abstractmethod
    def plan(self, study: Study) -> Plan:
        """The plan of a study of this target; attempt() comes first."""


class Command(Target):
    """One command of the user's, started as it stands. argv: its words"""

    sync = "command"

    def __init__(self, argv: Sequence[str]) -> None:
        self.text = shlex.join(argv)
        self._argv = [program(argv[0]), *argv[1:]]
        self.programs = [self._argv]
        self.workload = Path(wrappers.behind(self._argv)[0]).name

    def levels(self) -> dict[str, Any]:
        """See Target."""
        return {COMMAND: self.text}

    def attempt(self, study: Study, instruments: Instruments, timeout_s: float) -> None:
        """See Target; files that it changes itself are no part of what it is."""
        subject = of_command(self._argv)
        before = {file: digest_of([file]) for file in subject.files}
        launcher = CommandLauncher(subject, os.environ, 0.0)
        with _variables(study.baseline, instruments) as variables:
            environment = launcher.environment(variables)
            try:
                with Trial(timeout_s) as trial:
                    outcome = execute(self._argv, environment, timeout_s=timeout_s, watch=trial.look)
                if outcome.wall_s < AGAIN_S and outcome.exit_code == 0:  # the first one also read the program from disk
                    outcome = execute(self._argv, environment, timeout_s=timeout_s)
            except OSError as problem:
                hint = "try it without loam first"
                raise LoamError("bench", self.text, f"does not start: {problem.strerror}", hint) from None
        _must_end_well(self.text, launcher.judge(outcome, None), "it must end with status 0 before it can be compared")
        kept = [file for file, digest in before.items() if Path(file).is_file() and digest_of([file]) == digest]
        self._subject = replace(subject, files=tuple(kept))
        self.run_s = outcome.wall_s
        self.launcher = own = CommandLauncher(self._subject, os.environ, self.run_s)
        self.dropped = own.dropped

    def plan(self, study: Study) -> Plan:
        """See Target: a subject that speaks no records; its one workload has the metrics of every process."""
        from loam_lab.judging.statistics.data import PROCESS_METRICS

        parameter = {
            "name": COMMAND, "type": "choice", "choices": [self.text], "default": self.text, "help": "the command line"
        }  # fmt: skip
        description = Description.model_validate({
            "schema": SCHEMA,
            "sync": {"name": self.sync, "summary": self.text, "kind": "none", "threads_max": 1},
            "workloads": [{
                "name": self.workload, "summary": self.text, "kinds": ["none"], "parameters": [parameter],
                "metrics": [metric.model_dump() for metric in PROCESS_METRICS],
            }],
        })  # fmt: skip
        return _planned(study, self.sync, self._subject, description)


class Driven(Target):
    """A job, each run of which the driver does."""

    sync = SYNC

    def __init__(self, job: Job) -> None:
        first = job.programs[0]
        self.text, self._job = job.text, job
        self.programs, self.serves = job.programs, job.serves
        self.workload = Path(wrappers.behind(first)[0]).name if len(job.programs) == 1 else "commands"

    def levels(self) -> dict[str, Any]:
        """See Target."""
        return {} if self._job.serves else {COMMAND: tuple(self._job.commands)}

    def attempt(self, study: Study, instruments: Instruments, timeout_s: float) -> None:
        """See Target: every command once, and so often as --warmup says; of a server one run."""
        self._subject = job_description.subject(self._job)
        plan = self.plan(study)
        before = {file: digest_of([file]) for file in self._subject.files}
        executable = next(iter(plan.executables.values()))
        launcher = job_description.JobLauncher(executable, self._job, os.environ, 0.0)
        took: dict[str, float] = {}
        sampler = Sampler() if self.serves else None
        with _variables(study.baseline, instruments) as variables:
            environment = launcher.environment(variables)
            for run in plan.runs:
                level = dict(run.parameters).get(COMMAND, "")
                if str(level) in took:
                    continue
                for _ in range(1 if self._job.serves else 1 + self._job.warmup):
                    with Trial(self._job.timeout_s, sampler) as trial:
                        outcome = execute(
                            launcher.argv(run), environment, timeout_s=launcher.timeout_s(run), records=True,
                            keep_stdout=True, watch=trial.look,
                        )  # fmt: skip
                    judged = launcher.judge(outcome, run)
                    _must_end_well(str(level) or self.text, judged, "it must work before it can be compared")
                took[str(level)] = _whole_s(outcome, judged)
        kept = [file for file, digest in before.items() if Path(file).is_file() and digest_of([file]) == digest]
        self._subject = replace(self._subject, files=tuple(kept))
        self.run_s = sum(took.values())
        self.apart = sampler is not None and sampler.processes > 1 and GROUP not in totals(judged.records)
        self.launcher = job_description.JobLauncher(executable, self._job, os.environ, max(took.values()))
        self.dropped = launcher.dropped

    def plan(self, study: Study) -> Plan:
        """See Target."""
        description = Description.model_validate(job_description.description(self._job, self.workload))
        return _planned(study, self.sync, self._subject, description)


def program(name: str, subject: str = "bench") -> str:
    """The path of a program; raises: LoamError if there is none of that name, or it may not be executed"""
    path = shutil.which(name)
    if path is None:
        exists = Path(name).exists()
        limit = "is not executable" if exists else "no such program"
        raise LoamError(subject, name, limit, "name a program on PATH, or a path; a shell line is: sh -c '...'")
    return str(Path(path).absolute())


def _planned(study: Study, sync: str, subject: Subject, description: Description) -> Plan:
    from loam_lab.campaign.measure import plan as plans

    return plans.make(study, executables=[workloads.Executable(sync, subject, description, subject.digest())])


@contextmanager
def _variables(allocator: str, instruments: Instruments) -> Iterator[dict[str, str]]:
    """The variables that put an allocator into a process, while a file for its proof is there."""
    with preloading.place(scratch_folder()) as proof_file:
        yield instruments.environment(instruments.allocator(allocator), proof_file)


def _must_end_well(text: str, judged: Judged, hint: str) -> None:
    if judged.state != "ok":
        raise LoamError("bench", text, judged.detail, hint, exit_code=1)


def _whole_s(outcome: Outcome, judged: Judged) -> float:
    """What one run takes with all that is around what is measured."""
    return max(outcome.wall_s, used_by(outcome, judged.records).wall_s)
