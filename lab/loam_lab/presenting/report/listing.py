"""Tables for readers, shared by the HTML page and the Markdown file: captions, heads, rows of finished text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import asdict

from loam_lab.model import words
from loam_lab.model.result import Cell, Facts, FailedCell, Metric
from loam_lab.presenting.report import charts, findings, rounding
from loam_lab.presenting.report.rounding import MISSING
from loam_lab.presenting.report.view import VALUES_MAX, Case, Group, Study, number


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


def answers(study: Study) -> Table:
    """Best and worst allocator per case."""
    given = findings.answers(study)
    decimals = charts.column_decimals([answer.ratio for answer in given])
    rows = []
    for answer in given:
        span = answer.ratio
        rows.append((
            answer.label, answer.best, answer.worst, rounding.ratio(span.estimate, decimals=decimals),
            rounding.interval(span.estimate, span.low, span.high, decimals) + words.roughly(answer.rough), tied(answer),
        ))  # fmt: skip
    columns = (
        Column("Case"), Column("Best"), Column("Worst"), Column("Times better", numeric=True),
        Column("95 % interval", numeric=True), Column("Tied with the best"),
    )  # fmt: skip
    return Table("Best and worst allocator, case by case", columns, tuple(rows))


def tied(answer: findings.Answer) -> str:
    """Which allocators share the first place of an answer, in words."""
    if answer.ratio.low is None and answer.level:
        return "too few blocks to tell"
    if answer.level and answer.verdict != "equivalent" and not findings.includes_one(answer.ratio):
        return "chance among so many cases is not excluded: more blocks would tell"
    if answer.level:
        return "no difference shown"
    return words.listing(answer.ties) or "none"


def geomeans(study: Study) -> Table | None:
    """The Result's means over all cases; None where it has none."""
    given = study.raw.geomeans
    rows = []
    for one in given:
        rows.append((one.what, *rounding.spread(one), words.marked(one.verdict or MISSING, one.rough)))
    columns = (
        Column("Mean over the cases"), Column("Ratio", numeric=True), Column("95 % interval", numeric=True),
        Column("Verdict"),
    )  # fmt: skip
    keys = tuple(one.allocator for one in given)
    return Table("Over all cases", columns, tuple(rows), keys) if rows else None


def best(study: Study) -> Table | None:
    """How sure it is which allocator is the best of each case: the three most probable; None without probabilities."""
    by_case: dict[str, list[tuple[float, str]]] = {}
    for one in study.raw.best:
        probability = one.probability
        if probability is not None:
            label = str(one.label or one.group)
            by_case.setdefault(label, []).append((probability, one.allocator))
    rows = []
    for label, ranked in by_case.items():
        most_probable = [
            f"{name} {rounding.percent(share, 2)}" for share, name in sorted(ranked, reverse=True)[:3] if share >= 0.005
        ]
        rows.append((label, *most_probable, *[MISSING] * (3 - len(most_probable))))
    columns = (Column("Case"), Column("Most probable"), Column("then"), Column("then"))
    return Table("Probability of being the best", columns, tuple(rows)) if rows else None


# Metrics that stand beside the primary one; a run has two dozen more, which get a table of their own.
_BESIDE = ("aborts_per_attempt", "wall_s", "rss_peak_bytes")


def group(study: Study, members: Group) -> Table:
    """Ratio, verdict and main metrics of one group's cells with intervals, one row per allocator."""
    present = [name for name in (members.metric, *_BESIDE) if any(name in cell.metrics for cell in members.cells)]
    metrics = list(dict.fromkeys(present))
    decimals = charts.column_decimals([cell.ratio_to_baseline for cell in members.cells if cell.ratio_to_baseline])
    columns = [Column("Allocator"), Column(f"× {study.baseline}", numeric=True), Column("95 % interval", numeric=True)]
    columns.append(Column("Verdict"))
    scales = {}
    for name in metrics:
        scales[name], head = _scale(members, name)
        columns += [Column(head, numeric=True), Column("95 % interval", numeric=True)]
    columns.append(Column("runs", numeric=True))
    rows = []
    for cell in members.cells:
        row = [cell.name, *_ratio(cell, decimals), _verdict(cell)]
        for name in metrics:
            metric, scale = cell.metrics.get(name), scales[name]
            row += [scale.show(metric.estimate), _span(metric, scale)] if metric else [MISSING, MISSING]
        row.append(f"{cell.runs}" + (f" ({cell.failed} failed)" if cell.failed else ""))
        rows.append(tuple(row))
    keys = tuple(cell.allocator for cell in members.cells)
    return Table(findings.group_label(study, members), tuple(columns), tuple(rows), keys)


