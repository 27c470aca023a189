"""A Result in order and harmless: what every output format draws from.

Nothing is computed here that the Result does not say; findings.py draws the conclusions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from loam_lab.base import console
from loam_lab.judging.claims.together import Run
from loam_lab.model import collector, result, schema, words
from loam_lab.model.result import Cell, Metric, Result

# Single blocks that figures and tables show of a cell: as many as a reader can tell apart.
VALUES_MAX = 200

# The kind of a synchronisation that protects nothing.
NONE = "none"

_PLAIN = frozenset((float, int, bool, type(None)))


# How a cell's blame run counts the aborts of a cause.
_COUNTER = "aborts_"


@dataclass(frozen=True)
class Cause:
    """A cause of aborts: its name, and what the report calls it."""

    name: str
    words: str

    @property
    def counter(self) -> str:
        """Its count among a cell's blame."""
        return _COUNTER + self.name


@dataclass(frozen=True)
class Group:
    """Cells that differ in the allocator only: what one panel of a figure compares.

    units: of the workload's parameters, by name; none in a result that does not say
    """

    workload: str
    sync: str
    machine: str
    threads: int
    parameters: Mapping[str, Any]
    metric: str
    cells: tuple[Cell, ...]
    units: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the study's group that these cells come from."""
        return self.cells[0].group

    @property
    def mapping(self) -> str:
        """How addresses are mapped to records: "table", "shadow", or "" where the study does not say."""
        return str(self.parameters.get("mapping", ""))

    @property
    def plain(self) -> dict[str, Any]:
        """The parameters without the mapping."""
        return {key: value for key, value in self.parameters.items() if key != "mapping"}

    def in_words(self, key: str, value: Any) -> str:
        """A level of one of its parameters in words."""
        return words.parameter(key, value, self.units)

    def primary(self, cell: Cell) -> Metric | None:
        """The metric that this group is judged by, of one of its cells."""
        return cell.metrics.get(self.metric)


@dataclass(frozen=True)
class Case:
    """Groups shown beside each other: they differ in one factor only, best of all the mapping.

    title: what tells the case from the study's others; detail: what is the same in all of them
    labels: per group its level of that factor in words ("record table", "2 threads"), "" for a group alone
    same_work: the groups differ in the mapping, so that one axis serves them all
    """

    title: str
    detail: str
    groups: tuple[Group, ...]
    labels: tuple[str, ...]
    same_work: bool

    def label(self, group: Group) -> str:
        """The level that tells a group from its neighbours in the case."""
        return self.labels[self.groups.index(group)]

    def full(self, group: Group) -> str:
        """Title and label of a group in one line."""
        label = self.label(group)
        return f"{self.title}, {label}" if label else self.title


@dataclass(frozen=True)
class Study:
    """The whole Result.

    raw: the Result it came from, cleaned of control characters; counted: groups of which the study reads places or
    counts and no speed, which are not among groups; others: runs of the same study whose verdicts stand beside its own
    """

    raw: Result
    baseline: str
    allocators: tuple[str, ...]
    groups: tuple[Group, ...]
    cases: tuple[Case, ...]
    references: tuple[Group, ...]
    counted: tuple[Group, ...] = ()
    others: tuple[Run, ...] = ()

    @functools.cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The causes of aborts that some blame run counted, in the order of the result's table; then those without words."""
        counted = {
            name.removeprefix(_COUNTER): None for cell in self.cells for name, number in (cell.blame or {}).items()
            if number and name.startswith(_COUNTER) and name != "aborts_per_attempt"
        }  # fmt: skip
        known = {item.name: item.words for item in self.raw.abort_causes}
        return tuple(
            Cause(name, known.get(name) or name.replace("_", " "))
            for name in (*known, *(name for name in counted if name not in known)) if name in counted
        )  # fmt: skip

    @property
    def cells(self) -> list[Cell]:
        """All of the Result, in its order."""
        return self.raw.cells

    @property
    def every(self) -> tuple[Group, ...]:
        """Compared groups and counted ones."""
        return self.groups + self.counted


