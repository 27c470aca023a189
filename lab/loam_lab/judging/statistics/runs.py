"""The runs of a campaign's journals, each kept as small as what is asked of it: a result may have a million.

reader.py makes them.  What is the same in all runs of a cell is one object, numbers lie in arrays.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from loam_lab.judging.statistics.intervals import Array
from loam_lab.model.description import Metric
from loam_lab.model.records import value_of

# What the lab itself measures of every process: name -> (unit, better, kind).
JOURNALED = (
    Metric(name="wall_s", unit="s", better="lower", kind="time"),
    Metric(name="user_s", unit="s", better="lower", kind="time"),
    Metric(name="system_s", unit="s", better="lower", kind="time"),
    Metric(name="rss_peak_bytes", unit="B", better="lower", kind="bytes"),
    Metric(name="faults_minor", unit="1", better="lower", kind="count"),
    Metric(name="faults_major", unit="1", better="lower", kind="count"),
    Metric(name="switches_voluntary", unit="1", better="lower", kind="count"),
    Metric(name="switches_involuntary", unit="1", better="lower", kind="count"),
)
PROCESSOR_TIME = Metric(name="processor_s", unit="s", better="lower", kind="time")  # user and system time together
PROCESS_METRICS = (*JOURNALED, PROCESSOR_TIME)
_PLACES = {metric.name: place for place, metric in enumerate(PROCESS_METRICS)}


class Iteration(NamedTuple):
    """One iteration record: its numbers by name, and whether its rate is that of slices in which no thread waited."""

    names: tuple[str, ...]
    numbers: array[float]
    by_slices: bool


@dataclass(slots=True, eq=False)
class Run:
    """One line of a journal. process: the lab's own figures, as PROCESS_METRICS has them, NaN for unknown ones

    identity: what it shares with its cell's other runs; started_utc: "" where t_s is known
    begin: the begin record; of a timing run that of some run of its cell with the same mapping
    iterations: its iteration records; result: what the end record says was computed; others: all further records
    observed: what was seen from outside in a run of another purpose than timing; lines that moved on a simulated machine
    attempt: 1 and 2 where the block was run again; order: position in the plan
    t_s: start since the campaign's, None in journals of older labs; disturbance: see loam_lab.campaign.measure.disturbance
    """

    cell: str
    block: int
    copy: int
    attempt: int
    order: int
    identity: Mapping[str, Any]
    started_utc: str
    t_s: float | None
    disturbance: Mapping[str, Any]
    purpose: str
    state: str
    failure: str
    detail: str
    proof: Mapping[str, Any]
    observed: Mapping[str, Any]
    warnings: tuple[str, ...]
    process: array[float]
    begin: Mapping[str, Any]
    iterations: tuple[Iteration, ...]
    result: str | None
    others: tuple[Mapping[str, Any], ...]

    def value(self, metric: Metric) -> float | None:
        """The run's one value of a metric."""
        if metric.name in _PLACES:
            return self.figure(metric.name)
        return value_of(metric, self.records(), self.sums)

    def figure(self, name: str) -> float | None:
        """One of the lab's own figures by its name, None where it is not known."""
        place = _PLACES[name]
        number = self.process[place]
        return None if math.isnan(number) else whole(PROCESS_METRICS[place], number)

    @property
    def sums(self) -> dict[str, float]:
        """Totals of the iteration records: every metric of the run is made of them."""
        if len(self.iterations) == 1:
            return dict(zip(self.iterations[0].names, self.iterations[0].numbers, strict=True))
        sums: dict[str, float] = {}
        for iteration in self.iterations:
            for name, number in zip(iteration.names, iteration.numbers, strict=True):
                sums[name] = sums.get(name, 0.0) + number
        return sums

    @property
    def rated_by_slices(self) -> bool:
        """Whether its rate is that of the slices in which none of its threads waited."""
        return bool(self.iterations) and all(iteration.by_slices for iteration in self.iterations)

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Its iteration records, then those of other kinds; without begin and end."""
        for iteration in self.iterations:
            yield {"kind": "iteration", **dict(zip(iteration.names, iteration.numbers, strict=True))}
        yield from self.others


def whole(metric: Metric, figure: float) -> float:
    """One of the lab's own figures as it was counted: bytes and counts are whole numbers."""
    return int(figure) if metric.name in _PLACES and metric.kind in ("bytes", "count") else figure


def columns(runs: Sequence[Run]) -> dict[str, Array] | None:
    """The numbers of runs that have one iteration record each, all with the same names: one array per name; else None.

    The lab's own figures are among them, with NaN for unknown ones
    """
    if not runs or any(len(run.iterations) != 1 for run in runs):
        return None
    names = runs[0].iterations[0].names
    if any(run.iterations[0].names is not names for run in runs):
        return None
    own = _matrix([run.iterations[0].numbers for run in runs])
    process = _matrix([run.process for run in runs])
    sums = {name: own[:, place] for place, name in enumerate(names)}
    return {**sums, **{name: process[:, place] for name, place in _PLACES.items()}}


def _matrix(rows: Sequence[array[float]]) -> Array:
    made: Array = np.frombuffer(b"".join(row.tobytes() for row in rows), dtype=np.float64).reshape(len(rows), -1)
    return made


def column(metric: Metric, known: Mapping[str, Array]) -> Array | None:
    """The values of a metric of runs with one iteration each, NaN for unknown ones: what value_of says of each of them.

    known: what columns() made of them; returns: None where no run has it
    """
    if metric.name in _PLACES or metric.kind != "ratio":
        return known.get(metric.name)
    assert metric.of is not None
    above, below = (known.get(name) for name in metric.of)
    if above is None or below is None:
        # The parts are not in the records: a single iteration's own value is still right.
        own = known.get(metric.name)
        return own if own is None or below is None else np.where(below != 0, own, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Array = np.where(below != 0, above / below, np.nan)
    return ratios
