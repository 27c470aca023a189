"""A Result dictionary as typed, ordered, harmless values: what every output format draws from.

Nothing is computed here that the Result does not say; findings.py draws the conclusions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loam_lab.errors import LoamError
from loam_lab.report import words

SCHEMA = 1

# Control characters have no place in HTML, XML or a terminal; tab and newline may stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; ends are None where none was given."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Metric(Interval):
    """One metric of a cell: unit as recorded, better = higher | lower | neither, values = one per block."""

    unit: str
    better: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Cell:
    """One combination of levels. ratio: against the baseline, None for itself; copy 1 is the A/A sentinel."""

    workload: str
    allocator: str
    sync: str
    machine: str
    threads: int
    parameters: Mapping[str, Any]
    copy: int
    runs: int
    failed: int
    state: str
    verdict: str
    metrics: Mapping[str, Metric]
    ratio: Interval | None
    ratio_metric: str
    blame: Mapping[str, float] | None
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The allocator, told apart where it is the second copy of the baseline."""
        return self.allocator if self.copy == 0 else f"{self.allocator}, again"


@dataclass(frozen=True)
class Group:
    """Cells that differ in the allocator only: what one panel of a figure compares."""

    workload: str
    sync: str
    machine: str
    threads: int
    parameters: Mapping[str, Any]
    metric: str
    cells: tuple[Cell, ...]

    @property
    def mapping(self) -> str:
        """How addresses are mapped to records: "table", "shadow", or "" where the study does not say."""
        return str(self.parameters.get("mapping", ""))

    @property
    def plain(self) -> dict[str, Any]:
        """The parameters without the mapping."""
        return {key: value for key, value in self.parameters.items() if key != "mapping"}

    def primary(self, cell: Cell) -> Metric | None:
        """The metric that this group is judged by, of one of its cells."""
        return cell.metrics.get(self.metric)


@dataclass(frozen=True)
class Case:
    """Groups that differ in the mapping only, with a title that tells it from the study's other cases."""

    title: str
    detail: str
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Study:
    """The whole Result. raw: the dictionary it came from, cleaned of control characters."""

    raw: Mapping[str, Any]
    baseline: str
    allocators: tuple[str, ...]
    cells: tuple[Cell, ...]
    groups: tuple[Group, ...]
    cases: tuple[Case, ...]
    references: tuple[Group, ...]


def clean(value: Any) -> Any:
    """The same value with control and direction-changing characters in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return _CONTROLS.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {str(clean(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def number(value: Any) -> float | None:
    """A finite float, or None for what is absent, not a number or infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def read(result: Mapping[str, Any], source: str = "result") -> Study:
    """A Study from a Result.

    result: the dictionary of result.json; source: its name for error messages
    raises: LoamError if it is of another schema version or not a result
    """
    if not isinstance(result, Mapping) or "cells" not in result:
        raise LoamError(source, None, "not a result of loam: it has no cells", "name a folder that holds result.json")
    if result.get("schema") != SCHEMA:
        raise LoamError(
            f"{source}: schema", result.get("schema"), f"this version reads schema {SCHEMA}",
            "make the report with the version of loam that measured, or measure again",
        )  # fmt: skip
    raw: dict[str, Any] = clean(result)
    primary: dict[str, str] = raw.get("primary_metrics") or {}
    try:
        cells = tuple(_cell(item) for item in raw["cells"])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise LoamError(source, None, f"a cell is not whole: {problem!r}", "measure again, or restore the file") from problem
    listed = [str(item.get("name")) for item in raw.get("allocators") or []]
    allocators = tuple(dict.fromkeys(listed + [cell.allocator for cell in cells]))
    groups = _groups(cells, allocators, primary)
    references = tuple(group for group in groups if _is_reference(group, groups))
    cases = _cases([group for group in groups if group not in references])
    return Study(raw, str(raw.get("baseline") or ""), allocators, cells, groups, cases, references)


