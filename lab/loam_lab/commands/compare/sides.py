"""One side of a comparison: a result's cells by what they measured, whoever measured them and whenever."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError
from loam_lab.model import schema
from loam_lab.model.cell import canonical
from loam_lab.model.store.folder import MANIFEST, RESULT, read_manifest, read_result

# Of the machine, beside its processor: what may change from one day to the next, and the times with it.
SETTINGS = ("kernel", "microcode", "thp", "aslr", "governor", "libc")


@dataclass(frozen=True)
class ComparedCell:
    """A cell of a result.

    values: of its primary metric, by block; paired: whether the numbers of the blocks are known
    made_of: build of the executable and content of the allocator, None where the result does not say
    """

    raw: Mapping[str, Any]
    metric: str
    better: str
    unit: str
    values: Mapping[int, float]
    paired: bool
    made_of: tuple[str, str] | None

    @property
    def state(self) -> str:
        """ok | failed | unproven | skipped."""
        return str(self.raw.get("state", "ok"))

    @property
    def allocator(self) -> str:
        """Name of its allocator."""
        return str(self.raw["factors"]["allocator"])

    def words(self) -> str:
        """The cell in one line: workload key=value ... sync threads allocator."""
        factors = self.raw["factors"]
        parameters = " ".join(f"{name}={value}" for name, value in (self.raw.get("parameters") or {}).items())
        parts = (factors["workload"], parameters, factors["sync"], f"{factors['threads']}T", factors["allocator"])
        return " ".join(str(part) for part in parts if part)


@dataclass(frozen=True)
class Side:
    """A result to compare. cells: by key, see _key; baseline: name of its baseline allocator"""

    source: str
    raw: Mapping[str, Any]
    cells: Mapping[str, ComparedCell]
    baseline: str

    @property
    def machine(self) -> Mapping[str, Any]:
        """The machine that the lab ran on."""
        return self.raw.get("machine") or {}

    @property
    def machines(self) -> Mapping[str, Mapping[str, Any]]:
        """The machines of its cells by name."""
        found: Mapping[str, Mapping[str, Any]] = self.raw.get("machines") or {}
        return found

    def beside(self, key: str) -> ComparedCell | None:
        """The baseline's cell of a cell, or None where it has none or is it."""
        cell = self.cells[key]
        if cell.allocator == self.baseline:
            return None
        return self._places.get(_place({**cell.raw, "factors": {**cell.raw["factors"], "allocator": self.baseline}}))

    @functools.cached_property
    def _places(self) -> dict[tuple[object, ...], ComparedCell]:
        return {_place(cell.raw): cell for cell in self.cells.values()}

    def as_json(self) -> dict[str, Any]:
        """What names it in the result of a comparison."""
        return {
            "source": self.source, "study": self.raw.get("study"), "created_utc": self.raw.get("created_utc"),
            "baseline": self.baseline, "revision": (self.raw.get("build") or {}).get("revision"),
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
    schema.check(path, raw.get("schema"))
    try:
        return _side(str(path), raw, defaults=defaults)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise LoamError(
            str(path), None, f"a cell is not whole: {problem!r}", "measure again, or restore the file"
        ) from problem


def knows_defaults(side: Side) -> bool:
    """Whether every cell that was run says which parameters it had by default."""
    return all(cell.raw.get("identity") for cell in side.cells.values() if cell.raw.get("runs"))


def _side(source: str, raw: Mapping[str, Any], *, defaults: bool) -> Side:
    cells: dict[str, ComparedCell] = {}
    for item in raw["cells"]:
        if item["copy"] == 0:
            key = _key(item, defaults=defaults)
            # The same cell in two groups was measured twice; the second is known by its group.
            cells[f"{key} {item.get('group', '')}" if key in cells else key] = _cell(item, raw["primary_metrics"])
    return Side(source, raw, cells, str(raw["baseline"]))


def _key(item: Mapping[str, Any], *, defaults: bool) -> str:
    """What a cell measured: everything that changes its numbers, but the build, the machine, seed, block and copy."""
    identity = (item.get("identity") or {}) if defaults else {}
    factors = item["factors"]
    parameters = dict(identity.get("parameters", item.get("parameters") or {}))
    # Where a command of bench was run: base and head usually lie in two folders.
    parameters.pop("folder", None)
    return canonical({
        "workload": factors["workload"], "sync": factors["sync"], "threads": factors["threads"],
        "machine": factors.get("machine"), "allocator": factors["allocator"], "parameters": parameters,
        "warmup_ms": identity.get("warmup_ms"),
    })  # fmt: skip


def _place(item: Mapping[str, Any]) -> tuple[object, ...]:
    factors = item["factors"]
    return item.get("group"), tuple(sorted(factors.items())), tuple(sorted((item.get("parameters") or {}).items()))


def _cell(item: Mapping[str, Any], primary: Mapping[str, str]) -> ComparedCell:
    name = primary[item["factors"]["workload"]]
    metric = (item.get("metrics") or {}).get(name) or {}
    values = [float(value) for value in metric.get("values") or ()]
    blocks = metric.get("blocks")
    # Results of older labs name no blocks: without a failure they are all there, in order.
    paired = blocks is not None or not item.get("failed")
    of_block = dict(zip(blocks if blocks is not None else range(len(values)), values, strict=True))
    identity = item.get("identity") or {}
    made_of = (str(identity["sync"]["build_id"]), str(identity["allocator"]["sha256"])) if identity else None
    better = str(metric.get("better", "neither"))
    return ComparedCell(item, name, better, str(metric.get("unit", "")), of_block, paired, made_of)
