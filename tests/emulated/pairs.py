"""Instructions of a malloc and its free on AArch64 and on x86-64, each counted by the emulator: pairs.py

Builds libloam-malloc.so of both processors as it is measured (release), and runs pair.c with 1000 and with 2000 pairs: the
difference is what 1000 pairs execute. Prints a table; the status is 1 if AArch64 executes more than BOUND times as many.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
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


def run(*command: str | Path) -> None:
    """Ends the program with what the command says where it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-3000:]}")


def instructions(emulator: list[str], library: Path, program: Path, pairs: int, size: int, log: Path) -> int:
    """What the program executes: with one instruction a block, the emulator's log has a line for each."""
    words = [*emulator, "-E", f"LD_PRELOAD={library}", "-singlestep", "-d", "exec,nochain", "-D", str(log)]
    run(*words, program, str(pairs), str(size))
    with log.open("rb") as lines:
        return sum(1 for _ in lines)


def counted(processor: str, folder: Path) -> dict[int, float]:
    """Instructions of a pair, the loop included, by size."""
    build, options, compiler, emulator = PROCESSORS[processor]
    at = ROOT / "build" / build
    run("cmake", "-S", ROOT, "-B", at, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", *options)
    run("cmake", "--build", at, "-j", str(len(os.sched_getaffinity(0))), "--target", "loam-malloc")
    program = folder / f"pair-{build}"
    run(compiler, "-O2", "-fno-builtin", ROOT / "tests/emulated/pair.c", "-o", program)
    library, log = at / "libloam-malloc.so", folder / "log"
    return {
        size: (
            instructions(emulator, library, program, 2 * PAIRS, size, log)
            - instructions(emulator, library, program, PAIRS, size, log)
        ) / PAIRS
        for size in SIZES
    }  # fmt: skip


def main() -> int:
    """Returns the exit status."""
    needed = [word for _, _, compiler, emulator in PROCESSORS.values() for word in (compiler, emulator[0])]
    if missing := [name for name in needed if shutil.which(name) is None]:
        print(f"error: {' '.join(missing)}: not installed (Debian: g++-aarch64-linux-gnu qemu-user)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="loam-pairs-") as folder:
        by_processor = {processor: counted(processor, Path(folder)) for processor in PROCESSORS}
    print("bytes   " + "   ".join(by_processor) + "   ratio")
    worst = 0.0
    for size in SIZES:
        x86, arm = by_processor["x86-64"][size], by_processor["AArch64"][size]
        worst = max(worst, arm / x86)
        print(f"{size:5} {x86:8.1f} {arm:9.1f} {arm / x86:7.2f}")
    print(f"{'at most' if worst <= BOUND else 'MORE THAN'} {BOUND}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
