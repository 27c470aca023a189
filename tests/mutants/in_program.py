"""Mutants of the lab's native programs and libraries: a test in Python that runs them must fail.

The source is compiled with its change beside the tree; the test gets the result in place of the preset's (planted_module.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import in_python
from mutant import INTERPOSER, ROOT, Broken, Mutant

COMPILER = os.environ.get("CXX") or "g++"
FLAGS = ("-std=c++20", "-O1", "-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-builtin-realloc", "-fno-builtin-free")
# As cmake/LoamLab.cmake: a library in front of an allocator brings no C++ library with it.
LIBRARY = ("-shared", "-fPIC", "-ftls-model=initial-exec", "-fno-exceptions", "-fno-rtti", "-nodefaultlibs")
LINKED = ("-Wl,--as-needed", "-lc", "-lm", "-lgcc_s", "-lgcc")
PROGRAMS = ("replay",)  # executables; all others are libraries


def compiled(mutant: Mutant, folder: Path) -> dict[str, Path]:
    """What a mutant makes of the sources that it changes, by name.

    raises: Broken
    """
    shutil.copytree(ROOT / INTERPOSER, folder / INTERPOSER)
    made = {}
    for source in (folder / file for file in sorted(mutant.apply(folder))):
        name = source.stem
        made[name] = folder / f"{name}.made"
        is_program = name in PROGRAMS
        flags, linked = (("-pthread",), ()) if is_program else (LIBRARY, LINKED)
        command = [COMPILER, *FLAGS, *flags, str(source), "-o", str(made[name]), *linked]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Broken(f"{' '.join(command)}\n{done.stderr[-3000:]}")
    return made


def examine(mutant: Mutant, folder: Path, repeat: int) -> str:
    """Nothing ("") if the mutant was killed each time, else why not."""
    made = compiled(mutant, folder)
    for turn in range(repeat):
        if in_python.passes(mutant, None, made)[0]:
            return f"survived (run {turn + 1} of {repeat})"
    return ""
