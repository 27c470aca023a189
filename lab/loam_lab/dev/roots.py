"""An empty Debian in a folder: debootstrap makes it, chroot runs commands in it. Both need root.

Uses the standard library only: packaging/try.py runs it with any Python.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

# The releases that are tried, by the name that the archive of packages knows them by.
SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13"}

# What the kernel shows in a root: kind, folder, options. Terminals and shared memory are the root's own.
_MOUNTS = (
    ("proc", "proc", ()), ("sysfs", "sys", ()), ("devpts", "dev/pts", ("-o", "newinstance,ptmxmode=0666,mode=620")),
    ("tmpfs", "dev/shm", ("-o", "mode=1777")),
)  # fmt: skip

_MIRROR = "http://deb.debian.org/debian"


class RootError(Exception):
    """A command in the root that failed, and the end of what it said."""


def mirror() -> str:
    """The archive that this machine takes its packages from."""
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    match = re.search(r"^(?:deb(?: \[.*?\])?|URIs:) (https?://\S+?/debian)/?(?:\s|$)", text, re.MULTILINE)
    return match[1] if match else _MIRROR


def environment() -> dict[str, str]:
    """What commands in a root get of this machine's variables: how to reach the network."""
    kept = {
        name: value for name, value in os.environ.items()
        if name.lower().endswith("_proxy") or name.startswith(("PIP_", "SSL_", "REQUESTS_"))
    }  # fmt: skip
    return kept | {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
    }  # fmt: skip


def chrooted(folder: Path, command: Sequence[str], inside: str = "/root") -> list[str]:
    """The words that start a command in the root, in a folder of it."""
    return ["chroot", str(folder), "/bin/sh", "-c", 'cd "$0" && exec "$@"', inside, *command]


class Root:
    """A root in a folder, with the kernel's folders mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str, seconds: float = 600, okay: tuple[int, ...] = (0,), inside: str = "/root") -> str:
        """What a command prints there; okay: statuses that are no failure. raises: RootError"""
        done = subprocess.run(
            chrooted(self.folder, command, inside), env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=seconds, check=False,
        )  # fmt: skip
        if done.returncode not in okay:
            raise RootError(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def show(self, *command: str, inside: str = "/root") -> int:
        """Run a command there whose output goes where ours does. Returns its status."""
        return subprocess.run(
            chrooted(self.folder, command, inside), env=environment(), stdin=subprocess.DEVNULL, check=False
        ).returncode


def _is_made(folder: Path) -> bool:
    return (folder / "etc/debian_version").is_file() and not (folder / "debootstrap").exists()


@contextlib.contextmanager
def made(folder: Path, suite: str = "bookworm") -> Iterator[Root]:
    """A fresh root in a folder, or the one that is there; its mounts end with it. raises: RootError"""
    if not _is_made(folder):
        command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, str(folder), mirror()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            raise RootError(done.stdout[-2000:] + done.stderr[-2000:])
    if (folder / "proc").is_mount():
        raise RootError(
            f"{folder}: is in use, or its last user was killed; wait, or unmount what `findmnt` shows below it"
        )
    # Whoever the machine trusts: a company's network may answer with certificates of its own.
    for name in ("resolv.conf", "hosts", "ssl/certs/ca-certificates.crt"):
        with contextlib.suppress(OSError):
            shutil.copyfile(Path("/etc") / name, folder / "etc" / name)
    for file in Path("/etc/apt/apt.conf.d").glob("*proxy*"):
        shutil.copy2(file, folder / "etc/apt/apt.conf.d")
    # debootstrap makes the few devices that programs need; the machine's own /dev is better not mounted below a folder of tests.
    mounted: list[Path] = []
    try:
        for kind, name, options in _MOUNTS:
            (folder / name).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", kind, *options, kind, str(folder / name)], check=True)
            mounted.append(folder / name)
        yield Root(folder)
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "--lazy", str(place)], check=False)
