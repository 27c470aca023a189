"""What the tests of packages share: a command that must succeed."""

from __future__ import annotations

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
