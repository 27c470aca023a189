"""The programs of papers as their authors have them: cfrac and espresso, from the repository that collects benchmarks.

No distribution has them.  `./loam setup --programs` builds them where the network has the repository, or where LOAM_SOURCES
holds a folder mimalloc-bench with the files of this commit; without them papers.py has programs of the same kind.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import repository
from loam_lab.subjects.allocators.recipe import Source
from loam_lab.subjects.programs.running import Program, Session

ORIGIN = Source(
    object="", license="Berkeley's and the authors' own, which allow use",
    git="https://github.com/daanx/mimalloc-bench", commit="ce5784f1cef3d48ddc931479e4899ffad5ab3943",
    sha256="c65c78e6b7d36d50365810917982a808ba1e420c142b84e2d0cbcb9755f10168",
)  # fmt: skip
BUILD_TIMEOUT_S = 300
# The number that paper 004 factors, and its first digits for a short run.
NUMBER = "17545186520507317056371138836327483792789528"


@dataclass(frozen=True)
class Original:
    """How one of them is made. folder: in the repository; without: sources that belong to other programs; input: a file"""

    folder: str
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    input: str = ""

    @property
    def program(self) -> Path:
        """Where it lies once it is built; another recipe has another name."""
        recipe = hashlib.sha256(repr((self, ORIGIN.commit)).encode()).hexdigest()[:12]
        return paths.dot_loam() / "programs" / f"{Path(self.folder).name}-{recipe}"


CFRAC = Original("bench/cfrac", ("-DNOMEMOPT=1",), ("getopt.c", "ltop.c", "pfactor.c", "ptob.c"))
ESPRESSO = Original("bench/espresso", input="largest.espresso")


def build(one: Original) -> Path:
    """The program, compiled from the sources if it is not there; its input lies beside it.

    raises: LoamError where the sources cannot be had or do not compile
    """
    if one.program.is_file():
        return one.program
    sources = repository.files(ORIGIN) / one.folder
    one.program.parent.mkdir(parents=True, exist_ok=True)
    made = one.program.with_suffix(f".{os.getpid()}")
    files = sorted(str(file) for file in sources.glob("*.c") if file.name not in one.without)
    # The C of 1989: functions without declarations, and main without a type.
    command = ["gcc", "-std=gnu89", "-O2", "-w", *one.flags, "-o", str(made), *files, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise LoamError(
            one.folder, None, f"does not compile: {(done.stderr.strip().splitlines() or ['gcc failed'])[-1]}"
        )
    if one.input:
        _input(one).write_bytes((sources / one.input).read_bytes())
    made.rename(one.program)
    return one.program


def _input(one: Original) -> Path:
    return one.program.with_suffix(".input")


def bring() -> Iterator[str]:
    """Builds all of them; what is left out, and why."""
    for name, one in (("cfrac-original", CFRAC), ("espresso-original", ESPRESSO)):
        try:
            build(one)
        except LoamError as problem:
            yield f"{name} is left out: {problem.line()}"


def _missing(one: Original) -> str:
    if one.program.is_file():
        return ""
    how = f"./loam setup --programs, with {repository.GIVEN}=FOLDER where there is no network"
    return f"the sources of {ORIGIN.repository}: {how}"


def _cfrac(session: Session) -> bytes:
    return session.output(str(build(CFRAC)), NUMBER[: session.amount], timeout_s=600)


def _espresso(session: Session) -> bytes:
    """This version prints no cover, so that its status is all that can be compared."""
    program = str(build(ESPRESSO))
    written = (session.output(program, str(_input(ESPRESSO)), timeout_s=600) for _ in range(session.amount))
    return b"".join(text + b"ended well\n" for text in written)


PROGRAMS = (
    Program(
        "cfrac-original", ("gcc",), "the factors of the first digits of a number", _cfrac, 30, len(NUMBER), ("true",),
        functools.partial(_missing, CFRAC),
    ),
    Program(
        "espresso-original", ("gcc",), "that it minimises a function, so many times", _espresso, 1, 1, ("true",),
        functools.partial(_missing, ESPRESSO),
    ),
)  # fmt: skip
