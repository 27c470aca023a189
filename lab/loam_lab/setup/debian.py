"""Debian packages: which ones a command needs, which are missing, and how they get here.

As root they are installed after the list was printed, on a system with dnf by the names that they have there; without
root those that work from anywhere are unpacked into .loam/root, and the others stop set-up with the line that an
administrator can run. What can be had nowhere and is not needed is asked for again after a day, or by ./loam setup.
Uses the standard library only: ./loam runs it (python3 -m loam_lab.setup.debian NEED...) before there is a .venv.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.console import note
from loam_lab.base.errors import LoamError
from loam_lab.setup import system
from loam_lab.setup.packages import PACKAGES as PACKAGES
from loam_lab.setup.packages import Package

# Of a Debian package, as its policy has it.
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def allocators() -> list[Package]:
    """The packages that allocator files name.

    One that is measured where none is named is brought for measuring, any other by ./loam setup alone. The absence of none
    stops anything: a distribution may not have it. What compares it says that it is missing.
    """
    by_name: dict[str, Package] = {}
    for folder in paths.allocator_folders():
        for file in sorted(folder.glob("*.toml")):
            package = _of_allocator(file)
            if package is not None and (package.name not in by_name or "measure" not in by_name[package.name].needs):
                by_name[package.name] = package
    return list(by_name.values())


def _of_allocator(file: Path) -> Package | None:
    """None for one without a package, and for a damaged file: who reads it for its allocator says what is wrong."""
    try:
        text = file.read_text()
        content = system.here().own(tomllib.loads(text)) if "package" in text else {}  # each start reads all
    except (OSError, ValueError, TypeError):
        return None
    name, candidates = content.get("package"), content.get("candidates")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(candidates, list):
        return None
    checks = [_check_of(text) for text in candidates if isinstance(text, str)]
    if not checks:
        return None
    default = content.get("default") is True
    check = next((check for check in checks if _there(check)), checks[0])
    needs = ("measure", "test") if default else ("allocators",)
    return Package(name, check, needs, f"allocator {file.stem}", unpacks=True, optional=True)


def _check_of(candidate: str) -> str:
    """How to see that an object is there, from a candidate of an allocator file."""
    return f"file:{candidate.lstrip('/')}" if candidate.startswith("/") else f"library:{candidate}"


def _there(check: str) -> bool:
    kind, _, what = check.partition(":")
    if kind == "library":
        return paths.find_library(what) is not None
    return any(next(top.glob(what), None) is not None for top in (Path("/"), paths.unpacked_root()))


def packages() -> list[Package]:
    """Every package that some kind of work needs."""
    return [*PACKAGES, *allocators()]


def present(package: Package) -> bool:
    """Whether what the package brings is on this machine or unpacked in .loam/root. Starts no process."""
    kind, _, what = package.check.partition(":")
    if kind == "command":
        unpacked = paths.unpacked_root() / "usr/bin" / what
        return shutil.which(what) is not None or (package.unpacks and unpacked.exists())
    if kind == "module":
        return importlib.util.find_spec(what) is not None
    return _there(package.check)


def missing(*needs: str) -> list[Package]:
    """The packages of these kinds of work that are not there, in the table's order, then those of allocators."""
    return [package for package in packages() if set(package.needs) & set(needs) and not present(package)]


def ensure(*needs: str, again: bool = False) -> None:
    """Make sure that the packages for these kinds of work are there; installs or unpacks the missing ones.

    again: also those that could not be had a short time ago
    raises: LoamError under --no-setup (with the list), without a network, and where only root could go on
    """
    sought = {} if again else _sought()
    lacking = [package for package in missing(*needs) if not (package.optional and package.name in sought)]
    if not lacking:
        return
    if os.environ.get("LOAM_NO_SETUP"):
        required = [package for package in lacking if not package.optional]
        if required:
            raise LoamError("missing", None, _names(required), f"run ./loam setup, or as root: {_command(required)}")
        return
    installer = system.here().installer
    if not installer:
        _elsewhere(lacking)
    elif os.geteuid() == 0:
        _install(lacking)
    elif installer == "apt-get":
        _unpack(lacking)
    else:
        _ask_root(lacking)


