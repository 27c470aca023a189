"""One run of a Job, with the records of schema/record.schema.json.

    python -m loam_lab.commands.bench.driver JOB WORKLOAD --threads 1 --seed S --warmup-ms N --records FD [-p command=TEXT]

This process is not measured: the variables that put an allocator into a process come in LOAM_ALLOCATOR_VARIABLES and go
to the server or the command alone, not to the load, the check, or what prepares and cleans up.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loam_lab.base import processes
from loam_lab.base.errors import LoamError
from loam_lab.base.processes import Used
from loam_lab.campaign.process.execute import LEFTOVER
from loam_lab.commands.bench import cgroups, children, serving
from loam_lab.commands.bench.children import Failed
from loam_lab.commands.bench.job import COMMAND, SYNC, Job
from loam_lab.model.protocol import ALLOCATOR_VARIABLES
from loam_lab.model.schema import SCHEMA

# Where a check finds what the command or the load wrote.
OUTPUT = "LOAM_OUTPUT"


def run(job: Job, workload: str, chosen: str, options: argparse.Namespace) -> int:
    """One run; returns the status of the process."""
    records = os.fdopen(options.records, "wb", buffering=0, closefd=False)

    def say(kind: str, **values: object) -> None:
        records.write(json.dumps({"kind": kind, **values}).encode() + b"\n")

    say(
        "begin", schema=SCHEMA, workload=workload, sync=SYNC, threads=options.threads, seed=options.seed, blame=False,
        warmup_ms=0, parameters={COMMAND: chosen} if chosen else {}, preset="", compiler="", build_id="",
        cpus=sorted(os.sched_getaffinity(0)),
    )  # fmt: skip
    plain = {name: value for name, value in os.environ.items() if name != ALLOCATOR_VARIABLES}
    allocator: dict[str, str] = json.loads(os.environ.get(ALLOCATOR_VARIABLES, "{}"))
    measured = {**plain, **allocator}
    used = Used()
    children.adopt()
    try:
        _shell(job.prepare, "--prepare", plain)
        try:
            figures, result, left = _measured(job, chosen, plain, measured, used)
        finally:
            _shell(job.cleanup, "--cleanup", plain)
    except (Failed, LoamError) as problem:
        message = problem.line() if isinstance(problem, LoamError) else str(problem)
        say("process", **asdict(used))
        say("end", verified=False, message=message, live_blocks_delta=0)
        return 3
    finally:
        children.leave_nothing()
    say("process", **asdict(used), **({"leftover": LEFTOVER} if left else {}))
    say("iteration", index=0, elapsed_s=used.wall_s, **figures)
    say("end", verified=True, message="", live_blocks_delta=0, **({"result": result} if job.same_output else {}))
    return 0


def _measured(
    job: Job, chosen: str, plain: Mapping[str, str], measured: Mapping[str, str], used: Used
) -> tuple[dict[str, Any], str, int]:  # fmt: skip
    """The server or the command in its control group; the third value is how many processes were left of it."""
    with cgroups.made(job.group) as group:
        try:
            if job.serves:
                figures, result = _serve(job, plain, measured, used, group)
            else:
                figures, result = _command(job, job.commands[chosen], plain, measured, used, group)
            if (held := cgroups.peak(group)) is not None:
                figures["group_peak_bytes"] = held
        except Failed as problem:
            raise Failed(f"{problem}{cgroups.exceeded(group)}") from None
        finally:
            left = children.leave_nothing()
    return figures, result, left


def _serve(
    job: Job, plain: Mapping[str, str], measured: Mapping[str, str], used: Used, group: Path | None
) -> tuple[dict[str, Any], str]:  # fmt: skip
    """Start the server, load it, stop it: what the load said and what the server used meanwhile, and a digest."""
    with serving.server(job, measured, used, group) as process:
        serving.fill(job, plain, process)
        for _ in range(job.warmup):
            serving.load(job, plain, process)
        members = processes.tree(process.pid)
        before_s, waited_s = children.processor_s(members), children.waited_s(members)
        printed, used.wall_s = serving.load(job, plain, process)
        members = processes.tree(process.pid)
        figures: dict[str, Any] = {"server_cpu_s": children.processor_s(members) - before_s}
        delayed_s = children.waited_s(members)
        figures |= {f"{name.lower()}_after_bytes": size for name, size in children.memory(members).items()}
        moved = children.migrations(members)
        if moved is not None:
            figures["migrations"] = moved
        peak = children.peak_bytes(members)
        _check(job, printed.encode(), plain)
        figures |= serving.values(job, printed)
    # The kernel's own figure counts this process too, from which the server was started.
    used.rss_peak_bytes = peak or used.rss_peak_bytes
    # Of all threads while they were loaded, not of the first one from its start to its end; some may have ended.
    used.run_delay_s = None if waited_s is None or delayed_s is None else max(0.0, delayed_s - waited_s)
    return figures, hashlib.sha256(printed.encode()).hexdigest()


def _command(
    job: Job, command: Sequence[str], plain: Mapping[str, str], measured: Mapping[str, str], used: Used, group: Path | None
) -> tuple[dict[str, Any], str]:  # fmt: skip
    """Run a command to its end: what else is known of it, and a digest of what it wrote."""
    keeps = job.same_output or bool(job.check)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = children.start(command, measured, out if keeps else children.NOWHERE, job.limits, err, group)
        in_time = children.ended([process], job.timeout_s) is not None
        used.wall_s = time.monotonic() - began
        if not in_time:
            os.killpg(process.pid, signal.SIGKILL)
        moved = children.migrations({process.pid})
        status = children.reap(process, used)
        if not in_time:
            raise Failed(f"did not end within {job.timeout_s:g} s{serving.tail(err)}")
        if status < 0 or (status > 0 and not job.ignore_failure):
            how = f"ended with status {status}" if status > 0 else f"ended by {signal.Signals(-status).name}"
            raise Failed(how + serving.tail(err))
        written = serving.written(out)
        _check(job, written, plain)
        return {} if moved is None else {"migrations": moved}, hashlib.sha256(written).hexdigest()


def _check(job: Job, written: bytes, environment: Mapping[str, str]) -> None:
    """Run --check with the name of a file that holds what was written."""
    if job.check:
        with tempfile.NamedTemporaryFile() as file:
            file.write(written)
            file.flush()
            _shell(job.check, "--check", {**environment, OUTPUT: file.name})


def _shell(line: str, option: str, environment: Mapping[str, str]) -> None:
    """A shell line beside the measuring; raises: Failed if it does not end with status 0"""
    if not line:
        return
    with tempfile.TemporaryFile() as out:
        process = children.start(["/bin/sh", "-c", line], environment, out, {})
        status = children.reap(process, Used())
        if status != 0:
            raise Failed(f"{option} '{line}' ended with status {status}{serving.tail(out)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job."""
    parser = argparse.ArgumentParser(prog="python -m loam_lab.commands.bench.driver", description=__doc__)
    parser.add_argument("job")
    parser.add_argument("workload")
    parser.add_argument("--threads", type=int, choices=[1], default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warmup-ms", type=int, default=0)
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    parameters = dict(item.split("=", 1) for item in options.parameters)
    # Asked to end, or left by the lab that was killed, it ends what it started: that lies in groups of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    children.end_with_parent(signal.SIGTERM)
    return run(Job.read(options.job), options.workload, parameters.get(COMMAND, ""), options)


if __name__ == "__main__":
    sys.exit(main())
