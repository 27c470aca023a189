"""What measuring and building need: allocators, compilers, JDKs, valgrind and friends, a place for results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.commands.doctor.finding import Finding, View

_GIB = 2**30
_PASSING = ("tmpfs", "ramfs", "overlay")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs", "ceph", "lustre")


def allocators(_: View) -> Iterator[Finding]:
    """The allocators that a comparison takes without being asked."""
    from loam_lab.subjects.allocators import registry

    for name in registry.defaults():
        try:
            allocator = registry.load(name)
        except LoamError as error:
            yield Finding(
                "allocators",
                name,
                "blocks",
                error.limit,
                "it is missing from every comparison",
                error.hint or "./loam setup",
            )
        else:
            yield Finding(
                "allocators", name, "fine", f"{allocator.version}, {allocator.path or 'the C library itself'}"
            )


def _version(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+(\.\d+)+", done.stdout)
    return match[0] if done.returncode == 0 and match else ""


def compilers(_: View) -> Iterator[Finding]:
    """What builds workloads and allocators."""
    from loam_lab.setup import build

    for tool, ask, package in (
        ("g++", "-dumpfullversion", "g++"), ("cmake", "--version", "cmake"), ("ninja", "--version", "ninja-build"),
        ("clang", "--version", ""),
    ):  # fmt: skip
        path = shutil.which(tool, path=build.tool_path())
        if path:
            yield Finding("build", tool, "fine", f"{_version([path, ask]) or 'there'}, {path}")
        elif package:
            yield Finding(
                "build", tool, "blocks", "not found", "no workload can be built", f"as root: apt-get install {package}"
            )


def built(_: View) -> Iterator[Finding]:
    """Whether the workloads are those of the present sources."""
    from loam_lab.setup import build

    if build.is_built():
        yield Finding("build", "workloads", "fine", "everything is built and up to date")
    else:
        yield Finding(
            "build", "workloads", "fine", "not everything is built from the present sources",
            "the next command builds what it needs first", "./loam setup does it now",
        )  # fmt: skip


def tests(_: View) -> Iterator[Finding]:
    """What only the tests need."""
    from loam_lab.setup import debian

    for package in debian.PACKAGES:
        if package.needs == ("test",):
            if debian.present(package):
                yield Finding("tests", package.name, "fine", package.why)
            else:
                yield Finding("tests", package.name, "fine", "not installed", "the tests that need it are skipped",
                              f"./loam setup --tests, or as root: apt-get install {package.name}")  # fmt: skip


def jdks(view: View) -> Iterator[Finding]:
    """Java development kits, by their release files: starting each would take a second."""
    homes = {str(file.parent.resolve()): file for file in sorted(view.tree.path("/usr/lib/jvm").glob("*/release"))}
    java = shutil.which("java")
    if java:
        home = Path(java).resolve().parents[1]
        homes.setdefault(str(home), home / "release")
    kits = []
    for home_name, release in homes.items():
        match = re.search(r'^JAVA_VERSION="([^"]+)"', _text(release), re.MULTILINE)
        kits.append(f"{match[1] if match else 'unknown version'} ({home_name})")
    if kits:
        yield Finding("build", "JDK", "fine", ", ".join(kits))
    else:
        yield Finding(
            "build",
            "JDK",
            "fine",
            "none",
            "programs on a JVM cannot be measured here",
            "as root: apt-get install openjdk-17-jdk",
        )


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def filesystem_of(mounts: str, place: Path) -> str:
    """Type of the file system on which a place lies, from the text of /proc/self/mountinfo; "" where none matches."""
    best, kind = "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = fields[4].replace("\\040", " ")
        if place.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind


def places(view: View) -> Iterator[Finding]:
    """Where builds and results go."""
    spots = {"checkout": paths.root(), "results": view.results.resolve()}
    for name, place in spots.items():
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        free = shutil.disk_usage(there).free / _GIB
        least, kind = (2.0 if name == "checkout" else 0.5), filesystem_of(view.tree.read("/proc/self/mountinfo"), there)
        fact = f"{place}, {free:.0f} GiB free{f' on {kind}' if kind else ''}"
        if not os.access(there, os.W_OK):
            yield Finding("build", name, "blocks", f"{place} cannot be written", "builds or results cannot be stored",
                          "use a folder of your own")  # fmt: skip
        elif free < least:
            yield Finding("build", name, "blocks", fact, "builds or results will not fit", f"make {least:g} GiB free")
        elif kind in _REMOTE and name == "results":
            yield Finding(
                "build", name, "costs precision", fact, "every run ends with a synced line in the journal, over the network",
                "measure in a folder on a local disk",
            )  # fmt: skip
        elif kind in _PASSING and name == "results":
            yield Finding(
                "build", name, "fine", fact, "results are lost with this machine or container", "copy them to a disk"
            )
        else:
            yield Finding("build", name, "fine", fact)
