"""Programs that GCC compiled with -fgnu-tm, run on our libitm.so.1 in the place of GCC's.

The folder of our library stands first in LD_LIBRARY_PATH; the program is not changed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError, unknown
from loam_lab.subjects.allocators import elf

SONAME = "libitm.so.1"
ALGORITHM_VARIABLE = "LOAM_ITM_ALGORITHM"
# Hardware attempts beside norec; of runtime/itm/hardware.hpp.
HYBRID = "hybrid-norec"
_BEGIN = "_ITM_beginTransaction"
MACHINE = "x86_64"
# Of cmake/loam-itm.map: those of GCC 12.
VERSIONS = frozenset({"LIBITM_1.0", "LIBITM_1.1"})


def algorithms() -> list[str]:
    """What can stand behind the interface: the transactional algorithms of this checkout, and the hybrid."""
    files = (paths.root() / "runtime/tm/algorithms").glob("*.hpp")
    return sorted([HYBRID, *(file.stem.replace("_", "-") for file in files)])


def _other_synchronisations() -> set[str]:
    """Those of this checkout that are no algorithms: locks, hardware transactions, delegation."""
    patterns = ("workloads/syncs/*.hpp", "workloads/*/syncs/*.hpp", "runtime/delegation/schemes/*.hpp")
    files = [file for pattern in patterns for file in paths.root().glob(pattern)]
    return {file.stem.replace("_", "-") for file in files}


def library() -> Path:
    """Our library. raises: LoamError if it is not built, or cannot be built here"""
    named = paths.load_paths("release")["libraries"].get("itm")
    if named is None:
        raise LoamError(SONAME, None, "our library supports x86-64 only", "use GCC's")
    if not Path(named).is_file():
        raise LoamError(SONAME, named, "is not built", "run ./loam setup")
    return Path(named)


def check(program: Path, ours: Path | None = None) -> str:
    """What is odd about a program that shall run on our library, "" for nothing.

    ours: where our library is; a program may look for it there by itself
    raises: LoamError if no library can serve it, or ours would not be the one that does
    """
    try:
        file = elf.read(program)
    except (OSError, elf.NotElf):
        return ""  # a script: what it starts gets the library

    def refused(limit: str, hint: str) -> LoamError:
        return LoamError("exec", str(program), limit, hint)

    if file.machine != MACHINE:
        raise refused(f"is a program for {file.machine}, and our library supports {MACHINE}", "compile it for that")
    if not file.dynamic or file.interpreter is None:
        raise refused("is linked statically", "link it without -static")
    if SONAME in file.needed:
        if unknown_versions := sorted(set(file.versions.get(SONAME, ())) - VERSIONS):
            raise refused(
                f"asks {SONAME} for {', '.join(unknown_versions)}, and ours has {', '.join(sorted(VERSIONS))}",
                "compile it with the GCC that Loam is tested with",
            )
        if other := _before_ours(program, file.rpath, ours):
            raise refused(f"looks for {SONAME} in {other} first (RPATH)", "link it with -Wl,--enable-new-dtags")
        return ""
    if others := [name for name in file.needed if name.startswith("libitm.so")]:
        raise refused(f"is linked with {others[0]}, another version of the library", f"ours stands for {SONAME}")
    if _BEGIN in file.private or _BEGIN in file.exported:
        raise refused("has libitm.a inside, which nothing replaces", "link it with libitm.so")
    return f"{program} is not linked to {SONAME}; only libraries that it loads could use ours"


def _before_ours(program: Path, rpath: str, ours: Path | None) -> str:
    """The folder of a program's RPATH with another library of this name, "" for none: it comes before LD_LIBRARY_PATH."""
    for folder in filter(None, rpath.split(":")):
        place = folder.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(program.resolve().parent))
        theirs = Path(place) / SONAME
        if theirs.exists():
            return "" if ours is not None and theirs.samefile(ours) else place
    return ""


def environment(algorithm: str, folder: Path, before: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program that runs on our library."""
    others = before.get("LD_LIBRARY_PATH", "")
    first = f"{folder}:{others}" if others else str(folder)
    chosen = {**before, "LD_LIBRARY_PATH": first, ALGORITHM_VARIABLE: algorithm}
    # A symbol that is bound at its first call aborts each hardware transaction that makes that call.
    return {**chosen, "LD_BIND_NOW": "1"} if algorithm == HYBRID else chosen


def execute(command: Sequence[str], algorithm: str) -> int:
    """Become the command. Does not return.

    raises: LoamError if the algorithm, the command or our library is not there, or cannot work
    """
    known = algorithms()
    if algorithm not in known and algorithm in _other_synchronisations():
        choice = f"choose of {', '.join(known)}"
        raise LoamError(
            "--itm", algorithm, "is not a transactional algorithm, so it cannot run code of -fgnu-tm", choice
        )
    if algorithm not in known:
        raise unknown("--itm", algorithm, known, "algorithm")
    if not command:
        raise LoamError("exec", None, "no command is given", "write loam exec --itm norec -- COMMAND")
    program = shutil.which(command[0])
    if program is None:
        raise LoamError("exec", command[0], "there is no such program", "name its path")
    ours = library()
    if odd := check(Path(program), ours):
        print(f"warning: {odd}", file=sys.stderr, flush=True)
    os.execve(program, list(command), environment(algorithm, ours.parent, os.environ))
