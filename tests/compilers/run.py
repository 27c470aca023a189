"""Loam by other compilers: runtime, malloc and workloads built without a warning by each that is here, and started.

    run.py             each compiler of COMPILERS that is on this machine, with a few synchronisations
    run.py --all       with every workload; also what ./loam test --all runs
    run.py NAME...     these compilers: run.py clang-19 gcc-13

libitm and the simulator's plug-in are GCC's own, and are not built here. A compiler that is missing is named and skipped.
Ends with "N passed, M failed".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = ("gcc-12", "gcc-13", "gcc-14", "clang-16", "clang-17", "clang-18", "clang-19")
# The runtime, with what is installed, and workloads of each kind of synchronisation.
PARTS = {"runtime": ["loam-tm", "loam-delegation", "loam-gc"], "malloc": ["loam-malloc"]}
FEW = [f"loam-workload-{name}" for name in ("none", "etl-wb", "server", "mutex", "plain", "gc-heap")]
STARTED = "loam-workload-etl-wb"
HEADERS = ("tm.hpp", "gc.hpp", "delegation.hpp", "tm.h", "malloc.h", "delegation.h")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def driver(compiler: str) -> str:
    """What compiles C++: g++-12 for gcc-12, clang++-19 for clang-19."""
    name, dash, version = compiler.partition("-")
    return f"{'clang++' if name == 'clang' else 'g++'}{dash}{version}"


def output_of(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> str:
    """The end of what a command says that failed; "" for one that did not."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-3000:]}"


def headers(compiler: str, build: Path) -> str:
    """What the compiler says to the public headers, each alone: C++ with C++20, C with C11.

    build: a build folder, which has the headers that CMake makes
    """
    with tempfile.TemporaryDirectory(prefix="loam-headers-") as folder:
        for header in HEADERS:
            cxx = header.endswith("hpp")
            source = Path(folder) / f"alone.{'cpp' if cxx else 'c'}"
            source.write_text(f"#include <loam/{header}>\nint main(void) {{ return 0; }}\n")
            own = [driver(compiler), "-std=c++20"] if cxx else [compiler, "-std=c11"]
            include = [f"-I{ROOT / 'include'}", f"-I{build / 'generated'}", f"-I{ROOT}"]
            if problem := output_of([*own, *WARNINGS, *include, "-fsyntax-only", str(source)]):
                return problem
    return ""


def started(build: Path) -> str:
    """What goes wrong where a program that was built runs under the malloc that was built."""
    command = [
        str(build / STARTED),
        "intset",
        "--threads",
        "2",
        "--warmup-ms",
        "1",
        "-p",
        "duration_ms=20",
        "--records",
        "/dev/null",
    ]
    return output_of(command, {"LD_PRELOAD": str(build / "libloam-malloc.so")})


def tried(compiler: str, *, whole: bool) -> dict[str, str]:
    """What went wrong with each part; "" where nothing did."""
    build = ROOT / "build" / f"by-{compiler}"
    options = [
        f"-DCMAKE_C_COMPILER={compiler}",
        f"-DCMAKE_CXX_COMPILER={driver(compiler)}",
        f"-DLOAM_PRESET=by-{compiler}",
    ]
    configure = [
        "cmake",
        "-S",
        ".",
        "-B",
        str(build),
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_TESTING=OFF",
        *options,
    ]
    if problem := output_of(configure):
        return {"configured": problem}
    jobs = ["-j", str(len(os.sched_getaffinity(0)))]
    targets = {**PARTS, "workloads": ["loam-workloads"] if whole else FEW}
    problems = {
        part: output_of(["cmake", "--build", str(build), *jobs, "--target", *names]) for part, names in targets.items()
    }
    problems["headers"] = headers(compiler, build)
    if not any(problems.values()):
        problems["started"] = started(build)
    return problems


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    whole = "--all" in arguments or bool(os.environ.get("LOAM_TEST_ALL"))
    chosen = [name for name in arguments if name != "--all"] or list(COMPILERS)
    if wrong := [name for name in chosen if name not in COMPILERS]:
        sys.exit(f"error: {wrong[0]}: is none of {', '.join(COMPILERS)}")
    missing = [name for name in chosen if shutil.which(name) is None or shutil.which(driver(name)) is None]
    passed = failed = 0
    for compiler in (name for name in chosen if name not in missing):
        for part, problem in tried(compiler, whole=whole).items():
            print(f"{compiler}: {part}: {'FAILED' if problem else 'good'}", flush=True)
            if problem:
                print(problem)
            passed, failed = passed + (not problem), failed + bool(problem)
    if missing:
        print(f"skipped: compilers: {' '.join(missing)} not here (docs/platforms.md says which Debian has them)")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
