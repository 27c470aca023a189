"""Mutants of the lab's Python: the test that must fail is run by pytest with the module changed (planted_module.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mutant import HERE, ROOT, Broken, Mutant, source_of_test

TIMEOUT_S = 60


def module_of(file: str) -> str:
    """The module of a file below the root: lab/loam_lab/judging/claims/values.py is loam_lab.judging.claims.values."""
    return ".".join(Path(file).relative_to("lab").with_suffix("").parts)


def passes(
    mutant: Mutant, folder: Path | None, programs: Mapping[str, Path] = MappingProxyType({})
) -> tuple[bool, str]:
    """Run the tests that a mutant names.

    folder: where the changed files lie; None: as they are; programs: what stands in for native ones of the lab, by name

    returns: whether all passed (at least one), and how it ended
    raises: Broken if there are none
    """
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    if folder is not None:
        texts = {module_of(edit["file"]): folder / edit["file"] for edit in mutant.edits}
        environment["LOAM_MUTANT_MODULES"] = ":".join(f"{name}={text}" for name, text in texts.items())
    if programs:
        environment["LOAM_MUTANT_PROGRAMS"] = ":".join(f"{name}={file}" for name, file in programs.items())
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "planted_module", "-p", "no:cacheprovider",
        str(source_of_test(mutant.test)), "-k", mutant.filter,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "did not end"
    if done.returncode not in (0, 1, 2):
        raise Broken(f"pytest ended with status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-1000:]}")
    return done.returncode == 0, f"status {done.returncode}\n{done.stdout[-3000:]}"


def examine(mutant: Mutant, folder: Path, repeat: int) -> str:
    """Nothing ("") if the mutant was killed each time, else why not."""
    mutant.apply(folder)
    for turn in range(repeat):
        if passes(mutant, folder)[0]:
            return f"survived (run {turn + 1} of {repeat})"
    return ""


def unmutated_passes(mutant: Mutant, repeat: int) -> str:
    """Nothing ("") if the tests that a mutant names pass each time on the source as it is, else what happened."""
    for _ in range(repeat):
        good, how = passes(mutant, None)
        if not good:
            return how
    return ""
