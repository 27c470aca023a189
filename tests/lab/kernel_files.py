"""A copy of /proc and /sys that behaves as the kernel does, for doctor and tune."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.base.tree import Tree

BOOT = "/proc/sys/kernel/random/boot_id"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
DAMON = "/sys/kernel/mm/damon/admin/kdamonds/0"
GOVERNOR = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"

# A machine on which nothing is as a measurement wants it.
BAD: dict[str, str] = {
    BOOT: "first-boot",
    THP: "[always] madvise never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "[always] defer defer+madvise madvise never",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag": "1",
    GOVERNOR.format(0): "powersave",
    GOVERNOR.format(1): "schedutil",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "/proc/sys/kernel/numa_balancing": "1",
    f"{DAMON}/state": "on",
    f"{DAMON}/contexts/0/schemes/0/action": "pageout",
    "/proc/sys/vm/swappiness": "60",
    "/proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 1000 0 100",
    "/proc/sys/kernel/perf_event_paranoid": "4",
    "/proc/sys/kernel/nmi_watchdog": "1",
    "/proc/sys/kernel/sched_autogroup_enabled": "1",
    "/proc/sys/kernel/randomize_va_space": "0",
}


class Killed(BaseException):
    """The process ended here: no handler of ours may catch it."""


@dataclass(frozen=True)
class Kernel(Tree):
    """refuses: names that cannot be written, with the errno; before_write: called with name and value before each write"""

    refuses: Mapping[str, int] = field(default_factory=dict)
    before_write: Callable[[str, str], None] = lambda name, value: None

    def write(self, name: str, value: str) -> None:
        self.before_write(name, value)
        if name in self.refuses:
            raise OSError(self.refuses[name], os.strerror(self.refuses[name]), name)
        text = self.read(name)
        if "[" in text:
            words = re.sub(r"[\[\]]", "", text).split()
            value = " ".join(f"[{word}]" if word == value else word for word in words)
        self.path(name).write_text(value + "\n")

    def put(self, name: str, text: str) -> None:
        """Make a file, as the kernel would have it."""
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text + "\n")

    def values(self) -> dict[str, str]:
        """What every file of the machine holds."""
        return {
            "/" + str(file.relative_to(self.root)): file.read_text().rstrip("\n")
            for file in self.root.rglob("*")
            if file.is_file()
        }


def kernel(root: Path, files: Mapping[str, str] = BAD, **options: object) -> Kernel:
    """A machine with these files below a folder."""
    made = Kernel(root, **options)  # type: ignore[arg-type]
    for name, text in files.items():
        made.put(name, text)
    return made
