"""What the engine reads from the real output of Slurm's commands about a job and its nodes. No cluster is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from two_hosts import written

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet import job as jobs
from loam_lab.campaign.fleet.engine import Status
from loam_lab.campaign.fleet.job import End, Job
from loam_lab.campaign.fleet.slurm import Slurm

NUMBER = "17"


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands: each prints the file of its name."""
    for name, text in (("sbatch", NUMBER), ("squeue", ""), ("scontrol", ""), ("scancel", "")):
        (tmp_path / f"{name}.answer").write_text(text)
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\ncat >/dev/null\ncat {tmp_path}/{name}.answer\n")
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
     (f"{NUMBER}|COMPLETING|None", "running", ""), ("18|RUNNING|None", "lost", ""),
     # Others took its place for a while; it goes on, or is started again, by itself.
     (f"{NUMBER}|SUSPENDED|Priority", "waiting", "Priority"), (f"{NUMBER}|REQUEUED|BeginTime", "waiting", "BeginTime"),
     (f"{NUMBER}|CONFIGURING|None", "waiting", "None"), (f"{NUMBER}|STAGE_OUT|None", "running", "")],
)  # fmt: skip
def test_a_queued_job_waits_or_runs(answers: Path, row: str, state: str, reason: str) -> None:
    (answers / "squeue.answer").write_text(row + "\n")
    job_status = status(answers)
    assert job_status.state == state
    assert job_status.reason.startswith(reason)


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
def test_why_a_job_was_lost_is_told_with_what_to_do(answers: Path, shown: str, reason: str) -> None:
    (answers / "scontrol.answer").write_text(f"JobId={NUMBER} {shown}\n")
    assert status(answers) == Status("lost", reason)


def test_a_job_that_said_how_it_ended_is_not_lost(answers: Path) -> None:
    assert status(answers, End("", "2026-01-01T00:00:00.000Z")) == Status("ended")


def slurm_of(folder: Path, monkeypatch: pytest.MonkeyPatch, sinfo: str) -> None:
    """Put the commands of a Slurm first into the search path. sinfo: the script of that command"""
    for name in ("sbatch", "squeue", "srun", "scancel", "sinfo"):
        (folder / name).write_text(f"#!/bin/sh\n{sinfo if name == 'sinfo' else 'exit 9'}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def nodes(folder: Path, monkeypatch: pytest.MonkeyPatch, rows: str) -> None:
    """A Slurm with these partitions, nodes and their states; the default is the partition bench."""
    slurm_of(folder, monkeypatch, f"case \"$*\" in *%P*) echo 'bench*';; *) printf '{rows}';; esac")


NODES = r"long|node3|idle\nbench|node1|idle\nbench|node2|mixed\n"


def test_the_default_partition_is_taken_whole_and_a_named_one_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes(tmp_path, monkeypatch, NODES)
    assert Slurm(None, []).hosts() == ["node1", "node2"]
    assert Slurm(None, ["node2"]).hosts() == ["node2"]
    assert Slurm("long", []).hosts() == ["node3"]


@pytest.mark.parametrize(
    ("partition", "hosts", "message"),
    [
        ("bensh", [], r"--partition=bensh: not the name of a partition \(did you mean bench\?\)"),
        ("gpu", [], r"--partition=gpu: not the name of a partition \(there are: bench, long\)"),
        (None, ["node1", "node3x"], r"--hosts=node3x: not the name of a node of partition bench \(did you mean node"),
        ("long", ["node1"], r"--hosts=node1: not the name of a node of partition long \(did you mean node3\?\)"),
    ],
)  # fmt: skip
def test_a_partition_or_node_that_does_not_exist_is_named_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: str | None, hosts: list[str], message: str
) -> None:
    nodes(tmp_path, monkeypatch, NODES)
    with pytest.raises(LoamError, match=message):
        Slurm(partition, hosts).hosts()


def test_a_large_partition_is_not_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes(tmp_path, monkeypatch, "".join(rf"bench|node{number}|idle\n" for number in range(9)))
    with pytest.raises(LoamError, match=r"partition bench has 9 nodes.*such as --hosts node0,node1"):
        Slurm(None, []).hosts()


def test_a_controller_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "slurm_load_partitions: Unable to contact slurm controller (connect failure)"
    slurm_of(tmp_path, monkeypatch, f"echo '{message}' >&2; exit 1")
    with pytest.raises(LoamError, match=r"Unable to contact slurm controller.*start slurmctld, or ask the cluster"):
        Slurm(None, []).hosts()


def test_without_slurm_the_message_says_what_else_there_is(tmp_path: Path) -> None:
    tools = tmp_path / "tools"  # all that measuring here needs, and nothing of Slurm's
    tools.mkdir()
    for name in ("g++", "cmake", "ninja", "addr2line", "git"):
        if program := shutil.which(name):
            (tools / name).symlink_to(program)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "loam_lab.cli", "--no-setup", "study", "run", str(written(tmp_path, 6)),
         "--engine", "slurm"],
        cwd=tmp_path, env={**os.environ, "PATH": str(tools), "PYTHONPATH": str(paths.root() / "lab")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "error: --engine=slurm: sbatch is not installed here (run this on a login node of the cluster, or install "
        "slurm-client; --engine ssh needs no Slurm)\n"
    )
    assert not (tmp_path / "results").exists()
