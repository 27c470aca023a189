"""Mutants: can the tests fail? Each drops one check, order or lock of the runtime; a named test must catch it.

A mutant is a file <name>.toml:
    what       the fault, in words
    killed_by  ["TEST", "GTEST FILTER"]: the test executable (its source is found by name) and the tests that must fail
    preset     "checked" (default) or "asan": the flags to compile with
    edit       one or more of {file, old, new}: exact text replacements; `old` must occur exactly once

Tests run over every transactional algorithm; here they are compiled for those alone whose file an edit touches or whose
name the filter holds (etl-wb where there is none).

The edits are applied to a copy of runtime/; what they touch is compiled again, the rest is shared. A mutant is killed if
its test fails, crashes or does not end. The same test on the unmutated copy must pass.

    run.py [NAME...]      all mutants, or some; with LOAM_MUTANTS_SHARE=N in the environment one in N, another lot with
                          each change of runtime/
    run.py --repeat N     each mutant N times (all must kill it), the unmutated tests 4 N times (all must pass)
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from edits import Broken, apply

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LAYERS = ("base", "platform", "sync", "reclaim", "heap", "tm")
TIMEOUT_S = 30
# Files of runtime/tm/algorithms/, and the algorithm's class.
ALGORITHMS = {
    "etl_wb": "EtlWb", "etl_wt": "EtlWt", "dctl": "Dctl", "tl2": "Tl2", "norec": "Norec", "swisstm": "SwissTm",
    "two_phase": "TwoPhase", "global_lock": "GlobalLock", "sequential": "Sequential",
}  # fmt: skip
COMPILER = os.environ.get("CXX") or "g++"

COMMON = ["-std=c++20", "-DNDEBUG", "-DLOAM_CHECKED=1", "-fno-builtin-malloc", "-fno-builtin-free", "-pthread"]
# As the presets, but not optimised: the tests that kill force their interleavings, and compiling is most of the time.
FLAGS = {
    "checked": ["-O0", *COMMON],
    "asan": ["-O0", "-g1", *COMMON, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DLOAM_ASAN=1"],
}
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}


@dataclass
class Mutant:
    name: str
    what: str
    test: str
    filter: str
    preset: str
    edits: list[dict[str, str]]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The classes that its test is compiled for."""
        touched = {Path(edit["file"]).stem for edit in self.edits if "tm/algorithms/" in edit["file"]}
        named = {name for name in ALGORITHMS if name in self.filter}
        return tuple(sorted(ALGORITHMS[name] for name in touched | named)) or ("EtlWb",)


@dataclass
class Base:
    """The unmutated runtime of one preset: objects by source, and what each depends on."""

    preset: str
    folder: Path
    objects: dict[Path, Path] = field(default_factory=dict)
    headers: dict[Path, set[str]] = field(default_factory=dict)

    def test(self, name: str, algorithms: Sequence[str]) -> Path:
        """Where a test is that was compiled for some algorithms; its object has the suffix .o."""
        return self.folder / f"{name}-{'-'.join(algorithms)}"


def read_mutants(names: list[str]) -> list[Mutant]:
    mutants = []
    for file in sorted(HERE.glob("*.toml")):
        data = tomllib.loads(file.read_text())
        test, wanted = data["killed_by"]
        mutants.append(Mutant(file.stem, data["what"], test, wanted, data.get("preset", "checked"), data["edit"]))
    unknown = set(names) - {mutant.name for mutant in mutants}
    if unknown:
        sys.exit(f"error: no such mutant: {', '.join(sorted(unknown))} (tests/mutants/*.toml)")
    if names:
        return [mutant for mutant in mutants if mutant.name in names]
    share = int(os.environ.get("LOAM_MUTANTS_SHARE", "1"))
    sources = sorted((ROOT / "runtime").rglob("*.[ch]pp"))
    return mutants[zlib.crc32(b"".join(source.read_bytes() for source in sources)) % share :: share]


def tool_environment() -> dict[str, str]:
    """The environment of compilers and tests: headers and libraries that set-up unpacked without root are found too."""
    environment = {**os.environ, **ENVIRONMENT}
    unpacked = ROOT / ".loam"
    for top in (unpacked, *unpacked.glob("*")):
        if (top / "usr/include").is_dir():
            environment["CPATH"] = str(top / "usr/include")
            environment["LIBRARY_PATH"] = str(top / f"usr/lib/{os.uname().machine}-linux-gnu")
    return environment


def call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=tool_environment())
    if done.returncode != 0:
        raise Broken(f"{' '.join(command)}\n{done.stderr[-3000:]}")


def source_of_test(test: str) -> Path:
    found = list((ROOT / "tests").rglob(f"{test}.cpp"))
    if len(found) != 1:
        raise Broken(f"{test}: {len(found)} files of that name in tests/, one is expected")
    return found[0]


def flags(preset: str, base: Path) -> list[str]:
    """Compiler flags; the headers of GoogleTest come precompiled."""
    return [*FLAGS[preset], "-include", str(base / "gtest_first.hpp")]


def compile_one(
    preset: str, base: Path, copy: Path, source: Path, target: Path, algorithms: Sequence[str] = ()
) -> None:
    chosen = [f"-DLOAM_TEST_ALGORITHMS={','.join(f'::loam::tm::{name}' for name in algorithms)}"] if algorithms else []
    call([
        COMPILER, *flags(preset, base), *chosen, f"-I{copy}", f"-I{ROOT}", "-MMD", "-c", str(source), "-o", str(target)
    ])  # fmt: skip