def others(members: Group) -> Table | None:
    """Every other metric of one group, one row per metric and one column per allocator; None without any."""
    names = list(dict.fromkeys(name for cell in members.cells for name in cell.metrics))
    names = [name for name in names if name != members.metric and name not in _BESIDE]
    if not names:
        return None
    rows = []
    for name in names:
        scale, head = _scale(members, name)
        rows.append(
            (head, *(scale.show(m.estimate) if (m := cell.metrics.get(name)) else MISSING for cell in members.cells))
        )
    columns = (Column("Metric"), *(Column(cell.name, numeric=True) for cell in members.cells))
    return Table("Other metrics, estimates", columns, tuple(rows))


def _scale(members: Group, name: str) -> tuple[rounding.Scale, str]:
    """The display unit of one metric in one group, and the head of its column."""
    known = [metric for cell in members.cells if (metric := cell.metrics.get(name))]
    scale = rounding.scale_for([metric.estimate for metric in known], known[0].unit)
    unit = rounding.rate_unit(scale, words.noun(name))
    return scale, words.metric(name) + (f", {unit}" if unit else "")


def _span(metric: Metric, scale: rounding.Scale) -> str:
    if metric.low is None or metric.high is None:
        return MISSING
    return f"[{scale.show(metric.low)}, {scale.show(metric.high)}]"


def _ratio(cell: Cell, decimals: int) -> tuple[str, str]:
    if cell.verdict == "baseline":
        return rounding.fixed(1.0, decimals), MISSING
    if cell.ratio_to_baseline is None:
        return MISSING, MISSING
    return rounding.spread(cell.ratio_to_baseline, decimals)


def _verdict(cell: Cell) -> str:
    if cell.copy and cell.verdict in ("better", "worse", "equivalent", "inconclusive"):
        return "second copy: " + words.judged(cell.verdict, cell.rough)
    return words.marked(cell.verdict, cell.rough)


def values(members: Group) -> Table | None:
    """The primary metric of each block in order, one row per allocator; None without single values."""
    known = [(cell, metric) for cell in members.cells if (metric := members.primary(cell)) and metric.values]
    blocks = max((len(metric.values) for _, metric in known), default=0)
    if not 0 < blocks < VALUES_MAX:  # of very many not all are here
        return None
    scale = rounding.scale_for([value for _, metric in known for value in metric.values], known[0][1].unit)
    columns = (Column("Allocator"), *(Column(f"{index + 1}", numeric=True) for index in range(blocks)))
    rows = tuple(
        (cell.name, *(scale.show(value) for value in metric.values), *[MISSING] * (blocks - len(metric.values)))
        for cell, metric in known
    )
    unit = rounding.rate_unit(scale, words.noun(members.metric))
    return Table(
        f"{words.metric(members.metric)}, {unit}, block by block", columns, rows, tuple(c.allocator for c, _ in known)
    )


def aborts(study: Study, case: Case, members: Group) -> Table | None:
    """Counts by cause from the blame runs, and the rates of blame and timing runs; None without blame runs."""
    cells = [cell for cell in members.cells if cell.blame]
    if not cells:
        return None
    columns = (
        Column("Allocator"), Column("attempts", numeric=True), Column("aborts", numeric=True),
        *(Column(cause.words, numeric=True) for cause in study.causes),
        Column("aborted, blame run", numeric=True), Column("aborted, timing runs", numeric=True),
    )  # fmt: skip
    rows = []
    for cell in cells:
        blame: Mapping[str, float] = cell.blame or {}
        attempts, total = blame.get("attempts", 0.0), blame.get("aborts", 0.0)
        timed = cell.metrics.get("aborts_per_attempt")
        rows.append((
            cell.name, rounding.count(attempts), rounding.count(total),
            *(rounding.count(blame.get(cause.counter, 0.0)) for cause in study.causes),
            rounding.percent(total / attempts) if attempts else MISSING,
            rounding.percent(timed.estimate) if timed else MISSING,
        ))  # fmt: skip
    return Table(
        f"Aborts by cause: {case.full(members)}", columns, tuple(rows), tuple(cell.allocator for cell in cells)
    )


