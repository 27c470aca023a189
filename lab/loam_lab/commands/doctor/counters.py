"""Hardware transactions, hardware counters, and the permissions that tools need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loam_lab.commands.doctor.finding import Finding, View
from loam_lab.subjects import machine


def transactions(_: View) -> Iterator[Finding]:
    """Whether hardware transactions commit."""
    state = machine.rtm()
    if state == "works":
        yield Finding("htm", "RTM", "fine", "works: hardware transactions commit")
    elif state == "absent":
        yield Finding(
            "htm",
            "RTM",
            "fine",
            "absent",
            "hardware transactions cannot be measured here",
            "software algorithms are complete",
        )
    else:
        yield Finding("htm", "RTM", "changes results", "listed by the processor, but every transaction aborts",
                      "microcode or the hypervisor disabled it; programs that use it run their fallback",
                      "treat this machine as one without RTM")  # fmt: skip


def counting(view: View) -> Iterator[Finding]:
    """Which sources of counts work: hardware counters that counted a program of known length, or valgrind's models."""
    from loam_lab.campaign.counters.sources import probe

    yield from judge(probe(), view.tree.number("/proc/sys/kernel/perf_event_paranoid"))


def judge(sources: Sequence[Mapping[str, Any]], paranoid: int | None) -> Iterator[Finding]:
    """Findings from what loam_lab.campaign.counters.sources.probe() says, and the level of perf_event_paranoid.

    sources: [{"source", "counts", "why"}], the best first
    """
    hardware = next((source for source in sources if source["source"] == "perf_event"), None)
    models = [str(source["source"]) for source in sources if source["source"] != "perf_event" and source["counts"]]
    why = str(hardware["why"]) if hardware else "not tried"
    if hardware and hardware["counts"]:
        yield Finding("counters", "counters", "fine", why)
    else:
        step = (
            "as root: ./loam tune --apply --only perf-events"
            if (paranoid or 0) > 2
            else "nothing to do on this machine"
        )
        instead = f"instructions and miss ratios come from {' and '.join(models)} instead, in runs of their own"
        yield Finding("counters", "counters", "fine", why, instead if models else "nothing is counted here",
                      step if models else "./loam setup --tests installs valgrind, whose models need no counter")  # fmt: skip


def permissions(view: View) -> Iterator[Finding]:
    """perf_event_paranoid, ptrace_scope, kptr_restrict."""
    level = view.tree.number("/proc/sys/kernel/perf_event_paranoid")
    if level is not None and level > 2:
        yield Finding(
            "counters", "perf_event_paranoid", "fine", str(level), "only root may count events, even of its own programs",
            "as root: ./loam tune --apply --only perf-events",
        )  # fmt: skip
    elif level is not None:
        yield Finding("counters", "perf_event_paranoid", "fine", f"{level}: users may count their own programs")
    scope = view.tree.number("/proc/sys/kernel/yama/ptrace_scope")
    if scope is not None and scope >= 2:
        yield Finding(
            "counters", "ptrace_scope", "fine", str(scope), "debuggers and profilers cannot attach to a run that hangs",
            "as root: sysctl kernel.yama.ptrace_scope=1",
        )  # fmt: skip
    elif scope is not None:
        yield Finding("counters", "ptrace_scope", "fine", f"{scope}: a run's parent may inspect it")
