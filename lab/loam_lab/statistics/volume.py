"""How long a large result takes: writes a campaign of made-up runs, summarises it, and makes its report.

    python -m loam_lab.statistics.volume [--records 10000] [--keep DIR]

One workload, synchronisation etl-wb, five levels of a parameter, six allocators, two thread counts; blocks as many as the
number of records gives.  Values are drawn, nothing is measured.  Prints the seconds of each step.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loam_lab.measure import journal
from loam_lab.measure.folder import MANIFEST, RESULT
from loam_lab.model.cell import Cell, digest
from loam_lab.model.study import Group, Study

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


def write(folder: Path, records: int) -> int:
    """Write manifest and journal of a campaign with about this many runs; returns how many there are."""
    column = len(ALLOCATORS) * len(THREADS) * len(SYNCS) + 1
    blocks = max(1, round(records / column / len(SIZES)))
    group = Group(
        name="volume",
        workload="made-up",
        sync=SYNCS,
        threads=THREADS,
        parameters={"size": SIZES},
        allocators=ALLOCATORS,
    )
    study = Study(
        schema=1, name="volume", title="volume", question="How long does it take?", groups=(group,), blocks=blocks,
        allocators=ALLOCATORS,
    )  # fmt: skip
    cells = [
        Cell("volume", "made-up", sync, name, threads, (("size", size),), 0)
        for size in SIZES for sync in SYNCS for threads in THREADS for name in ALLOCATORS
    ]  # fmt: skip
    runs = [(cell, block, 0) for block in range(blocks) for cell in cells]
    runs += [(cells[place], block, 1) for block in range(blocks) for place in range(0, len(cells), column - 1)]
    manifest = {
        "schema": 1, "lab": "", "kind": "study", "created_utc": "2026-01-01T00:00:00Z", "command": "volume",
        "machine": MACHINE, "revision": "", "preset": "release",
        "allocators": [{"name": name, "version": "", "sha256": "0"} for name in ALLOCATORS],
        "executables": [_executable(sync) for sync in SYNCS],
        "plan": {
            "study": study.model_dump(by_alias=True, mode="json"), "cells": [cell.as_json() for cell in cells],
            "notes": [], "runs": len(runs),
        },
    }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(manifest))
    draw = random.Random(1)
    (folder / journal.FOLDER).mkdir()
    with (folder / journal.FOLDER / "local.jsonl").open("w") as lines:
        for order, (cell, block, copy) in enumerate(runs):
            lines.write(json.dumps(_line(cell, block, copy, order, draw)) + "\n")
    return len(runs)


def _executable(sync: str) -> dict[str, Any]:
    description = {
        "schema": 1,
        "sync": {"name": sync, "summary": "", "parameters": [], "threads_max": 64, "blame": False},
        "workloads": [{
            "name": "made-up", "summary": "", "parameters": [
                {"name": "size", "type": "integer", "default": 16, "min": 1, "max": 4096, "summary": ""},
            ], "metrics": METRICS,
        }],
        "build": {"compiler": "", "preset": "release", "flags": "", "sanitizers": []},
    }  # fmt: skip
    return {"name": sync, "path": sync, "build_id": sync, "description": description}


def _line(cell: Cell, block: int, copy: int, order: int, draw: random.Random) -> dict[str, Any]:
    effect = 1 + 0.03 * ALLOCATORS.index(cell.allocator)
    operations = int(1e6 * effect * draw.lognormvariate(0, 0.02))
    aborts = int(operations * draw.uniform(0.01, 0.02))
    iteration = {
        "kind": "iteration", "index": 0, "operations": operations, "elapsed_s": 0.1, "thread_cpu_s": 0.1 * cell.threads,
        "commits": operations, "aborts": aborts, "attempts": operations + aborts,
    }  # fmt: skip
    known = {
        "schema": 1, "parameters": dict(cell.parameters), "warmup_ms": 0, "preset": "release", "block": block,
        "copy": copy, "cell": cell.key, "allocator": {"name": cell.allocator, "sha256": "0"},
        "sync": {"name": cell.sync, "build_id": cell.sync},
    }  # fmt: skip
    return {
        "schema": journal.SCHEMA, "id": digest(known), "identity": known, "cell": cell.key, "block": block, "copy": copy,
        "attempt": 0, "purpose": "timing", "order": order, "state": "ok", "failure": "", "detail": "", "t_s": order * 0.15,
        "started_utc": "2026-01-01T00:00:00Z", "wall_s": 0.12, "user_s": 0.1, "system_s": 0.01, "rss_peak_bytes": 1 << 22,
        "faults_minor": 100, "faults_major": 0, "exit_code": 0, "proof": {"status": "proven", "reasons": []},
        "records": [{"kind": "begin", "schema": 1}, iteration, {"kind": "end", "verified": True}], "warnings": [],
        "disturbance": {"run_delay_s": 0.0, "steal_s": 0.0, "pressure_s": 0.0, "share": 0.0, "contaminated": False, "why": []},
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the seconds of writing, summarising and reporting."""
    parser = argparse.ArgumentParser(prog="python -m loam_lab.statistics.volume", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000, help="runs in the journal, about")
    parser.add_argument("--keep", type=Path, help="an empty folder for the campaign; a temporary one without it")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="loam-volume-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{write(folder, options.records)} records", flush=True)
        _steps(folder)
    return 0


def _steps(folder: Path) -> None:
    begun = time.perf_counter()

    def told(what: str) -> None:
        nonlocal begun
        now = time.perf_counter()
        print(f"{now - begun:6.2f} s  {what}", flush=True)
        begun = now

    from loam_lab.report import builder, commands
    from loam_lab.statistics import data, summarise

    told("imports")
    data.load(folder)
    told("loading the journal")
    begun = time.perf_counter()
    summarise.write(folder, elapsed_s=0.0)
    told("loading again, summarising and writing the result")
    result = commands.load(folder)
    told(f"loading the result, {(folder / RESULT).stat().st_size / 1e6:.1f} MB")
    builder.build(result, folder, source=str(folder))
    told("its report")


if __name__ == "__main__":
    sys.exit(main())
