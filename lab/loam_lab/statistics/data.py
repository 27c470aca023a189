"""The runs of a campaign, read from its journals with DuckDB, grouped by cell and copy."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.measure import journal
from loam_lab.measure.folder import read_manifest
from loam_lab.model.cell import SIMULATED, Cell
from loam_lab.model.description import Description, Metric, Workload
from loam_lab.model.records import totals, value_of
from loam_lab.model.study import Group, Study

# What the lab itself measures of every process: name -> (unit, better, kind).
PROCESS_METRICS = (
    Metric(name="wall_s", unit="s", better="lower", kind="time"),
    Metric(name="user_s", unit="s", better="lower", kind="time"),
    Metric(name="system_s", unit="s", better="lower", kind="time"),
    Metric(name="rss_peak_bytes", unit="B", better="lower", kind="bytes"),
    Metric(name="faults_minor", unit="1", better="lower", kind="count"),
    Metric(name="faults_major", unit="1", better="lower", kind="count"),
)
_ROW = (
    "cell", "block", "copy", "attempt", "order", "identity", "started_utc", "t_s", "disturbance", "purpose", "state", "failure",
    "detail", "proof", "records", "observed", "warnings", "run_delay_s",
    *(metric.name for metric in PROCESS_METRICS),
)  # fmt: skip


@dataclass
class Run:
    """One line of a journal. process: the lab's own figures by name; records: the workload's lines

    observed: what was seen from outside in a run of another purpose than timing
    attempt: 1 and 2 where the block was run again; order: position in the plan; identity: as JSON text
    t_s: start since the campaign's, None in journals of older labs; disturbance: see loam_lab.measure.disturbance
    """

    cell: str
    block: int
    copy: int
    attempt: int
    order: int
    identity: str
    started_utc: str
    t_s: float | None
    disturbance: Mapping[str, Any]
    purpose: str
    state: str
    failure: str
    detail: str
    proof: Mapping[str, Any]
    records: list[dict[str, Any]]
    observed: Mapping[str, Any]
    warnings: list[str]
    run_delay_s: float | None
    process: dict[str, float | None]

    def value(self, metric: Metric) -> float | None:
        """The run's one value of a metric."""
        if metric.name in self.process:
            return self.process[metric.name]
        return value_of(metric, self.records, self.sums)

    @functools.cached_property
    def sums(self) -> dict[str, float]:
        """Totals of the iteration records: every metric of the run is made of them."""
        return totals(self.records)

    @property
    def begin(self) -> Mapping[str, Any]:
        """The begin record, empty where there is none."""
        return next((line for line in self.records if line.get("kind") == "begin"), {})


