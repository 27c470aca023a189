"""Mutants: can the tests fail? Each drops one check, order or lock of the runtime; a named test must catch it.

mutant.py says what a mutant is, and its file how it names its place. They lie in folders as the sources do that they change.

Tests run over every transactional algorithm; here they are compiled for those alone whose file an edit touches or whose
name the filter holds (etl-wb where there is none), and with blame where the filter lets such a variant in. Those of the
lab are run by pytest (in_python.py, in_program.py), those of memory orders and of the simulator in it (in_simulator.py).

The edits are applied to a copy of runtime/, structures/, include/, workloads/harness/, lab/interposer/ and what is pure in the
simulator; what they touch is compiled again, the rest is shared. A mutant is killed if its test fails, crashes or does not
end. The same test on the unmutated copy must pass.

    run.py [NAME...]      all mutants, or some; with LOAM_MUTANTS_SHARE=N in the environment one in N, another lot with
                          each change of runtime/
    run.py --repeat N     each mutant N times (all must kill it), the unmutated tests 4 N times (all must pass); without it
                          a mutant has three runs, of which one must kill it
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import in_program
import in_python
import in_simulator
from mutant import INTERPOSER, ROOT, Broken, Mutant, class_of, find, mutants, source_of_test

# The layer that serves the whole process: linked with its own tests alone, in tests/unit/malloc.
MALLOC = "malloc"
# The library behind -fgnu-tm: linked with its own tests alone, in tests/unit/itm, which are compiled with that.
ITM = "itm"
ITM_TESTS = ROOT / "tests" / "unit" / ITM
# GCC 12 refuses it beside -fsanitize=address: of these programs the library alone is instrumented.
GNU_TM = ("-fno-sanitize=all", "-fgnu-tm", "-fno-tree-pre", "-fno-code-hoisting", "-mno-vzeroupper")
# What of the simulator needs no engine, linked with its own tests alone, in tests/unit/simulator.
SIMULATOR = Path("simulator")
PURE = (SIMULATOR / "model", SIMULATOR / "orders")
# What all workloads share, without its main(); linked with its own tests alone, in tests/unit/workloads.
WORKLOADS = Path("workloads")
HARNESS_OF_WORKLOADS = WORKLOADS / "harness"
# Headers alone (of lab/interposer, for tests in C++).
STRUCTURES = Path("structures")
INCLUDE = Path("include")
# Of those, what decodes instructions needs a library.
SHARING_TESTS = ROOT / "tests" / "unit" / "interposer" / "sharing"
TRIES = 3
TIMEOUT_S = 30
DEFAULT = "etl_wb"
# The variants with blame (tests/harness/tm_variants.hpp).
BLAMED = tuple(f"etl_wb_{mapping}_blame" for mapping in ("table", "small_table", "shadow"))
COMPILER = os.environ.get("CXX") or "g++"
HARNESS = ROOT / "tests" / "harness"

COMMON = ["-std=c++20", "-DNDEBUG", "-DLOAM_CHECKED=1", "-fno-builtin-malloc", "-fno-builtin-free", "-pthread",
          '-DLOAM_MALLOC_VERSION="0"', f'-DLOAM_SOURCE_ROOT="{ROOT}"', '-DLOAM_PRESET="mutants"', '-DLOAM_BUILD_FLAGS=""',
          f'-DLOAM_DESIGN_PRESETS="{ROOT / "allocators" / "design"}"']  # fmt: skip
INSTRUMENTED = ["-DLOAM_INSTRUMENTED=1", "-DLOAM_ASAN=1"]
# As the presets, but not optimised: the tests that kill force their interleavings, and compiling is most of the time.
FLAGS = {
    "checked": ["-O0", *COMMON],
    "asan": ["-O0", "-g1", *COMMON, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *INSTRUMENTED],
}
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}


def algorithms_of(mutant: Mutant) -> tuple[str, ...]:
    """The classes that its test is compiled for: those of the files that it changes, and those that the filter names."""
    folder = ROOT / "runtime" / "tm" / "algorithms"
    known = {file.stem: file.read_text() for file in folder.glob("*.hpp")}
    touched = {edit["file"] for edit in mutant.edits}
    changed = {name for name in known if f"runtime/tm/algorithms/{name}.hpp" in touched}
    named = {name for name in known if name in mutant.filter}
    # Of a part, one of those that it is a part of.
    parts = {file for file in touched if "/parts/" in file}
    whole = {name for name, text in known.items() if any(f'"{part}"' in text for part in parts)}
    chosen = changed | named or ({min(whole)} if whole and DEFAULT not in whole else {DEFAULT})
    return tuple(sorted(map(class_of, chosen)))


def defines_of(mutant: Mutant) -> tuple[str, ...]:
    """What its test is compiled with: the algorithms, and no variant with blame where the filter excludes them all."""
    algorithms = algorithms_of(mutant)
    chosen = (f"-DLOAM_TEST_ALGORITHMS={','.join(f'::loam::tm::{name}' for name in algorithms)}",)
    _, slash, variant = mutant.filter.rpartition("/")
    if not slash or ("EtlWb" in algorithms and any(fnmatch(each, variant) for each in BLAMED)):
        return chosen
    return (*chosen, "-DLOAM_TEST_BLAME=")


@dataclass
class Base:
    """The unmutated runtime of one preset: objects by source, and what each depends on."""

    preset: str
    folder: Path
    objects: dict[Path, Path] = field(default_factory=dict)
    headers: dict[Path, set[str]] = field(default_factory=dict)

    def test(self, name: str, defines: Sequence[str]) -> Path:
        """Where a test is that was compiled with some definitions; its objects have suffixes."""
        return self.folder / f"{name}-{zlib.crc32(' '.join(defines).encode()):08x}"


def read_mutants(names: list[str]) -> list[Mutant]:
    try:
        if names:
            return find(names)
        every = mutants()
    except Broken as problem:
        sys.exit(f"error: {problem}\n0 passed, 1 failed")
    share = int(os.environ.get("LOAM_MUTANTS_SHARE", "1"))
    trees = [*(source for tree in ("runtime", STRUCTURES, *PURE) for source in (ROOT / tree).rglob("*.[ch]pp"))]
    sources = sorted([*trees, *(ROOT / "lab" / "loam_lab").rglob("*.py")])
    return every[zlib.crc32(b"".join(source.read_bytes() for source in sources)) % share :: share]


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


def flags(preset: str, base: Path) -> list[str]:
    """Compiler flags; the headers of GoogleTest come precompiled."""
    return [*FLAGS[preset], "-include", str(base / "gtest_first.hpp")]


def compile_one(preset: str, base: Path, copy: Path, source: Path, target: Path, defines: Sequence[str] = ()) -> None:
    folders = [f"-I{folder}" for folder in (copy, ROOT, base / "generated")]
    own = GNU_TM if source.parent == ITM_TESTS and source.stem.endswith("_test") else ()
    call([
        COMPILER, *flags(preset, base), *own, *defines, *folders, "-MMD", "-c", str(source), "-o", str(target),
    ])  # fmt: skip


def depends_on(target: Path, copy: Path) -> set[str]:
    """The files of the runtime's copy that an object was made of, relative to it."""
    words = target.with_suffix(".d").read_text().replace("\\\n", " ").split()
    return {os.path.relpath(word, copy) for word in words[1:] if word.startswith(str(copy))}


