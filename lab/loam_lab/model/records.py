"""The JSON lines that a workload writes, read without trust, and the values of a run that follow from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loam_lab.model import schema
from loam_lab.model.description import Metric

# Begins the names of what was counted while the workload ran.
COUNTED = "counted_"

# Of JSON: true and false are of another class.
_NUMBERS: frozenset[Any] = frozenset((int, float))
KINDS = {"begin", "iteration", "histogram", "series", "sample", "site", "conflict", "footprint", "process", "end"}


@dataclass
class Records:
    """The records of one process.

    problem: why the records cannot be used ("" if they can): no `end`, a line that is no JSON, another schema
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""

    def first(self, kind: str) -> dict[str, Any] | None:
        """The first record of a kind, or None."""
        return next((line for line in self.lines if line["kind"] == kind), None)

    @property
    def verified(self) -> bool:
        """Whether the workload says that it verified its result."""
        end = self.first("end")
        return end is not None and end.get("verified") is True

    @property
    def message(self) -> str:
        """What the workload says about its verification."""
        end = self.first("end")
        return str(end.get("message", "")) if end else ""


def parse(raw: bytes) -> Records:
    """Records from what a process wrote; never raises, a bad line is named in `problem`."""
    records = Records()
    for number, text in enumerate(raw.splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError:
            records.problem = f"record {number} is not JSON: {text[:80].decode(errors='replace')}"
            continue
        if not isinstance(line, dict) or line.get("kind") not in KINDS:
            records.problem = f"record {number} has no known kind"
            continue
        records.lines.append(line)
    begin = records.first("begin")
    if not records.problem:
        if begin is None:
            records.problem = "no begin record"
        elif begin.get("schema") != schema.SCHEMA:
            records.problem = f"its records: {schema.problem(begin.get('schema'))}"
        elif records.first("end") is None:
            records.problem = "truncated: no end record"
    return records


def number(value: object) -> float | None:
    """A finite JSON number as float, else None (true and false are no numbers)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def values(iteration: Mapping[str, Any]) -> dict[str, float]:
    """Every number of an iteration record by its name, with those that lie under `tm` (index left out)."""
    inner = iteration.get("tm")
    every: Mapping[str, Any] = {**iteration, **inner} if isinstance(inner, dict) else iteration
    # number() written out: a result may have a million iterations.
    return {
        name: float(value) for name, value in every.items()
        if value.__class__ in _NUMBERS and name != "index" and math.isfinite(value)
    }  # fmt: skip


def totals(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Sums of every value over the iteration records of a process."""
    sums: dict[str, float] = {}
    for line in lines:
        if line.get("kind") != "iteration":
            continue
        for name, value in values(line).items():
            sums[name] = sums.get(name, 0.0) + value
    return sums


def rated_by_slices(lines: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the rate of a process is that of the slices in which none of its threads waited."""
    iterations = _iterations(lines)
    return bool(iterations) and all(line.get("rated_by") == "slices" for line in iterations)


def value_of(
    metric: Metric, lines: Iterable[Mapping[str, Any]], sums: Mapping[str, float] | None = None
) -> float | None:
    """One value of a metric for one process: its iterations are one observation.

    sums: totals(lines) where the caller has them
    A count or time is summed, bytes are the largest, a ratio is the ratio of the sums; None where it is unknown
    """
    if metric.kind == "bytes":
        sizes = [size for line in _iterations(lines) if (size := values(line).get(metric.name)) is not None]
        return max(sizes, default=None)
    if sums is None:
        lines = list(lines)
        sums = totals(lines)
    if metric.kind == "ratio":
        assert metric.of is not None
        above, below = (sums.get(name) for name in metric.of)
        if above is None or below is None or below == 0:
            # The parts are not in the records: a single iteration's own value is still right.
            iterations = _iterations(lines)
            return values(iterations[0]).get(metric.name) if len(iterations) == 1 and below != 0 else None
        return above / below
    return sums.get(metric.name)


def _iterations(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [line for line in lines if line.get("kind") == "iteration"]


def records_mapping(begin: Mapping[str, Any]) -> str:
    """How a run really mapped addresses to ownership records, "" where its begin record does not say."""
    return str((begin.get("tm") or {}).get("records_mapping", ""))
