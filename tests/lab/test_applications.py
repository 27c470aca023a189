"""The applications under the transactional algorithms of the measured build, with attempts that are given up at their
end and freed memory that is overwritten at once: no crash, no wrong result, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from loam_lab.dev.testing import lots
from loam_lab.subjects import workloads

RUNS, RUNS_ALL = 20, 200
# Its fallback runs under a lock, and what has run there cannot be taken back.
REFUSING = "htm-lock"
POISON = {"GLIBC_TUNABLES": "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"}
# Inputs that take milliseconds.
TINY = {
    "bayes": ("variables=8", "records=64", "parents=2", "edges=2"),
    "genome": ("gene=128", "segment=16", "segments=2048"),
    "intruder": ("flows=128", "length_max=16"),
    "kmeans": ("points=256", "attributes=8", "threshold_ppm=20000"),
    "labyrinth": ("width=16", "height=16", "depth=2", "paths=16"),
    "ssca2": ("scale=7",),
    "vacation": ("relations=128", "tasks=500"),
    "yada": ("points=100",),
}


def offered() -> list[tuple[str, str]]:
    """(synchronisation, application) of all that can give attempts up."""
    chosen = lots.build_release()
    return [
        (name, workload.name)
        for name, subject in sorted(workloads.subjects_of().items())
        if name in chosen
        if (described := workloads.describe(subject)).sync.tm is not None
        if not described.sync.lacks
        if name != REFUSING
        for workload in described.workloads
        if any(parameter.name == "abort_every" for parameter in workload.parameters)
    ]


@pytest.mark.slow
def test_injected_aborts_and_poisoned_memory_change_no_result() -> None:
    pairs = offered()
    assert {application for _, application in pairs} == set(TINY)
    syncs = {sync for sync, _ in pairs}
    assert syncs >= {"etl-wb", "norec"}, "which others are built changes with the runtime (lots.py)"
    assert len(syncs) >= 8 or not os.environ.get("LOAM_TEST_ALL")
    subjects = workloads.subjects_of()
    runs = RUNS_ALL if os.environ.get("LOAM_TEST_ALL") else RUNS
    for sync, application in pairs:
        for run in range(runs):
            command = [*subjects[sync].argv, application, "--threads", "2", "-p", f"abort_every={2 + run % 5}"]
            for parameter in TINY[application]:
                command += ["-p", parameter]
            done = subprocess.run(
                command, env=os.environ | POISON, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, (command, done.stdout[-500:], done.stderr)
            records = [json.loads(line) for line in done.stdout.splitlines()]
            assert records[-1]["verified"] is True and records[-1]["live_blocks_delta"] == 0, command
            iteration = next(record for record in records if record["kind"] == "iteration")
            assert iteration["tm"]["aborts_explicit"] > 0, command
