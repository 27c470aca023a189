"""One side of a comparison: a result's cells by what they measured, whoever measured them and whenever."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from loam_lab.base.errors import LoamError
from loam_lab.model.cell import canonical
from loam_lab.model.result import Cell, Facts, Metric, Result
from loam_lab.model.store.folder import MANIFEST, RESULT, read_manifest, read_result

# Of the machine, beside its processor: what may change from one day to the next, and the times with it.
SETTINGS = ("kernel", "microcode", "thp", "aslr", "governor", "libc")


@dataclass(frozen=True)
class ComparedCell:
    """A cell of a result.

    values: of its primary metric, by block; paired: whether the numbers of the blocks are known
    made_of: build of the executable and content of the allocator, None where the result does not say
    """

    raw: Cell
    metric: str
    better: str
    unit: str
    values: Mapping[int, float]
    paired: bool
    made_of: tuple[str, str] | None

    @property
    def state(self) -> str:
        """ok | failed | unproven | skipped."""
        return self.raw.state

    @property
    def allocator(self) -> str:
        """Name of its allocator."""
        return self.raw.factors.allocator

    def words(self) -> str:
        """The cell in one line: workload key=value ... sync threads allocator."""
        factors = self.raw.factors
        parameters = " ".join(f"{name}={value}" for name, value in self.raw.parameters.items())
        parts = (factors.workload, parameters, factors.sync, f"{factors.threads}T", factors.allocator)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Side:
    """A result to compare. cells: by key, see _key; baseline: name of its baseline allocator"""

    source: str
    raw: Result
    cells: Mapping[str, ComparedCell]
    baseline: str

    @property
    def machine(self) -> Facts:
        """The machine that the lab ran on."""
        return self.raw.machine

    @property
    def machines(self) -> Mapping[str, Facts]:
        """The machines of its cells by name."""
        return self.raw.machines

    def beside(self, key: str) -> ComparedCell | None:
        """The baseline's cell of a cell, or None where it has none or is it."""
        cell = self.cells[key]
        if cell.allocator == self.baseline:
            return None
        return self._places.get(_place(cell.raw, self.baseline))

    @functools.cached_property
    def _places(self) -> dict[tuple[object, ...], ComparedCell]:
        return {_place(cell.raw, cell.allocator): cell for cell in self.cells.values()}

    def as_json(self) -> dict[str, Any]:
        """What names it in the result of a comparison."""
        return {
            "source": self.source, "study": self.raw.study, "created_utc": self.raw.created_utc,
            "baseline": self.baseline, "revision": self.raw.build.revision,
            "machine": {key: self.machine.get(key) for key in ("cpu", "cores", "fingerprint", *SETTINGS)},
        }  # fmt: skip


def read(path: Path, *, defaults: bool = True) -> Side:
    """A side from a result's folder or file; a campaign that was interrupted is summarised as far as it came.

    defaults: match parameters that were not given by their default values too, where the result knows them
    raises: LoamError if there is no result, it is damaged, or of another version
    """
    if path.is_dir() and not (path / RESULT).exists() and (path / MANIFEST).exists():
        from loam_lab.judging.result import summarise

        read_manifest(path)
        raw = summarise.summarise(path)
    else:
        raw = read_result(path)
    try:
        return _side(str(path), raw, defaults=defaults)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise LoamError(
            str(path), None, f"a cell is not whole: {problem!r}", "measure again, or restore the file"
        ) from problem


def knows_defaults(side: Side) -> bool:
    """Whether every cell that was run says which parameters it had by default."""
    return all(cell.raw.identity for cell in side.cells.values() if cell.raw.runs)


def _side(source: str, raw: Result, *, defaults: bool) -> Side:
    cells: dict[str, ComparedCell] = {}
    for item in raw.cells:
        if item.copy == 0:
            key = _key(item, defaults=defaults)
            # The same cell in two groups was measured twice; the second is known by its group.
            cells[f"{key} {item.group}" if key in cells else key] = _cell(item, raw.primary_metrics)
    return Side(source, raw, cells, raw.baseline)


def _key(item: Cell, *, defaults: bool) -> str:
    """What a cell measured: everything that changes its numbers, but the build, the machine, seed, block and copy."""
    identity: Facts = (item.identity or {}) if defaults else {}
    factors = item.factors
    parameters = dict(identity.get("parameters", item.parameters))
    # Where a command of bench was run: base and head usually lie in two folders.
    parameters.pop("folder", None)
    return canonical({
        "workload": factors.workload, "sync": factors.sync, "threads": factors.threads,
        "machine": factors.machine, "allocator": factors.allocator, "parameters": parameters,
        "warmup_ms": identity.get("warmup_ms"),
    })  # fmt: skip


def _place(item: Cell, allocator: str) -> tuple[object, ...]:
    return item.group, replace(item.factors, allocator=allocator), tuple(sorted(item.parameters.items()))


def _cell(item: Cell, primary: Mapping[str, str]) -> ComparedCell:
    name = primary[item.factors.workload]
    metric = item.metrics.get(name) or Metric(math.nan)
    blocks = metric.blocks
    # Results of older labs name no blocks: without a failure they are all there, in order.
    paired = blocks is not None or not item.failed
    of_block = dict(zip(blocks if blocks is not None else range(len(metric.values)), metric.values, strict=True))
    identity = item.identity or {}
    made_of = (str(identity["sync"]["build_id"]), str(identity["allocator"]["sha256"])) if identity else None
    return ComparedCell(item, name, metric.better, metric.unit, of_block, paired, made_of)
