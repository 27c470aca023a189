"""The cases of results that several machines measured: per machine the blocks in which all compared allocators ran well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loam_lab.judging.statistics.intervals import Array
from loam_lab.model import words
from loam_lab.model.cell import canonical


@dataclass(frozen=True)
class Case:
    """The same work on several machines.

    where: group, workload, sync, threads, parameters and metric; label: the same in words
    allocators: the baseline first; logs: by machine, (blocks, allocators), larger is better; absent: allocators that some
    machine lacks, with a machine that lacks them
    """

    where: Mapping[str, Any]
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


def kinds(result: Mapping[str, Any]) -> list[list[str]]:
    """The machines of a result's cells: those that exist, and those that are simulated; each in its order."""
    facts = result.get("machines") or {}
    names = dict.fromkeys(str(cell["factors"].get("machine", "host")) for cell in result["cells"])
    simulated = [name for name in names if (facts.get(name) or {}).get("simulated")]
    return [[name for name in names if name not in simulated], simulated]


def read(result: Mapping[str, Any], machines: Iterable[str]) -> list[Case]:
    """The cases that at least two of these machines measured, in the order of the result.

    result: as result.json has it; cells of groups of which places or counts are read, or that did not run well, take no part
    """
    wanted = set(machines)
    counted = {str(group.get("name")) for group in result.get("groups") or () if group.get("role", "main") != "main"}
    found: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for cell in result["cells"]:
        factors = cell["factors"]
        if cell.get("copy") or cell.get("state", "ok") != "ok" or str(cell.get("group", "")) in counted:
            continue
        if factors.get("machine", "host") in wanted:
            of_machine = found.setdefault(canonical(_where(result, cell)), {})
            of_machine.setdefault(str(factors.get("machine", "host")), {})[str(factors["allocator"])] = cell
    several = [by_machine for by_machine in found.values() if len(by_machine) > 1]
    firsts = [next(iter(next(iter(by_machine.values())).values())) for by_machine in several]
    places = [_where(result, cell) for cell in firsts]
    labels = _labels(places, result.get("units") or {})
    cases = [
        _case(result, by_machine, where, label)
        for by_machine, where, label in zip(several, places, labels, strict=True)
    ]
    return [case for case in cases if case is not None]


def _where(result: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    factors = cell["factors"]
    return {
        "group": str(cell.get("group", "")), "workload": factors["workload"], "sync": factors.get("sync", ""),
        "threads": factors.get("threads", 1), "parameters": dict(cell.get("parameters") or {}),
        "metric": str((result.get("primary_metrics") or {}).get(factors["workload"], "")),
    }  # fmt: skip


def _labels(places: list[dict[str, Any]], units: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Each place in words, with the parameters that tell places apart, and never how long a run takes.

    units: of parameters, by workload
    """
    levels: dict[str, set[str]] = {}
    for place in places:
        for name, value in place["parameters"].items():
            levels.setdefault(name, set()).add(str(value))
    found = []
    for place in places:
        shown = {
            name: value for name, value in place["parameters"].items()
            if name == "structure" or (len(levels[name]) > 1 and name not in ("duration_ms", "operations"))
        }  # fmt: skip
        sync = "" if place["sync"] == "none" else str(place["sync"])
        parts = (
            str(place["workload"]),
            words.parameters(shown, units.get(str(place["workload"]), {})),
            sync,
            words.threads(int(place["threads"])),
        )
        found.append(", ".join(part for part in parts if part))
    return found


def _case(
    result: Mapping[str, Any], by_machine: Mapping[str, Mapping[str, Mapping[str, Any]]], where: Mapping[str, Any], label: str
) -> Case | None:  # fmt: skip
    """None where the machines share no rival of the baseline, or no direction of the metric is good."""
    values: dict[str, dict[str, dict[int, float]]] = {
        machine: {name: found for name, cell in cells.items() if (found := _values(cell, where["metric"]))}
        for machine, cells in by_machine.items()
    }
    names = list(dict.fromkeys(name for cells in by_machine.values() for name in cells))
    shared = [name for name in names if all(name in known for known in values.values())]
    baseline = str(result.get("baseline") or "")
    # A group without the study's baseline has its first allocator for one.
    shared.sort(key=lambda name: name != baseline)
    sample = next(iter(next(iter(by_machine.values())).values()))
    better = str(((sample.get("metrics") or {}).get(where["metric"]) or {}).get("better", "neither"))
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


def _values(cell: Mapping[str, Any], metric: str) -> dict[int, float]:
    """Positive values of a cell's metric by block; none where a failure hides which block is which."""
    found = (cell.get("metrics") or {}).get(metric) or {}
    values, blocks = found.get("values") or (), found.get("blocks")
    if blocks is None:
        if cell.get("failed"):
            return {}
        blocks = range(len(values))
    return {int(block): float(value) for block, value in zip(blocks, values, strict=True) if value > 0}
