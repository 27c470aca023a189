"""A cell (one combination of levels), a planned run of it, and the identity by which a run is known.

The identity follows one rule: whatever can change the numbers is in it, all else is annotation.  Resume skips a run
whose identity is already in the journal; comparing results drops seed, block and copy.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

SCHEMA = 1

# What a run is for.  Runs of every purpose but timing are one per cell (two where a difference is taken) and never
# enter timing statistics: what they measure with changes how long they take.
Purpose = Literal["timing", "blame", "memory", "counters", "callgrind", "cachegrind"]
SPECIAL: tuple[Purpose, ...] = ("blame", "memory", "counters", "callgrind", "cachegrind")
# Runs inside valgrind: what goes wrong in one may be valgrind's doing and says nothing about other runs.
SIMULATED: tuple[Purpose, ...] = ("callgrind", "cachegrind")


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces.  Equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: object) -> str:
    """SHA-256 of the canonical text, the first 32 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Cell:
    """One combination of levels of a group of a study.

    sync: label of the executable; parameters: what the study varies or fixes, in the order of the study
    """

    group: str
    workload: str
    sync: str
    allocator: str
    threads: int
    parameters: tuple[tuple[str, int | str], ...]
    warmup_ms: int
    machine: str = "host"

    @functools.cached_property
    def key(self) -> str:
        """Name of the cell, unique within a campaign."""
        return digest(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """The cell as it stands in the journal and the manifest."""
        return {
            "group": self.group,
            "workload": self.workload,
            "sync": self.sync,
            "allocator": self.allocator,
            "threads": self.threads,
            "parameters": dict(self.parameters),
            "warmup_ms": self.warmup_ms,
            "machine": self.machine,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Cell:
        """The inverse of as_json()."""
        fields = dict(value)
        fields["parameters"] = tuple(fields["parameters"].items())
        return Cell(**fields)

    def words(self) -> str:
        """The cell in one line for messages: workload key=value ... sync threads allocator."""
        parameters = " ".join(f"{name}={value}" for name, value in self.parameters)
        return " ".join(
            part for part in (self.workload, parameters, self.sync, f"{self.threads}T", self.allocator) if part
        )


@dataclass(frozen=True)
class PlannedRun:
    """One process to start.

    block: which block of the cell's group; copy: 1 for the second copy of the baseline (the A/A sentinel)
    seed: the same for all runs of a block; order: position in the whole plan; padding: bytes of environment padding
    purpose: what the run is for; changed: parameters in which it differs from its cell
    tool: further arguments of the tool that the purpose names
    column: which combination of a group's own workload parameters; column and block together name the block
    attempt: 1 and 2 where the block was run again, because something disturbed it; stack: bytes of stack offset
    """

    cell: Cell
    block: int
    copy: int
    seed: int
    order: int
    padding: int
    purpose: Purpose = "timing"
    changed: tuple[tuple[str, int | str], ...] = ()
    tool: tuple[str, ...] = ()
    column: int = 0
    attempt: int = 0
    stack: int = 0

    @property
    def blame(self) -> bool:
        """Whether the run tells causes of aborts apart."""
        return self.purpose == "blame"

    @property
    def timing(self) -> bool:
        """Whether the run's times count."""
        return self.purpose == "timing"

    @property
    def parameters(self) -> tuple[tuple[str, int | str], ...]:
        """The cell's parameters with what this run changes."""
        return tuple({**dict(self.cell.parameters), **dict(self.changed)}.items())


def identity(
    run: PlannedRun,
    *,
    parameters: Mapping[str, int | str],
    allocator: Mapping[str, Any],
    build_id: str,
    machine: Mapping[str, Any],
    preset: str,
) -> dict[str, Any]:
    """The identity of a run (ARCHITECTURE section 5).

    parameters: of workload and synchronisation, defaults included; allocator: {"name", "settings", "sha256"}
    build_id: of the executable; machine: {"cpu", "cores"}
    """
    cell = run.cell
    return {
        "schema": SCHEMA,
        "workload": cell.workload,
        "parameters": {**parameters, **dict(run.changed)},
        "warmup_ms": cell.warmup_ms,
        "allocator": dict(allocator),
        "sync": {"name": cell.sync, "build_id": build_id},
        "threads": cell.threads,
        "machine": dict(machine),
        "preset": preset,
        "purpose": run.purpose,
        **({"tool": list(run.tool)} if run.tool else {}),
        "seed": run.seed,
        "block": run.block,
        "copy": run.copy,
        "attempt": run.attempt,
    }
