"""How long a large result takes: writes a campaign of made-up runs, summarises it, and makes its report.

    ./loam selfcheck volume [--records 10000] [--machines 1] [--keep DIR]

One workload, two synchronisations, eight levels of a parameter, six allocators, two thread counts, and as many machines as
asked for; blocks as many as the number of records gives.  Values are drawn, nothing is measured.  Prints the seconds of each
step, and how much of them was processor time of this process; then its peak memory. With --json all of it as JSON.
"""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loam_lab.base import processes, subcommands
from loam_lab.model.cell import Cell, canonical, digest
from loam_lab.model.schema import SCHEMA
from loam_lab.model.store import journal
from loam_lab.model.store.folder import MANIFEST, RESULT, read_result
from loam_lab.model.study import Group, Study
from loam_lab.subjects.subject import Subject

ALLOCATORS = ("glibc", "jemalloc", "mimalloc", "tbb", "tcmalloc", "hoard")
SIZES, THREADS, SYNCS = (16, 32, 64, 128, 256, 512, 1024, 2048), (1, 2), ("etl-wb", "etl-wt")
METRICS = [
    {"name": "ops_per_s", "unit": "1/s", "better": "higher", "kind": "ratio", "of": ["operations", "elapsed_s"]},
    {"name": "operations", "unit": "1", "better": "higher", "kind": "count"},
    {"name": "elapsed_s", "unit": "s", "better": "neither", "kind": "time"},
    {"name": "commits", "unit": "1", "better": "higher", "kind": "count"},
    {"name": "aborts", "unit": "1", "better": "lower", "kind": "count"},
    {"name": "attempts", "unit": "1", "better": "neither", "kind": "count"},
    {"name": "aborts_per_attempt", "unit": "1", "better": "lower", "kind": "ratio", "of": ["aborts", "attempts"]},
]
MACHINE = {"cpu": "made up", "cores": 2, "aslr": 2, "kernel": "0", "fingerprint": "0" * 16}


def write(folder: Path, records: int, machines: int = 1) -> int:
    """Write manifest and journals of a campaign with about this many runs on so many machines; returns how many there are."""
    names = ("host",) if machines == 1 else tuple(f"host{number}" for number in range(1, machines + 1))
    column = len(ALLOCATORS) * len(THREADS) * len(SYNCS) + 1
    blocks = max(1, round(records / column / len(SIZES) / machines))
    group = Group(
        name="volume",
        workload="made-up",
        sync=SYNCS,
        threads=THREADS,
        parameters={"size": SIZES},
        allocators=ALLOCATORS,
        machines=names,
    )
    study = Study(
        schema=SCHEMA, name="volume", title="volume", question="How long does it take?", groups=(group,), blocks=blocks,
        allocators=ALLOCATORS,
    )  # fmt: skip
    cells = [
        Cell("volume", "made-up", sync, name, threads, (("size", size),), 0, machine)
        for machine in names for size in SIZES for sync in SYNCS for threads in THREADS for name in ALLOCATORS
    ]  # fmt: skip
    runs = [(cell, block, 0) for block in range(blocks) for cell in cells]
    runs += [(cells[place], block, 1) for block in range(blocks) for place in range(0, len(cells), column - 1)]
    manifest = {
        "schema": SCHEMA, "lab": "", "kind": "study", "created_utc": "2026-01-01T00:00:00Z", "command": "volume",
        "machine": MACHINE, "machines": dict.fromkeys(names, MACHINE), "revision": "", "preset": "release",
        "allocators": [{"name": name, "version": "", "sha256": "0"} for name in ALLOCATORS],
        "executables": [_executable(sync, name) for name in names for sync in SYNCS],
        "plan": {
            "study": study.model_dump(by_alias=True, mode="json"), "cells": [cell.as_json() for cell in cells],
            "notes": [], "runs": len(runs),
        },
    }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(manifest))
    draw = random.Random(1)
    (folder / journal.FOLDER).mkdir()
    with contextlib.ExitStack() as opened:
        lines = {name: opened.enter_context((folder / journal.FOLDER / f"{name}.jsonl").open("w")) for name in names}
        for order, (cell, block, copy) in enumerate(runs):
            lines[cell.machine].write(canonical(_line(cell, block, copy, order, draw)) + "\n")
    return len(runs)


