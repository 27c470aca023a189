"""The runs of a campaign, read from its journals, grouped by cell and copy."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loam_lab.judging.statistics import agreement
from loam_lab.judging.statistics import runs as reading
from loam_lab.judging.statistics.intervals import Array
from loam_lab.judging.statistics.reader import Reader
from loam_lab.judging.statistics.runs import PROCESS_METRICS as PROCESS_METRICS
from loam_lab.judging.statistics.runs import PROCESSOR_TIME as PROCESSOR_TIME
from loam_lab.judging.statistics.runs import Run as Run
from loam_lab.model.cell import SURROUNDED, Cell
from loam_lab.model.description import Description, Metric, Workload
from loam_lab.model.store import journal
from loam_lab.model.store.folder import read_manifest
from loam_lab.model.study import Group, Study

# A cell that loses more of its runs than this is a failed cell: what is left of it is a selection.
FAILED_SHARE_MAX = 0.05
# Of cells with more runs only the primary metric's values are kept; others are made anew from their runs.
_KEPT_RUNS_MAX = 200


@dataclass(frozen=True)
class _Good:
    """The good runs of a cell and copy, which several metrics are asked of one after the other.

    columns: where all of them have the same numbers, each in a block of its own
    """

    place: tuple[str, int]
    runs: list[Run]
    blocks: NDArray[np.int64]
    columns: dict[str, Array] | None


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
    _series: dict[tuple[str, int, str], tuple[NDArray[np.int64], Array]] = field(default_factory=dict)
    _waited: dict[tuple[str, int], float | None] = field(default_factory=dict)
    _last: _Good | None = None
    _counterparts: dict[tuple[object, ...], tuple[frozenset[str], dict[tuple[object, ...], Cell]]] = field(
        default_factory=dict
    )

    @property
    def blame(self) -> dict[str, list[Run]]:
        """The runs that tell causes of aborts apart, by cell key."""
        return self.special.get("blame", {})

    def others(self, cell: Cell, *, surrounded: bool = True) -> list[Run]:
        """Every run of a cell that is not a timing run. surrounded: also those inside a tool or behind a library"""
        return [
            run for purpose, runs in self.special.items() if surrounded or purpose not in SURROUNDED
            for run in runs.get(cell.key, ())
        ]  # fmt: skip

    def sort(self, timing: Iterable[Run]) -> None:
        """Sort timing runs into those that count and those of superseded attempts.

        Of each block the last whole attempt counts, so that what is compared was run together.  An attempt is whole if
        it has every run that went well before; one that was interrupted is not.
        """
        blocks: dict[tuple[int, int], list[Run]] = {}
        strata = self._strata
        for run in timing:
            if (stratum := strata.get(run.cell)) is not None:
                blocks.setdefault((stratum, run.block), []).append(run)
        for together in blocks.values():
            counts = _attempt_that_counts(together)
            for run in together:
                if run.attempt == counts:
                    self.timed.setdefault((run.cell, run.copy), []).append(run)
                else:
                    self.superseded.append(run)

    def before(self, block: int) -> Campaign:
        """The campaign as it was when its first `block` blocks had been measured."""
        timed = {place: [run for run in runs if run.block < block] for place, runs in self.timed.items()}
        return Campaign(self.folder, self.manifest, self.study, self.cells, self.descriptions, timed, self.special)

    def block_of(self, run: Run) -> tuple[int, int]:
        """Number of the stratum, and of the block in it, that a run belongs to."""
        return self._strata[run.cell], run.block

    @functools.cached_property
    def contaminated(self) -> frozenset[tuple[int, int]]:
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
    def _strata(self) -> dict[str, int]:
        numbers: dict[tuple[object, ...], int] = {}
        return {cell.key: numbers.setdefault(self.stratum(cell), len(numbers)) for cell in self.cells}

    def machine(self, cell: Cell) -> Mapping[str, Any]:
        """The machine that a cell was measured on, as the manifest has it."""
        facts: Mapping[str, Any] = self.manifest["machines"][cell.machine]
        return facts

    def cores(self, cell: Cell) -> int:
        """Hardware threads of a cell's machine, without those that its synchronisation keeps for itself."""
        kept = (
            int(e["description"]["sync"].get("cpus_reserved", 0))
            for e in self.manifest.get("executables", ())
            if (e["name"], e["machine"]) == (cell.sync, cell.machine)
        )
        return int(self.machine(cell).get("cores", 0)) - next(kept, 0)

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
        common, cells = self._counterparts[place]
        return cells.get(_common(cell, common))

    def stratum(self, cell: Cell) -> tuple[object, ...]:
        """What names the blocks that a cell's runs belong to: cells with equal strata share their blocks."""
        own = {parameter.name for parameter in self.workload(cell).parameters}
        return (cell.group, cell.machine, *((name, value) for name, value in self.varied(cell).items() if name in own))

    @functools.cached_property
    def _groups(self) -> dict[str, Group]:
        return {group.name: group for group in self.study.groups}

    @functools.cached_property
    def _by_group(self) -> dict[str, list[Cell]]:
        by_group: dict[str, list[Cell]] = {}
        for cell in self.cells:
            by_group.setdefault(cell.group, []).append(cell)
        return by_group

    @functools.cached_property
    def _by_content(self) -> dict[tuple[object, ...], Cell]:
        return {_content(cell.as_json()): cell for cell in self.cells}

    def workload(self, cell: Cell) -> Workload:
        """The description of a cell's workload."""
        described = self.descriptions[cell.sync].workload(cell.workload)
        assert described is not None, f"the manifest describes no workload {cell.workload}"
        return described

    def units(self, cell: Cell) -> dict[str, str]:
        """How the parameters of a cell are worded: units by name, labels by "name=choice" or "name=*"."""
        known = self.descriptions[cell.sync].parameters(cell.workload).values()
        return {key: text for parameter in known for key, text in parameter.wording.items()}

    def primary(self, cell: Cell) -> Metric:
        """The metric by which a cell is compared: the first that its workload describes."""
        return self.workload(cell).metrics[0]

    def runs(self, cell: Cell, copy: int = 0) -> list[Run]:
        """Timed runs of a cell in the order of their blocks."""
        return self.timed.get((cell.key, copy), [])

    def values(self, cell: Cell, copy: int, metric: Metric) -> dict[int, float]:
        """Values of the good runs by block."""
        blocks, values = self.series(cell, copy, metric)
        return {
            block: reading.whole(metric, value) for block, value in zip(blocks.tolist(), values.tolist(), strict=True)
        }

    def series(self, cell: Cell, copy: int, metric: Metric) -> tuple[NDArray[np.int64], Array]:
        """Blocks, in their order, and the value of the good run in each: what values() has. Do not write into them"""
        place = (cell.key, copy, metric.name)
        kept = self._series.get(place)
        if kept is None:
            kept = self._made(cell, copy, metric)
            if len(kept[0]) <= _KEPT_RUNS_MAX or metric.name == self.primary(cell).name:
                self._series[place] = kept
        return kept

    def together(self, cells: Iterable[Cell], metric: Metric) -> tuple[list[Cell], NDArray[np.int64], Array]:
        """Of some cells those that ran well, the blocks that all of these have, and their values in them.

        Only positive values count; returns: values as (blocks, cells)
        """
        known: dict[Cell, tuple[NDArray[np.int64], Array]] = {}
        for cell in cells:
            if state_of(self.runs(cell)) == "ok":
                blocks, values = self.series(cell, 0, metric)
                positive = values > 0
                if positive.any():
                    known[cell] = blocks[positive], values[positive]
        if not known:
            return [], np.empty(0, dtype=np.int64), np.empty((0, 0))
        shared = functools.reduce(np.intersect1d, (blocks for blocks, _ in known.values()))
        columns = [values[np.searchsorted(blocks, shared)] for blocks, values in known.values()]
        return list(known), shared, np.column_stack(columns)

    def columns(self, cell: Cell, copy: int, names: Iterable[str]) -> list[Array] | None:
        """The totals of these counts in each good run; None where one of them has no such count, or none ran well."""
        good = self._good(cell, copy)
        wanted = list(names)
        if good.columns is not None:
            return [good.columns[name] for name in wanted] if all(name in good.columns for name in wanted) else None
        sums = [run.sums for run in good.runs]
        if not sums or any(name not in totals for totals in sums for name in wanted):
            return None
        return [np.array([totals[name] for totals in sums]) for name in wanted]

    def waited(self, cell: Cell, copy: int) -> float | None:
        """Median share of the timed part in which its threads were not on a CPU; None where no good run tells.

        A run whose rate is that of the slices in which nobody waited lost none of it.
        """
        place = (cell.key, copy)
        if place not in self._waited:
            self._waited[place] = self._share_waited(cell, copy)
        return self._waited[place]

    def _share_waited(self, cell: Cell, copy: int) -> float | None:
        columns = self._good(cell, copy).columns
        if columns is not None and "elapsed_s" in columns and "thread_cpu_s" in columns:
            elapsed_s, busy_s = columns["elapsed_s"], columns["thread_cpu_s"]
            by_slices = np.array([run.rated_by_slices for run in self._good(cell, copy).runs])
            with np.errstate(divide="ignore", invalid="ignore"):
                waited = np.where(by_slices, 0.0, 1 - busy_s / (elapsed_s * cell.threads))
            known = waited[by_slices | (elapsed_s != 0)]
            return float(np.median(known)) if known.size else None
        shares = []
        for run in self._good(cell, copy).runs:
            sums = run.sums
            if run.rated_by_slices:
                shares.append(0.0)
            elif sums.get("elapsed_s") and "thread_cpu_s" in sums:
                shares.append(1 - sums["thread_cpu_s"] / (sums["elapsed_s"] * cell.threads))
        return statistics.median(shares) if shares else None

    def _good(self, cell: Cell, copy: int) -> _Good:
        place = (cell.key, copy)
        if self._last is None or self._last.place != place:
            good = [run for run in self.runs(cell, copy) if run.state == "ok"]
            blocks = np.fromiter((run.block for run in good), np.int64, len(good))
            # Blocks lie in their order, so one that is there twice stands beside itself.
            apart = bool((np.diff(blocks) > 0).all())
            self._last = _Good(place, good, blocks, reading.columns(good) if apart else None)
        return self._last

    def _made(self, cell: Cell, copy: int, metric: Metric) -> tuple[NDArray[np.int64], Array]:
        good = self._good(cell, copy)
        if good.columns is None:
            by_block = {run.block: value for run in good.runs if (value := run.value(metric)) is not None}
            return np.array(list(by_block), dtype=np.int64), np.array(list(by_block.values()), dtype=np.float64)
        column = reading.column(metric, good.columns)
        if column is None:
            return good.blocks[:0], np.empty(0)
        known = column == column  # what is not a number is not known
        return good.blocks[known], column[known]

    def varied(self, cell: Cell) -> dict[str, int | str]:
        """The parameters of a cell of which its group has several levels."""
        levels = self.group(cell).levels()
        return {name: value for name, value in cell.parameters if len(set(levels.get(name, ()))) > 1}

    def baseline(self, cell: Cell) -> str:
        """The allocator that a cell is compared with: the study's baseline, or the group's first where it lacks it."""
        return self.study.allocators_of(self.group(cell))[0]


