"""One fact about the machine, and what the checks may look at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.base.tree import Tree

# From worst to best. "blocks": something cannot be measured or built at all; "changes results": numbers are not those of
# a machine without it, and repeating does not help; "costs precision": intervals are wider; "fine": nothing to do.
SEVERITIES = ("blocks", "changes results", "costs precision", "fine")


@dataclass(frozen=True)
class Finding:
    """One fact with what follows from it.

    subject: what it bears on, a key of commands.CHECKS; severity: one of SEVERITIES
    consequence, next_step: "" where nothing follows; both are there unless the severity is "fine"
    """

    subject: str
    name: str
    severity: str
    fact: str
    consequence: str = ""
    next_step: str = ""


@dataclass(frozen=True)
class View:
    """What a check may look at; tests give it a tree and an environment of their own.

    quick: without the measurement of hyperthread siblings
    results: the folder in which results of the current folder lie
    """

    tree: Tree = field(default_factory=Tree)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    quick: bool = False
    results: Path = Path("results")

    def groups(self, controller: str, leaf: str) -> Iterator[str]:
        """Files of that name in this process's control group and those above it, version 2 and 1, innermost first.

        controller: "cpu" or "memory" of version 1; leaf: the file ("cpu.max" or "cpu.cfs_quota_us")
        """
        for line in self.tree.read("/proc/self/cgroup").splitlines():
            number, names, path = line.split(":", 2)
            if number == "0":
                tops = ["/sys/fs/cgroup/unified"] if self.tree.exists("/sys/fs/cgroup/unified") else ["/sys/fs/cgroup"]
            elif controller in names.split(","):
                tops = [f"/sys/fs/cgroup/{names}", f"/sys/fs/cgroup/{controller}"]
            else:
                continue
            below = [part for part in path.split("/") if part]
            for top in tops:
                for depth in range(len(below), -1, -1):
                    name = "/".join([top, *below[:depth], leaf])
                    if self.tree.exists(name):
                        yield name


def plural(count: int, noun: str) -> str:
    """ "1 thread", "2 threads"."""
    return f"{count} {noun}{'s' * (count != 1)}"