def depends_on(target: Path, copy: Path) -> set[str]:
    """The files of the runtime's copy that an object was made of, relative to it."""
    words = target.with_suffix(".d").read_text().replace("\\\n", " ").split()
    return {os.path.relpath(word, copy) for word in words[1:] if word.startswith(str(copy))}


def build_base(preset: str, folder: Path, pool: ThreadPoolExecutor) -> Base:
    folder.mkdir()
    shutil.copytree(ROOT / "runtime", folder / "copy" / "runtime")
    header = folder / "gtest_first.hpp"
    header.write_text("#include <gtest/gtest.h>\n#include <thread>\n#include <vector>\n#include <functional>\n")
    call([COMPILER, *FLAGS[preset], "-x", "c++-header", str(header), "-o", f"{header}.gch"])
    base = Base(preset, folder)
    sources = [source for layer in LAYERS for source in sorted((folder / "copy/runtime" / layer).glob("*.cpp"))]
    for source in sources:
        base.objects[source] = folder / f"{source.parent.name}-{source.stem}.o"
    list(pool.map(lambda s: compile_one(preset, folder, folder / "copy", s, base.objects[s]), sources))
    for source, target in base.objects.items():
        base.headers[source] = depends_on(target, folder / "copy")
    return base


def link(preset: str, objects: list[Path], target: Path) -> Path:
    call([COMPILER, *FLAGS[preset], *map(str, objects), "-lgtest_main", "-lgtest", "-ldl", "-o", str(target)])
    return target


def build_unmutated(base: Base, test: str, algorithms: Sequence[str]) -> Path:
    program = base.test(test, algorithms)
    target = program.with_name(f"{program.name}.o")
    compile_one(base.preset, base.folder, base.folder / "copy", source_of_test(test), target, algorithms)
    return link(base.preset, [target, *base.objects.values()], program)


def build_mutant(base: Base, mutant: Mutant, folder: Path) -> Path:
    copy = folder / "copy"
    shutil.copytree(ROOT / "runtime", copy / "runtime")
    touched = apply(mutant.edits, ROOT, copy)
    objects = []
    for source, unmutated in base.objects.items():
        if base.headers[source].isdisjoint(touched):
            objects.append(unmutated)
            continue
        target = folder / unmutated.name
        compile_one(base.preset, base.folder, copy, copy / source.relative_to(base.folder / "copy"), target)
        objects.append(target)
    program = base.test(mutant.test, mutant.algorithms)
    test = program.with_name(f"{program.name}.o")
    if not depends_on(test, base.folder / "copy").isdisjoint(touched):
        test = folder / f"{mutant.test}.o"
        compile_one(base.preset, base.folder, copy, source_of_test(mutant.test), test, mutant.algorithms)
    return link(base.preset, [test, *objects], folder / mutant.test)


def passes(program: Path, wanted: str) -> tuple[bool, str]:
    """Run the tests that match; whether all passed (at least one), and how it ended."""
    with subprocess.Popen(
        [str(program), f"--gtest_filter={wanted}", "--gtest_brief=1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", env=tool_environment(), start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # Its own group: cases run in children of the test.
            os.killpg(process.pid, signal.SIGKILL)
            return False, "did not end"
    if process.returncode == 0 and " 0 tests from " in output:
        raise Broken(f"no test matches {wanted}")
    return process.returncode == 0, f"status {process.returncode}\n{output[-3000:]}"


def unmutated_passes(program: Path, wanted: str, repeat: int) -> str:
    """Nothing ("") if the unmutated test passes each time, else what happened."""
    for _ in range(repeat):
        good, how = passes(program, wanted)
        if not good:
            return how
    return ""


def examine(base: Base, mutant: Mutant, folder: Path, repeat: int) -> str:
    """Nothing ("") if the mutant was killed each time, else why not."""
    folder.mkdir()
    program = build_mutant(base, mutant, folder)
    for turn in range(repeat):
        good, _ = passes(program, mutant.filter)
        if good:
            return f"survived (run {turn + 1} of {repeat})"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    mutants = read_mutants(options.names)
    failures = 0
    passed = 0
    with (
        tempfile.TemporaryDirectory(prefix="loam-mutants-") as temporary,
        ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool,
    ):
        top = Path(temporary)
        bases = {p: build_base(p, top / p, pool) for p in sorted({mutant.preset for mutant in mutants})}
        tests = sorted({(mutant.preset, mutant.test, mutant.algorithms) for mutant in mutants})
        list(pool.map(lambda test: build_unmutated(bases[test[0]], *test[1:]), tests))

        def guarded(work: str, mutant: Mutant) -> str:
            try:
                if work == "unmutated":
                    turns = 4 * options.repeat if options.repeat > 1 else 1
                    program = bases[mutant.preset].test(mutant.test, mutant.algorithms)
                    return unmutated_passes(program, mutant.filter, turns)
                return examine(bases[mutant.preset], mutant, top / f"mutant-{mutant.name}", options.repeat)
            except Broken as problem:
                return str(problem)

        kinds = {(mutant.preset, mutant.test, mutant.filter, mutant.algorithms): mutant for mutant in mutants}
        jobs = [("unmutated", mutant) for mutant in kinds.values()] + [("mutant", mutant) for mutant in mutants]
        for (work, mutant), problem in zip(jobs, pool.map(lambda job: guarded(*job), jobs), strict=True):
            killer = f"{mutant.test} {mutant.filter}"
            if not problem:
                passed += 1
                said = f"{mutant.name}: killed by" if work == "mutant" else "unmutated passes"
                print(f"ok      {said} {killer}", flush=True)
            else:
                failures += 1
                print(f"FAILED  {mutant.name} ({work}; {mutant.what}), {killer}: {problem}", flush=True)
    print(f"{passed} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
