"""Tables for readers, shared by the HTML page and the Markdown file: captions, heads, rows of finished text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loam_lab.report import charts, findings, rounding, words
from loam_lab.report.rounding import MISSING
from loam_lab.report.view import Case, Cell, Group, Study, mapping_title


@dataclass(frozen=True)
class Column:
    """A head; whether its entries are figures (aligned right) or captured text that may break anywhere."""

    head: str
    numeric: bool = False
    code: bool = False


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows. keys: per row the allocator whose colour it carries, or ""."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...] = ()

    def key(self, row: int) -> str:
        """The allocator of a row, or ""."""
        return self.keys[row] if row < len(self.keys) else ""


@dataclass(frozen=True)
class Warned:
    """A warning in its three parts, and where it holds ("" for the whole study)."""

    fact: str
    consequence: str
    step: str
    where: str


def answers(study: Study) -> Table:
    """Best and worst allocator per case."""
    rows = []
    for answer in findings.answers(study):
        span = answer.ratio
        ties = words.listing(answer.ties) or MISSING
        rows.append((
            answer.label, answer.best, answer.worst, rounding.ratio(span.estimate, span.low, span.high),
            rounding.interval(span.estimate, span.low, span.high), "all level" if answer.level else ties,
        ))  # fmt: skip
    columns = (
        Column("Case"), Column("Best"), Column("Worst"), Column("Best / worst", numeric=True),
        Column("95 % interval", numeric=True), Column("Tied with the best"),
    )  # fmt: skip
    return Table("Best and worst allocator, case by case", columns, tuple(rows))


def group(study: Study, case: Case | None, members: Group) -> Table:
    """All metrics of one group's cells, one row per allocator."""
    metrics = list(dict.fromkeys([members.metric, *(name for cell in members.cells for name in cell.metrics)]))
    metrics = [name for name in metrics if any(name in cell.metrics for cell in members.cells)]
    decimals = charts.column_decimals([cell.ratio for cell in members.cells if cell.ratio])
    columns = [Column("Allocator"), Column(f"× {study.baseline}", numeric=True), Column("95 % interval", numeric=True)]
    columns.append(Column("Verdict"))
    scales = {}
    for name in metrics:
        known = [metric for cell in members.cells if (metric := cell.metrics.get(name))]
        scale = scales[name] = rounding.scale_for([metric.estimate for metric in known], known[0].unit)
        unit = rounding.rate_unit(scale, words.noun(name))
        columns.append(Column(words.metric(name) + (f", {unit}" if unit else ""), numeric=True))
        columns.append(Column("95 % interval", numeric=True))
    columns.append(Column("runs", numeric=True))
    rows = []
    for cell in members.cells:
        row = [cell.name, *_ratio(cell, decimals), _verdict(cell)]
        for name in metrics:
            metric = cell.metrics.get(name)
            row.append(scales[name].show(metric.estimate) if metric else MISSING)
            ends = metric is not None and metric.low is not None and metric.high is not None
            row.append(f"[{scales[name].show(metric.low)}, {scales[name].show(metric.high)}]" if metric and ends else MISSING)
        row.append(f"{cell.runs}" + (f" ({cell.failed} failed)" if cell.failed else ""))
        rows.append(tuple(row))
    keys = tuple(cell.allocator for cell in members.cells)
    return Table(findings.group_label(study, members), tuple(columns), tuple(rows), keys)


def _ratio(cell: Cell, decimals: int) -> tuple[str, str]:
    if cell.verdict == "baseline":
        return rounding.fixed(1.0, decimals), MISSING
    if cell.ratio is None:
        return MISSING, MISSING
    span = cell.ratio
    return rounding.ratio(span.estimate, decimals=decimals), rounding.interval(span.estimate, span.low, span.high, decimals)


def _verdict(cell: Cell) -> str:
    if cell.copy and cell.verdict in ("better", "worse", "equivalent", "inconclusive"):
        return "second copy: " + cell.verdict
    mark, word = words.VERDICTS.get(cell.verdict, ("", cell.verdict))
    return f"{mark} {word}".strip()


