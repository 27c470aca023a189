"""A clean Debian 12 in a folder, to install packages in: debootstrap and chroot."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from loam_lab.base.errors import LoamError
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
_MIRROR = "http://deb.debian.org/debian"


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


def mirror() -> str:
    """The archive that this machine takes its packages from."""
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    found = re.search(r"^(?:deb(?: \[.*?\])?|URIs:) (https?://\S+?/debian)/?(?:\s|$)", text, re.MULTILINE)
    return found[1] if found else _MIRROR


class CleanRoot:
    """The root in a folder, with the kernel's folders mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str, seconds: float = 600, okay: tuple[int, ...] = (0,)) -> str:
        """What a command prints there, started in /root; okay: statuses that are no failure"""
        environment = {
            name: value for name, value in os.environ.items()
            if name.lower().endswith("_proxy") or name.startswith(("PIP_", "SSL_", "REQUESTS_"))
        }  # fmt: skip
        environment |= {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
        }  # fmt: skip
        done = subprocess.run(
            ["chroot", str(self.folder), "/bin/sh", "-c", 'cd /root && exec "$@"', "sh", *command], env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode in okay, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

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
                told = subprocess.run(
                    ["dpkg-deb", "--field", file, field], capture_output=True, text=True, check=True
                ).stdout
                wanted |= {part.split()[0] for part in told.split(",") if part.strip()}
        self.run("apt-get", "update", "-qq")
        self.run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *sorted(wanted - own), seconds=1200)

    def files(self) -> set[str]:
        """Every file of the root that no running program wrote, by path."""
        found = set()
        for folder, folders, files in os.walk(self.folder):
            inner = os.path.relpath(folder, self.folder) + "/"
            place = "" if inner == "./" else inner
            folders[:] = [name for name in folders if not f"{place}{name}/".startswith(_OWN) and name != "__pycache__"]
            found |= {place + name for name in files}
        return found


@contextlib.contextmanager
def made(folder: Path) -> Iterator[CleanRoot]:
    """A fresh root in a folder; its mounts end with it."""
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", str(folder), mirror()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    # Whoever the machine trusts: a company's network may answer with certificates of its own.
    for name in ("resolv.conf", "hosts", "ssl/certs/ca-certificates.crt"):
        with contextlib.suppress(OSError):
            shutil.copyfile(Path("/etc") / name, folder / "etc" / name)
    for file in Path("/etc/apt/apt.conf.d").glob("*proxy*"):
        shutil.copy2(file, folder / "etc/apt/apt.conf.d")
    # debootstrap makes the few devices that programs need; the machine's own /dev is better not mounted below a folder of tests.
    mounts = [("proc", "proc"), ("sysfs", "sys")]
    mounted: list[Path] = []
    try:
        for kind, name in mounts:
            subprocess.run(["mount", "-t", kind, kind, str(folder / name)], check=True)
            mounted.append(folder / name)
        yield CleanRoot(folder)
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "--lazy", str(place)], check=False)
