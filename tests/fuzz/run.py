"""Fuzzing of the heaps and of delegation: clang's libFuzzer looks for a sequence of operations that breaks one.

There are four: the open heap and the guarded one (heap_operations.hpp), the managed one with its transactions
(managed_operations.hpp), and delegation (delegation_operations.hpp). Two at a time are fuzzed; --part NAME takes one alone.

    run.py                   CI: some seconds over each as it is, then over each with a planted fault, which must be found
    run.py --seconds 3600    an hour, a quarter of it over each as it is; what it learns stays in build/fuzz/corpus
    run.py --planted NAME    over the part with the fault of the mutant NAME: how long until it is found
    run.py INPUT             one input again, as it was written to build/fuzz/found/PART; the guarded heap draws places for
                             freed blocks, so that it gets the input many times

Without clang it says so and is skipped. Ends with "N passed, M failed".
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mutants"))
from mutant import Broken, find

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz"
SEEDS = ROOT / "tests" / "fuzz" / "corpus" / "heap"
UNPACKED = ROOT / ".loam" / "root" / "usr"
PROGRAMS = {"open": "heap_fuzz", "guarded": "heap_fuzz", "managed": "managed_fuzz", "delegation": "delegation_fuzz"}
PARTS = tuple(PROGRAMS)
NAMES = {part: f"the {part} heap" for part in PARTS} | {"delegation": "delegation"}
SEEDED = ("open", "guarded")
AT_ONCE = min(2, len(os.sched_getaffinity(0)))
CI_SECONDS = 80  # of all parts as they are
PLANTED = {"open": "heap_shelved_list_not_cut", "guarded": "guarded_grows_beyond_its_room",
           "managed": "gc_forwarded_twice", "delegation": "delegation_served_object_is_entered_twice"}  # fmt: skip
PLANTED_SECONDS = 40  # many times what those of CI take
GUARDED_TURNS = 100  # of one input

# Inputs of some hundred calls; the time and the memory of one are bounds that no good run meets.
LIBFUZZER = ["-max_len=600", "-timeout=30", "-rss_limit_mb=4096", "-print_final_stats=1", "-close_fd_mask=1"]


def find_clang() -> tuple[str, str] | None:
    """The clang and clang++ of this machine, or of .loam/root, that have libFuzzer; None: there is none."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(UNPACKED / "bin")])
    for suffix in ("", *(f"-{version}" for version in range(20, 13, -1))):
        c, cxx = shutil.which(f"clang{suffix}", path=path), shutil.which(f"clang++{suffix}", path=path)
        if c is None or cxx is None:
            continue
        asked = [cxx, "-print-file-name=libclang_rt.fuzzer-x86_64.a"], [cxx, "-print-runtime-dir"]
        file, folder = (subprocess.run(a, capture_output=True, text=True, check=False).stdout.strip() for a in asked)
        if Path(file).is_file() or list(Path(folder).glob("libclang_rt.fuzzer*.a")):
            return c, cxx
    return None


def build(clang: tuple[str, str], targets: Sequence[str], overlays: Mapping[str, Path] | None = None) -> list[Path]:
    """Build targets of the preset; the executables. overlays: by part, the folders with planted faults"""
    compilers = [f"-DCMAKE_C_COMPILER={clang[0]}", f"-DCMAKE_CXX_COMPILER={clang[1]}"]
    planted = [f"-DLOAM_FUZZ_OVERLAY_{part}={(overlays or {}).get(part, '')}" for part in PARTS]
    for command in (
        ["cmake", "--preset", "fuzz", *compilers, *planted],
        ["cmake", "--build", str(BUILD), "--target", *targets],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}\n0 passed, 1 failed")
    return [BUILD / target for target in targets]


def plant(name: str) -> tuple[Path, str]:
    """The sources that a mutant changes, changed, in a folder of their own; and the part that they are of."""
    overlay = BUILD / "planted" / name
    shutil.rmtree(overlay, ignore_errors=True)
    try:
        (mutant,) = find([name])
        touched = mutant.apply(overlay)
    except Broken as problem:
        sys.exit(f"error: {name}: {problem}\n0 passed, 1 failed")
    for folder, part in (("runtime/gc/", "managed"), ("runtime/delegation/", "delegation")):
        if any(file.startswith(folder) for file in touched):
            return overlay, part
    return overlay, "guarded" if "runtime/heap/guarded.hpp" in touched else "open"


