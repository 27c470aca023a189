"""The study that tests of engines run: two allocators, one transactional workload, a few milliseconds per run."""

from __future__ import annotations

from pathlib import Path

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
