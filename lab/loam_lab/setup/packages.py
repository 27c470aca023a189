"""The Debian packages that kinds of work need, but for those of allocators, which stand in their own files.

Uses the standard library only: ./loam runs it before there is a .venv.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from loam_lab.setup import system


@dataclass(frozen=True)
class Package:
    """One Debian package and how to see that what it brings is there.

    check: "command:NAME", "file:PATH below /", "library:FILE" or "module:NAME of Python"; a path may have a * in it
    needs: the kinds of work that need it: "venv", "measure", "count", "test", "fetch" (sources of allocators
        that are crates), "clone" (those from repositories), "flame" (call stacks), "explain" (shared cache lines of programs),
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


_V = system.here().versions
_MACHINE = os.uname().machine

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
    Package("make", "command:make", ("fetch", "clone", "test"), "builds allocators from sources", unpacks=True),
    Package("pkgconf", "command:pkg-config", ("test",), "what programs that use Loam are built with", optional=True),
    Package(
        "git",
        "command:git",
        ("clone", "test", "programs"),
        "which files are the sources, and fetches them",
        optional=True,
    ),
    Package("clang", "command:clang++", ("test",), "fuzzes the heap", optional=True),
    Package(
        f"gcc-{_V.gcc}-plugin-dev",
        f"file:usr/lib/gcc/{_MACHINE}-linux-gnu/{_V.gcc}/plugin/include/gcc-plugin.h",
        ("test",),
        "counts instructions between simulated accesses",
        optional=True,
    ),
    Package(
        f"libclang-rt-{_V.llvm}-dev",
        f"file:usr/lib/llvm-{_V.llvm}/lib/clang/*/lib/linux/libclang_rt.fuzzer-{_MACHINE}.a",
        ("test",),
        "fuzzes the heap",
        optional=True,
    ),
    Package("ccache", "command:ccache", ("test",), "compiles what has not changed but once", optional=True),
    Package("chromium", "command:chromium", ("test",), "opens the report", optional=True),
    Package("chromium-driver", "command:chromedriver", ("test",), "opens the report", optional=True),
    Package(
        "abigail-tools", "command:abidiff", ("test",), "compares the C interface with the promised one", optional=True
    ),
    Package("munge", "command:munged", ("fleet",), "tests of --engine slurm", optional=True),
    Package("slurm-wlm", "command:slurmctld", ("fleet",), "tests of --engine slurm", optional=True),
    Package("openssh-client", "command:ssh", ("fleet",), "--engine ssh", optional=True),
    Package("openssh-server", "file:usr/sbin/sshd", ("fleet",), "tests of --engine ssh", optional=True),
    Package("dpkg-dev", "command:dpkg-buildpackage", ("packages",), "builds the Debian packages", optional=True),
    Package("debhelper", "command:dh", ("packages",), "builds the Debian packages", optional=True),
    Package("debootstrap", "command:debootstrap", ("packages",), "a clean Debian to install them in", optional=True),
    Package("lintian", "command:lintian", ("packages",), "checks the Debian packages", optional=True),
    Package("zsh", "command:zsh", ("shells",), "tests of completion", optional=True),
    Package("fish", "command:fish", ("shells",), "tests of completion", optional=True),
    _program("gcc", "command:gcc", "a C compiler"),
    _program("ghostscript", "command:gs", "PostScript to pixels"),
    _program("libgmp-dev", "library:libgmp.so", "large numbers for cfrac"),
    _program(
        f"libpython{_V.python}-testsuite", f"file:usr/lib/python{_V.python}/test/test_list.py", "CPython's own tests"
    ),
    _program("lua5.4", "command:lua5.4", "Lua"),
    _program("mawk", "command:awk", "awk"),
    _program("nodejs", "command:node", "JavaScript with worker threads"),
    Package(
        "openjdk-17-jdk-headless",
        "file:usr/lib/jvm/java-17-openjdk-*/bin/javac",
        ("programs", "jvm", "test"),
        "runs under allocators, and transactions on the JVM",
        optional=True,
    ),
    Package("maven", "command:mvn", ("jvm", "test"), "builds what runs on the JVM", optional=True),
    # Not by its command: that of perl-base has no threads.
    _program("perl", "file:usr/lib/*/perl/5*/threads.pm", "Perl with threads"),
    _program(
        f"postgresql-{_V.postgresql}",
        f"file:usr/lib/postgresql/{_V.postgresql}/bin/initdb",
        "a database; starts a service of its own",
    ),
    _program("python3", "file:usr/bin/python3", "CPython"),
    _program("redis-server", "command:redis-server", "a store; starts a service of its own"),
    _program("sqlite3", "command:sqlite3", "a database in a file"),
    _program("stress-ng", "command:stress-ng", "its malloc stressor"),
    _program("tar", "command:tar", "archives"),
)
