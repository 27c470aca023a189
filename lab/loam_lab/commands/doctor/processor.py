"""The processor: how many threads, which of them share a core, how fast they run, and who else decides over it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from loam_lab.commands.doctor.finding import Finding, View, plural
from loam_lab.subjects import machine

_CPU = "/sys/devices/system/cpu"
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies")


def processor(view: View) -> Iterator[Finding]:
    """Model, hardware threads, and those that this process may not use."""
    threads, total = machine.hardware_threads(), os.cpu_count() or 1
    fact = f"{machine.cpu_model()}, {plural(threads, 'hardware thread')}"
    if threads < total:
        yield Finding(
            "noise", "processor", "changes results", f"{fact} of {total}", "curves end at the processors this process may use",
            "see taskset -p $$ and the container's limits",
        )  # fmt: skip
    elif threads < 8:
        yield Finding(
            "noise", "processor", "fine", fact, f"curves end at {threads} threads; beyond, they describe the scheduler",
            "claims about more threads stay undecided here",
        )  # fmt: skip
    else:
        yield Finding("noise", "processor", "fine", fact)
    isolated = view.tree.read(f"{_CPU}/isolated")
    if isolated:
        yield Finding(
            "noise", "isolated", "fine", f"processors {isolated} are kept free of other work",
            "threads of a run that are not pinned there never use them", f"taskset -c {isolated} ./loam ... uses them",
        )  # fmt: skip


def microcode(view: View) -> Iterator[Finding]:
    """Microcode revision and the mitigations that make entering the kernel expensive."""
    revision = next(
        (line.partition(":")[2].strip() for line in view.tree.read("/proc/cpuinfo").splitlines() if line.startswith("microcode")),
        "",
    )  # fmt: skip
    if revision:
        yield Finding("noise", "microcode", "fine", revision)
    active, open_holes = [], []
    for name in view.tree.glob(f"{_CPU}/vulnerabilities/*"):
        state = view.tree.read(name)
        kind = name.rpartition("/")[2]
        if state.startswith("Mitigation"):
            active.append(kind)
        elif state.startswith("Vulnerable"):
            open_holes.append(kind)
    if not active and not open_holes:
        return
    off = "mitigations=off" in view.tree.read("/proc/cmdline").split()
    fact = "switched off at boot" if off else f"{len(active)} active ({', '.join(active)})" if active else "none active"
    if open_holes and not off:
        fact += f"; vulnerable: {', '.join(open_holes)}"
    yield Finding(
        "noise", "mitigations", "fine", fact, "this set determines the cost of page faults, mmap and futex",
        "compare allocators on one machine; between machines only with the same set",
    )  # fmt: skip


def hypervisor(view: View) -> Iterator[Finding]:
    """Whether the machine is a guest or a container."""
    name = machine.hypervisor()
    if name != "none":
        who = "an unnamed hypervisor" if name == "some" else name
        yield Finding(
            "noise", "hypervisor", "costs precision", f"a guest of {who}",
            "the host may take the processor away (steal), and a second level of page tables makes TLB misses slower",
            "blocks are paired and disturbed ones are repeated; use a physical machine to see differences of a per cent",
        )  # fmt: skip
    inside = [
        file for file in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container") if view.tree.exists(file)
    ]
    if inside:
        yield Finding(
            "noise", "container", "fine", f"{inside[0]} says so", "kernel settings belong to the host and to all its containers",
            "change them there; loam tune refuses what is read-only here",
        )  # fmt: skip


def clock(view: View) -> Iterator[Finding]:
    """The clock that every run is timed with."""
    source = view.tree.read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    if source in _SLOW_CLOCKS:
        yield Finding(
            "noise", "clock", "changes results", source, "each clock read is a system call of about a microsecond",
            "boot with tsc=reliable if the processor's counter is stable, or use another machine",
        )  # fmt: skip
    elif source:
        yield Finding("noise", "clock", "fine", source)


def reported_siblings(view: View) -> dict[int, frozenset[int]]:
    """Hardware threads of each processor's core, as sysfs tells them."""
    by_processor = {}
    for name in view.tree.glob(f"{_CPU}/cpu[0-9]*/topology/thread_siblings_list"):
        match = re.search(r"/cpu(\d+)/", name)
        if match:
            by_processor[int(match[1])] = frozenset(numbers(view.tree.read(name)))
    return by_processor


def numbers(text: str) -> list[int]:
    """The kernel's list notation, "0-2,5", as numbers."""
    listed: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            listed += range(int(first), int(last if last.isdigit() else first) + 1)
    return listed


def frequency(view: View) -> Iterator[Finding]:
    """Governor and turbo."""
    governors = sorted(
        {view.tree.read(name).strip() for name in view.tree.glob(f"{_CPU}/cpu[0-9]*/cpufreq/scaling_governor")}
    )
    if not governors:
        yield Finding(
            "noise", "governor", "fine", "the frequency is not under this system's control",
            "it may drift between runs", "nothing to do: blocks are paired",
        )  # fmt: skip
    elif governors == ["performance"]:
        yield Finding("noise", "governor", "fine", "performance")
    else:
        yield Finding(
            "noise", "governor", "costs precision", ", ".join(governors), "short runs start at a low frequency",
            "as root: ./loam tune --apply --only governor",
        )  # fmt: skip
    no_turbo, boost = view.tree.number(f"{_CPU}/intel_pstate/no_turbo"), view.tree.number(f"{_CPU}/cpufreq/boost")
    if no_turbo == 0 or boost == 1:
        yield Finding(
            "noise", "turbo", "costs precision", "on", "speed depends on heat and on how many other cores are busy",
            "as root: ./loam tune --apply --only turbo",
        )  # fmt: skip
    elif no_turbo is not None or boost is not None:
        yield Finding("noise", "turbo", "fine", "off")