def _executable(sync: str, machine: str) -> dict[str, Any]:
    description = {
        "schema": SCHEMA,
        "sync": {"name": sync, "summary": "", "kind": "transactional", "parameters": [], "threads_max": 64, "blame": False},
        "workloads": [{
            "name": "made-up", "summary": "", "kinds": ["transactional"], "parameters": [
                {"name": "size", "type": "integer", "default": 16, "min": 1, "max": 4096, "summary": ""},
            ], "metrics": METRICS,
        }],
        "build": {"compiler": "", "preset": "release", "flags": "", "sanitizers": []},
    }  # fmt: skip
    program = Subject.of(Path(sync)).as_json()
    return {"name": sync, "machine": machine, **program, "build_id": sync, "description": description}


def _line(cell: Cell, block: int, copy: int, order: int, draw: random.Random) -> dict[str, Any]:
    effect = 1 + 0.03 * ALLOCATORS.index(cell.allocator)
    operations = int(1e6 * effect * draw.lognormvariate(0, 0.02))
    aborts = int(operations * draw.uniform(0.01, 0.02))
    iteration = {
        "kind": "iteration", "index": 0, "operations": operations, "elapsed_s": 0.1, "thread_cpu_s": 0.1 * cell.threads,
        "tm": {"commits": operations, "aborts": aborts, "attempts": operations + aborts},
    }  # fmt: skip
    known = {
        "schema": SCHEMA, "parameters": dict(cell.parameters), "warmup_ms": 0, "preset": "release", "block": block,
        "copy": copy, "cell": cell.key, "allocator": {"name": cell.allocator, "sha256": "0"},
        "sync": {"name": cell.sync, "build_id": cell.sync},
    }  # fmt: skip
    return {
        "schema": SCHEMA, "id": digest(known), "identity": known, "cell": cell.key, "block": block, "copy": copy,
        "attempt": 0, "purpose": "timing", "order": order, "state": "ok", "failure": "", "detail": "", "t_s": order * 0.15,
        "started_utc": "2026-01-01T00:00:00Z", "wall_s": 0.12, "user_s": 0.1, "system_s": 0.01, "rss_peak_bytes": 1 << 22,
        "faults_minor": 100, "faults_major": 0, "exit_code": 0, "proof": {"status": "proven", "reasons": []},
        "records": [{"kind": "begin", "schema": SCHEMA}, iteration, {"kind": "end", "verified": True}], "warnings": [],
        "disturbance": {"run_delay_s": 0.0, "steal_s": 0.0, "pressure_s": 0.0, "share": 0.0, "contaminated": False, "why": []},
    }  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Print the seconds of summarising and reporting."""
    parser = subcommands.Parser("selfcheck", "volume", __doc__)
    parser.add_argument("--records", type=subcommands.count, default=10_000, help="runs in the journal, about")
    parser.add_argument("--machines", type=subcommands.count, default=1, help="machines that they are of")
    parser.add_argument("--keep", type=Path, help="an empty folder for the campaign; a temporary one without it")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the lines")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="loam-volume-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        records = write(folder, options.records, options.machines)
        if not options.json:
            print(f"{records} records", flush=True)
        steps, peak_bytes = _steps(folder, quiet=options.json)
    if options.json:
        print(json.dumps({"schema": 1, "records": records, "steps": steps, "rss_peak_bytes": peak_bytes}, indent=1))
    else:
        print(f"{peak_bytes / 2**20:.0f} MiB at the peak", flush=True)
    return 0


def _steps(folder: Path, *, quiet: bool) -> tuple[list[dict[str, Any]], int]:
    """Summarise and report; returns: each step with its seconds, and the most memory of this process.

    quiet: whether nothing is printed meanwhile
    """
    steps: list[dict[str, Any]] = []
    begun = time.perf_counter(), time.process_time()

    def step_done(what: str) -> None:
        nonlocal begun
        now = time.perf_counter(), time.process_time()
        wall_s, processor_s = now[0] - begun[0], now[1] - begun[1]
        steps.append({"step": what, "wall_s": wall_s, "processor_s": processor_s})
        if not quiet:
            print(f"{wall_s:6.2f} s ({processor_s:6.2f} s)  {what}", flush=True)
        begun = now

    from loam_lab.judging.result import summarise
    from loam_lab.presenting.report import builder

    step_done("imports")
    summarise.write(folder, elapsed_s=0.0)
    step_done("loading the journal, summarising, and writing the result")
    result = read_result(folder)
    step_done(f"loading the result, {(folder / RESULT).stat().st_size / 1e6:.1f} MB")
    builder.build(result, folder, source=str(folder))
    step_done("its report")
    return steps, processes.own_peak_bytes()