def copy_sources(target: Path) -> None:
    for tree in (Path("runtime"), STRUCTURES, INCLUDE, HARNESS_OF_WORKLOADS, INTERPOSER, *PURE):
        shutil.copytree(ROOT / tree, target / tree)


def build_base(
    preset: str,
    folder: Path,
    pool: ThreadPoolExecutor,
    layers: Collection[str] | None = None,
    left_out: Collection[Path] = (),
    workloads: bool = False,
) -> Base:
    """The unmutated objects.

    layers: of the runtime, where tests need no more and nothing else of the tree; left_out: folders of them, not needed
    workloads: whether tests of the harness of workloads are among them
    """
    folder.mkdir()
    copy_sources(folder / "copy")
    generated = f"-DLOAM_GENERATED={folder / 'generated'}"
    call(["cmake", f"-DLOAM_SOURCE={ROOT}", generated, "-P", str(ROOT / "cmake" / "LoamSets.cmake")])
    header = folder / "gtest_first.hpp"
    header.write_text("#include <gtest/gtest.h>\n#include <thread>\n#include <vector>\n#include <functional>\n")
    call([COMPILER, *FLAGS[preset], "-x", "c++-header", str(header), "-o", f"{header}.gch"])
    base = Base(preset, folder)
    runtime, simulator = folder / "copy/runtime", folder / "copy" / SIMULATOR
    # Sanitizers bring a malloc of their own.
    sources = [s for s in sorted(runtime.rglob("*.cpp")) if preset == "checked" or s.parent.name != MALLOC]
    if layers is None:
        helpers = [file for file in sorted(ITM_TESTS.glob("*.cpp")) if not file.stem.endswith("_test")]
        sources += [*sorted(simulator.rglob("*.cpp")), *helpers]
    else:
        sources = [source for source in sources if source.relative_to(runtime).parts[0] in layers]
        sources = [source for source in sources if source.parent.relative_to(runtime) not in left_out]
    if workloads:
        harness = folder / "copy" / HARNESS_OF_WORKLOADS
        sources += sorted(file for file in harness.glob("*.cpp") if file.stem != "main")
    sources.append(HARNESS / "main.cpp")
    for source in sources:
        top = next(top for top in (runtime, folder / "copy", HARNESS.parent) if source.is_relative_to(top))
        parts = source.with_suffix("").relative_to(top).parts
        base.objects[source] = folder / f"{'-'.join(parts)}.o"
    list(pool.map(lambda s: compile_one(preset, folder, folder / "copy", s, base.objects[s]), sources))
    for source, target in base.objects.items():
        base.headers[source] = depends_on(target, folder / "copy")
    return base