def values(members: Group) -> Table | None:
    """The primary metric of each block in order, one row per allocator; None without single values."""
    known = [(cell, metric) for cell in members.cells if (metric := members.primary(cell)) and metric.values]
    if not known:
        return None
    blocks = max(len(metric.values) for _, metric in known)
    scale = rounding.scale_for([value for _, metric in known for value in metric.values], known[0][1].unit)
    columns = (Column("Allocator"), *(Column(f"{index + 1}", numeric=True) for index in range(blocks)))
    rows = tuple(
        (cell.name, *(scale.show(value) for value in metric.values), *[MISSING] * (blocks - len(metric.values)))
        for cell, metric in known
    )
    unit = rounding.rate_unit(scale, words.noun(members.metric))
    return Table(f"{words.metric(members.metric)}, {unit}, block by block", columns, rows, tuple(c.allocator for c, _ in known))


def aborts(study: Study, case: Case, members: Group) -> Table | None:
    """Counts by cause from the blame runs, and the rates of blame and timing runs; None without blame runs."""
    cells = [cell for cell in members.cells if cell.blame]
    if not cells:
        return None
    columns = (
        Column("Allocator"), Column("attempts", numeric=True), Column("aborts", numeric=True),
        *(Column(label, numeric=True) for _, label, _ in words.CAUSES),
        Column("aborted, blame run", numeric=True), Column("aborted, timing runs", numeric=True),
    )  # fmt: skip
    rows = []
    for cell in cells:
        blame: Mapping[str, float] = cell.blame or {}
        attempts, total = blame.get("attempts", 0.0), blame.get("aborts", 0.0)
        timed = cell.metrics.get("aborts_per_attempt")
        rows.append((
            cell.name, rounding.count(attempts), rounding.count(total),
            *(rounding.count(number) for number in findings.cause_counts(blame).values()),
            rounding.percent(total / attempts) if attempts else MISSING,
            rounding.percent(timed.estimate) if timed else MISSING,
        ))  # fmt: skip
    where = mapping_title(members)
    title = f"{case.title}, {where}" if where else case.title
    return Table(f"Aborts by cause: {title}", columns, tuple(rows), tuple(cell.allocator for cell in cells))


def contrasts(study: Study, case: Case) -> Table | None:
    """Ratios between two ways of doing the same, one row per allocator; None where the case has none."""
    found = findings.contrasts(study, case)
    if not found:
        return None
    decimals = charts.column_decimals([one.ratio for one in found])
    rows = tuple(
        (one.allocator, one.what, words.metric(one.metric), rounding.ratio(one.ratio.estimate, decimals=decimals),
         rounding.interval(one.ratio.estimate, one.ratio.low, one.ratio.high, decimals))
        for one in found
    )  # fmt: skip
    columns = (
        Column("Allocator"), Column("Comparison"), Column("Ratio of"), Column("Ratio", numeric=True),
        Column("95 % interval", numeric=True),
    )  # fmt: skip
    return Table(case.title, columns, rows, tuple(one.allocator for one in found))


def sentinel(fit: findings.Fitness) -> Table:
    """The A/A sentinel group by group."""
    columns = (Column("Group"), Column("second copy / first", numeric=True), Column("95 % interval", numeric=True))
    rows = tuple(
        (label, rounding.ratio(span.estimate, decimals=3), rounding.interval(span.estimate, span.low, span.high, 3))
        for label, span in fit.copies
    )
    return Table("The second copy of the baseline against the first", columns, rows)


