"""Real programs as workloads: one run of one of them, with the records of schema/record.schema.json.

    python -m loam_lab.subjects.programs --describe
    python -m loam_lab.subjects.programs PROGRAM --threads 1 --seed S [--warmup-ms N] [--records FD] [-p amount=N]
                                         [-p python=WHICH]

This process starts the commands of the program and is not measured itself: the variables that put an allocator into a
process come in LOAM_ALLOCATOR_VARIABLES and are given to those commands alone.  What they used is the record `process`,
a digest of what they wrote is `result` of the record `end`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loam_lab.model.protocol import ALLOCATOR_VARIABLES
from loam_lab.model.schema import SCHEMA
from loam_lab.subjects.programs import running
from loam_lab.subjects.programs.catalogue import PROGRAMS
from loam_lab.subjects.programs.running import Failed, Program

NAME = "programs"
# What CPython asks for small blocks: malloc, which is what is measured, or pools of its own, as it does by default.
PYTHON = ("malloc", "pymalloc")
PADDING = "LOAM_PADDING"


def describe() -> dict[str, Any]:
    """What --describe says."""
    summary = "real programs, started with their inputs; a program's threads and processes are its own"
    return {
        "schema": SCHEMA,
        "sync": {
            "name": NAME, "summary": summary, "kind": "none", "threads_max": 1, "paper": "", "blame": False,
            "parameters": [{
                "name": "python", "type": "choice", "choices": list(PYTHON), "default": "malloc", "unit": "",
                "help": "where CPython takes small blocks from: the allocator, or pools of its own",
            }],
        },
        "build": {"compiler": "", "preset": "", "flags": "", "revision": ""},
        "starts_others": True,
        "workloads": [_workload(program) for program in PROGRAMS.values()],
    }  # fmt: skip


def _workload(program: Program) -> dict[str, Any]:
    executable = shutil.which(program.starts[0], path=running.ENVIRONMENT["PATH"])
    amount = {
        "name": "amount", "type": "integer", "min": 1, "max": 1_000_000_000, "default": program.short, "unit": "",
        "help": f"how much of it; {program.long} takes seconds",
    }  # fmt: skip
    return {
        "name": program.name, "summary": program.compares, "kinds": ["none"], "parameters": [amount],
        "metrics": [{"name": "cpu_s", "unit": "s", "better": "lower", "kind": "time"},
                    {"name": "migrations", "unit": "1", "better": "lower", "kind": "count"}],
        "files": [str(Path(executable).resolve())] if executable else [],
        "lacks": running.lacks(program),
    }  # fmt: skip


def run(program: Program, options: argparse.Namespace, parameters: dict[str, str]) -> int:
    """One run; returns the status of the process."""
    records = os.fdopen(options.records, "wb", buffering=0, closefd=False)

    def say(kind: str, **values: object) -> None:
        records.write(json.dumps({"kind": kind, **values}).encode() + b"\n")

    amount = int(parameters["amount"])
    say(
        "begin", schema=SCHEMA, workload=program.name, sync=NAME, threads=options.threads, seed=options.seed, blame=False,
        warmup_ms=0, parameters={"amount": amount, "python": parameters["python"]}, preset="", compiler="", build_id="",
        cpus=sorted(os.sched_getaffinity(0)),
    )  # fmt: skip
    allocator: dict[str, str] = json.loads(os.environ.get(ALLOCATOR_VARIABLES, "{}"))
    own = {"PYTHONMALLOC": parameters["python"]}
    if PADDING in os.environ:
        own[PADDING] = os.environ[PADDING]
    try:
        with running.session(allocator, amount, own) as here:
            result = program.work(here)
    except Failed as problem:
        # The lab shows the last line.
        first, _, output = str(problem).partition("\n")
        print(f"{output}\n{first}" if output.strip() else first, file=sys.stderr)
        return 1
    used = asdict(here.used)
    moved = used.pop("migrations")
    moves = {} if moved is None else {"migrations": moved}
    say("process", **used)
    say("iteration", index=0, elapsed_s=used["wall_s"], cpu_s=used["user_s"] + used["system_s"], **moves)
    say("end", verified=bool(result), message="" if result else "it wrote nothing", live_blocks_delta=0,
        result=hashlib.sha256(result).hexdigest())  # fmt: skip
    return 0 if result else 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Describe, or run one program."""
    parser = argparse.ArgumentParser(prog="python -m loam_lab.subjects.programs", description=__doc__)
    parser.add_argument("program", nargs="?", choices=list(PROGRAMS))
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--threads", type=int, choices=[1], default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warmup-ms", type=int, default=0)
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    if options.describe:
        print(json.dumps(describe()))
        return 0
    if options.program is None:
        parser.error("name a program")
    program = PROGRAMS[options.program]
    if lacks := running.lacks(program):
        parser.error(f"{program.name} lacks {lacks}")
    parameters = {"amount": str(program.short), "python": "malloc", **dict(p.split("=", 1) for p in options.parameters)}
    if unknown := parameters.keys() - {"amount", "python"}:
        parser.error(f"unknown parameter {', '.join(unknown)}")
    if not parameters["amount"].isdigit() or int(parameters["amount"]) < 1:
        parser.error(f"-p amount={parameters['amount']}: a whole number from 1 on is needed")
    if parameters["python"] not in PYTHON:
        parser.error(f"-p python={parameters['python']}: is none of {', '.join(PYTHON)}")
    # Asked to end, it ends what it started: that lies in groups of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with contextlib.suppress(KeyboardInterrupt):
        return run(program, options, parameters)
    return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