def _cell(item: Mapping[str, Any]) -> Cell:
    factors = item["factors"]
    ratio = item.get("ratio_to_baseline")
    blame = item.get("blame")
    return Cell(
        workload=str(factors["workload"]), allocator=str(factors["allocator"]), sync=str(factors.get("sync", "")),
        machine=str(factors.get("machine", "host")), threads=int(factors.get("threads") or 1),
        parameters=dict(item.get("parameters") or {}), copy=int(item.get("copy") or 0), runs=int(item.get("runs") or 0),
        failed=int(item.get("failed") or 0), state=str(item.get("state", "ok")), verdict=str(item.get("verdict", "")),
        metrics={str(name): _metric(value) for name, value in (item.get("metrics") or {}).items()},
        ratio=_interval(ratio) if ratio else None, ratio_metric=str(ratio.get("metric", "")) if ratio else "",
        blame={k: float(v) for k, v in blame.items() if number(v) is not None} if blame else None,
        warnings=tuple(str(text) for text in item.get("warnings") or []),
    )  # fmt: skip


def _interval(item: Mapping[str, Any]) -> Interval:
    return Interval(number(item.get("estimate")), number(item.get("low")), number(item.get("high")))


def _metric(item: Mapping[str, Any]) -> Metric:
    values = tuple(value for value in map(number, item.get("values") or []) if value is not None)
    ends = _interval(item)
    return Metric(ends.estimate, ends.low, ends.high, str(item.get("unit", "")), str(item.get("better", "neither")), values)


def _groups(cells: Iterable[Cell], allocators: tuple[str, ...], primary: Mapping[str, str]) -> tuple[Group, ...]:
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        key = (cell.workload, cell.sync, cell.machine, cell.threads, tuple((k, str(v)) for k, v in cell.parameters.items()))
        found.setdefault(key, []).append(cell)
    groups = []
    for members in found.values():
        first = members[0]
        # Fixed order in every figure; the second copy of the baseline stands last, as a remark.
        members.sort(key=lambda cell: (cell.copy, allocators.index(cell.allocator)))
        names = [cell.ratio_metric for cell in members if cell.ratio_metric] + [name for c in members for name in c.metrics]
        metric = primary.get(first.workload) or next(iter(names), "")
        groups.append(
            Group(first.workload, first.sync, first.machine, first.threads, first.parameters, metric, tuple(members))
        )
    return tuple(groups)


def within(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Whether every parameter of inner has the same value in outer."""
    return all(key in outer and str(outer[key]) == str(value) for key, value in inner.items())


def _is_reference(group: Group, groups: Iterable[Group]) -> bool:
    """Whether a group is the sequential twin of a synchronised one: shown beside it, not on its own."""
    return group.sync == "sequential" and any(
        other.sync != "sequential" and other.workload == group.workload and within(group.plain, other.plain)
        for other in groups
    )


def reference_of(group: Group, study: Study) -> Group | None:
    """The sequential twin of a group, or None."""
    for candidate in study.references:
        if candidate.workload == group.workload and within(candidate.plain, group.plain):
            return candidate
    return None


def _cases(groups: list[Group]) -> tuple[Case, ...]:
    found: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        key = (group.workload, group.sync, group.machine, group.threads, tuple((k, str(v)) for k, v in group.plain.items()))
        found.setdefault(key, []).append(group)
    return tuple(Case(*_titles(members[0], groups), tuple(members)) for members in found.values())


def _titles(group: Group, groups: list[Group]) -> tuple[str, str]:
    """Title: the workload and what varies among its cases. Detail: what is the same in all of them."""
    peers = [other for other in groups if other.workload == group.workload]
    varying, fixed = [group.workload], []
    for key, value in group.plain.items():
        same = all(str(other.plain.get(key)) == str(value) for other in peers)
        (fixed if same and key != "structure" else varying).append(words.parameter(key, value))
    traits = (
        (words.threads(group.threads), {other.threads for other in peers}),
        (group.sync, {other.sync for other in peers}),
        (group.machine, {other.machine for other in peers}),
    )
    for text, levels in traits:
        if len(levels) > 1:
            varying.append(text)
        elif text not in ("host", "none", ""):
            fixed.append(text)
    return ", ".join(varying), ", ".join(fixed)


def mapping_title(group: Group) -> str:
    """What tells a group from its neighbours in a case: "record table", "shadow records", or ""."""
    return words.MAPPINGS.get(group.mapping, group.mapping)
