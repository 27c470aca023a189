"""What the user asked a campaign for: one Request, made of the options and handed on by every command that measures.

`./loam run intset --allocator glibc,loam --blocks 12 --memory --json` is the workload intset and Request(
Selection(allocators=["glibc", "loam"]), Effort(blocks=12), Further(purposes=["memory"]), Output(as_json=True)).
None is "not asked": each command has its own default in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.campaign.fleet.selection import Choice
from loam_lab.model.cell import Purpose


@dataclass(frozen=True)
class Selection:
    """What is measured. groups: of a study, none for all; machines: of a study, none for its own; by name
    parameters: (name, levels); oversubscribe: also more threads than a machine has
    """

    allocators: Sequence[str] = ()
    syncs: Sequence[str] = ()
    threads: Sequence[int] = ()
    machines: Sequence[str] = ()
    parameters: Sequence[tuple[str, Sequence[str]]] = ()
    groups: Sequence[str] = ()
    oversubscribe: bool = False


@dataclass(frozen=True)
class Effort:
    """How much is measured. blocks: exactly so many, or with target_width the fewest; budget_s: no block begins later
    target_width: of every interval, relative; quick: few blocks, for a first look; timeout_s: of one run
    """

    blocks: int | None = None
    target_width: float | None = None
    max_blocks: int | None = None
    budget_s: float | None = None
    seed: int = 1
    timeout_s: float | None = None
    quick: bool = False

    def limits(self) -> dict[str, float]:
        """What of target_width, max_blocks and budget_s was asked for."""
        known = {"target_width": self.target_width, "max_blocks": self.max_blocks, "budget_s": self.budget_s}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True)
class Further:
    """What else is found out. purposes: of the further runs of each cell; d1: cachegrind's first-level data cache
    profile: "full" or "sample", of what a program asks its allocator for; flame: its call stacks
    search: for better settings of the best two allocators, search_budget_s: for about so long
    """

    purposes: Sequence[Purpose] = ()
    d1: str | None = None
    profile: str = ""
    flame: bool = False
    search: bool = False
    search_budget_s: float | None = None


@dataclass(frozen=True)
class Output:
    """Where the result goes. out: its folder, None for a new one; resume: go on with what was begun there
    as_json, export ("markdown" or "csv"): printed so, in place of tables; report: whether it gets one
    """

    out: Path | None = None
    resume: bool = False
    as_json: bool = False
    export: str = ""
    report: bool = True

    def folder(self, name: str) -> Path:
        """The folder of a campaign of this name, new or begun. raises: LoamError"""
        from loam_lab.model.store import folder as folders

        return (folders.started if self.resume else folders.new)(name, self.out)


@dataclass(frozen=True)
class Request:
    """All of it. engine: where runs are measured"""

    selection: Selection = Selection()
    effort: Effort = Effort()
    further: Further = Further()
    output: Output = Output()
    engine: Choice = field(default_factory=Choice)
