"""The distribution of this machine: what installs its packages, what it calls them, and what an allocator is there.

Uses the standard library only: ./loam runs it before there is a .venv.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_RELEASE = Path("/etc/os-release")


@dataclass(frozen=True)
class Versions:
    """The numbers in the names of a distribution's packages."""

    gcc: str
    llvm: str
    postgresql: str
    python: str


DEBIAN_12 = Versions(gcc="12", llvm="14", postgresql="15", python="3.11")
DEBIAN_13 = Versions(gcc="14", llvm="19", postgresql="17", python="3.13")
_KNOWN = {
    ("debian", "12"): DEBIAN_12,
    ("debian", "13"): DEBIAN_13,
    ("ubuntu", "24.04"): Versions(gcc="13", llvm="18", postgresql="16", python="3.12"),
}

# Fedora's names where they differ from Debian's, of which numbers and what is behind them are cut off. Nobody has
# tried them (docs/platforms.md).
_FEDORA = {
    "python3-venv": "python3", "g++": "gcc-c++", "libgtest-dev": "gtest-devel", "libgc1": "gc", "linux-perf": "perf",
    "libclang-rt": "compiler-rt", "chromium-driver": "chromedriver", "slurm-wlm": "slurm", "libgmp-dev": "gmp-devel",
    "openssh-client": "openssh-clients", "libpython": "python3-test", "lua": "lua", "redis-server": "redis",
    "sqlite3": "sqlite", "gcc": "gcc-plugin-devel", "openjdk": "java-latest-openjdk-devel", "postgresql": "postgresql-server",
    "libjemalloc2": "jemalloc", "libtcmalloc-minimal4": "gperftools-libs", "libtbbmalloc2": "tbb",
    "libmimalloc2.0": "mimalloc", "pkgconf": "pkgconf-pkg-config",
}  # fmt: skip
_NUMBERED = re.compile(r"-?\d[\d.]*(-.*)?$")


@dataclass(frozen=True)
class System:
    """A distribution.

    installer: the command that installs packages, "" where Loam knows no names of them
    like: the release whose packages it has ("debian 13"), "" without apt-get
    """

    name: str
    installer: str
    versions: Versions
    like: str = ""

    def called(self, package: str) -> str:
        """What a package of Debian is called here."""
        if self.installer != "dnf" or package == "gcc":
            return package
        return _FEDORA.get(package, _FEDORA.get(_NUMBERED.sub("", package), package))

    def own(self, content: dict[str, Any]) -> dict[str, Any]:
        """What an allocator's file says of this system: its table on."RELEASE" replaces keys of the same name.

        raises: TypeError if that is no table
        """
        there = content.get("on", {})
        if not isinstance(there, dict) or not all(isinstance(table, dict) for table in there.values()):
            raise TypeError('on must be tables, as in [on."debian 13"]')
        return {**{key: value for key, value in content.items() if key != "on"}, **there.get(self.like, {})}

    def by_hand(self, packages: Iterable[str]) -> str:
        """The command with which an administrator installs packages that have Debian's names."""
        names = " ".join(dict.fromkeys(self.called(package) for package in packages))
        if not self.installer:
            return f"install what is called {names} in Debian"
        return f"{self.installer} install {'--no-install-recommends ' * (self.installer == 'apt-get')}{names}"


def here() -> System:
    """This machine's."""
    try:
        lines = _RELEASE.read_text().splitlines()
    except OSError:
        lines = []
    fields = {name: value.strip("\"'") for name, equals, value in (line.partition("=") for line in lines) if equals}
    return of(fields, "apt-get" if shutil.which("apt-get") else "dnf" if shutil.which("dnf") else "")


def of(release: dict[str, str], installer: str) -> System:
    """The system with these lines of /etc/os-release. One that is not known has the numbers of Debian 13."""
    key = (release.get("ID", ""), release.get("VERSION_ID", ""))
    key = key if key in _KNOWN else ("debian", "13")
    like = " ".join(key) if installer == "apt-get" else ""
    return System(release.get("PRETTY_NAME", "this system"), installer, _KNOWN[key], like)
