"""The settings that tune may change: which value measures better, why, and what the change risks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loam_lab.base.errors import unknown
from loam_lab.base.tree import Tree

_DAMON_MODULES = ("damon_reclaim", "damon_lru_sort", "damon_stat")


@dataclass(frozen=True)
class Setting:
    """One setting, which may live in several files (one per processor).

    patterns: absolute names with wildcards; wanted: the value to write
    changes: present values that are changed; () for all but the wanted one. Others are left alone: someone chose them.
    """

    name: str
    patterns: tuple[str, ...]
    wanted: str
    why: str
    risk: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """A file whose value would be changed. locked: why this process cannot write it, "" where it can."""

    setting: Setting
    path: str
    before: str
    after: str
    locked: str


SETTINGS = (
    Setting(
        "thp", ("/sys/kernel/mm/transparent_hugepage/enabled",), "madvise",
        "with always, memory and faults of a heap depend on its accidental alignment",
        "programs that profit from huge pages without asking lose them", ("always",),
    ),
    Setting(
        "thp-defrag", ("/sys/kernel/mm/transparent_hugepage/defrag",), "madvise",
        "with always, any page fault may stop to compact memory", "fewer huge pages", ("always",),
    ),
    Setting(
        "governor", ("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",), "performance",
        "other governors begin short runs at a low frequency", "more power and heat",
    ),
    Setting(
        "turbo", ("/sys/devices/system/cpu/intel_pstate/no_turbo",), "1",
        "turbo depends on heat and on how many cores are busy", "everything runs slower", ("0",),
    ),
    Setting(
        "turbo", ("/sys/devices/system/cpu/cpufreq/boost",), "0",
        "turbo depends on heat and on how many cores are busy", "everything runs slower", ("1",),
    ),
    Setting(
        "numa-balancing", ("/proc/sys/kernel/numa_balancing",), "0",
        "it unmaps and moves pages while runs are timed", "long-running programs stay on far memory", ("1", "2", "3"),
    ),
    Setting(
        "damon", ("/sys/kernel/mm/damon/admin/kdamonds/[0-9]*/state",), "off",
        "it may page out idle memory, and samples access bits", "memory that it would have reclaimed stays in use", ("on",),
    ),
    Setting(
        "damon", tuple(f"/sys/module/{name}/parameters/enabled" for name in _DAMON_MODULES), "N",
        "it may page out idle memory, and samples access bits", "memory that it would have reclaimed stays in use", ("Y",),
    ),
    Setting(
        "swappiness", ("/proc/sys/vm/swappiness",), "1",
        "idle heap pages are swapped out late instead of early", "under pressure the page cache shrinks first",
    ),
    Setting(
        "perf-events", ("/proc/sys/kernel/perf_event_paranoid",), "2",
        "users may then count events of their own programs", "one more kernel interface is open to all users",
        ("3", "4"),
    ),
    Setting(
        "watchdog", ("/proc/sys/kernel/nmi_watchdog",), "0",
        "it holds a hardware counter and interrupts every core", "a core that hangs is not reported", ("1",),
    ),
    Setting(
        "autogroup", ("/proc/sys/kernel/sched_autogroup_enabled",), "0",
        "the processor is then shared by process, not by terminal session", "desktops respond later under load", ("1",),
    ),
    # Never lowered: blocks assume that every run gets a layout of its own.
    Setting(
        "aslr", ("/proc/sys/kernel/randomize_va_space",), "2",
        "without it all runs share one layout, whose luck becomes a result", "none: it is the kernel's default", ("0", "1"),
    ),
)  # fmt: skip


def names() -> list[str]:
    """Names of all settings, each once."""
    return list(dict.fromkeys(setting.name for setting in SETTINGS))


def changes(tree: Tree, only: Sequence[str] = ()) -> Iterator[Change]:
    """What would be changed on this machine, in the order of SETTINGS.

    only: names of settings; () for all
    raises: LoamError for an unknown name, with the nearest
    """
    for name in only:
        if name not in names():
            raise unknown("--only", name, names(), "setting of tune")
    for setting in SETTINGS:
        if only and setting.name not in only:
            continue
        if setting.name == "swappiness" and len(tree.read("/proc/swaps").splitlines()) < 2:
            continue  # nothing to swap to
        for pattern in setting.patterns:
            for path in tree.glob(pattern):
                before = tree.value(path)
                if before and before != setting.wanted and (not setting.changes or before in setting.changes):
                    yield Change(setting, path, before, setting.wanted, tree.locked(path))