def clean(value: Any) -> Any:
    """The same value with control and direction-changing characters in its strings replaced by U+FFFD."""
    if isinstance(value, float | int):
        return value
    if isinstance(value, str):
        return console.plain(value)
    if isinstance(value, result.Part):
        return type(value)(**{name: clean(getattr(value, name)) for name in value.__struct_fields__})
    if isinstance(value, Mapping):
        return {str(clean(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Values of single blocks: a large result has millions of them, and nothing in them is to be cleaned.
        return list(value) if set(map(type, value)) <= _PLAIN else [clean(item) for item in value]
    return value


def number(value: Any) -> float | None:
    """A finite float, or None for what is absent, not a number or infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def read(given: Result, source: str = "result", others: Iterable[Run] = ()) -> Study:
    """A Study from a Result. source: its name for error messages; others: other runs of its study

    raises: LoamError if it is of another schema version
    """
    schema.check(source, given.schema)
    raw: Result = clean(given)
    raw = replace(raw, cells=[_shortened(cell) for cell in raw.cells])
    allocators = tuple(dict.fromkeys([item.name for item in raw.allocators] + [cell.allocator for cell in raw.cells]))
    names = {item.name for item in raw.groups if item.role == "counted"}
    counted = _groups([cell for cell in raw.cells if cell.group in names], allocators, raw.primary_metrics, raw.units)
    groups = _groups(
        [cell for cell in raw.cells if cell.group not in names], allocators, raw.primary_metrics, raw.units
    )
    kinds = {item.name: item.kind for item in raw.syncs}
    references = tuple(group for group in groups if _is_reference(group, groups, kinds))
    cases = _cases([group for group in groups if group not in references])
    return Study(raw, raw.baseline, allocators, groups, cases, references, counted, tuple(others))


def _shortened(cell: Cell) -> Cell:
    """The cell with no more single values than are shown."""
    return replace(cell, metrics={n: replace(one, values=one.values[:VALUES_MAX]) for n, one in cell.metrics.items()})


def _groups(
    cells: Iterable[Cell],
    allocators: tuple[str, ...],
    primary: Mapping[str, str],
    units: Mapping[str, Mapping[str, str]],
) -> tuple[Group, ...]:
    by_factors: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        one = cell.factors
        parameters = tuple((k, str(v)) for k, v in cell.parameters.items())
        by_factors.setdefault((one.workload, one.sync, one.machine, one.threads, parameters), []).append(cell)
    groups = []
    for members in by_factors.values():
        first, one = members[0], members[0].factors
        # Fixed order in every figure; the second copy of the baseline stands last, as a remark.
        members.sort(key=lambda cell: (cell.copy, allocators.index(cell.allocator)))
        names = [ratio.metric for cell in members if (ratio := cell.ratio_to_baseline) and ratio.metric]
        names += [name for cell in members for name in cell.metrics]
        metric, of_parameters = primary.get(one.workload) or next(iter(names), ""), units.get(one.workload, {})
        groups.append(
            Group(
                one.workload, one.sync, one.machine, one.threads, first.parameters, metric, tuple(members), of_parameters
            )
        )  # fmt: skip
    return tuple(groups)


# How long a run takes is no matter of what it does: twins may differ in it.
_DURATION = ("duration_ms", "operations")
_LENGTHS = tuple(f"-p {name}" for name in _DURATION)


def within(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Whether every parameter of inner has the same value in outer."""
    return all(key in outer and str(outer[key]) == str(value) for key, value in inner.items())


def _twins(reference: Group, group: Group) -> bool:
    """Whether two groups do the same work: the parameters that both have are equal, durations aside."""
    common = [key for key in reference.plain if key in group.plain and key not in _DURATION]
    return reference.workload == group.workload and all(
        str(reference.plain[key]) == str(group.plain[key]) for key in common
    )


def _is_reference(group: Group, groups: Iterable[Group], kinds: Mapping[str, str]) -> bool:
    """Whether a group is the twin without synchronisation of a synchronised one: shown beside it, not on its own.

    kinds: of the synchronisations
    """
    return kinds.get(group.sync) == NONE and any(
        kinds.get(other.sync) != NONE and _twins(group, other) for other in groups
    )


def reference_of(group: Group, study: Study) -> Group | None:
    """The sequential twin of a group, or None."""
    return next((candidate for candidate in study.references if _twins(candidate, group)), None)


def _factor(parameter: str) -> str:
    """How the factor is called whose levels a parameter has."""
    return parameter if parameter == collector.NAME else f"-p {parameter}"


def _dimensions(group: Group) -> dict[str, tuple[str, str]]:
    """Factor -> (level, level in words), in the order in which titles name them."""
    levels = {_factor(key): (str(value), group.in_words(key, value)) for key, value in group.parameters.items()}
    levels["threads"] = (str(group.threads), words.threads(group.threads))
    for name, value in (("sync", group.sync), ("machine", group.machine)):
        levels[name] = (value, "" if value in ("host", "none") else value)
    return levels


def _beside(varying: list[str]) -> str:
    """Which varying factor is shown side by side: the mapping, else the only one, else threads or synchronisation."""
    for name in ("-p mapping", "threads", "sync"):
        if name in varying and (name == "-p mapping" or len(varying) > 1):
            return name
    return varying[-1] if varying else ""


def _cases(groups: list[Group]) -> tuple[Case, ...]:
    cases: list[Case] = []
    for workload in dict.fromkeys(group.workload for group in groups):
        peers = {id(group): _dimensions(group) for group in groups if group.workload == workload}
        names = list(dict.fromkeys(name for levels in peers.values() for name in levels))
        # A factor that only some groups have varies too: it tells them apart.
        varying = [name for name in names if len({levels.get(name, ("",))[0] for levels in peers.values()}) > 1]
        beside = _beside(varying)
        # How long a run takes tells nothing apart, unless groups differ in its length.
        known = {name: {levels[name][0] for levels in peers.values() if name in levels} for name in names}
        varying = [n for n in varying if n == beside or n not in _LENGTHS or len(known[n]) > 1]
        by_dimensions: dict[tuple[str, ...], list[Group]] = {}
        for group in groups:
            if group.workload == workload:
                key = tuple(peers[id(group)].get(name, ("",))[0] for name in names if name != beside)
                by_dimensions.setdefault(key, []).append(group)
        for members in by_dimensions.values():
            levels = peers[id(members[0])]
            named = [levels[name][1] for name in varying if name != beside and name in levels]
            # A structure names a case even where the study has one only: "intset" alone says little.
            if "-p structure" in levels and "-p structure" not in varying:
                named.insert(0, levels["-p structure"][1])
            fixed = [word for name, (_, word) in levels.items() if name not in varying and name != "-p structure"]
            labels = tuple(peers[id(group)].get(beside, ("", ""))[1] for group in members)
            title = ", ".join(word for word in [workload, *named] if word)
            detail = ", ".join(word for word in fixed if word)
            cases.append(Case(title, detail, tuple(members), labels, beside == "-p mapping"))
    return tuple(cases)
