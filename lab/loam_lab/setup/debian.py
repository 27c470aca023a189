"""Debian packages: which ones a command needs, which are missing, and how they get here.

As root they are installed after the list was printed; without root those that work from anywhere are unpacked into
.loam/root, and the others stop set-up with the line that an administrator can run.
Uses the standard library only: ./loam runs it (python3 -m loam_lab.setup.debian NEED...) before there is a .venv.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.console import note
from loam_lab.base.errors import LoamError


@dataclass(frozen=True)
class Package:
    """One Debian package and how to see that what it brings is there.

    check: "command:NAME", "file:PATH below /", "library:FILE" or "module:NAME of Python"
    needs: the kinds of work that need it: "venv", "measure", "count", "test", "fetch" (sources of allocators),
        "flame" (call stacks), "explain" (shared cache lines of programs),
        "fleet" (engines of other machines), "packages" (builds and tries packages of Loam), "shells"
        (completion), "jvm" (synchronisations on the JVM), "programs" (what loam_lab.subjects.programs runs under allocators),
        "allocators" (those that are measured only when they are named)
    unpacks: whether it works when unpacked into a folder, without root
    optional: whether work goes on without it, with a warning
    """

    name: str
    check: str
    needs: tuple[str, ...]
    why: str
    unpacks: bool = False
    optional: bool = False


def _program(name: str, check: str, what: str) -> Package:
    return Package(name, check, ("programs",), f"run under allocators: {what}", optional=True)


# Of a Debian package, as its policy has it.
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")

# Those of allocators stand in their own files: allocators().
PACKAGES = (
    Package("python3-venv", "module:ensurepip", ("venv",), "the lab's own Python environment"),
    Package("g++", "command:g++", ("measure", "test"), "compiles the workloads"),
    Package("binutils", "command:addr2line", ("measure", "test"), "names source lines", unpacks=True),
    Package("cmake", "command:cmake", ("measure", "test"), "builds the workloads", unpacks=True),
    Package("ninja-build", "command:ninja", ("measure", "test"), "builds the workloads", unpacks=True),
    Package("libgtest-dev", "file:usr/include/gtest/gtest.h", ("measure", "test"), "unit tests", unpacks=True),
    Package("libgc1", "library:libgc.so.1", ("measure", "test"), "the collector of gc-boehm", unpacks=True),
    Package("valgrind", "command:valgrind", ("test", "count"), "counts instructions and models caches"),
    Package(
        "libzydis-dev",
        "file:usr/include/Zydis/Zydis.h",
        ("explain", "test"),
        "decodes instructions, for explain -- COMMAND",
        unpacks=True,
    ),
    Package("linux-perf", "command:perf", ("flame",), "samples call stacks", optional=True),
    Package("cargo", "command:cargo", ("fetch",), "fetches sources of allocators; no Rust is compiled", unpacks=True),
    Package("make", "command:make", ("fetch",), "builds jemalloc", unpacks=True),
    Package("clang", "command:clang++", ("test",), "fuzzes the heap", optional=True),
    Package(
        "gcc-12-plugin-dev",
        "file:usr/lib/gcc/x86_64-linux-gnu/12/plugin/include/gcc-plugin.h",
        ("test",),
        "counts instructions between simulated accesses",
        optional=True,
    ),
    Package(
        "libclang-rt-14-dev",
        "file:usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.fuzzer-x86_64.a",
        ("test",),
        "fuzzes the heap",
        optional=True,
    ),
    Package("ccache", "command:ccache", ("test",), "compiles what has not changed but once", optional=True),
    Package("chromium", "command:chromium", ("test",), "opens the report", optional=True),
    Package("chromium-driver", "command:chromedriver", ("test",), "opens the report", optional=True),
    Package("munge", "command:munged", ("fleet",), "tests of --engine slurm", optional=True),
    Package("slurm-wlm", "command:slurmctld", ("fleet",), "tests of --engine slurm", optional=True),
    Package("openssh-client", "command:ssh", ("fleet",), "--engine ssh", optional=True),
    Package("openssh-server", "file:usr/sbin/sshd", ("fleet",), "tests of --engine ssh", optional=True),
    Package("dpkg-dev", "command:dpkg-buildpackage", ("packages",), "builds the Debian packages", optional=True),
    Package("debhelper", "command:dh", ("packages",), "builds the Debian packages", optional=True),
    Package("debootstrap", "command:debootstrap", ("packages",), "a clean Debian to install them in", optional=True),
    Package("zsh", "command:zsh", ("shells",), "tests of completion", optional=True),
    Package("fish", "command:fish", ("shells",), "tests of completion", optional=True),
    _program("gcc", "command:gcc", "a C compiler"),
    _program("ghostscript", "command:gs", "PostScript to pixels"),
    _program("git", "command:git", "histories"),
    _program("libgmp-dev", "library:libgmp.so", "large numbers for cfrac"),
    _program("libpython3.11-testsuite", "file:usr/lib/python3.11/test/test_list.py", "CPython's own tests"),
    _program("lua5.4", "command:lua5.4", "Lua"),
    _program("mawk", "command:awk", "awk"),
    _program("nodejs", "command:node", "JavaScript with worker threads"),
    Package(
        "openjdk-17-jdk-headless",
        "file:usr/lib/jvm/java-17-openjdk-amd64/bin/javac",
        ("programs", "jvm", "test"),
        "runs under allocators, and transactions on the JVM",
        optional=True,
    ),
    Package("maven", "command:mvn", ("jvm", "test"), "builds what runs on the JVM", optional=True),
    _program("perl", "command:perl", "Perl with threads"),
    _program("postgresql-15", "file:usr/lib/postgresql/15/bin/initdb", "a database; starts a service of its own"),
    _program("python3", "file:usr/bin/python3", "CPython"),
    _program("redis-server", "command:redis-server", "a store; starts a service of its own"),
    _program("sqlite3", "command:sqlite3", "a database in a file"),
    _program("stress-ng", "command:stress-ng", "its malloc stressor"),
    _program("tar", "command:tar", "archives"),
)


def allocators() -> list[Package]:
    """The packages that allocator files name.

    One that is measured where none is named is needed for measuring. Any other is brought by ./loam setup alone, and its
    absence stops nothing: the command that names it says what is missing.
    """
    found: dict[str, Package] = {}
    for folder in paths.allocator_folders():
        for file in sorted(folder.glob("*.toml")):
            package = _of_allocator(file)
            if package is not None and (package.name not in found or found[package.name].optional):
                found[package.name] = package
    return list(found.values())


def _of_allocator(file: Path) -> Package | None:
    """None for one without a package, and for a damaged file: who reads it for its allocator says what is wrong."""
    try:
        text = file.read_text()
        content = tomllib.loads(text) if "package" in text else {}  # most have none, and each start reads all
    except (OSError, ValueError):
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
    return Package(name, check, needs, f"allocator {file.stem}", unpacks=True, optional=not default)


def _check_of(candidate: str) -> str:
    """How to see that an object is there, from a candidate of an allocator file."""
    return f"file:{candidate.lstrip('/')}" if candidate.startswith("/") else f"library:{candidate}"


def _there(check: str) -> bool:
    kind, _, what = check.partition(":")
    if kind == "library":
        return paths.find_library(what) is not None
    return any((top / what).exists() for top in (Path("/"), paths.unpacked_root()))


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


def ensure(*needs: str) -> None:
    """Make sure that the packages for these kinds of work are there; installs or unpacks the missing ones.

    raises: LoamError under --no-setup (with the list), without a network, and where only root could go on
    """
    lacking = missing(*needs)
    if not lacking:
        return
    if os.environ.get("LOAM_NO_SETUP"):
        required = [package for package in lacking if not package.optional]
        if required:
            raise LoamError("missing", None, _names(required), f"run ./loam setup, or as root: {_command(required)}")
        return
    if not shutil.which("apt-get"):
        _elsewhere(lacking)
        return
    if os.geteuid() == 0:
        _install(lacking)
    else:
        _unpack(lacking)


def _elsewhere(lacking: Sequence[Package]) -> None:
    """On a system without apt-get: an absent allocator is only missing from comparisons, an absent tool is an error."""
    hint = "this is not Debian: install the equivalent packages with your system's package manager"
    tools = [package for package in lacking if not package.optional and not package.check.startswith("library:")]
    if tools:
        raise LoamError("missing", None, _names(tools), hint)
    note(f"warning: missing: {_names(lacking)}; whatever needs them is left out; {hint}")


def _names(packages: Iterable[Package]) -> str:
    return " ".join(package.name for package in packages)


def _command(packages: Iterable[Package]) -> str:
    return f"apt-get install --no-install-recommends {_names(packages)}"


def _print_list(packages: Sequence[Package], doing: str) -> None:
    note(doing)
    width = max(len(package.name) for package in packages)
    for package in packages:
        note(f"  {package.name:<{width}}  {package.why}")


def _install(lacking: Sequence[Package]) -> None:
    """Install with apt-get, after printing the list. Optional packages go last and alone, so that none spoils another."""
    _print_list(lacking, "installing Debian packages:")
    if _apt(["update", "-q"]) != 0:
        raise LoamError(
            "apt-get update", None, "failed, see above", f"is there a network? by hand: {_command(lacking)}"
        )
    required = [package for package in lacking if not package.optional]
    for group in ([required] if required else []) + [[package] for package in lacking if package.optional]:
        failed = _apt(["install", "-q", "-y", "--no-install-recommends", *(package.name for package in group)]) != 0
        absent = [package for package in group if failed or not present(package)]
        if absent and group[0].optional:
            note(f"warning: {_names(absent)} could not be installed; what needs it is left out; {_command(absent)}")
        elif absent:
            raise LoamError("apt-get install", None, f"{_names(absent)} could not be installed, see above",
                            f"is there a network? by hand, as root: {_command(absent)}")  # fmt: skip


def _apt(arguments: Sequence[str], folder: Path | None = None) -> int:
    """Run apt-get with its chatter in .loam/setup.log; where it fails, the end of it is shown."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    log = paths.dot_loam() / "setup.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        done = subprocess.run(["apt-get", *arguments], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=file,
                              stderr=subprocess.STDOUT, check=False)  # fmt: skip
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
                note(f"warning: {_names(absent)} could not be unpacked; what needs it is left out; {_command(absent)}")
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
    found = re.findall(r"^Inst (\S+)", simulated.stdout, re.MULTILINE)
    # A package that dpkg lists as installed but whose file is gone would not be simulated: ask for it all the same.
    return list(dict.fromkeys([*(package.name for package in wanted), *found]))


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
