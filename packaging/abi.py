"""Compare the C interface of the built libloam-tm.so with the one that is promised: python3 packaging/abi.py [--write]

          compares build/release with packaging/abi/libloam-tm.abi; a function more is no difference
--write   writes that file anew: for a change that the change log tells, before the release that makes it a promise

Needs abidw and abidiff (Debian: abigail-tools), and a build of the target loam-package. The status is 0; 1 if something that a
program may rely on was changed or taken away; 2 if nothing could be compared.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROMISED = ROOT / "packaging/abi/libloam-tm.abi"
LIBRARY = ROOT / "build/release/package/libloam-tm.so"
INTERFACE = ("--suppressions", str(ROOT / "packaging/abi/tm.suppr"))
# Nothing of the machine that wrote it, and nothing but what a program can call.
DUMP = (
    "--exported-interfaces-only", "--drop-undefined-syms", "--drop-private-types", "--no-show-locs", "--no-corpus-path",
    "--no-comp-dir-path", "--no-elf-needed", "--no-architecture", "--no-parameter-names",
)  # fmt: skip


def lacking() -> str:
    """Why nothing can be compared; "" if it can."""
    if missing := [name for name in ("abidw", "abidiff") if shutil.which(name) is None]:
        return f"{missing[0]}: is not installed (as root: apt-get install abigail-tools)"
    return "" if LIBRARY.exists() else f"{LIBRARY}: is not built (cmake --build build/release --target loam-package)"


def dump(out: Path) -> None:
    """Write the interface of the built library."""
    headers = ("--hd", str(ROOT / "include/loam"))
    subprocess.run(["abidw", *INTERFACE, *DUMP, *headers, "--out-file", str(out), str(LIBRARY)], check=True)


def differences(promised: Path, built: Path) -> str:
    """What the second dump changes or lacks of the first, in abidiff's words; "" if nothing."""
    command = ["abidiff", *INTERFACE, "--no-added-syms", str(promised), str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args(arguments).write
    if why := lacking():
        print(f"error: {why}", file=sys.stderr)
        return 2
    if write:
        dump(PROMISED)
        print(f"{PROMISED}: written; say in CHANGELOG.md what changed")
        return 0
    built = LIBRARY.with_name("libloam-tm.abi")
    dump(built)
    if report := differences(PROMISED, built):
        print(
            f"{report}\nerror: the C interface is not what packaging/abi promises; programs that are linked with it would break"
        )
        return 1
    print("the C interface is what packaging/abi promises")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
