"""Operator mutants of the lab's statistics and claims, made and judged by mutmut (mutmut.readthedocs.io). Once, by command:

    operators_lab.py [FOLDER]   works in FOLDER (build/mutmut), prints the score and every mutant that survived
    operators_lab.py --digits 26   a sample: the mutants whose number ends with 2 or 6 (all are some 3800: an hour or two)
    operators_lab.py --only statistics.intervals,claims.predicates   those of some modules
    operators_lab.py --sample N [--seed S]   N of all, or of some modules with --only, and what follows for all
    operators_lab.py --seconds N   begins no mutant after so long
    operators_lab.py --again    goes on where the last run stopped, with the tests as they are now: what survived is judged again

mutmut and what it needs come from requirements-mutation.lock, into an environment of FOLDER's own. It mutates a copy of
lab/, which is called src/ there, beside a copy of its tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import sampling

ROOT = Path(__file__).resolve().parents[2]
MUTATED = ("statistics", "claims")
# Where a statistic or a predicate is tested: these alone are run, of each mutant those that reach its function.
TESTS = (*MUTATED, "result/test_derived.py")
# Simulations of hundreds of studies: half a minute for a mutant that nothing else notices, which then lacks a test of its own.
LEFT_OUT = (
    "promises", "the_simulation", "coverage_of_the_paired", "picking_best_and_worst", "differs_elsewhere",
)  # fmt: skip
COPIED = ("allocators", "schema", "studies")
TOLD = re.compile(r"^\s+(\S+__mutmut_\d+): (.+)$")
NOT_RUN = "not checked"
# Whoever hangs or crashes is noticed.
UNNOTICED = ("survived", "no tests")
# Of a fresh tree mutmut makes the mutants when it is asked to judge some: these are few and quick.
FEW = "loam_lab.judging.statistics.multiplicity.*"


def environment(folder: Path) -> Path:
    """The Python of an environment with mutmut."""
    python = folder / "venv" / "bin" / "python"
    if not python.is_file():
        venv.create(folder / "venv", with_pip=True)
        locks = [word for lock in ("requirements-dev.lock", "requirements-mutation.lock") for word in ("-r", lock)]
        subprocess.run([python, "-m", "pip", "install", "-q", *locks], cwd=ROOT, check=True)
    return python


def copy_tests(made: Path) -> None:
    """The tests, as they are now."""
    shutil.rmtree(made / "tests", ignore_errors=True)
    shutil.copytree(ROOT / "tests/lab", made / "tests/lab", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def tree(folder: Path) -> Path:
    """A fresh tree for mutmut."""
    made = folder / "tree"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "lab", made / "src", ignore=ignore)
    for name in COPIED:
        shutil.copytree(ROOT / name, made / name, ignore=ignore)
    copy_tests(made)
    left_out = " and ".join(f"not {name}" for name in LEFT_OUT)
    settings = f"""
[tool.mutmut]
source_paths = ["src/loam_lab"]
only_mutate = {[f"src/loam_lab/judging/{name}/*.py" for name in MUTATED]}
also_copy = {[*COPIED]}
pytest_add_cli_args = {["-p", "no:cacheprovider", "-m", "not slow", "-k", left_out]}
pytest_add_cli_args_test_selection = {[f"tests/lab/{name}" for name in TESTS]}
use_git_change_detection = false
"""
    (made / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings.replace("'", '"'))
    return made


class Mutmut:
    """mutmut in its tree."""

    def __init__(self, python: Path, made: Path) -> None:
        self._command = [str(python), "-m", "mutmut"]
        self._made = made
        # CI: hypothesis draws the same each time, and is not impatient.
        self._environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "LOAM_ROOT": str(ROOT), "CI": "1"}

    def judge(self, names: Sequence[str], log: Path, seconds: float | None) -> bool:
        """Judge mutants, those of patterns or all that were not judged yet; whether it went well."""
        with log.open("w") as file:
            process = subprocess.Popen(
                [*self._command, "run", *names], cwd=self._made, env=self._environment, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(seconds) == 0
            except subprocess.TimeoutExpired:
                # What was judged is in its files already.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return True

    def states(self) -> dict[str, str]:
        """What became of each mutant."""
        lines = self._ask("results", "--all", "true").splitlines()
        return {match[1]: match[2] for line in lines if (match := TOLD.match(line))}

    def change(self, name: str) -> list[str]:
        """The lines that a mutant changes, before and after."""
        return [line for line in self._ask("show", name).splitlines() if re.match(r"[-+] ", line)]

    def _ask(self, *words: str) -> str:
        done = subprocess.run(
            [*self._command, *words], cwd=self._made, env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout


def wanted(states: Mapping[str, str], digits: str, only: Sequence[str], again: bool) -> list[str]:
    """Names or patterns of what is to be judged; none for all that were not judged yet."""
    if again:
        left = [name for name, state in states.items() if state != "killed"]
        return [name for name in left if _is_of(name, only) and (not digits or name[-1] in digits)]
    modules = [f"loam_lab.judging.{module}." for module in only] or [""]
    ends = [f"*__mutmut_*{digit}" for digit in digits] or ["*"]
    return [module + end for module in modules for end in ends] if digits or only else []


def sample(states: Mapping[str, str], only: Sequence[str], count: int, seed: int) -> list[str]:
    """So many of all mutants, or of those of some modules, whatever became of them so far."""
    return sampling.drawn([name for name in sorted(states) if _is_of(name, only)], count, seed)


def left_of(drawn: Sequence[str], states: Mapping[str, str]) -> list[str]:
    """Those of a sample that are to be judged, for the first time or once more."""
    return [name for name in drawn if states[name] != "killed"]


def _is_of(name: str, only: Sequence[str]) -> bool:
    return not only or any(f".{module}." in f".{name}" for module in only)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "mutmut")
    parser.add_argument("--digits", default="")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder)
    again = options.again and (folder / "tree" / "mutants").is_dir()
    made = folder / "tree" if again else tree(folder)
    mutmut = Mutmut(python, made)
    before: dict[str, str] = {}
    if again:
        copy_tests(made)
        before = mutmut.states()
    if options.sample is not None and not before and mutmut.judge([FEW], folder / "log", options.seconds):
        before = mutmut.states()
    drawn = None if options.sample is None else sample(before, options.only, options.sample, options.seed)
    names = wanted(before, options.digits, options.only, again) if drawn is None else left_of(drawn, before)
    needed = bool(names) or not before
    if needed and not mutmut.judge(names, folder / "log", options.seconds):
        print((folder / "log").read_text()[-3000:], file=sys.stderr)
        return 1
    every = {name: state for name, state in mutmut.states().items() if drawn is None or name in drawn}
    judged = {name: state for name, state in every.items() if state != NOT_RUN}
    for name, state in sorted(judged.items()):
        if state != "killed":
            print(f"{state}: {name}", *mutmut.change(name), sep="\n", flush=True)
    counts = Counter(judged.values())
    print(
        ", ".join(f"{count} {state}" for state, count in counts.most_common()),
        f"of {len(judged)} mutants; {len(every) - len(judged)} not run",
    )
    if drawn is not None and len(judged) == len(every):
        print(sampling.score(sum(state not in UNNOTICED for state in judged.values()), len(judged), options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