def _attempt_that_counts(runs: Iterable[Run]) -> int:
    """Of one block's runs the attempt that counts: see Campaign.sort."""
    attempts: dict[int, list[Run]] = {}
    for run in runs:
        attempts.setdefault(run.attempt, []).append(run)
    counts = min(attempts)
    if len(attempts) == 1:
        return counts
    well: set[tuple[str, int]] = set()
    for attempt, own in sorted(attempts.items()):
        if well <= {(run.cell, run.copy) for run in own}:
            counts = attempt
        well |= {(run.cell, run.copy) for run in own if run.state == "ok"}
    return counts


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
    reader = Reader(folder)
    timing = []
    for run in reader.read(journal.files(folder)):
        if run.purpose == "timing":
            timing.append(run)
        else:
            campaign.special.setdefault(run.purpose, {}).setdefault(run.cell, []).append(run)
    by_key = {cell.key: cell for cell in campaign.cells}
    agreement.judge(timing, by_key, {cell.group: campaign.baseline(cell) for cell in campaign.cells})
    campaign.sort(timing)
    if progress is not None and reader.damaged:
        progress(
            f"{reader.damaged} lines of the journal cannot be read; their runs are missing; --resume runs them again"
        )
    return campaign


def process_metric(name: str) -> Metric:
    """One of PROCESS_METRICS by its name."""
    return next(metric for metric in PROCESS_METRICS if metric.name == name)


def state_of(runs: list[Run]) -> str:
    """ok | failed | unproven | skipped, from the runs of a cell."""
    if not runs:
        return "skipped"
    if any(run.state == "unproven" for run in runs):
        return "unproven"
    bad = sum(run.state != "ok" for run in runs)
    return "failed" if bad > FAILED_SHARE_MAX * len(runs) else "ok"
