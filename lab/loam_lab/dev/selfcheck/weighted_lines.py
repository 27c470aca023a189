"""A planted program that uses five lines, each half as often as the one before: the ranking that nobody can doubt.

Here a line's share of time is as its moves are; in workloads the two may have different reasons, such as a wait.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.commands import simulate
from loam_lab.dev.selfcheck import line_ranks
from loam_lab.dev.selfcheck.line_ranks import Program, Ranked
from loam_lab.setup import build
from loam_lab.subjects import machines

PLANTED = Program("weighted", "planted")
SOURCE = "tests/planted/weighted.cpp"
# On the host some seconds; on the simulated machine some thousand moves of the line that is used least.
HOST_STEPS, SIMULATED_STEPS = 20_000_000, 50_000
_FLAGS = ("-O2", "-g1", "-pthread")


def ranked(seconds: float) -> Ranked:
    """Compile it for both machines and run it there; raises: LoamError. seconds: of the host's runs, together"""
    machine = machines.find(line_ranks.MACHINE)
    source = paths.root() / SOURCE
    with tempfile.TemporaryDirectory(prefix="loam-weighted-") as folder:
        simulated = simulate.compiled([source], ["-O2"], machine.preset or "", Path(folder))
        counted = simulate.counted(simulated, [str(SIMULATED_STEPS)], PLANTED.allocator, line_ranks.timing(machine))
        moved = line_ranks.simulated_lines(json.dumps(counted), simulated)
        own = Path(folder) / "weighted"
        done = subprocess.run(
            ["g++", *_FLAGS, "-o", str(own), str(source)],
            capture_output=True, text=True, check=False, env=build.tool_environment(),
        )  # fmt: skip
        if done.returncode != 0:
            raise LoamError("selfcheck sharing", SOURCE, f"does not compile:\n{done.stderr}", exit_code=1)
        return line_ranks.measured(PLANTED, moved, [str(own), str(HOST_STEPS)], seconds)
