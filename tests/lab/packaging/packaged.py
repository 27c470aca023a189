"""What the tests of packages share: a command that must succeed, and a tour that must be complete."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path


def run(*command: str | Path, folder: Path, seconds: float = 280, **environment: str) -> str:
    """What a command prints; fails the test with both outputs where it does not succeed."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def check_tour(folder: Path) -> None:
    """Whether the result of `loam tour` in a folder has every allocator, each of them proven, and a report."""
    result = json.loads((folder / "result.json").read_text())
    assert {cell["state"] for cell in result["cells"]} == {"ok"}, result["failures"]
    assert {one["proof"] for one in result["allocators"]} == {"proven"}
    assert {one["name"] for one in result["allocators"]} >= {"glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc", "loam"}
    assert (folder / "report.html").is_file()
