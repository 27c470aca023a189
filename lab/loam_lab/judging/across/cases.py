"""The cases of results that several machines measured: per machine the blocks in which all compared allocators ran well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from loam_lab.judging.statistics.intervals import Array
from loam_lab.model import words
from loam_lab.model.cell import canonical
from loam_lab.model.result import Cell, Parameters, Result


@dataclass(frozen=True)
class Where:
    """What was measured; the names are those of a case in the result."""

    group: str
    workload: str
    sync: str
    threads: int
    parameters: Parameters
    metric: str


@dataclass(frozen=True)
class Case:
    """The same work on several machines.

    where: what was measured; label: the same in words
    allocators: the baseline first; logs: by machine, (blocks, allocators), larger is better; absent: allocators that some
    machine lacks, with a machine that lacks them
    """

    where: Where
    label: str
    allocators: tuple[str, ...]
    logs: Mapping[str, Array]
    absent: Mapping[str, str]

    @property
    def baseline(self) -> str:
        """What the others are compared with."""
        return self.allocators[0]

    def relative(self, machine: str) -> Array:
        """The rivals' logarithms against the baseline's, block by block: (blocks, allocators - 1)."""
        values: Array = self.logs[machine][:, 1:] - self.logs[machine][:, :1]
        return values


def kinds(result: Result) -> list[list[str]]:
    """The machines of a result's cells: those that exist, and those that are simulated; each in its order."""
    facts = result.machines
    names = dict.fromkeys(cell.factors.machine for cell in result.cells)
    simulated = [name for name in names if facts.get(name, {}).get("simulated")]
    return [[name for name in names if name not in simulated], simulated]


def read(result: Result, machines: Iterable[str]) -> list[Case]:
    """The cases that at least two of these machines measured, in the order of the result.

    result: as result.json has it; cells of groups of which places or counts are read, or that did not run well, take no part
    """
    wanted = set(machines)
    counted = {group.name for group in result.groups if group.role != "main"}
    by_place: dict[str, dict[str, dict[str, Cell]]] = {}
    for cell in result.cells:
        factors = cell.factors
        if cell.copy or cell.state != "ok" or cell.group in counted:
            continue
        if factors.machine in wanted:
            of_machine = by_place.setdefault(canonical(asdict(_where(result, cell))), {})
            of_machine.setdefault(factors.machine, {})[factors.allocator] = cell
    several = [by_machine for by_machine in by_place.values() if len(by_machine) > 1]
    firsts = [next(iter(next(iter(by_machine.values())).values())) for by_machine in several]
    places = [_where(result, cell) for cell in firsts]
    labels = _labels(places, result.units)
    cases = [
        _case(result, by_machine, where, label)
        for by_machine, where, label in zip(several, places, labels, strict=True)
    ]
    return [case for case in cases if case is not None]


def _where(result: Result, cell: Cell) -> Where:
    one = cell.factors
    metric = result.primary_metrics.get(one.workload, "")
    return Where(cell.group, one.workload, one.sync, one.threads, cell.parameters, metric)


def _labels(places: list[Where], units: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Each place in words, with what tells places apart or has a label of its own, and never how long a run takes.

    units: how parameters are worded, by workload
    """
    levels: dict[str, set[str]] = {}
    for place in places:
        for name, value in place.parameters.items():
            levels.setdefault(name, set()).add(str(value))
    labels = []
    for place in places:
        wording = units.get(place.workload, {})
        shown = {
            name: value for name, value in place.parameters.items()
            if f"{name}={value}" in wording or (len(levels[name]) > 1 and name not in ("duration_ms", "operations"))
        }  # fmt: skip
        sync = "" if place.sync == "none" else place.sync
        parts = (
            place.workload,
            words.parameters(shown, wording),
            sync,
            words.threads(place.threads),
        )
        labels.append(", ".join(part for part in parts if part))
    return labels


def _case(
    result: Result, by_machine: Mapping[str, Mapping[str, Cell]], where: Where, label: str
) -> Case | None:  # fmt: skip
    """None where the machines share no rival of the baseline, or no direction of the metric is good."""
    values: dict[str, dict[str, dict[int, float]]] = {
        machine: {name: by_block for name, cell in cells.items() if (by_block := _values(cell, where.metric))}
        for machine, cells in by_machine.items()
    }
    names = list(dict.fromkeys(name for cells in by_machine.values() for name in cells))
    shared = [name for name in names if all(name in known for known in values.values())]
    baseline = result.baseline
    # A group without the study's baseline has its first allocator for one.
    shared.sort(key=lambda name: name != baseline)
    sample = next(iter(next(iter(by_machine.values())).values()))
    better = sample.metrics[where.metric].better if where.metric in sample.metrics else "neither"
    if len(shared) < 2 or better == "neither":
        return None
    sign = -1 if better == "lower" else 1
    logs: dict[str, Array] = {}
    for machine, known in values.items():
        blocks = sorted(set.intersection(*(set(known[name]) for name in shared)))
        if blocks:
            logs[machine] = sign * np.log([[known[name][block] for name in shared] for block in blocks])
    absent = {name: next(m for m, known in values.items() if name not in known) for name in names if name not in shared}
    return Case(where, label, tuple(shared), logs, absent) if len(logs) > 1 else None


def _values(cell: Cell, metric: str) -> dict[int, float]:
    """Positive values of a cell's metric by block; none where a failure hides which block is which."""
    measured = cell.metrics.get(metric)
    if measured is None:
        return {}
    values, blocks = measured.values, measured.blocks
    if blocks is None:
        if cell.failed:
            return {}
        blocks = list(range(len(values)))
    return {block: float(value) for block, value in zip(blocks, values, strict=True) if value > 0}