def environment(part: str) -> dict[str, str]:
    """Of a program that is to play on this part."""
    own = {name: value for name, value in os.environ.items() if name != "LOAM_FUZZ_GUARDED"}
    return {**own, "LOAM_FUZZ_GUARDED": "1"} if part == "guarded" else own


def fuzz(program: Path, part: str, seconds: int, corpora: list[Path], artifacts: Path) -> tuple[bool, str, float]:
    """Run for so long, or until something is found: its input is left in `artifacts`.

    returns: whether nothing was found, what was said, and after how many seconds
    """
    for folder in (artifacts, corpora[0]):
        folder.mkdir(parents=True, exist_ok=True)
    command = [
        str(program),
        *LIBFUZZER,
        f"-max_total_time={seconds}",
        f"-artifact_prefix={artifacts}/",
        *map(str, corpora),
    ]
    begun = time.monotonic()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        env=environment(part),
    )  # fmt: skip
    return done.returncode == 0, done.stderr, time.monotonic() - begun


def as_it_is(program: Path, part: str, seconds: int) -> bool:
    """Fuzz a part of the tree. Whether it held."""
    seeds = [SEEDS] if part in SEEDED else []
    good, output, elapsed_s = fuzz(program, part, seconds, [BUILD / "corpus" / part, *seeds], BUILD / "found" / part)
    counts = dict(re.findall(r"stat::(\w+):\s+(\d+)", output))
    covered = re.findall(r"cov: (\d+)", output)[-1:]
    print(f"{'ok      ' if good else 'FAILED  '}{NAMES[part]} as it is: {counts.get('number_of_executed_units', '?')} inputs "
          f"in {elapsed_s:.0f} s, {counts.get('new_units_added', '?')} new ones kept, {' '.join(covered) or '?'} edges reached",
          flush=True)  # fmt: skip
    if not good:
        print(output[-3000:], flush=True)
    return good


def planted(clang: tuple[str, str], names: Sequence[str], seconds: int) -> list[bool]:
    """Fuzz parts with a fault each, without the seeds, which would find it at once. Which were found."""
    faults = [(name, *plant(name)) for name in names]
    programs = build(
        clang, [f"{part}_fuzz_planted" for _, _, part in faults], {part: overlay for _, overlay, part in faults}
    )

    def one(name: str, part: str, program: Path) -> bool:
        folder = BUILD / "planted-corpus" / part
        shutil.rmtree(folder, ignore_errors=True)
        good, output, elapsed_s = fuzz(program, part, seconds, [folder], BUILD / "planted" / "found" / part)
        lines = output.splitlines()
        first = next(
            (line for line in lines if line.startswith("loam: ")), next((line for line in lines if "ERROR" in line), "")
        )
        how = f"found after {elapsed_s:.1f} s: {first.strip()}" if not good else f"not found in {elapsed_s:.0f} s"
        print(f"{'FAILED  ' if good else 'ok      '}planted {name}: {how}", flush=True)
        return not good

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda work: one(work[0][0], work[0][2], work[1]), zip(faults, programs, strict=True)))


def again(clang: tuple[str, str], part: str, file: Path) -> bool:
    """Play one input; what is found is on standard error. Whether nothing was."""
    turns = GUARDED_TURNS if part == "guarded" else 1
    command = [str(build(clang, [PROGRAMS[part]])[0]), f"-runs={turns}", str(file.resolve())]
    return subprocess.run(command, check=False, env=environment(part)).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="?", type=Path)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--planted", metavar="NAME")
    parser.add_argument("--part", choices=PARTS)
    options = parser.parse_args()
    clang = find_clang()
    if clang is None:
        print("skipped: fuzzing needs clang with libFuzzer; as root: apt-get install clang libclang-rt-14-dev")
        print("0 passed, 0 failed")
        return 0
    parts = [options.part] if options.part else PARTS
    seconds = max(1, (options.seconds or CI_SECONDS) // len(parts))  # 0 would be without end
    if options.input is not None:
        results = [again(clang, part, options.input) for part in parts]
    elif options.planted:
        results = planted(clang, [options.planted], options.seconds or PLANTED_SECONDS)
    else:
        targets = sorted({PROGRAMS[part] for part in parts})
        programs = dict(zip(targets, build(clang, targets), strict=True))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(lambda part: as_it_is(programs[PROGRAMS[part]], part, seconds), parts))
        if not options.seconds:
            results += planted(clang, [PLANTED[part] for part in parts], PLANTED_SECONDS)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
