"""A clean Debian 12 in a folder, to install packages in: debootstrap and chroot."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.dev import roots
from loam_lab.setup import debian

# What running programs leave: results of the test, caches, logs, and what apt and dpkg note of themselves.
_OWN = (
    "root/",
    "tmp/",
    "proc/",
    "sys/",
    "dev/",
    "run/",
    "var/log/",
    "var/cache/",
    "var/lib/apt/",
    "var/lib/dpkg/",
    "packages/",
)


def lacking() -> str:
    """Why packages cannot be built and tried here; "" if they can. Installs the tools, as set-up installs its packages."""
    if os.geteuid() != 0:
        return "chroot needs root"
    try:
        debian.ensure("packages")
    except LoamError as problem:
        return problem.line()
    missing = [package.name for package in debian.missing("packages")]
    return f"{missing[0]} could not be installed" if missing else ""


class CleanRoot(roots.Root):
    """The root, and packages in it."""

    def take(self, packages: Path) -> list[str]:
        """Copy packages into the root; returns: their names there"""
        (self.folder / "packages").mkdir(exist_ok=True)
        return [
            "/packages/" + Path(shutil.copy2(file, self.folder / "packages")).name
            for file in sorted(packages.glob("*.deb"))
        ]

    def install_dependencies(self, packages: Path) -> None:
        """Install what packages of ours depend on and recommend, as apt would, but not the packages themselves."""
        wanted = {"pkg-config"}
        own = {file.name.split("_")[0] for file in packages.glob("*.deb")}
        for file in packages.glob("*.deb"):
            for field in ("Depends", "Recommends"):
                fields = subprocess.run(
                    ["dpkg-deb", "--field", file, field], capture_output=True, text=True, check=True
                ).stdout
                wanted |= {part.split()[0] for part in fields.split(",") if part.strip()}
        self.run("apt-get", "update", "-qq")
        self.run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *sorted(wanted - own), seconds=1200)

    def files(self) -> set[str]:
        """Every file of the root that no running program wrote, by path."""
        paths_of_root = set()
        for folder, folders, files in os.walk(self.folder):
            inner = os.path.relpath(folder, self.folder) + "/"
            place = "" if inner == "./" else inner
            folders[:] = [name for name in folders if not f"{place}{name}/".startswith(_OWN) and name != "__pycache__"]
            paths_of_root |= {place + name for name in files}
        return paths_of_root


@contextlib.contextmanager
def made(folder: Path) -> Iterator[CleanRoot]:
    """A fresh Debian 12 in a folder; its mounts end with it."""
    with roots.made(folder, "bookworm"):
        yield CleanRoot(folder)
