"""Programs of tests/simulator on simulated machines that the tests describe themselves."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loam_lab.setup import build
from loam_lab.subjects.simulated import PRESET

# The times are unlike any machine's, so that each shows where it came from.
MACHINE: Mapping[str, str] = {
    "name": "test", "cores": "8", "nodes": "2", "l1.bytes": "32768", "l1.ways": "8", "l1.cycles": "3",
    "l2.bytes": "1048576", "l2.ways": "16", "l2.shared_by": "2", "l2.cycles": "17", "l3.bytes": "8388608",
    "l3.ways": "16", "l3.cycles": "41", "memory.cycles": "243,307", "transfer.cycles": "29,71,163",
    "invalidate.cycles": "23,53,131", "atomic.cycles": "19", "fence.cycles": "21", "core.megahertz": "2000",
    "core.access_cycles": "2", "thread.block_cycles": "1500", "thread.wake_cycles": "3000",
}  # fmt: skip
# Where schedules are checked nothing costs anything.
CHECKED: Mapping[str, str] = {
    "name": "check", "cores": "8", "l1.bytes": "32768", "l1.ways": "8", "l1.cycles": "3", "memory.cycles": "200",
}  # fmt: skip


@functools.cache
def built(name: str, preset: str = PRESET) -> str:
    """The path of a program or library of a preset."""
    content = build.ensure_built([name], preset)
    entry = content["executables"].get(name)
    return str(entry["argv"][0] if entry else content["libraries"][name])


def start(
    name: str, *arguments: object, machine: Mapping[str, str] = MACHINE, seed: int = 1,
    environment: Mapping[str, str] | None = None, timeout_s: float = 120, preset: str = PRESET,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a program on a simulated machine."""
    text = "\n".join(f"{key}={value}" for key, value in machine.items())
    own = {"LOAM_SIM_MACHINE": text, "LOAM_SIM_SEED": str(seed), "PATH": os.environ["PATH"], **(environment or {})}
    command = [built(name, preset), *map(str, arguments)]
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=timeout_s, check=False)


def numbers(name: str, *arguments: object, machine: Mapping[str, str] = MACHINE, seed: int = 1) -> dict[str, float]:
    """What a program printed as NAME=VALUE."""
    done = start(name, *arguments, machine=machine, seed=seed)
    assert done.returncode == 0, done.stderr
    return {key: float(value) for key, _, value in (word.partition("=") for word in done.stdout.split())}


def statistics(
    folder: Path, name: str, *arguments: object, seed: int = 1, preload: Sequence[str] = (),
    environment: Mapping[str, str] | None = None, machine: Mapping[str, str] = MACHINE,
) -> dict[str, Any]:  # fmt: skip
    """All that the simulator counted in a run."""
    file = folder / "statistics.json"
    file.unlink(missing_ok=True)
    own = {"LOAM_SIM_STATISTICS": str(file), **(environment or {})}
    if preload:
        own["LD_PRELOAD"] = ":".join(preload)
    done = start(name, *arguments, machine=machine, seed=seed, environment=own)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(file.read_text())
    return document
