"""Instructions of a malloc and its free on AArch64 and on x86-64, each counted by the emulator: pairs.py

Builds libloam-malloc.so of both processors as it is measured (release), and runs pair.c with 1000 and with 2000 pairs: the
difference is what 1000 pairs execute. Prints a table: what malloc and free execute, and what all does, with the program's loop
and its stubs for calls of a library. The status is 1 if malloc and free execute more than BOUND times as many on AArch64.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOUND = 1.35
SIZES = (16, 64, 1024)
PAIRS = 1000
TOOLCHAIN = ROOT / "cmake/toolchains/aarch64-linux-gnu.cmake"
# By processor: folder of the build, options of CMake, compiler of the program, emulator.
PROCESSORS: dict[str, tuple[str, list[str], str, list[str]]] = {
    "x86-64": ("pairs-x86_64", ["-DLOAM_MARCH=x86-64-v3"], "gcc", ["qemu-x86_64"]),
    "AArch64": (
        "pairs-aarch64", [f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}"], "aarch64-linux-gnu-gcc",
        ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Executed:
    """Instructions: of malloc and free, and of the whole program."""

    library: float
    whole: float

    def __sub__(self, other: Executed) -> Executed:
        return Executed(self.library - other.library, self.whole - other.whole)

    def of_each(self, number: int) -> Executed:
        """What one of so many takes."""
        return Executed(self.library / number, self.whole / number)


def run(*command: str | Path) -> str:
    """What a command prints. Ends the program with what the command says where it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def executed(emulator: list[str], library: Path, program: Path, pairs: int, size: int, log: Path) -> Executed:
    """What the program executes: with one instruction a block, the emulator's log has a line for each, with its address."""
    words = [*emulator, "-E", f"LD_PRELOAD={library}", "-singlestep", "-d", "exec,nochain", "-D", str(log)]
    begin = int(run(*words, program, str(pairs), str(size)), 16)
    end = begin + library.stat().st_size  # its code lies in memory as in the file
    with log.open() as lines:
        addresses = [int(line.split("/")[1], 16) for line in lines if line.startswith("Trace")]
    return Executed(sum(begin <= address < end for address in addresses), len(addresses))


def counted(processor: str, folder: Path) -> dict[int, Executed]:
    """Instructions of a pair by size."""
    build, options, compiler, emulator = PROCESSORS[processor]
    at = ROOT / "build" / build
    run("cmake", "-S", ROOT, "-B", at, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", *options)
    run("cmake", "--build", at, "-j", str(len(os.sched_getaffinity(0))), "--target", "loam-malloc")
    program = folder / f"pair-{build}"
    run(compiler, "-O2", "-fno-builtin", ROOT / "tests/emulated/pair.c", "-o", program)
    library, log = at / "libloam-malloc.so", folder / "log"

    def of(pairs: int, size: int) -> Executed:
        return executed(emulator, library, program, pairs, size, log)

    return {size: (of(2 * PAIRS, size) - of(PAIRS, size)).of_each(PAIRS) for size in SIZES}


def main() -> int:
    """Returns the exit status."""
    needed = [word for _, _, compiler, emulator in PROCESSORS.values() for word in (compiler, emulator[0])]
    if missing := [name for name in needed if shutil.which(name) is None]:
        print(f"error: {' '.join(missing)}: not installed (Debian: g++-aarch64-linux-gnu qemu-user)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="loam-pairs-") as folder:
        by_processor = {processor: counted(processor, Path(folder)) for processor in PROCESSORS}
    print(
        "bytes    malloc and free: "
        + "  ".join(by_processor)
        + "   ratio     in all: "
        + "  ".join(by_processor)
        + "   ratio"
    )
    worst = 0.0
    for size in SIZES:
        x86, arm = by_processor["x86-64"][size], by_processor["AArch64"][size]
        worst = max(worst, arm.library / x86.library)
        print(
            f"{size:5} {x86.library:24.1f} {arm.library:8.1f} {arm.library / x86.library:7.2f}"
            f" {x86.whole:16.1f} {arm.whole:8.1f} {arm.whole / x86.whole:7.2f}"
        )
    print(f"{'at most' if worst <= BOUND else 'MORE THAN'} {BOUND}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
