"""Slurm: one batch job per Job, alone on a named node, through sbatch, squeue, srun and scancel.

The checkout and the campaign's folder must be on a file system that the nodes share.  Needs no accounting: whether an
agent came to its end is in its file, and squeue is asked only whether a job is still there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError, unknown
from loam_lab.campaign.fleet import job as jobs
from loam_lab.campaign.fleet.engine import Status
from loam_lab.campaign.fleet.job import Job
from loam_lab.campaign.fleet.survey import answer_in

COMMAND_TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 900.0
# Without a name for them, no more hosts than this become machines of a study.
HOSTS_MAX = 8
CANCEL_WAIT_S = 60.0
WAITING = frozenset(("PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED"))
RUNNING = frozenset(("RUNNING", "COMPLETING", "STAGE_OUT"))
UNREACHABLE = (
    "Unable to contact slurm controller",
    "Connection refused",
    "Socket timed out",
    "Communication connection",
)


class Slurm:
    """See fleet.engine.Engine.

    partition: None for Slurm's default; hosts: nodes by name, none for all of the partition
    options: further options of sbatch and srun, such as --account=x
    """

    name = "slurm"
    poll_s = 2.0

    def __init__(self, partition: str | None, hosts: Sequence[str], options: Sequence[str] = ()) -> None:
        self._partition, self._named, self._options = partition, tuple(hosts), tuple(options)
        self._folder = Path()
        self._numbers: dict[str, str] = {}

    def hosts(self) -> list[str]:
        """See Engine."""
        if missing := [name for name in ("sbatch", "squeue", "srun", "scancel", "sinfo") if shutil.which(name) is None]:
            hint = "run this on a login node of the cluster, or install slurm-client; --engine ssh needs no Slurm"
            raise LoamError("--engine", "slurm", f"{missing[0]} is not installed here", hint)
        rows = [line.split("|") for line in self._asked(["sinfo", "-h", "-N", "-o", "%R|%N|%T"]).splitlines()]
        partitions = list(dict.fromkeys(row[0] for row in rows))
        if self._partition is not None and self._partition not in partitions:
            raise unknown("--partition", self._partition, partitions, "partition")
        default = self._partition or self._default() or (partitions[0] if partitions else "")
        nodes = list(dict.fromkeys(row[1] for row in rows if row[0] == default))
        for name in self._named:
            if name not in nodes:
                raise unknown("--hosts", name, nodes, f"node of partition {default}")
        chosen = list(self._named) or nodes
        if len(chosen) > HOSTS_MAX and not self._named:
            limit = f"partition {default} has {len(chosen)} nodes, and each would be a machine of the study"
            raise LoamError("--hosts", None, limit, f"name those to measure on, such as --hosts {','.join(chosen[:2])}")
        if not chosen:
            raise LoamError("--engine", "slurm", f"partition {default} has no node", "choose another with --partition")
        return chosen

    def _default(self) -> str:
        """The partition that sinfo marks as the default."""
        marked = self._asked(["sinfo", "-h", "-o", "%P"]).split()
        return next((name.rstrip("*") for name in marked if name.endswith("*")), "")

    def ask(self, host: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """See Engine."""
        command = ["srun", *self._place(host), "--job-name=loam-describe", "--quiet", "--input=none"]
        text = json.dumps(question, ensure_ascii=False)
        command += [str(paths.root() / "loam"), "--no-setup", "agent", "describe", text]
        try:
            done = subprocess.run(
                command, cwd=paths.root(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=ASK_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            limit = f"node {host} was not free, or gave no answer, within {ASK_TIMEOUT_S:.0f} s"
            raise LoamError("--hosts", host, limit, "see squeue and sinfo, or choose another node") from None
        return answer_in(done.stdout, done.stderr, host, f"is {paths.root()} shared with node {host}?")

    def open(self, folder: Path, hosts: Sequence[str]) -> None:
        """See Engine."""
        self._folder = folder.resolve()
        left = [file.read_text().strip() for file in sorted((folder / jobs.FOLDER).glob("*.slurm"))]
        if left and (active := self._active(left)):
            self._end(list(active))
        self._numbers = {}

    def submit(self, job: Job) -> None:
        """See Engine."""
        log = jobs.log_of(self._folder, job.name)
        agent = [str(paths.root() / "loam"), "--no-setup", "agent", "run", str(self._folder), job.name]
        command = ["sbatch", "--parsable", "--no-requeue", *self._place(job.host), f"--job-name=loam-{job.name}"]
        command += [f"--output={log}", f"--chdir={paths.root()}", "--open-mode=append"]
        script = f"#!/bin/sh\nexec {shlex.join(agent)}\n"
        number = self._asked(command, script).strip().split(";")[0]
        self._numbers[job.name] = number
        jobs.file_of(self._folder, job.name).with_suffix(".slurm").write_text(number + "\n")

    def _place(self, host: str) -> list[str]:
        """Alone on that node, with all that it has."""
        partition = [f"--partition={self._partition}"] if self._partition else []
        return [*partition, "--exclusive", "--nodes=1", "--ntasks=1", f"--nodelist={host}", "--mem=0", *self._options]

    def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
        """See Engine."""
        try:
            active = self._active([self._numbers[job.name] for job in submitted])
        except LoamError as problem:
            return {job.name: Status("unknown", problem.limit) for job in submitted}
        statuses = {}
        for job in submitted:
            state, reason = active.get(self._numbers[job.name], ("", ""))
            if state in WAITING:
                statuses[job.name] = Status("waiting", reason)
            elif state in RUNNING:
                statuses[job.name] = Status("running")
            elif jobs.End.read(self._folder, job.name):
                statuses[job.name] = Status("ended")
            else:
                statuses[job.name] = Status("lost", state or self._last(self._numbers[job.name]))
        return statuses

    def _active(self, numbers: Sequence[str]) -> dict[str, tuple[str, str]]:
        """State and reason of the jobs that Slurm has not ended, by number."""
        rows = self._asked(["squeue", "-h", "--states=all", "-o", "%i|%T|%r"]).splitlines()
        by_number = {row.split("|")[0]: (row.split("|")[1], row.split("|")[2]) for row in rows}
        return {number: by_number[number] for number in numbers if by_number.get(number, ("",))[0] in WAITING | RUNNING}

    def _last(self, number: str) -> str:
        """In which state Slurm remembers an ended job, and why."""
        try:
            shown = self._asked(["scontrol", "show", "job", "--oneliner", number])
        except LoamError:
            return "Slurm has forgotten the job"
        facts = dict(re.findall(r"(\w+)=(\S*)", shown))
        reason = facts.get("Reason", "None")
        words = f"{facts.get('JobState', 'unknown')}{'' if reason == 'None' else f' ({reason})'}"
        if facts.get("JobState") == "OUT_OF_MEMORY":
            return f"{words}: killed for memory; ask for more with --engine-option=--mem=SIZE"
        return f"{words}, exit code {facts.get('ExitCode', '?')}"

    def fetch(self, job: Job) -> None:
        """See Engine: the folder is shared."""

    def cancel(self, submitted: Sequence[Job]) -> None:
        """See Engine."""
        self._end([self._numbers[job.name] for job in submitted if job.name in self._numbers])

    def _end(self, numbers: Sequence[str]) -> None:
        try:
            self._asked(["scancel", *numbers])
            until = time.monotonic() + CANCEL_WAIT_S
            while self._active(numbers) and time.monotonic() < until:
                time.sleep(0.2)
        except LoamError:
            return  # no controller: its agents end their job by themselves, and a run is kept once

    def close(self) -> None:
        """See Engine."""

    def _asked(self, command: Sequence[str], text: str = "") -> str:
        """What a command of Slurm prints.

        raises: LoamError with what it said
        """
        try:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LoamError("--engine", "slurm", f"{command[0]} gave no answer", "is slurmctld running?") from None
        if done.returncode != 0:
            message = " ".join(done.stderr.split()) or f"{command[0]} ended with status {done.returncode}"
            away = any(words in message for words in UNREACHABLE)
            hint = "start slurmctld, or ask the cluster's administrator" if away else f"see man {command[0]}"
            raise LoamError("--engine", "slurm", message[:300], hint)
        return done.stdout