def link(preset: str, objects: list[Path], test: str, target: Path) -> Path:
    decoder = ["-lZydis"] if source_of_test(test).is_relative_to(SHARING_TESTS) else []
    call([COMPILER, *FLAGS[preset], *map(str, objects), "-lgtest", "-ldl", *decoder, "-o", str(target)])
    return target


def belongs(source: Path, test: str) -> bool:
    """Whether a source is linked with a test."""
    own = source_of_test(test).parent.name
    if any(source.parts[-3:-1] == tree.parts for tree in PURE):
        return own == SIMULATOR.name
    if source.parts[-3:-1] == HARNESS_OF_WORKLOADS.parts:
        return own == WORKLOADS.name
    return source.parent.name not in (MALLOC, ITM) or own == source.parent.name


def objects_of_test(base: Base, test: str, defines: Sequence[str]) -> dict[Path, Path]:
    """The objects of an unmutated test by source: its own, and the algorithms for tests (tests/harness)."""
    program = base.test(test, defines)
    return {source_of_test(test): program.with_name(f"{program.name}.o"), **drivers_of(base, defines)}


def drivers_of(base: Base, defines: Sequence[str]) -> dict[Path, Path]:
    """The object that tests of transactions call in place of the driver's templates, by source."""
    return {HARNESS / "erased_driver.cpp": Path(f"{base.test('erased_driver', defines[:1])}.o")}


def build_drivers(base: Base, defines: Sequence[str]) -> None:
    for source, target in drivers_of(base, defines).items():
        compile_one(base.preset, base.folder, base.folder / "copy", source, target, defines[:1])


def build_unmutated(base: Base, test: str, defines: Sequence[str]) -> Path:
    objects = objects_of_test(base, test, defines)
    source = source_of_test(test)
    compile_one(base.preset, base.folder, base.folder / "copy", source, objects[source], defines)
    shared = [built for source, built in base.objects.items() if belongs(source, test)]
    return link(base.preset, [*objects.values(), *shared], test, base.test(test, defines))


def build_mutant(base: Base, mutant: Mutant, folder: Path) -> Path:
    copy = folder / "copy"
    copy_sources(copy)
    touched = mutant.apply(copy)
    objects = []
    for source, unmutated in base.objects.items():
        if not belongs(source, mutant.test):
            continue
        if base.headers[source].isdisjoint(touched):
            objects.append(unmutated)
            continue
        target = folder / unmutated.name
        mutated = copy / source.relative_to(base.folder / "copy") if source.is_relative_to(base.folder) else source
        compile_one(base.preset, base.folder, copy, mutated, target)
        objects.append(target)
    tests = []
    for source, unmutated in objects_of_test(base, mutant.test, defines_of(mutant)).items():
        if depends_on(unmutated, base.folder / "copy").isdisjoint(touched):
            tests.append(unmutated)
            continue
        target = folder / unmutated.name
        compile_one(base.preset, base.folder, copy, source, target, defines_of(mutant))
        tests.append(target)
    return link(base.preset, [*tests, *objects], mutant.test, folder / mutant.test)


