"""What the tests of engines run: a study of two allocators with a few milliseconds per run, and the tour."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from loam_lab.model.store import journal

STUDY = """
schema = 2
name = "two-hosts"
title = "Two allocators on two hosts"
question = "Is the result of an engine of the same kind as one measured here?"
baseline = "glibc"
allocators = ["glibc", "jemalloc"]
blocks = {blocks}
warmup_ms = 1
claims = []

[[groups]]
name = "transactions"
workload = "intset"
sync = ["etl-wb"]
threads = [1]
blame = true
parameters = {{ structure = "list", elements = 64, duration_ms = 2 }}
"""


def written(folder: Path, blocks: int) -> Path:
    """The study's file in a folder."""
    file = folder / "two-hosts.toml"
    file.write_text(STUDY.format(blocks=blocks))
    return file


def check_tour(folder: Path, done: subprocess.CompletedProcess[str], hosts: Sequence[str]) -> None:
    """Check that the tour was measured on all hosts, into the folder "out", and that its result is complete."""
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert result["study"] == "tour"
    counted = Counter(cell["factors"]["machine"] for cell in result["cells"])
    assert set(counted) == set(hosts) and len(set(counted.values())) == 1, counted
    assert {cell["state"] for cell in result["cells"]} == {"ok"}, result["failures"]
    # A slow host stops before the last block, because the tour has a limit of time.
    assert min(cell["runs"] for cell in result["cells"]) >= 6
    assert {one["name"] for one in result["allocators"]} >= {"glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc", "loam"}
    assert {one["proof"] for one in result["allocators"]} == {"proven"}
    assert {file.stem for file in journal.files(folder / "out")} == set(hosts)
    assert set(Counter(line["id"] for line in journal.read(folder / "out")).values()) == {1}
    (answer,) = result["across_machines"]
    assert answer["machines"] == list(hosts)
    assert (folder / "out/report.html").is_file()