def _elsewhere(lacking: Sequence[Package]) -> None:
    """On a system without apt-get and dnf: an absent allocator is only missing from comparisons, an absent tool an error."""
    hint = "this is neither Debian nor Fedora: install the equivalent packages with your system's package manager"
    tools = [package for package in lacking if not package.optional and not package.check.startswith("library:")]
    if tools:
        raise LoamError("missing", None, _names(tools), hint)
    note(f"warning: missing: {_names(lacking)}; whatever needs them is left out; {hint}")


def _ask_root(lacking: Sequence[Package]) -> None:
    """Where packages cannot be unpacked without root."""
    required = [package for package in lacking if not package.optional]
    if required:
        raise LoamError("missing", None, _names(required), f"as root: {_command(lacking)}")
    note(f"warning: missing: {_names(lacking)}; whatever needs them is left out; as root: {_command(lacking)}")
    _note_sought(lacking)


# ---- what could not be had

_AGAIN_AFTER_S = 86400.0


def _sought() -> dict[str, float]:
    """When which packages were asked for in vain, during the last day: each start would wait for the network again."""
    try:
        times = json.loads((paths.dot_loam() / "sought.json").read_text())
        return {str(name): float(at) for name, at in times.items() if time.time() - float(at) < _AGAIN_AFTER_S}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _note_sought(absent: Iterable[Package]) -> None:
    names = {package.name: time.time() for package in absent}
    if names:
        paths.dot_loam().mkdir(parents=True, exist_ok=True)
        (paths.dot_loam() / "sought.json").write_text(json.dumps(_sought() | names) + "\n")


def _names(packages: Iterable[Package]) -> str:
    return " ".join(system.here().called(package.name) for package in packages)


def _command(packages: Iterable[Package]) -> str:
    return system.here().by_hand(package.name for package in packages)


def _left_out(package: Package, could_not: str) -> None:
    """Say that work goes on without an optional package, and do not ask for it at the next start again."""
    note(f"warning: {_names([package])} could not be {could_not}; what needs it is left out ({package.why}); "
         f"{_command([package])}")  # fmt: skip
    _note_sought([package])


def _print_list(packages: Sequence[Package], doing: str) -> None:
    note(doing)
    width = max(len(_names([package])) for package in packages)
    for package in packages:
        note(f"  {_names([package]):<{width}}  {package.why}")


def _install(lacking: Sequence[Package]) -> None:
    """Install with apt-get, after printing the list. Optional packages go last and alone, so that none spoils another."""
    here = system.here()
    _print_list(lacking, "installing Debian packages:" if here.installer == "apt-get" else "installing packages:")
    if here.installer == "apt-get" and _apt(["update", "-q"]) != 0:
        raise LoamError(
            "apt-get update", None, "failed, see above", f"is there a network? by hand: {_command(lacking)}"
        )
    words = (
        ["install", "-q", "-y", "--no-install-recommends"] if here.installer == "apt-get" else ["install", "-q", "-y"]
    )
    required = [package for package in lacking if not package.optional]
    for group in ([required] if required else []) + [[package] for package in lacking if package.optional]:
        failed = _apt([*words, *(here.called(package.name) for package in group)], installer=here.installer) != 0
        absent = [package for package in group if failed or not present(package)]
        if absent and group[0].optional:
            _left_out(absent[0], "installed")
        elif absent:
            raise LoamError(f"{here.installer} install", None, f"{_names(absent)} could not be installed, see above",
                            f"is there a network? by hand, as root: {_command(absent)}")  # fmt: skip