def contrasts(study: Study, case: Case) -> Table | None:
    """Ratios between two ways of doing the same, one row per allocator; None where the case has none."""
    compared = findings.contrasts(study, case)
    if not compared:
        return None
    decimals = charts.column_decimals([one.ratio for one in compared])
    rows = tuple(
        (one.allocator, one.title, words.metric(one.metric), *rounding.spread(one.ratio, decimals), one.verdict)
        for one in compared
    )  # fmt: skip
    columns = (
        Column("Allocator"), Column("Comparison"), Column("Ratio of"), Column("Ratio", numeric=True),
        Column("95 % interval", numeric=True), Column("Verdict"),
    )  # fmt: skip
    return Table(case.title, columns, rows, tuple(one.allocator for one in compared))


def sentinel(fit: findings.Fitness) -> Table:
    """The A/A sentinel group by group."""
    columns = (Column("Group"), Column("second copy / first", numeric=True), Column("95 % interval", numeric=True))
    rows = tuple((label, *rounding.spread(span, 3)) for label, span in fit.copies)
    return Table("The second copy of the baseline against the first", columns, rows)


def allocators(study: Study) -> Table:
    """Which binaries were measured, and what proves it."""
    rows, keys = [], []
    for item in study.raw.allocators:
        settings = ", ".join(f"{key}={value}" for key, value in item.settings.items())
        reasons = "; ".join(item.reasons)
        named = f"{item.name}: {item.label}" if item.label else item.name
        rows.append((
            named, item.version or MISSING, settings or MISSING,
            item.path or item.soname or MISSING, _short(item.build_id), _short(item.sha256),
            (item.proof or MISSING) + (f": {reasons}" if reasons else ""),
        ))  # fmt: skip
        keys.append(item.name)
    columns = (
        Column("Allocator"), Column("Version"), Column("Settings"), Column("File", code=True), Column("Build-id", code=True),
        Column("SHA-256", code=True), Column("In use"),
    )  # fmt: skip
    return Table("Allocators as found in the measured processes", columns, tuple(rows), tuple(keys))


def _short(digest: str | None) -> str:
    text = digest or ""
    return f"{text[:12]}…" if len(text) > 12 else text or MISSING


_MACHINE = {
    "cpu": "Processor", "cores": "Cores", "memory_bytes": "Memory", "kernel": "Kernel", "microcode": "Microcode",
    "thp": "Transparent huge pages", "aslr": "Address randomisation", "rtm": "Hardware transactions", "hypervisor": "Hypervisor",
    "fingerprint": "Fingerprint",
}  # fmt: skip
_ASLR = {"0": "off", "1": "partial", "2": "full"}


def machine(study: Study) -> list[tuple[str, str]]:
    """The machine and the build as pairs of term and value; unknown keys of the Result are kept."""
    machines = study.raw.machines
    terms = []
    for name, facts in machines.items() if len(machines) > 1 else [("", study.raw.machine)]:
        terms += [("Machine", name)] if name else []
        terms += _facts(facts)
    for key, value in asdict(study.raw.build).items():
        terms.append((key.replace("_", " ").capitalize(), str(value or MISSING)))
    return terms


def _facts(given: Facts) -> list[tuple[str, str]]:
    terms = []
    for key in [*(key for key in _MACHINE if key in given), *(key for key in given if key not in _MACHINE)]:
        value = given[key]
        text = str(MISSING if value in (None, "") else value)
        if key == "memory_bytes":
            text = rounding.size(number(value))
        elif key == "aslr":
            text = _ASLR.get(text, text)
        terms.append((_MACHINE.get(key, key.replace("_", " ").capitalize()), text))
    return terms


def failures(study: Study) -> Table | None:
    """What crashed, stalled or could not be proven; None where all went well."""
    rows, keys = [], []
    for item in study.raw.failures:
        name, label = item.cell.allocator, cell_label(item.cell, study.raw.units)
        rows.append((name, label, item.state, str(item.count), item.detail or MISSING))
        keys.append(name)
    if not rows:
        return None
    columns = (
        Column("Allocator"),
        Column("Cell"),
        Column("What happened"),
        Column("runs", numeric=True),
        Column("Detail", code=True),
    )
    return Table("Failed, stalled and unproven runs", columns, tuple(rows), tuple(keys))


def cell_label(cell: FailedCell, units: Mapping[str, Mapping[str, str]]) -> str:
    """A cell without its allocator, in words."""
    parts = [cell.workload, words.parameters(cell.parameters, units.get(cell.workload, {}))]
    parts += [cell.sync] if cell.sync != "none" else []
    parts += [words.threads(cell.threads)] if cell.threads else []
    return ", ".join(part for part in parts if part)
