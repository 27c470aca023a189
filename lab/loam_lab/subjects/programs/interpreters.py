"""Interpreters and virtual machines: scripts of lab/programs, and CPython's own tests."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree

from loam_lab.setup import system
from loam_lab.subjects.programs.running import Failed, Program, Session

PYTHON = "/usr/bin/python3"
_DEBIANS = {"x86_64": "amd64", "aarch64": "arm64"}
_MACHINE = os.uname().machine
JAVA = f"/usr/lib/jvm/java-17-openjdk-{_DEBIANS.get(_MACHINE, _MACHINE)}/bin/java"
# Of CPython's tests those about containers, the collector and threads; the long form has those that take longer.
QUICK = ("test_list", "test_dict", "test_json", "test_gc", "test_set", "test_thread", "test_fork1", "test_zlib")
THOROUGH = (
    "test_subprocess", "test_threading", "test_io", "test_re", "test_bytes", "test_unicode", "test_pickle", "test_ctypes",
    "test_decimal", "test_array", "test_mmap", "test_memoryview", "test_deque", "test_queue", "test_lzma",
    "test_threadsignals", "test_itertools",
)  # fmt: skip


def _python(session: Session) -> bytes:
    return session.output(PYTHON, session.script("objects.py"), str(session.amount), timeout_s=600)


def _python_tests(session: Session) -> bytes:
    """One line for each test case: its name and passed, failed or skipped."""
    chosen = QUICK if session.amount == 1 else QUICK + THOROUGH
    report = session.folder / "tests.xml"
    output = session.output(
        PYTHON, "-m", "test", "--junit-xml", report, "--tempdir", session.folder, *chosen, timeout_s=1800, may_fail=True
    )  # fmt: skip
    if not report.exists():
        raise Failed(f"CPython's tests came to no report:\n{output[-2000:].decode(errors='replace')}")
    lines = set()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        outcome = "failed" if failed else "skipped" if skipped else "passed"
        lines.add(f"{case.get('name')} {outcome}\n")
    return "".join(sorted(lines)).encode()


def _perl(session: Session) -> bytes:
    return session.output("perl", session.script("hashes.pl"), str(session.amount), timeout_s=600)


def _lua(session: Session) -> bytes:
    return session.output("lua5.4", session.script("tables.lua"), str(session.amount), timeout_s=600)


def _node(session: Session) -> bytes:
    return session.output("node", session.script("workers.js"), str(session.amount), timeout_s=600)


def _java(session: Session) -> bytes:
    """The class files that javac writes, and what the program prints under two collectors."""
    quiet = "-XX:-UsePerfData"  # the one file that it would leave outside of the session's folder
    session.output(f"{JAVA}c", f"-J{quiet}", "-d", session.folder, session.script("Churn.java"))
    output = b"".join(file.read_bytes() for file in sorted(session.folder.glob("*.class")))
    for collector in ("-XX:+UseSerialGC", "-XX:+UseG1GC"):
        output += session.output(
            JAVA, quiet, collector, "-Xmx256m", "-cp", session.folder, "Churn", str(session.amount), timeout_s=600
        )  # fmt: skip
    return output


PROGRAMS = (
    Program("python3", ("python3",), "what a script prints", _python, 1, 60, (PYTHON, "--version")),
    Program(
        "python3-tests", ("python3", f"libpython{system.here().versions.python}-testsuite"),
        "the outcome of each of CPython's tests", _python_tests, 1, 2, (PYTHON, "-c", "import test.test_list"),
    ),
    Program("perl", ("perl",), "what a script prints", _perl, 100_000, 10_000_000, ("perl", "-v")),
    Program("lua", ("lua5.4",), "what a script prints", _lua, 20_000, 300_000, ("lua5.4", "-v")),
    Program("node", ("nodejs",), "what a script prints", _node, 20, 1000, ("node", "-e", "1")),
    Program("java", ("openjdk-17-jdk-headless",), "class files and what they print", _java, 20, 1000, (JAVA, "-version")),
)  # fmt: skip