@dataclass
class Campaign:
    """A campaign as it lies in its folder: manifest, cells in the plan's order, its runs.

    timed: by cell key and copy, of each block the attempt that counts; superseded: the timed runs of other attempts
    special: runs of every other purpose, by purpose and cell key
    """

    folder: Path
    manifest: dict[str, Any]
    study: Study
    cells: list[Cell]
    descriptions: dict[str, Description]
    timed: dict[tuple[str, int], list[Run]] = field(default_factory=dict)
    special: dict[str, dict[str, list[Run]]] = field(default_factory=dict)
    superseded: list[Run] = field(default_factory=list)
    _values: dict[tuple[Cell, int, str], dict[int, float]] = field(default_factory=dict)
    _counterparts: dict[tuple[object, ...], tuple[frozenset[str], dict[tuple[object, ...], Cell]]] = field(
        default_factory=dict
    )

    @property
    def blame(self) -> dict[str, list[Run]]:
        """The runs that tell causes of aborts apart, by cell key."""
        return self.special.get("blame", {})

    def others(self, cell: Cell, *, simulated: bool = True) -> list[Run]:
        """Every run of a cell that is not a timing run. simulated: also those inside valgrind"""
        return [
            run for purpose, runs in self.special.items() if simulated or purpose not in SIMULATED
            for run in runs.get(cell.key, ())
        ]  # fmt: skip

    def sort(self, timing: Iterable[Run]) -> None:
        """Sort timing runs into those that count and those of superseded attempts.

        Of each block the last whole attempt counts, so that what is compared was run together.  An attempt is whole if
        it has every run that went well before; one that was interrupted is not.
        """
        blocks: dict[tuple[object, ...], dict[int, list[Run]]] = {}
        for run in (run for run in timing if run.cell in self._strata):
            blocks.setdefault((self._strata[run.cell], run.block), {}).setdefault(run.attempt, []).append(run)
        for attempts in blocks.values():
            well: set[tuple[str, int]] = set()
            counts = min(attempts)
            for attempt, runs in sorted(attempts.items()):
                if well <= {(run.cell, run.copy) for run in runs}:
                    counts = attempt
                well |= {(run.cell, run.copy) for run in runs if run.state == "ok"}
            for attempt, runs in attempts.items():
                for run in runs:
                    if attempt == counts:
                        self.timed.setdefault((run.cell, run.copy), []).append(run)
                    else:
                        self.superseded.append(run)

    def block_of(self, run: Run) -> tuple[object, int]:
        """Stratum and number of the block that a run belongs to."""
        return self._strata[run.cell], run.block

    @functools.cached_property
    def contaminated(self) -> frozenset[tuple[object, int]]:
        """The blocks, as block_of() names them, that stayed disturbed in the attempt that counts.

        What is compared by counts is not disturbed by waiting, and was not run again because of it
        """
        timed = {cell.key for cell in self.cells if self.workload(cell).depends_on_time}
        return frozenset(
            self.block_of(run)
            for (key, _), runs in self.timed.items()
            if key in timed
            for run in runs
            if run.state == "ok" and run.disturbance.get("contaminated")
        )

    @functools.cached_property
    def _strata(self) -> dict[str, tuple[object, ...]]:
        return {cell.key: self.stratum(cell) for cell in self.cells}

    def group(self, cell: Cell) -> Group:
        """The group of the study that a cell belongs to."""
        return self._groups[cell.group]

    def of_group(self, name: str) -> list[Cell]:
        """The cells of a group in the plan's order."""
        return self._by_group[name]

    def find(self, wanted: Mapping[str, Any]) -> Cell | None:
        """The cell whose as_json() equals this, or None."""
        return self._by_content.get(_content(wanted))

    def counterpart(self, cell: Cell, sync: str) -> Cell | None:
        """The same cell under another synchronisation: parameters that only one of the two has do not count."""
        names = frozenset(name for name, _ in cell.parameters)
        place = (cell.group, sync, names)
        if place not in self._counterparts:
            known: frozenset[str] = frozenset()
            index: dict[tuple[object, ...], Cell] = {}
            for other in self.of_group(cell.group):
                if other.sync == sync:
                    # All cells of a group under one synchronisation have the same parameters.
                    known = names & {name for name, _ in other.parameters}
                    index.setdefault(_common(other, known), other)
            self._counterparts[place] = known, index
        common, found = self._counterparts[place]
        return found.get(_common(cell, common))

    def stratum(self, cell: Cell) -> tuple[object, ...]:
        """What names the blocks that a cell's runs belong to: cells with equal strata share their blocks."""
        own = {parameter.name for parameter in self.workload(cell).parameters}
        return (cell.group, *((name, value) for name, value in self.varied(cell).items() if name in own))

    @functools.cached_property
    def _groups(self) -> dict[str, Group]:
        return {group.name: group for group in self.study.groups}

    @functools.cached_property
    def _by_group(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.group, []).append(cell)
        return found

    @functools.cached_property
    def _by_content(self) -> dict[tuple[object, ...], Cell]:
        return {_content(cell.as_json()): cell for cell in self.cells}

    def workload(self, cell: Cell) -> Workload:
        """The description of a cell's workload."""
        found = self.descriptions[cell.sync].workload(cell.workload)
        assert found is not None, f"the manifest describes no workload {cell.workload}"
        return found

    def primary(self, cell: Cell) -> Metric:
        """The metric by which a cell is compared: the first that its workload describes."""
        return self.workload(cell).metrics[0]

    def runs(self, cell: Cell, copy: int = 0) -> list[Run]:
        """Timed runs of a cell in the order of their blocks."""
        return self.timed.get((cell.key, copy), [])

    def values(self, cell: Cell, copy: int, metric: Metric) -> dict[int, float]:
        """Values of the good runs by block."""
        kept = self._values.get((cell, copy, metric.name))
        if kept is None:
            kept = self._values[cell, copy, metric.name] = {
                run.block: value
                for run in self.runs(cell, copy)
                if run.state == "ok" and (value := run.value(metric)) is not None
            }
        return dict(kept)

    def varied(self, cell: Cell) -> dict[str, int | str]:
        """The parameters of a cell of which its group has several levels."""
        levels = self.group(cell).levels()
        return {name: value for name, value in cell.parameters if len(set(levels.get(name, ()))) > 1}

    def baseline(self, cell: Cell) -> str:
        """The allocator that a cell is compared with: the study's baseline, or the group's first where it lacks it."""
        return self.study.allocators_of(self.group(cell))[0]


