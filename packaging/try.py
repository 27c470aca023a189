#!/usr/bin/env python3
"""Try this checkout in an empty Debian: python3 packaging/try.py SUITE [--root FOLDER] [COMMAND...]

SUITE       bookworm (Debian 12) or trixie (Debian 13)
--root      where the Debian is, or is made with debootstrap; without it, a temporary folder that is removed
COMMAND...  what to run in the checkout there, each in quotes; by default "./loam tour" and "./loam test --fast"

Needs root, git, debootstrap, and the network. What is committed is what is tried. Prints one line for each command; the
status is 1 if one failed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from loam_lab.dev import roots  # noqa: E402

COMMANDS = ("./loam tour", "./loam test --fast")
PLACE = "/srv/loam"


def lacking() -> str:
    """Why nothing can be tried here; "" if it can."""
    if os.geteuid() != 0:
        return "chroot needs root"
    missing = [name for name in ("debootstrap", "git", "chroot", "mount") if shutil.which(name) is None]
    return f"{' '.join(missing)}: not installed (as root: apt-get install {' '.join(missing)})" if missing else ""


def take(root: roots.Root) -> None:
    """Put a clone of this checkout's HEAD into the root, in the place of an earlier one."""
    place = root.folder / PLACE.lstrip("/")
    git = ["git", "-c", "safe.directory=*"]
    if place.exists():
        subprocess.run([*git, "-C", str(place), "fetch", "-q", str(ROOT), "HEAD"], check=True)
        subprocess.run([*git, "-C", str(place), "reset", "-q", "--hard", "FETCH_HEAD"], check=True)
    else:
        subprocess.run([*git, "clone", "-q", "--no-hardlinks", str(ROOT), str(place)], check=True)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("suite", choices=sorted(roots.SUITES))
    parser.add_argument("--root", type=Path)
    parser.add_argument("commands", nargs="*", default=COMMANDS)
    asked = parser.parse_intermixed_args(arguments)  # commands may follow options
    if why := lacking():
        print(f"error: {why}", file=sys.stderr)
        return 2
    lines, failed = [], False
    with tempfile.TemporaryDirectory(prefix="loam-root-", ignore_cleanup_errors=True) as temporary:
        try:
            with roots.made(asked.root or Path(temporary), asked.suite) as root:
                take(root)
                for command in asked.commands:
                    begun = time.monotonic()
                    status = root.show(*shlex.split(command), inside=PLACE)
                    failed |= status != 0
                    outcome = "passed" if status == 0 else f"failed with status {status}"
                    lines.append(f"{roots.SUITES[asked.suite]}: {command}: {outcome}, {time.monotonic() - begun:.0f} s")
        except roots.RootError as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 2
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