def allocators(study: Study) -> Table:
    """Which binaries were measured, and what proves it."""
    rows, keys = [], []
    for item in study.raw.get("allocators") or []:
        settings = ", ".join(f"{key}={value}" for key, value in (item.get("settings") or {}).items())
        reasons = "; ".join(map(str, item.get("reasons") or []))
        rows.append((
            str(item.get("name")), str(item.get("version") or MISSING), settings or MISSING,
            str(item.get("path") or item.get("soname") or MISSING), _short(item.get("build_id")), _short(item.get("sha256")),
            str(item.get("proof") or MISSING) + (f": {reasons}" if reasons else ""),
        ))  # fmt: skip
        keys.append(str(item.get("name")))
    columns = (
        Column("Allocator"), Column("Version"), Column("Settings"), Column("File", code=True), Column("Build-id", code=True),
        Column("SHA-256", code=True), Column("In use"),
    )  # fmt: skip
    return Table("Allocators as found in the measured processes", columns, tuple(rows), tuple(keys))


def _short(digest: Any) -> str:
    text = str(digest or "")
    return f"{text[:12]}…" if len(text) > 12 else text or MISSING


_MACHINE = {
    "cpu": "Processor", "cores": "Cores", "memory_bytes": "Memory", "kernel": "Kernel", "microcode": "Microcode",
    "thp": "Transparent huge pages", "aslr": "Address randomisation", "rtm": "Hardware transactions", "hypervisor": "Hypervisor",
    "fingerprint": "Fingerprint",
}  # fmt: skip


def machine(study: Study) -> list[tuple[str, str]]:
    """The machine and the build as pairs of term and value; unknown keys of the Result are kept."""
    found = []
    given = study.raw.get("machine") or {}
    for key in [*(key for key in _MACHINE if key in given), *(key for key in given if key not in _MACHINE)]:
        value = given[key]
        text = rounding.size(value) if key == "memory_bytes" else str(MISSING if value in (None, "") else value)
        found.append((_MACHINE.get(key, key.replace("_", " ")), text))
    for key, value in (study.raw.get("build") or {}).items():
        found.append((key.replace("_", " ").capitalize(), str(value or MISSING)))
    return found


def failures(study: Study) -> Table | None:
    """What crashed, stalled or could not be proven; None where all went well."""
    rows, keys = [], []
    for item in study.raw.get("failures") or []:
        cell = item.get("cell") or {}
        factors = cell.get("factors") or cell
        name = str(factors.get("allocator", MISSING))
        rows.append((
            name, cell_label(factors, cell.get("parameters") or {}), str(item.get("state", MISSING)),
            str(item.get("count", 1)), str(item.get("detail") or MISSING),
        ))  # fmt: skip
        keys.append(name)
    if not rows:
        return None
    columns = (Column("Allocator"), Column("Cell"), Column("What happened"), Column("runs", numeric=True), Column("Detail", code=True))
    return Table("Failed, stalled and unproven runs", columns, tuple(rows), tuple(keys))


def cell_label(factors: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """A cell without its allocator, in words."""
    parts = [str(factors.get("workload", ""))]
    parts += [words.parameter(key, value) for key, value in parameters.items()]
    if factors.get("sync") not in (None, "", "none"):
        parts.append(str(factors["sync"]))
    if factors.get("threads"):
        parts.append(words.threads(int(factors["threads"])))
    return ", ".join(part for part in parts if part)


def warnings(study: Study) -> list[Warned]:
    """Warnings of the study and of its cells, each text once with the cells that it concerns."""
    found: dict[str, list[str]] = {str(text): [] for text in study.raw.get("warnings") or []}
    labels = {id(cell): findings.group_label(study, group) for group in study.groups for cell in group.cells}
    for cell in study.cells:
        for text in cell.warnings:
            found.setdefault(text, []).append(f"{labels[id(cell)]}, {cell.name}")
    made = []
    for text, places in found.items():
        parts = [part.strip() for part in text.split(";")]
        if len(parts) > 3:
            parts = [parts[0], "; ".join(parts[1:-1]), parts[-1]]
        fact, consequence, step = (parts + ["", ""])[:3]
        where = words.listing(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        made.append(Warned(fact, consequence, step, where))
    return made
