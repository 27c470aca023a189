"""A cell (one combination of levels), a planned run of it, and the identity by which a run is known.

The identity follows one rule: whatever can change the numbers is in it, all else is annotation.  Resume skips a run
whose identity is already in the journal; comparing results drops seed, block and copy.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from loam_lab.model.schema import SCHEMA

# What a run is for.  Runs of every purpose but timing are one per cell (two where a difference is taken) and never
# enter timing statistics: what they measure with changes how long they take.
Purpose = Literal["timing", "blame", "memory", "counters", "callgrind", "cachegrind", "tlb", "profile"]
SPECIAL: tuple[Purpose, ...] = ("blame", "memory", "counters", "callgrind", "cachegrind", "tlb", "profile")
# Something is counted in them.
COUNTING: tuple[Purpose, ...] = ("counters", "callgrind", "cachegrind", "tlb", "profile")
# Counted inside valgrind, where threads run one at a time and everything takes many times as long.
IN_VALGRIND: tuple[Purpose, ...] = ("callgrind", "cachegrind", "tlb")
# Something stands around the program or before its allocator: what goes wrong may be its doing and says nothing about
# other runs.
SURROUNDED: tuple[Purpose, ...] = (*IN_VALGRIND, "profile")


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

    def as_json(self) -> dict[str, Any]:
        """The run as a file says it to the host that runs it."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "cell"}
        return {**own, "cell": self.cell.as_json()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> PlannedRun:
        """The inverse of as_json()."""
        own = {**value, "cell": Cell.from_json(value["cell"]), "tool": tuple(value["tool"])}
        own["changed"] = tuple((name, level) for name, level in value["changed"])
        return PlannedRun(**own)

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


def place_of(run: PlannedRun) -> str:
    """What names a run within its campaign, whatever build or allocator runs it."""
    return f"{run.cell.key} {run.purpose} {run.block} {run.copy} {run.attempt}"


def place_in(line: Mapping[str, Any]) -> str:
    """place_of() the run that a line of the journal is of."""
    return f"{line['cell']} {line['purpose']} {line['block']} {line['copy']} {line['attempt']}"


def identity(
    run: PlannedRun,
    *,
    parameters: Mapping[str, int | str],
    files: Mapping[str, str],
    allocator: Mapping[str, Any],
    build_id: str,
    machine: Mapping[str, Any],
    preset: str,
) -> dict[str, Any]:
    """The identity of a run (ARCHITECTURE section 5).

    parameters: of workload and synchronisation, defaults included; allocator: {"name", "settings", "sha256"}
    files: digests of files beyond the subject's own, by path; build_id: of the subject; machine: Machine.identity()
    """
    cell = run.cell
    return {
        "schema": SCHEMA,
        "workload": cell.workload,
        "parameters": {**parameters, **dict(run.changed)},
        "warmup_ms": cell.warmup_ms,
        "allocator": dict(allocator),
        **({"files": dict(files)} if files else {}),
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