class Skipped(Exception):
    """The test does not run on this machine, for example without hardware transactions, so nothing can kill the mutant."""


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
    if process.returncode == 0 and "[  PASSED  ] 0 tests." in output:
        raise Skipped(wanted)
    return process.returncode == 0, f"status {process.returncode}\n{output[-3000:]}"


def unmutated_passes(program: Path, wanted: str, repeat: int) -> str:
    """Nothing ("") if the unmutated test passes each time, else what happened."""
    for _ in range(repeat):
        good, how = passes(program, wanted)
        if not good:
            return how
    return ""


def examine(base: Base, mutant: Mutant, folder: Path, repeat: int) -> str:
    """Nothing ("") if the mutant was killed each time, else why not.

    Where chance decides what threads meet, a test may miss a fault once: without --repeat a mutant has TRIES runs.
    """
    folder.mkdir()
    program = build_mutant(base, mutant, folder)
    tries = TRIES if repeat == 1 else 1
    for turn in range(repeat):
        if all(passes(program, mutant.filter)[0] for _ in range(tries)):
            return f"survived (run {turn + 1} of {repeat}, {tries} tries)"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    all_mutants = read_mutants(options.names)
    compiled = [one for one in all_mutants if not (one.in_python or one.in_program or one.in_simulator)]
    if under_checker := [mutant for mutant in all_mutants if mutant.in_simulator]:
        in_simulator.ensure_built(under_checker)
    failures = 0
    passed = 0
    with (
        tempfile.TemporaryDirectory(prefix="loam-mutants-") as temporary,
        ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool,
    ):
        top = Path(temporary)
        needing = {one.preset for one in compiled if source_of_test(one.test).parent.name == WORKLOADS.name}
        bases = {
            p: build_base(p, top / p, pool, workloads=p in needing) for p in sorted({one.preset for one in compiled})
        }
        tests = sorted({(mutant.preset, mutant.test, defines_of(mutant)) for mutant in compiled})
        drivers = sorted({(mutant.preset, defines_of(mutant)[:1]) for mutant in compiled})
        list(pool.map(lambda driver: build_drivers(bases[driver[0]], driver[1]), drivers))
        list(pool.map(lambda test: build_unmutated(bases[test[0]], *test[1:]), tests))

        def guarded(work: str, mutant: Mutant) -> str | None:
            turns = 4 * options.repeat if options.repeat > 1 else 1
            try:
                folder = top / f"mutant-{mutant.name}"
                if work == "unmutated":
                    if mutant.in_python or mutant.in_program:
                        return in_python.unmutated_passes(mutant, turns)
                    if mutant.in_simulator:
                        return in_simulator.unmutated_passes(mutant, turns)
                    program = bases[mutant.preset].test(mutant.test, defines_of(mutant))
                    return unmutated_passes(program, mutant.filter, turns)
                if mutant.in_python:
                    return in_python.examine(mutant, folder, options.repeat)
                if mutant.in_program:
                    return in_program.examine(mutant, folder, options.repeat)
                if mutant.in_simulator:
                    return in_simulator.examine(mutant, folder, options.repeat)
                return examine(bases[mutant.preset], mutant, folder, options.repeat)
            except Broken as problem:
                return str(problem)
            except Skipped:
                return None

        kinds = {(m.preset, m.test, m.filter, defines_of(m) if m in compiled else ()): m for m in all_mutants}
        jobs = [("unmutated", mutant) for mutant in kinds.values()] + [("mutant", mutant) for mutant in all_mutants]
        for (work, mutant), problem in zip(jobs, pool.map(lambda job: guarded(*job), jobs), strict=True):
            killer = f"{mutant.test} {mutant.filter}"
            if problem is None:
                print(f"skipped: {mutant.name} ({work}): this machine does not run {killer}", flush=True)
            elif not problem:
                passed += 1
                outcome = f"{mutant.name}: killed by" if work == "mutant" else "unmutated passes"
                print(f"ok      {outcome} {killer}", flush=True)
            else:
                failures += 1
                print(f"FAILED  {mutant.name} ({work}; {mutant.what}), {killer}: {problem}", flush=True)
    print(f"{passed} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
