"""`loam setup`: everything a first command would set up, ahead of time."""

from __future__ import annotations

import time

from loam_lab.base import console, paths
from loam_lab.setup import build, debian


def setup(*, tests: bool, programs: bool, as_json: bool) -> int:
    """Install or unpack missing packages, those of all allocator files among them, then build everything that is measured.

    tests: what only the tests need, too; programs: the real programs that run under allocators, too
    raises: LoamError as debian.ensure and build.ensure_built do
    """
    started = time.monotonic()
    needs = ("measure", "allocators", *(["test"] if tests else []), *(["programs"] if programs else []))
    brought = [package.name for package in debian.missing(*needs)]
    debian.ensure(*needs, again=True)
    was_built = build.is_built()
    content = build.ensure_built()
    left = [package.name for package in debian.missing(*needs)]
    if as_json:
        console.print_json({
            "schema": 1, "installed": [name for name in brought if name not in left], "missing": left,
            "built": [] if was_built else sorted({**content["executables"], **content["libraries"]}),
            "paths": str(paths.paths_json()), "elapsed_s": round(time.monotonic() - started, 3),
        })  # fmt: skip
        return 0
    for line, empty in (
        ("packages  " + ", ".join(name for name in brought if name not in left), "packages  nothing is missing"),
        (
            "built     " + ", ".join(sorted({**content["executables"], **content["libraries"]})),
            "built     everything was up to date",
        ),
    ):
        is_empty = line.strip() == "packages" or (line.startswith("built") and was_built)
        console.out().print(f"[good]✓[/good] {empty if is_empty else line}")
    console.out().print("ready: [command]./loam tour[/command] takes less than three minutes and writes a report")
    return 0