def _common(cell: Cell, names: Set[str]) -> tuple[object, ...]:
    """A cell as a key in which only these parameters count, and the synchronisation does not."""
    parameters = frozenset(item for item in cell.parameters if item[0] in names)
    return cell.workload, cell.allocator, cell.threads, cell.machine, parameters


def _content(cell: Mapping[str, Any]) -> tuple[object, ...]:
    """A cell's JSON as a key: the order of parameters does not count."""
    return (*(cell[name] for name in sorted(cell) if name != "parameters"), frozenset(cell["parameters"].items()))


def load(folder: Path, progress: Callable[[str], None] | None = None) -> Campaign:
    """Everything a campaign measured so far.

    folder: of the campaign; progress: told about lines that could not be read
    raises: LoamError if there is no campaign, or it is of another version
    """
    manifest = read_manifest(folder)
    study = Study.model_validate(manifest["plan"]["study"])
    campaign = Campaign(
        folder=folder,
        manifest=manifest,
        study=study,
        cells=[Cell.from_json(value) for value in manifest["plan"]["cells"]],
        descriptions={e["name"]: Description.model_validate(e["description"]) for e in manifest["executables"]},
    )
    if not journal.files(folder):
        return campaign
    columns = ", ".join(f'"{name}"' for name in _ROW)
    with journal.query(folder) as connection:
        other = connection.execute("select any_value(schema) from runs where schema != ?", [journal.SCHEMA]).fetchone()
        if other is not None and other[0] is not None:
            raise journal.wrong_schema(folder, other[0])
        rows = connection.execute(f'select {columns} from runs order by block, "order"').fetchall()
    timing = []
    for row in rows:
        run = _run(dict(zip(_ROW, row, strict=True)))
        if run.purpose == "timing":
            timing.append(run)
        else:
            campaign.special.setdefault(run.purpose, {}).setdefault(run.cell, []).append(run)
    campaign.sort(timing)
    if progress is not None:
        damaged = _lines(folder) - len(rows)
        if damaged > 0:
            progress(f"{damaged} lines of the journal cannot be read; their runs are missing; --resume runs them again")
    return campaign


def _lines(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in journal.files(folder))


def _run(row: dict[str, Any]) -> Run:
    nested = {
        name: json.loads(row.pop(name) or "null")
        for name in ("proof", "records", "observed", "warnings", "disturbance")
    }
    process = {metric.name: row.pop(metric.name) for metric in PROCESS_METRICS}
    return Run(
        **{**row, "failure": row["failure"] or "", "detail": row["detail"] or "", "attempt": row["attempt"] or 0,
           "started_utc": row["started_utc"] or "", "identity": row["identity"] or "{}"},
        proof=nested["proof"] or {}, records=nested["records"] or [], warnings=nested["warnings"] or [],
        observed=nested["observed"] or {}, disturbance=nested["disturbance"] or {}, process=process,
    )  # fmt: skip
