"""What Slurm says of a job, from its commands' output as it is: no cluster takes part."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.fleet import job as jobs
from loam_lab.fleet.engine import Status
from loam_lab.fleet.job import End, Job
from loam_lab.fleet.slurm import Slurm

NUMBER = "17"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands: each prints the file of its name."""
    for name, text in (("sbatch", NUMBER), ("squeue", ""), ("scontrol", ""), ("scancel", "")):
        (tmp_path / f"{name}.said").write_text(text)
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\ncat >/dev/null\ncat {tmp_path}/{name}.said\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def status(folder: Path, end: End | None = None) -> Status:
    """Of a job that was submitted. end: what its agent wrote, if it came so far"""
    job = Job("00001-alpha", "alpha", (), 0.0)
    (folder / jobs.FOLDER).mkdir()
    job.write(folder)
    engine = Slurm(None, ["alpha"])
    engine.open(folder, ["alpha"])
    engine.submit(job)
    if end is not None:
        end.write(folder, job.name)
    return engine.poll([job])[job.name]


@pytest.mark.parametrize(
    ("row", "state", "reason"),
    [(f"{NUMBER}|PENDING|Resources", "waiting", "Resources"), (f"{NUMBER}|RUNNING|None", "running", ""),
     (f"{NUMBER}|COMPLETING|None", "running", ""), ("18|RUNNING|None", "lost", "")],
)  # fmt: skip
def test_a_queued_job_waits_or_runs(said: Path, row: str, state: str, reason: str) -> None:
    (said / "squeue.said").write_text(row + "\n")
    found = status(said)
    assert found.state == state
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125",
         "OUT_OF_MEMORY (OutOfMemory): killed for memory; ask for more with --engine-option=--mem=SIZE"),
        ("JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15", "TIMEOUT (TimeLimit), exit code 0:15"),
        ("JobState=PREEMPTED Reason=None ExitCode=0:0", "PREEMPTED, exit code 0:0"),
        ("JobState=NODE_FAIL Reason=NodeDown ExitCode=1:0", "NODE_FAIL (NodeDown), exit code 1:0"),
    ],
)  # fmt: skip
def test_why_a_job_was_lost_is_told_with_what_to_do(said: Path, shown: str, reason: str) -> None:
    (said / "scontrol.said").write_text(f"JobId={NUMBER} {shown}\n")
    assert status(said) == Status("lost", reason)


def test_a_job_that_said_how_it_ended_is_not_lost(said: Path) -> None:
    assert status(said, End("", "2026-01-01T00:00:00.000Z")) == Status("ended")
