"""The agent: runs on a measured host while a job runs.  Between jobs no process of Loam runs there.

`loam agent describe` says what the host has; `loam agent run` runs the blocks of one job.  An agent that is started
again for the same job runs what is missing of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import loam_lab
from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.base.interrupts import ends_like_ctrl_c
from loam_lab.campaign.fleet import job as jobs
from loam_lab.campaign.fleet.job import End, Job
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.builds import prepare
from loam_lab.campaign.measure.execution import Execution
from loam_lab.campaign.measure.given_up import GivenUp
from loam_lab.campaign.measure.instruments import Instruments, RealInstruments, scratch_folder
from loam_lab.model.store import folder as folders
from loam_lab.model.store import journal
from loam_lab.model.study import Study
from loam_lab.subjects import machines, workloads

# An agent that was given up may still be at its last run.
LOCK_WAIT_S = 180.0


def describe(question: Mapping[str, Any]) -> dict[str, Any]:
    """What this host has of what a study asks for.

    question: "study" (as JSON), "preset", "folder" (that must be visible here, "" for none), "build" (whether to build)
    raises: LoamError if something cannot be used here
    """
    study, preset = Study.model_validate(question["study"]), str(question["preset"])
    if question["build"]:
        prepare(study, preset)
    folder = str(question["folder"])
    facts = machines.host().facts()
    return {
        "lab": loam_lab.__version__,
        "revision": paths.revision(),
        "utc": _now(),
        "sees": not folder or Path(folder).is_dir(),
        "threads": machines.host().threads,
        "facts": facts,
        **contents(study, RealInstruments(preset), preset),
    }


def contents(study: Study, instruments: Instruments, preset: str) -> dict[str, Any]:
    """What decides the results of a study here: digests of its allocators and executables, by name; what is lacking."""
    allocators, executables, lacking = {}, {}, {}
    for group in study.groups:
        for name in study.allocators_of(group):
            try:
                allocator = instruments.allocator(name)
                allocators[name] = {"version": allocator.version, "sha256": allocator.sha256}
            except LoamError as problem:
                lacking[name] = problem.line()
        for one in workloads.resolve_syncs(plans.syncs_of(group, preset), preset):
            executables[one.label] = {"build_id": one.build_id}
    return {"allocators": allocators, "executables": executables, "lacking": lacking}


def run(folder: Path, name: str, instruments: Instruments | None = None) -> int:
    """Run what is missing of a job, and say how that ended.

    folder: of the campaign; name: of the job; instruments: None for the real ones
    returns: 0, or 1 where the host cannot go on
    """
    problem = ""
    try:
        with ends_like_ctrl_c():
            (folder / jobs.FOLDER / jobs.PID).write_text(f"{os.getpid()}\n")
            _run(folder, name, instruments)
    except LoamError as error:
        problem = error.line()
    except OSError as error:
        problem = f"{error.filename or folder}: {error.strerror} (free some space, then go on with --resume)"
    except KeyboardInterrupt:
        return 130  # no end: what is missing is to be run again
    End(problem, _now()).write(folder, name)
    return int(bool(problem))


def _run(folder: Path, name: str, instruments: Instruments | None) -> None:
    try:
        job, manifest = Job.read(folder, name), folders.read_manifest(folder)
    except (OSError, ValueError, KeyError) as problem:
        raise LoamError(
            str(folder), None, f"job {name} cannot be read: {problem}", "use a folder that is shared"
        ) from None
    study, preset = Study.model_validate(manifest["plan"]["study"]), str(manifest["preset"])
    instruments = instruments or RealInstruments(preset)
    machines.declare(replace(machines.host(), name=job.host))
    with _alone(job.host):
        _same(manifest["hosts"][job.host], contents(study, instruments, preset), job.host)
        plan = plans.Plan()
        for group in study.groups:
            for executable in workloads.resolve_syncs(plans.syncs_of(group, preset), preset):
                plan.executables.setdefault((job.host, executable.label), executable)
        _runs(folder, job, Execution(study, plan, instruments))


def _runs(folder: Path, job: Job, execution: Execution) -> None:
    began_s, given_up = time.monotonic(), GivenUp()
    cells = {run.cell.key: run.cell for run in job.runs}
    for cell in cells.values():
        execution.prepare(cell)
    done = set()
    for line in journal.read(folder):
        done.add(line["id"])
        if (known := cells.get(line["cell"])) is not None:
            given_up.note(known, line)
    with (
        journal.Journal(folder, job.host) as writer,
        tempfile.TemporaryDirectory(prefix="loam-", dir=scratch_folder()) as scratch,
    ):
        for run in job.runs:
            if changed := execution.unchanged.problem(execution.files_of(run.cell)):
                raise LoamError(job.host, None, changed, "restore it and go on with --resume, or begin anew")
            if given_up.reason(run.cell) or execution.name(run) in done:
                continue
            line = execution.one(run, Path(scratch), job.t_s + time.monotonic() - began_s)
            writer.append(line)
            given_up.note(run.cell, line)


def _same(before: Mapping[str, Any], now: Mapping[str, Any], host: str) -> None:
    """Refuses a host that changed since the campaign began.

    raises: LoamError
    """
    for kind, mark in (("allocators", "sha256"), ("executables", "build_id")):
        for name, digests in now[kind].items():
            known = before[kind].get(name, {}).get(mark, "missing")
            if digests[mark] != known:
                what = f"{mark} of {name} was {known[:16]} when the campaign began and is {digests[mark][:16]} now"
                raise LoamError(host, None, what, "restore it and go on with --resume, or begin a new campaign")


@contextlib.contextmanager
def _alone(host: str) -> Iterator[None]:
    """No two agents of a user measure under one host's name at once: the kernel's lock outlives no process.

    raises: LoamError if another one does not end
    """
    run_lock = Path("/run/lock")
    folder = run_lock if os.access(run_lock, os.W_OK) else Path(tempfile.gettempdir())
    file = folder / f"loam-{os.getuid()}-{host}.lock"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        until = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    what = f"another campaign of yours measures there: it holds {file}"
                    raise LoamError(host, None, what, "wait for it, then go on with --resume") from None
                time.sleep(0.2)
        yield
    finally:
        os.close(descriptor)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def answer(text: str) -> int:
    """Print what describe() says to a question that is JSON; an error is the answer's "error"."""
    try:
        document = describe(json.loads(text))
    except LoamError as error:
        document = {"error": error.line()}
    print("loam-agent: " + json.dumps(document, ensure_ascii=False), flush=True)
    return 0