def _apt(arguments: Sequence[str], folder: Path | None = None, installer: str = "apt-get") -> int:
    """Run apt-get, or dnf, with its chatter in .loam/setup.log; where it fails, the end of it is shown.

    Two processes of ours come one after the other: the second would fail at the lock of the package database.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    log = paths.dot_loam() / "setup.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        with log.open("w") as file:
            done = subprocess.run([installer, *arguments], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        if done.returncode != 0:
            note("\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-20:]))
    return done.returncode


def _unpack(lacking: Sequence[Package]) -> None:
    """Without root: fetch the packages and those they depend on, and unpack them into .loam/root."""
    stuck = [package for package in lacking if not package.unpacks and not package.optional]
    if stuck:
        raise LoamError("missing", None, f"{_names(stuck)} (works only when installed by root)",
                        f"as root: {_command(lacking)}")  # fmt: skip
    wanted = [package for package in lacking if package.unpacks]
    for package in lacking:
        if not package.unpacks:
            note(f"warning: {package.name} is missing; what needs it is left out; as root: {_command([package])}")
    if not wanted:
        return
    _print_list(wanted, f"unpacking Debian packages into {paths.unpacked_root()} (no root, nothing is installed):")
    folder = paths.dot_loam() / "apt"
    debs = folder / "debs"
    options = _own_index(folder, f"as root: {_command(wanted)}")
    debs.mkdir(exist_ok=True)
    required = [package for package in wanted if not package.optional]
    try:
        for group in ([required] if required else []) + [[package] for package in wanted if package.optional]:
            absent = _fetch(options, group, debs)
            if absent and group[0].optional:
                _left_out(absent[0], "unpacked")
            elif absent:
                raise LoamError("apt-get download", None, f"{_names(absent)} could not be unpacked, see above",
                                f"as root: {_command(absent)}")  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch(options: Sequence[str], group: Sequence[Package], debs: Path) -> list[Package]:
    """Download packages with what they depend on into a folder, and unpack them; returns those that are still missing."""
    fetched = _apt([*options, "download", "-q", *_closure(options, group)], folder=debs)
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg", "-x", deb, paths.unpacked_root()], check=True, stdout=sys.stderr)
        deb.unlink()
    absent = [package for package in group if not present(package)]
    return absent or (list(group) if fetched != 0 else [])


def _own_index(folder: Path, by_hand: str) -> list[str]:
    """A fresh package index of our own: the machine's may be missing, and only root may refresh it.

    returns: the options with which apt-get uses it; raises: LoamError without a network
    """
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}",
               "-o", "Debug::NoLocking=true", "-o", "APT::Sandbox::User="]  # fmt: skip
    if _apt([*options, "update", "-q"]) != 0:
        raise LoamError("apt-get update", None, "failed, see above", f"is there a network? {by_hand}")
    return options


def download(name: str, folder: Path) -> Path:
    """Download one package without installing it or what it depends on.

    folder: where to; returns: the archive; raises: LoamError without apt-get, offline, or where there is no such package
    """
    if not shutil.which("apt-get"):
        raise LoamError(name, None, "comes as a Debian package, and this is not Debian", "use another allocator")
    note(f"downloading the Debian package {name} ...")
    options = _own_index(folder / "apt", f"by hand: apt-get download {name}")
    if _apt([*options, "download", "-q", name], folder=folder) != 0:
        raise LoamError("apt-get download", None, f"{name} could not be fetched, see above", "is there a network?")
    return next(iter(folder.glob("*.deb")))


def _closure(options: Sequence[str], wanted: Sequence[Package]) -> list[str]:
    """The wanted packages and every package of theirs that this machine lacks."""
    simulated = subprocess.run(
        ["apt-get", *options, "--simulate", "--no-install-recommends", "install", *(package.name for package in wanted)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lacking = re.findall(r"^Inst (\S+)", simulated.stdout, re.MULTILINE)
    # A package that dpkg lists as installed but whose file is gone would not be simulated: ask for it all the same.
    return list(dict.fromkeys([*(package.name for package in wanted), *lacking]))


def main(needs: Sequence[str]) -> int:
    """What ./loam runs before there is a .venv. Returns the exit status; prints its error itself."""
    try:
        ensure(*needs)
    except LoamError as error:
        note(f"error: {error.line()}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
