"""What else happens on this machine while doctor looks: load, steal, pressure, other processes, quotas, the scheduler."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterator
from dataclasses import dataclass

from loam_lab.base.tree import Tree
from loam_lab.commands.doctor.finding import Finding, View, plural

_BUSY_SHARE = 0.05  # of one processor, from which on a process is named
_STEAL_SINCE_BOOT, _STEAL_NOW = 0.005, 0.02  # the second is of half a second: a tick is two per cent
_PRESSURE = {"cpu": 5.0, "memory": 0.5, "io": 5.0}  # per cent of the last ten seconds


@dataclass(frozen=True)
class Snapshot:
    """Counters at one moment. ticks: processor time by process (with its start, since numbers are used again)."""

    at: float
    jiffies: tuple[int, ...]
    ticks: dict[tuple[int, str], tuple[int, str, int]]


def snapshot(tree: Tree) -> Snapshot:
    """Times of the processors and of every process; ticks maps (pid, start) to (user and system ticks, name, parent)."""
    first = next(iter(tree.read("/proc/stat").splitlines()), "")
    ticks = {}
    for name in tree.path("/proc").glob("[0-9]*/stat"):
        try:
            text = name.read_text(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        # The name stands in brackets and may hold anything, brackets too.
        fields = text[text.rfind(")") + 2 :].split()
        if len(fields) > 19:
            command = text[text.find("(") + 1 : text.rfind(")")]
            ticks[int(name.parent.name), fields[19]] = (int(fields[11]) + int(fields[12]), command, int(fields[1]))
    return Snapshot(time.monotonic(), tuple(int(part) for part in first.split()[1:]), ticks)


def between(view: View, before: Snapshot, after: Snapshot) -> Iterator[Finding]:
    """What the time between two snapshots tells: steal and busy processes other than this one."""
    yield from _steal(before, after)
    yield from _others(view, before, after)


def _steal(before: Snapshot, after: Snapshot) -> Iterator[Finding]:
    if len(after.jiffies) < 8:
        return
    passed = sum(after.jiffies[:8]) - sum(before.jiffies[:8])
    since_boot = after.jiffies[7] / max(sum(after.jiffies[:8]), 1)
    stolen = (after.jiffies[7] - before.jiffies[7]) / passed if passed > 0 else 0.0
    fact = f"{100 * stolen:.1f} % now, {100 * since_boot:.2f} % since boot"
    if stolen > _STEAL_NOW or since_boot > _STEAL_SINCE_BOOT:
        yield Finding(
            "noise", "steal", "costs precision", fact,
            "the host runs other guests on these processors; runs pause unnoticed",
            "disturbed blocks are repeated; measure at another time or on a physical machine",
        )  # fmt: skip
    else:
        yield Finding("noise", "steal", "fine", fact)


def _others(view: View, before: Snapshot, after: Snapshot) -> Iterator[Finding]:
    per_second = os.sysconf("SC_CLK_TCK") * max(after.at - before.at, 1e-3)
    ours = _family(after, os.getpid())
    shares = []
    for key, (ticks, name, _) in after.ticks.items():
        if key in before.ticks and key[0] not in ours:
            share = (ticks - before.ticks[key][0]) / per_second
            if share >= _BUSY_SHARE:
                shares.append((share, key[0], name))
    shares.sort(reverse=True)
    if shares:
        named = ", ".join(f"{name} ({pid}, {_user(view, pid)}) {100 * share:.0f} %" for share, pid, name in shares[:3])
        more = f" and {len(shares) - 3} more" if len(shares) > 3 else ""
        yield Finding(
            "noise", "processes", "costs precision", f"busy now: {named}{more}",
            "they share processors, caches and memory bandwidth with every run", "stop them, or measure when they are done",
        )  # fmt: skip
    else:
        yield Finding("noise", "processes", "fine", "no other process uses the processor")


def _family(now: Snapshot, pid: int) -> set[int]:
    """A process, its ancestors (the shell that started it) and its descendants."""
    parents = {key[0]: parent for key, (_, _, parent) in now.ticks.items()}
    ancestors, at = set(), pid
    while at in parents and at not in ancestors:
        ancestors.add(at)
        at = parents[at]
    grown = {pid}
    while more := {child for child, parent in parents.items() if parent in grown} - grown:
        grown |= more
    return ancestors | grown


def _user(view: View, pid: int) -> str:
    try:
        number = view.tree.path(f"/proc/{pid}").stat().st_uid
        return pwd.getpwuid(number).pw_name
    except (OSError, KeyError):
        return "of another user"


def load(view: View) -> Iterator[Finding]:
    """Load average and pressure of the last seconds."""
    text = view.tree.read("/proc/loadavg").split()
    average = float(text[0]) if text else 0.0
    if average > 0.5:
        yield Finding(
            "noise", "load", "costs precision", f"load average {average:.1f} before anything was started",
            "other work widens every interval", "stop it, or measure at another time",
        )  # fmt: skip
    else:
        yield Finding("noise", "load", "fine", f"load average {average:.1f}")
    if not view.tree.exists("/proc/pressure/cpu"):
        yield Finding(
            "noise", "pressure", "fine", "this kernel does not report it (PSI)",
            "waiting for processor and memory is seen only as run delay and steal", "boot with psi=1 to have it",
        )  # fmt: skip
        return
    waiting = []
    for kind, limit in _PRESSURE.items():
        share = _pressure(view.tree.read(f"/proc/pressure/{kind}"))
        if share > limit:
            waiting.append(f"{share:.0f} % of the last ten seconds for {kind}")
    if waiting:
        yield Finding(
            "noise", "pressure", "costs precision", f"work waits {', '.join(waiting)}", "runs wait in the same queue",
            "stop what runs (see processes), or measure later",
        )  # fmt: skip
    else:
        yield Finding("noise", "pressure", "fine", "nothing waits")


def _pressure(text: str) -> float:
    """The ten-second average of "some avg10=1.23 avg60=..."; 0 where there is none."""
    for word in text.split():
        if word.startswith("avg10="):
            return float(word.removeprefix("avg10="))
    return 0.0


def quota(view: View) -> Iterator[Finding]:
    """Processor time that the control group may use."""
    limits = []
    for name in view.groups("cpu", "cpu.max"):
        allowed, _, period = view.tree.read(name).partition(" ")
        if allowed.isdigit():
            limits.append(int(allowed) / int(period or 100_000))
    for name in view.groups("cpu", "cpu.cfs_quota_us"):
        allowed_us, period_us = view.tree.number(name), view.tree.number(name.replace("quota", "period"))
        if allowed_us is not None and allowed_us > 0 and period_us:
            limits.append(allowed_us / period_us)
    if not limits:
        yield Finding("noise", "processor quota", "fine", "none")
        return
    yield Finding(
        "noise", "processor quota", "changes results", f"this control group may use {min(limits):g} processors",
        "a run that needs more is stopped for the rest of each period, all its threads at once",
        "raise the limit of the container, or take no more threads than that",
    )  # fmt: skip


def scheduler(view: View) -> Iterator[Finding]:
    """Priority of this process, automatic grouping, and the real-time throttle that tests of locks meet."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    policy = os.sched_getscheduler(0)
    if nice > 0 or policy in (os.SCHED_BATCH, os.SCHED_IDLE):
        kind = {os.SCHED_BATCH: "batch", os.SCHED_IDLE: "idle"}.get(policy, "")
        yield Finding(
            "noise", "priority", "costs precision", f"this shell runs at nice {nice}{f', policy {kind}' if kind else ''}",
            "runs inherit it and wait behind everything else", "start from a shell of normal priority",
        )  # fmt: skip
    features = [
        f"{leaf.removeprefix('sched_')}={value}"
        for leaf in ("sched_autogroup_enabled", "sched_schedstats", "sched_energy_aware", "sched_rt_runtime_us")
        if (value := view.tree.read(f"/proc/sys/kernel/{leaf}").strip())
    ]
    if view.tree.number("/proc/sys/kernel/sched_autogroup_enabled"):
        yield Finding(
            "noise", "scheduler", "fine", ", ".join(features),
            "autogroup shares the processor by terminal session, not by process",
            "matters only beside other work; as root: ./loam tune --apply --only autogroup",
        )  # fmt: skip
    elif features:
        yield Finding("noise", "scheduler", "fine", ", ".join(features))
    busy = [name for name in ("nmi_watchdog",) if view.tree.number(f"/proc/sys/kernel/{name}")]
    if busy:
        yield Finding(
            "counters", "watchdog", "costs precision", "the NMI watchdog is on",
            f"it holds {plural(1, 'hardware counter')} and interrupts every core",
            "as root: ./loam tune --apply --only watchdog",
        )  # fmt: skip
