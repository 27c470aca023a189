"""results.csv: one row per cell and metric, for any tool that reads tables."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator

from loam_lab.model.result import Cell, Part
from loam_lab.presenting.report.view import Study

# How spreadsheets know a formula, which may run programs or send cells away. A result may come from a stranger.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_HEAD = ("study", "created_utc", "workload", "sync", "allocator", "machine", "threads", "copy")
_TAIL = ("metric", "estimate", "low", "high", "unit", "better", "runs", "failed", "state", "verdict", "rough")


def to_csv(study: Study) -> str:
    """The table as text, RFC 4180 with "\\n" line ends. A text that begins as a formula has a quote in front.

    Parameters have a column each, named parameter.KEY.  Besides the recorded metrics a cell has the row
    METRIC_to_baseline (the paired ratio), its adjusted p (METRIC_to_baseline.q), one row per figure of its memory
    run (memory.NAME), of its counters (SOURCE.NAME) and of its blame run (blame.NAME).  A cell
    without any metric still has one row, with an empty metric.  Figures are not rounded.
    """
    keys = list(dict.fromkeys(key for cell in study.cells for key in cell.parameters))
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow([*_HEAD, *(f"parameter.{key}" for key in keys), *_TAIL])  # no head begins as a formula does
    for cell in study.cells:
        head = [
            study.raw.study, study.raw.created_utc, cell.factors.workload, cell.factors.sync, cell.allocator,
            cell.factors.machine, cell.factors.threads, cell.copy, *(cell.parameters.get(key, "") for key in keys),
        ]  # fmt: skip
        for row in _rows(cell):
            line = [*head, *row, cell.runs, cell.failed, cell.state, cell.verdict, int(cell.rough)]
            writer.writerow([_no_formula(value) for value in line])
    return target.getvalue()


def _rows(cell: Cell) -> Iterator[tuple[object, ...]]:
    empty = True
    for name, metric in cell.metrics.items():
        empty = False
        yield name, _cell(metric.estimate), _cell(metric.low), _cell(metric.high), metric.unit, metric.better
    if ratio := cell.ratio_to_baseline:
        empty = False
        name = f"{ratio.metric}_to_baseline"
        better = cell.metrics[ratio.metric].better if ratio.metric in cell.metrics else "neither"
        yield name, _cell(ratio.estimate), _cell(ratio.low), _cell(ratio.high), "1", better
        if ratio.q is not None:
            yield f"{name}.q", _cell(ratio.q), "", "", "1", "neither"
    for name, value in _beside(cell):
        empty = False
        unit = "B" if name.endswith("_bytes") else "B s" if name.endswith("_byte_s") else "1"
        yield name, _cell(value), "", "", unit, "lower"
    for name, number in (cell.blame or {}).items():
        empty = False
        yield f"blame.{name}", _cell(number), "", "", "1", "lower" if name.startswith("aborts") else "neither"
    if empty:
        yield "", "", "", "", "", ""


def _beside(cell: Cell) -> Iterator[tuple[str, float]]:
    """Figures of the memory run ("memory.peak_pss_bytes") and of the counters ("callgrind.instructions")."""
    parts: list[tuple[str, Part]] = [("memory", cell.memory)] if cell.memory else []
    for source, part in [*parts, *((one.source, one) for one in cell.counters)]:
        for key, value in part.numbers().items():
            yield f"{source}.{key}", value


def _no_formula(value: object) -> object:
    """A text that a spreadsheet would compute, with a quote in front; a number stays what it is."""
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)
