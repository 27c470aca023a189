"""`loam doctor`: what this machine can measure, what it cannot, what each absence costs, and what to do about it.

Looks only; changes nothing and builds nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from loam_lab import console, machine, paths
from loam_lab.errors import LoamError, unknown


@dataclass(frozen=True)
class Finding:
    """One fact about the machine with what follows from it.

    subject: what it bears on, see SUBJECTS; state: "good", "note" (worth knowing), "doubt" (weakens results) or
    "bad" (something does not work)
    consequence, next_step: "" where nothing follows
    """

    subject: str
    name: str
    state: str
    fact: str
    consequence: str = ""
    next_step: str = ""


def _processor() -> Iterator[Finding]:
    threads, total = machine.hardware_threads(), os.cpu_count() or 1
    fact = f"{machine.cpu_model()}, {threads} hardware thread{'s' * (threads != 1)}"
    if threads < total:
        yield Finding("noise", "processor", "note", f"{fact} of {total}", "this process may not use the others",
                      "see taskset -p $$ or the container's limits")  # fmt: skip
    elif threads < 8:
        yield Finding("noise", "processor", "note", fact, f"curves end at {threads} threads; beyond, they describe the scheduler",
                      "claims about more threads stay undecided here")  # fmt: skip
    else:
        yield Finding("noise", "processor", "good", fact)
    siblings = machine.read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    if any(mark in siblings for mark in ",-"):
        yield Finding("noise", "siblings", "note", f"hardware threads {siblings} share a core",
                      "two threads on one core compete for its caches", "threads are pinned one per core first")  # fmt: skip
    hypervisor = machine.hypervisor()
    if hypervisor != "none":
        name = "a hypervisor" if hypervisor == "some" else hypervisor
        yield Finding("noise", "hypervisor", "note", f"a guest of {name}", "the host may take the processor away (steal)",
                      "paired blocks cancel slow drift; use a machine of your own for the last per cent")  # fmt: skip


def _frequency() -> Iterator[Finding]:
    governor = machine.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not governor:
        yield Finding("noise", "governor", "note", "the frequency is not under this system's control",
                      "it may drift between runs", "nothing to do: blocks are paired")  # fmt: skip
    elif governor == "performance":
        yield Finding("noise", "governor", "good", governor)
    else:
        yield Finding("noise", "governor", "doubt", governor, "short runs start at a low frequency",
                      "as root: cpupower frequency-set -g performance")  # fmt: skip


def _load() -> Iterator[Finding]:
    load = os.getloadavg()[0]
    if load > 0.5:
        yield Finding("noise", "load", "doubt", f"load average {load:.1f} before anything was started",
                      "other work widens every interval", "stop it, or measure at another time")  # fmt: skip
    else:
        yield Finding("noise", "load", "good", f"load average {load:.1f}")


def _htm() -> Iterator[Finding]:
    state = machine.rtm()
    if state == "works":
        yield Finding("htm", "RTM", "good", "works: hardware transactions commit")
    elif state == "absent":
        yield Finding(
            "htm",
            "RTM",
            "note",
            "absent",
            "hardware transactions cannot be measured here",
            "software algorithms are complete",
        )
    else:
        yield Finding("htm", "RTM", "doubt", "listed by the processor, but every transaction aborts",
                      "microcode or the hypervisor disabled it", "treat this machine as one without RTM")  # fmt: skip


def _counters() -> Iterator[Finding]:
    works, why = machine.instruction_counter()
    if works:
        yield Finding("counters", "counters", "good", why)
    else:
        step = "as root: sysctl kernel.perf_event_paranoid=1" if "paranoid" in why else "nothing to do on this machine"
        instead = "cache misses and instructions come from valgrind's models instead"
        yield Finding("counters", "counters", "note", why, instead, step)


def _memory() -> Iterator[Finding]:
    thp = machine.thp()
    if thp == "always":
        yield Finding("memory", "huge pages", "doubt", "transparent huge pages: always",
                      "peak memory and faults depend on alignment and luck",
                      "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")  # fmt: skip
    else:
        yield Finding("memory", "huge pages", "good", f"transparent huge pages: {thp}")
    yield from _damon()
    swaps = len(machine.read("/proc/swaps").splitlines()) - 1
    if swaps > 0:
        yield Finding("memory", "swap", "note", f"{swaps} swap area{'s' * (swaps != 1)} in use by the kernel",
                      "memory under pressure shows as time", "watch major faults in the results")  # fmt: skip
    else:
        yield Finding("memory", "swap", "good", "none")
    aslr = machine.read("/proc/sys/kernel/randomize_va_space")
    if aslr == "2":
        yield Finding("memory", "ASLR", "good", "2: every run gets a layout of its own, as blocks assume")
    else:
        yield Finding("memory", "ASLR", "doubt", aslr or "unknown", "runs share one layout: its luck becomes a result",
                      "as root: sysctl kernel.randomize_va_space=2")  # fmt: skip


def _damon() -> Iterator[Finding]:
    root = Path("/sys/kernel/mm/damon/admin/kdamonds")
    modules = [
        name
        for name in ("damon_reclaim", "damon_lru_sort")
        if machine.read(f"/sys/module/{name}/parameters/enabled") == "Y"
    ]
    actions = [
        machine.read(str(file)) for daemon in sorted(root.glob("[0-9]*")) if machine.read(str(daemon / "state")) == "on"
        for file in daemon.glob("contexts/*/schemes/*/action")
    ]  # fmt: skip
    if modules or "pageout" in actions:
        who = ", ".join(modules or ["kdamond with action pageout"])
        yield Finding("memory", "DAMON", "doubt", f"pages out idle memory: {who}",
                      "resident memory and faults of idle heaps are not the allocator's doing",
                      "as root: echo off > /sys/kernel/mm/damon/admin/kdamonds/0/state")  # fmt: skip
    else:
        yield Finding("memory", "DAMON", "good", "absent" if not root.exists() else "pages nothing out")


def _allocators() -> Iterator[Finding]:
    from loam_lab.allocators import registry

    for name in registry.defaults():
        try:
            found = registry.load(name)
        except LoamError as error:
            yield Finding("allocators", name, "bad", error.limit, "it is missing from every comparison", error.hint)
        else:
            yield Finding("allocators", name, "good", f"{found.version}, {found.path or 'the C library itself'}")


def _version(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def _build() -> Iterator[Finding]:
    from loam_lab.setup import build, debian

    for tool, ask, needed in (
        ("g++", "-dumpfullversion", "g++"),
        ("cmake", "--version", "cmake"),
        ("ninja", "--version", "ninja-build"),
    ):
        path = shutil.which(tool, path=build.tool_path())
        if path:
            yield Finding(
                "build", tool, "good", f"{_version([path, ask]).removeprefix('cmake version ') or 'there'}, {path}"
            )
        else:
            yield Finding(
                "build", tool, "bad", "not found", "no workload can be built", f"as root: apt-get install {needed}"
            )
    state = "good" if build.is_built() else "note"
    fact = (
        "everything is built and up to date" if state == "good" else "not everything is built from the present sources"
    )
    yield Finding("build", "workloads", state, fact, "" if state == "good" else "the next command builds what it needs first",
                  "" if state == "good" else "./loam setup does it now")  # fmt: skip
    for package in debian.PACKAGES:
        if package.needs == ("test",):
            if debian.present(package):
                yield Finding("tests", package.name, "good", package.why)
            else:
                yield Finding("tests", package.name, "note", "not installed", "the tests that need it are skipped",
                              f"./loam setup --tests, or as root: apt-get install {package.name}")  # fmt: skip


def _jdk() -> Iterator[Finding]:
    java = shutil.which("java")
    if java:
        release = machine.read(str(Path(java).resolve().parents[1] / "release"))
        version = next(
            (line.partition("=")[2].strip('"') for line in release.splitlines() if line.startswith("JAVA_VERSION=")),
            "there",
        )
        yield Finding("build", "JDK", "good", f"{version}, {java}")
    else:
        yield Finding(
            "build",
            "JDK",
            "note",
            "none",
            "programs on a JVM cannot be measured here",
            "as root: apt-get install openjdk-17-jdk",
        )


def _checkout() -> Iterator[Finding]:
    writable = os.access(paths.root(), os.W_OK)
    free = shutil.disk_usage(paths.root()).free / 2**30
    if writable and free > 2:
        yield Finding("build", "checkout", "good", f"{paths.root()}, {free:.0f} GiB free")
    else:
        fact = f"has {free:.1f} GiB free" if writable else "cannot be written"
        yield Finding("build", "checkout", "bad", f"{paths.root()} {fact}",
                      "builds and results have no place", "use a checkout in a folder of your own with 2 GiB free")  # fmt: skip


CHECKS: dict[str, tuple[Callable[[], Iterator[Finding]], ...]] = {
    "noise": (_processor, _frequency, _load),
    "memory": (_memory,),
    "htm": (_htm,),
    "counters": (_counters,),
    "allocators": (_allocators,),
    "build": (_checkout, _jdk, _build),
    "tests": (_build,),
}


def examine(subject: str | None = None) -> list[Finding]:
    """Every finding, or those of one subject.

    raises: LoamError for an unknown subject, with the nearest
    """
    if subject is not None and subject not in CHECKS:
        raise unknown("--for", subject, CHECKS, "subject of doctor")
    checks = dict.fromkeys(check for name, group in CHECKS.items() if subject in (None, name) for check in group)
    found = [finding for check in checks for finding in check()]
    return [finding for finding in found if subject in (None, finding.subject)]


def doctor(subject: str | None, *, as_json: bool) -> int:
    """Print the findings; 1 if something does not work at all, else 0."""
    findings = examine(subject)
    failed = any(finding.state == "bad" for finding in findings)
    if as_json:
        console.print_json(
            {"schema": 1, "machine": machine.fingerprint(), "findings": [asdict(finding) for finding in findings]}
        )
        return int(failed)
    from rich.table import Table
    from rich.text import Text

    marks = {"good": ("✓", "good"), "note": ("·", "aside"), "doubt": ("!", "doubt"), "bad": ("✗", "bad")}
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    shown = ""
    for finding in findings:
        if shown and finding.subject != shown:
            grid.add_row()
        shown = finding.subject
        mark, style = marks[finding.state]
        text = Text(finding.fact)
        for extra in (finding.consequence, finding.next_step):
            if extra:
                text.append(f"\n{extra}", style="aside")
        grid.add_row(Text(mark, style=style), Text(finding.name, style="head"), text)
    console.out().print(grid)
    doubts = sum(finding.state == "doubt" for finding in findings)
    bad = sum(finding.state == "bad" for finding in findings)
    summary = (
        f"{len(findings)} checks: {bad} do not work, {doubts} weaken results"
        if bad or doubts
        else f"{len(findings)} checks: nothing in the way"
    )
    console.out().print(f"\n{summary}", style="bad" if bad else "doubt" if doubts else "good")
    return int(failed)
