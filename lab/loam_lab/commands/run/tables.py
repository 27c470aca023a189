"""Console tables of a Result: one per family of cells that differ in the allocator only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from loam_lab.base import console
from loam_lab.model import words

if TYPE_CHECKING:
    from rich.text import Text

    from loam_lab.model.result import Cell, Contrast, Ends, Metric, Result

VERDICT_STYLES = {
    "better": "good",
    "worse": "bad",
    "equivalent": "",
    "baseline": "aside",
    "failed": "bad",
    "unproven": "bad",
}
# Columns from which on the absolute interval and the blame run's own abort rate have room.
WIDE = 110
# A baseline's name that is longer would widen its column of ratios beyond the screen.
NAME_MAX = 16


def show(result: Result) -> None:
    """Print headlines, a table per family, contrasts and warnings of a Result on standard output."""
    out = console.out()
    if result.remember:
        out.print(_text(result.remember, "head"), soft_wrap=True)
        out.print()
    for headline in result.headlines:
        out.print(_text(headline.text, "head" if headline.verdict == "better" else ""), soft_wrap=True)
    families: dict[str, list[Cell]] = {}
    counted = {group.name for group in result.groups if group.role == "counted"}
    for cell in result.cells:
        if cell.group in counted:
            continue  # no speed is compared there: the ledger and the report have what is read of it
        factors = replace(cell.factors, allocator="")
        families.setdefault(repr((cell.group, factors, cell.parameters)), []).append(cell)
    for cells in families.values():
        _family(result, cells)
    _contrasts(result)
    for answer in result.across_machines:
        console.out().print(_text(f"Does the ranking hold across machines? {answer.text}"), soft_wrap=True)
    failures(result)


def failures(result: Result) -> None:
    """Print what failed, how often, and what the first one said."""
    for failure in result.failures:
        cell = failure.cell
        what = f"{cell.workload} {cell.sync} {cell.allocator}"
        line = f"{failure.state}: {what} ({failure.count} times): {failure.detail}"
        console.out().print(_text(line, "bad"), soft_wrap=True)


def _family(result: Result, cells: list[Cell]) -> None:
    first = cells[0]
    factors = first.factors
    primary = result.primary_metrics[factors.workload]
    wide = console.out().width >= WIDE
    # (head, text of a cell, whether it needs the width)
    layout: list[tuple[str, Callable[[Cell], str | Text], bool]] = [
        ("allocator", lambda cell: _text(name_of(cell)), False),
        (primary, lambda cell: estimate(cell.metrics.get(primary)), False),
        ("95 % interval", lambda cell: _ends(cell.metrics.get(primary)), True),
        (
            f"of {result.baseline}" if len(result.baseline) <= NAME_MAX else "of baseline",
            lambda cell: number(cell.ratio_to_baseline),
            False,
        ),
        ("interval", lambda cell: span(cell.ratio_to_baseline), False),
    ]
    if any("aborts_per_attempt" in cell.metrics for cell in cells):
        layout.append(("aborts", lambda cell: share(_aborts(cell)), False))
    if any(cell.blame for cell in cells):
        layout.append(("blame run", lambda cell: share((cell.blame or {}).get("aborts_per_attempt")), True))
        layout.append(("false", lambda cell: share(false_share(cell.blame)), False))
    layout.append(("verdict", lambda cell: verdict_of(cell.verdict, cell.rough), False))
    shown = [(head, text) for head, text, needs_width in layout if wide or not needs_width]
    rows = [[text(cell) for _, text in shown] for cell in cells]
    columns = [head for head, _ in shown]
    parameters = " ".join(f"{name}={value}" for name, value in first.parameters.items())
    threads = f"{factors.threads} thread" + ("" if factors.threads == 1 else "s")
    where = f", {factors.machine}" if len(result.machines) > 1 else ""
    measured = f"{factors.workload} {parameters}".rstrip()
    title = f"{measured} · {factors.sync}, {threads}{where}, {first.runs} block{'' if first.runs == 1 else 's'}"
    numeric = [column for column in columns if column not in ("allocator", "verdict")]
    console.out().print(console.table(columns, rows, numeric=numeric, title=title))


def _contrasts(result: Result) -> None:
    rows: list[list[str | Text]] = [
        [
            _text(contrast.what),
            _text(_held(result, contrast)),
            _text(contrast.allocator),
            number(contrast),
            span(contrast),
            verdict_of(contrast.verdict, contrast.rough),
        ]
        for contrast in result.contrasts
        if contrast.factor != "sequential"
    ]
    if rows:
        columns = ["what", "where", "allocator", "ratio", "interval", "verdict"]
        console.out().print(console.table(columns, rows, numeric=["ratio", "interval"], title="Within the same blocks"))


def _held(result: Result, contrast: Contrast) -> str:
    """What both sides of a contrast have in common, without the factor that it compares: "queue, 2 threads"."""
    units = result.units.get(contrast.workload, {})
    parts = [contrast.workload, words.parameters(contrast.parameters, units)]
    parts += [contrast.sync or ""] if contrast.factor != "sync" else []
    parts += [words.threads(contrast.threads or 1)] if contrast.factor != "threads" else []
    parts += [contrast.machine or ""] if len(result.machines) > 1 else []
    return ", ".join(part for part in parts if part)


def name_of(cell: Cell) -> str:
    """The allocator, marked where it is the second copy of the baseline."""
    return cell.allocator + (" (again)" if cell.copy else "")


def verdict_of(verdict: str, rough: bool = False) -> Text:
    """The verdict in its colour, with "roughly" where the interval is wide."""
    return _text(words.judged(verdict, rough), VERDICT_STYLES.get(verdict, "doubt"))


def _aborts(cell: Cell) -> float | None:
    rate = cell.metrics.get("aborts_per_attempt")
    return None if rate is None else rate.estimate


def false_share(blame: Mapping[str, float] | None) -> float | None:
    """Share of a blame run's aborts that placement caused: another block or another stripe."""
    if not blame or not blame.get("aborts"):
        return None
    return (blame.get("aborts_other_block", 0) + blame.get("aborts_other_stripe", 0)) / blame["aborts"]


def share(value: float | None) -> str:
    """0.0525 -> "5.3 %"; "" for None."""
    return "" if value is None else f"{100 * value:.1f} %"


def estimate(metric: Metric | None) -> str:
    """The estimate of a metric; "" where the cell has not that metric."""
    return "" if metric is None else words.quantity(metric.estimate, metric.unit)


def number(ratio: Ends | None) -> str:
    """A ratio with three decimals; "" where there is none."""
    return "" if ratio is None or ratio.estimate is None else f"{ratio.estimate:.3f}"


def span(ratio: Ends | None) -> str:
    """The interval of a ratio, "0.981–1.002"; "none" where there were too few runs for one."""
    if ratio is None:
        return ""
    return "none" if ratio.low is None or ratio.high is None else f"{ratio.low:.3f}–{ratio.high:.3f}"


def _ends(metric: Metric | None) -> str:
    """The interval of a metric with its unit; "none" where there were too few runs for one."""
    if metric is None:
        return ""
    if metric.low is None or metric.high is None:
        return "none"
    return f"{words.quantity(metric.low, metric.unit)} to {words.quantity(metric.high, metric.unit)}"


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style)
