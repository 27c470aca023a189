"""GCC's own tests of libitm on our library: does each do what its directives promise?

    ./loam selfcheck itm-suite FOLDER [--itm norec,etl-wb] [--only PATTERN]

FOLDER is libitm/testsuite of GCC's sources, which Loam does not have: `apt-get install gcc-12-source` brings them.  `gcc` in
the place of an algorithm is the library of this machine.  Each file is compiled once, and run on each library.  Status 1 if
one fails that its directives do not expect to.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from loam_lab.base import subcommands
from loam_lab.base.errors import LoamError, unknown
from loam_lab.dev.selfcheck import dejagnu
from loam_lab.dev.selfcheck.dejagnu import Directives, Unreadable
from loam_lab.subjects import itm

PEER = "gcc"  # the library of this machine
# As libitm's own scripts have them.
DEFAULT_OPTIONS = ("-O2",)
ALWAYS = ("-fgnu-tm", "-fmessage-length=0", "-fdiagnostics-color=never")
COMPILERS = {".c": "gcc", ".C": "g++", ".cc": "g++"}
TIMEOUT_S = 300.0
BAD = ("FAIL", "UNRESOLVED")


@dataclass(frozen=True)
class Outcome:
    """What became of one file on one library."""

    test: str
    library: str
    result: str  # pass, xfail, XPASS, FAIL, unsupported or UNRESOLVED
    why: str = ""


@dataclass(frozen=True)
class Suite:
    """The tests of a folder, and where they find libitm.h."""

    folder: Path
    files: tuple[Path, ...]
    include: tuple[str, ...] = field(default=())


def find(folder: Path, only: str = "*") -> Suite:
    """The tests of GCC's folder, or of the testsuite in it.

    raises: LoamError if there is none
    """
    top = folder / "testsuite" if (folder / "testsuite").is_dir() else folder
    files = tuple(sorted(file for file in top.rglob(only) if file.suffix in COMPILERS and file.is_file()))
    if not files:
        hint = "name the folder libitm/testsuite of GCC's sources"
        raise LoamError("itm-suite", str(folder), f"there are no tests (*.c, *.C) that match {only}", hint)
    # It lies beside the folder of the tests.
    headers = [place for place in (top, top.parent) if (place / "libitm.h").is_file()]
    return Suite(top, files, tuple(f"-I{place.resolve()}" for place in headers))


def judge(test: str, library: str, broken: str, expected: bool) -> Outcome:
    """broken: how it failed, "" if it did not; expected: whether its directives expect it to fail."""
    if expected:
        return Outcome(test, library, "xfail" if broken else "XPASS", broken)
    return Outcome(test, library, "FAIL" if broken else "pass", broken)


def compile_test(suite: Suite, file: Path, wanted: Directives, target: Path) -> str:
    """Compile a test; "" if the compiler had nothing to say, as the suite demands."""
    options = (*(wanted.options or DEFAULT_OPTIONS), *wanted.additional_options)
    steps = {"compile": ("-S",), "assemble": ("-c",), "link": (), "run": ()}
    command = [
        COMPILERS[file.suffix],
        str(file),
        *options,
        *ALWAYS,
        *suite.include,
        *steps[wanted.do],
        "-o",
        str(target),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    output = (done.stdout + done.stderr).strip()
    if done.returncode == 0 and not output:
        return ""
    return f"compiler: {output.splitlines()[-1] if output else f'status {done.returncode}'}"


def run_test(program: Path, wanted: Directives, variables: Mapping[str, str]) -> str:
    """Run a test's program; "" if it ended well, else how."""
    try:
        done = subprocess.run(
            [str(program)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            cwd=program.parent, env={**variables, **wanted.environment}, timeout=TIMEOUT_S * wanted.timeout_factor,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return f"did not end within {late.timeout:.0f} s"
    if done.returncode == 0:
        return ""
    output = (done.stdout + done.stderr).strip().splitlines()
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return f"{how}: {output[-1]}" if output else how


def outcomes(suite: Suite, libraries: Mapping[str, Mapping[str, str]], scratch: Path) -> Iterator[Outcome]:
    """What becomes of each test. libraries: by name, the variables with which a program gets it."""
    for number, file in enumerate(suite.files):
        test = str(file.relative_to(suite.folder))
        try:
            wanted = dejagnu.read(file.read_text(errors="replace"))
        except Unreadable as problem:
            yield from (Outcome(test, library, "UNRESOLVED", str(problem)) for library in libraries)
            continue
        if wanted.skipped:
            yield from (Outcome(test, library, "unsupported", wanted.skipped) for library in libraries)
            continue
        folder = scratch / str(number)
        folder.mkdir()
        program = folder / "program"
        broken = compile_test(suite, file, wanted, program)
        for library, variables in libraries.items():
            if broken or wanted.do != "run":
                yield judge(test, library, broken, wanted.fails_to_compile)
            else:
                yield judge(test, library, run_test(program, wanted, variables), wanted.fails_to_run)


def variables_of(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By name of an algorithm, or of the machine's library, the variables with which a program gets it.

    raises: LoamError for a name that is none, and if our library is not built
    """
    known = [*itm.algorithms(), PEER]
    for name in names:
        if name not in known:
            raise unknown("--itm", name, known, "algorithm")
    plain = dict(os.environ)
    return {name: plain if name == PEER else itm.environment(name, itm.library().parent, os.environ) for name in names}


def main(arguments: Sequence[str]) -> int:
    """Print one line for each test and library, and how many there are of each kind; or with --json JSON."""
    parser = subcommands.Parser("selfcheck", "itm-suite", __doc__)
    parser.add_argument("folder", type=Path, help="libitm/testsuite of GCC's sources")
    parser.add_argument("--itm", default="norec,etl-wb", help="algorithms, and gcc for the machine's library")
    parser.add_argument("--only", default="*", help="a pattern of file names")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the lines")
    options = parser.parse_args(arguments)
    suite = find(options.folder, options.only)
    for compiler in sorted({COMPILERS[file.suffix] for file in suite.files}):
        if shutil.which(compiler) is None:
            raise LoamError("itm-suite", compiler, "there is no such compiler", f"install {compiler}")
    libraries = variables_of(list(dict.fromkeys(shlex.split(options.itm.replace(",", " ")))))
    counts: dict[str, Counter[str]] = {library: Counter() for library in libraries}
    entries = []
    with tempfile.TemporaryDirectory(prefix="loam-itm-suite-") as scratch:
        for each in outcomes(suite, libraries, Path(scratch)):
            entries.append(asdict(each))
            counts[each.library][each.result] += 1
            if not options.json:
                why = f"  ({each.why})" if each.why else ""
                print(f"{each.result:<11} {each.library:<13} {each.test}{why}", flush=True)
    if options.json:
        print(json.dumps({"schema": 1, "tests": entries, "counts": counts}, indent=1))
    for library, count in () if options.json else counts.items():
        print(f"{library}: {', '.join(f'{number} {result}' for result, number in sorted(count.items()))}", flush=True)
    return 1 if any(count[result] for count in counts.values() for result in BAD) else 0
