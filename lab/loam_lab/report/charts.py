"""The figures as Vega-Lite specifications, authored with altair and drawn to SVG by vl-convert.

All panels share one skeleton, so that they line up in a page: names left of a plot of fixed width, figures right of
it, one row per allocator in the fixed order.  Rows are placed by number and names drawn as text marks: no captured
text ever becomes part of an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loam_lab.report import findings, palette, rounding, svg, words
from loam_lab.report.palette import FAINT, INK, MUTED
from loam_lab.report.view import Case, Cell, Group, Interval, Study, mapping_title, reference_of

LEFT, PLOT, RIGHT = 116, 196, 70
TOP, BOTTOM, ROW = 20, 38, 22
_FONT = "Liberation Sans"

Mark = dict[str, Any]


@dataclass
class Canvas:
    """A panel under construction: layers over a plot whose x axis runs over domain and whose rows are numbered."""

    rows: int
    domain: tuple[float, float]
    title: str
    ticks: Sequence[float]
    row: int = ROW

    def __post_init__(self) -> None:
        import altair

        self.alt = altair
        self.layers: list[Any] = []

    def _x(self, field: str = "x") -> Any:
        alt = self.alt
        axis = alt.Axis(
            values=list(self.ticks), format=f",.{rounding.tick_decimals(self.ticks)}f", domain=False, ticks=False, labelPadding=6, gridColor=FAINT, gridOpacity=1,
            labelColor=MUTED, titleColor=MUTED, titleFontWeight="normal", titlePadding=6, labelOverlap="greedy", labelFlush=False, zindex=0,
        )  # fmt: skip
        scale = alt.Scale(domain=list(self.domain), nice=False, zero=False)
        return alt.X(f"{field}:Q", scale=scale, title=self.title or None, axis=axis)

    def _y(self, field: str = "y") -> Any:
        scale = self.alt.Scale(domain=[-0.5, self.rows - 0.5], reverse=True, nice=False, zero=False)
        return self.alt.Y(f"{field}:Q", scale=scale, axis=None)

    def _add(self, marks: Sequence[Mark], build: Callable[[Any], Any]) -> None:
        if marks:
            self.layers.append(build(self.alt.Chart(self.alt.Data(values=list(marks)))))

    def names(self, labels: Sequence[tuple[str, str, bool]]) -> None:
        """Row names. labels: (text, hover text, whether the row is a remark and not a competitor)."""
        for aside in (False, True):
            marks = [{"y": i, "t": text, "d": hover} for i, (text, hover, quiet) in enumerate(labels) if quiet == aside]
            self._text(marks, self.alt.value(-10), "right", MUTED if aside else INK, limit=LEFT - 14)

    def figures(self, texts: Sequence[str], head: str = "", symbols: Sequence[str] = ()) -> None:
        """The column of figures right of the plot, one symbol behind each; head stands above it."""
        right = PLOT + RIGHT - (22 if symbols else 4)
        marks = [{"y": i, "t": text, "d": ""} for i, text in enumerate(texts) if text]
        self._text(marks, self.alt.value(right), "right", INK)
        if head:
            self._text([{"y": 0, "t": head, "d": ""}], self.alt.value(right), "right", MUTED, y=self.alt.value(-9), size=11)
        marks = [{"y": i, "t": text, "d": ""} for i, text in enumerate(symbols) if text]
        self._text(marks, self.alt.value(PLOT + RIGHT - 9), "center", INK, size=10)

    def notes(self, marks: Sequence[Mark]) -> None:
        """Words inside the plot, for rows with nothing to draw: {"y", "t"}."""
        self._text([{**mark, "d": mark["t"]} for mark in marks], self.alt.value(2), "left", MUTED, italic=True)

    def _text(
        self, marks: Sequence[Mark], x: Any, align: str, colour: str, *, limit: float = 0, y: Any = None,
        size: int = 12, italic: bool = False,
    ) -> None:  # fmt: skip
        # A limit of 0 leaves the text whole; NULs and the like were replaced when the result was read.
        style = {"limit": limit} if limit else {}
        self._add(marks, lambda chart: chart.mark_text(
            align=align, baseline="middle", color=colour, fontSize=size, font=_FONT,
            fontStyle="italic" if italic else "normal", **style,
        ).encode(x=x, y=y if y is not None else self._y(), text="t:N", description="d:N"))  # fmt: skip

    def reference(self, x: float, *, margin: float = 0.0) -> None:
        """A thin line over all rows, with a faint band of that relative margin around it."""
        if not self.domain[0] <= x <= self.domain[1]:
            return
        if margin:
            low, high = max(self.domain[0], x * (1 - margin)), min(self.domain[1], x * (1 + margin))
            band = [{"x": low, "x2": high, "y": -0.5, "y2": self.rows - 0.5}]
            self._add(band, lambda chart: chart.mark_rect(color=FAINT, opacity=0.5, aria=False).encode(
                x=self._x(), x2="x2:Q", y=self._y(), y2="y2:Q"))  # fmt: skip
        line = [{"x": x, "y": -0.5, "y2": self.rows - 0.5}]
        self._add(line, lambda chart: chart.mark_rule(color=MUTED, strokeDash=[2, 2], strokeWidth=1, aria=False).encode(
            x=self._x(), y=self._y(), y2="y2:Q"))  # fmt: skip

    def rug(self, marks: Sequence[Mark]) -> None:
        """Single measurements as small dots just under their row: {"x", "y", "c"}."""
        self._add(marks, lambda chart: chart.mark_circle(size=7, opacity=0.42, yOffset=6.5, aria=False).encode(
            x=self._x(), y=self._y(), color=self.alt.Color("c:N", scale=None)))  # fmt: skip

    def intervals(self, marks: Sequence[Mark], width: float = 2.4) -> None:
        """Interval lines: {"x", "x2", "y", "c"}."""
        self._add(marks, lambda chart: chart.mark_rule(strokeWidth=width, strokeCap="round", aria=False).encode(
            x=self._x(), x2="x2:Q", y=self._y(), color=self.alt.Color("c:N", scale=None)))  # fmt: skip

    def points(self, marks: Sequence[Mark], shape: str = "circle", *, hollow: bool = False, size: int = 54) -> None:
        """Estimates with hover text: {"x", "y", "c", "d"}."""
        self._add(marks, lambda chart: chart.mark_point(
            shape=shape, size=size, filled=not hollow, opacity=1, strokeWidth=1.6
        ).encode(x=self._x(), y=self._y(), color=self.alt.Color("c:N", scale=None), description="d:N"))  # fmt: skip

    def bars(self, marks: Sequence[Mark]) -> None:
        """Parts of horizontal bars with hover text: {"x", "x2", "y", "y2", "c", "d"}."""
        self._add(marks, lambda chart: chart.mark_rect().encode(
            x=self._x(), x2="x2:Q", y=self._y(), y2="y2:Q", color=self.alt.Color("c:N", scale=None), description="d:N"
        ))  # fmt: skip

    def stems(self, marks: Sequence[Mark]) -> None:
        """Short upright lines across a row: {"x", "y", "y2", "d"}."""
        self._add(marks, lambda chart: chart.mark_rule(color=INK, strokeWidth=1.4).encode(
            x=self._x(), y=self._y(), y2="y2:Q", description="d:N"))  # fmt: skip

    def draw(self, name: str, title: str, description: str) -> svg.Drawing:
        """The finished panel."""
        import vl_convert

        chart = self.alt.layer(*self.layers).properties(
            width=PLOT, height=self.rows * self.row, autosize="none",
            padding={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        ).configure(font=_FONT, background="transparent").configure_view(stroke=None).configure_axis(
            labelFont=_FONT, titleFont=_FONT, labelFontSize=11, titleFontSize=11,
        )  # fmt: skip
        drawn = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
        return svg.refine(name, title, description, drawn)


def slug(*parts: str) -> str:
    """A name of [a-z0-9-] for files and ids, at most 60 characters; never empty."""
    text = re.sub("[^a-z0-9]+", "-", "-".join(part for part in parts if part).lower()).strip("-")
    return text[:60].strip("-") or "figure"


def _label(cell: Cell) -> tuple[str, str, bool]:
    if cell.copy:
        return cell.name, f"{cell.allocator}: the second copy of the baseline (A/A sentinel)", True
    return cell.name, cell.allocator, False


def _pad(values: Sequence[float], share: float = 0.05) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high <= low:
        return low - abs(low) * 0.05 - 1e-12, high + abs(high) * 0.05 + 1e-12
    room = (high - low) * share
    return low - room, high + room


def _ends(span: Interval) -> list[float]:
    return [value for value in (span.estimate, span.low, span.high) if value is not None]


def _bracketed(span: Interval, scale: rounding.Scale) -> str:
    if span.low is None or span.high is None:
        return f"{scale.show(span.estimate)} (no interval)"
    return f"{scale.show(span.estimate)} [{scale.show(span.low)}, {scale.show(span.high)}]"


def throughput_scale(groups: Sequence[Group]) -> rounding.Scale:
    """One display unit for the primary metric of several groups."""
    known = [m for group in groups for cell in group.cells if (m := group.primary(cell))]
    return rounding.scale_for([metric.estimate for metric in known], known[0].unit if known else "1")


def throughput_domain(groups: Sequence[Group]) -> tuple[float, float] | None:
    """A common x domain for groups that a reader will compare, in the metric's own unit; None without any value."""
    seen = [
        value for group in groups for cell in group.cells if (metric := group.primary(cell))
        for value in (*_ends(metric), *metric.values)
    ]  # fmt: skip
    return _pad(seen) if seen else None


def throughput(
    study: Study, case: Case, group: Group, name: str, domain: tuple[float, float], scale: rounding.Scale
) -> svg.Drawing:
    """Dots with intervals, single blocks as a rug, the baseline as a line, the ratio to it as figures.

    domain: in the metric's own unit, shared by the panels that are read together
    """
    colours = palette.of_allocators(study.allocators)
    low, high = domain[0] / scale.factor, domain[1] / scale.factor
    unit = rounding.rate_unit(scale, words.noun(group.metric))
    axis = f"{words.metric(group.metric)}, {unit}" if unit else words.metric(group.metric)
    canvas = Canvas(len(group.cells), (low, high), axis, rounding.ticks(low, high))
    points: dict[bool, list[Mark]] = {False: [], True: []}
    decimals = column_decimals([cell.ratio for cell in group.cells if cell.ratio])
    lines, rug, notes, figures, told = [], [], [], [], []
    for y, cell in enumerate(group.cells):
        metric, colour = group.primary(cell), colours[cell.allocator]
        figures.append(_figure(cell, decimals))
        if metric is None or metric.estimate is None:
            notes.append({"y": y, "t": cell.state if cell.state != "ok" else "not measured"})
            told.append(f"{cell.name}: {notes[-1]['t']}")
            continue
        text = f"{cell.name}: {_bracketed(metric, scale)} {unit}"
        if cell.ratio:
            text += f"; {rounding.ratio(cell.ratio.estimate, cell.ratio.low, cell.ratio.high)} × {study.baseline}, {cell.verdict}"
        told.append(text)
        points[bool(cell.copy)].append({"x": metric.estimate / scale.factor, "y": y, "c": colour, "d": text})
        if metric.low is not None and metric.high is not None:
            lines.append({"x": metric.low / scale.factor, "x2": metric.high / scale.factor, "y": y, "c": colour})
        rug += [{"x": value / scale.factor, "y": y, "c": colour} for value in metric.values]
        if cell.verdict == "baseline":
            canvas.reference(metric.estimate / scale.factor)
    canvas.rug(rug)
    canvas.intervals(lines)
    canvas.points(points[False])
    canvas.points(points[True], hollow=True)
    canvas.notes(notes)
    canvas.names([_label(cell) for cell in group.cells])
    symbols = ["" if cell.copy else words.verdict_mark(cell.verdict) for cell in group.cells]
    canvas.figures(figures, f"× {study.baseline}"[:14], symbols)
    where = mapping_title(group)
    title = f"{words.metric(group.metric).capitalize()}: {case.title}{', ' + where if where else ''}"
    return canvas.draw(name, title, f"Estimate and 95 % interval per allocator. {'; '.join(told)}.")


def _figure(cell: Cell, decimals: int) -> str:
    if cell.verdict == "baseline":
        return rounding.fixed(1.0, decimals)
    return rounding.ratio(cell.ratio.estimate, decimals=decimals) if cell.ratio and cell.ratio.estimate is not None else ""


def column_decimals(spans: Sequence[Interval]) -> int:
    """Decimals for a column of ratios: what the median one deserves, so that the points stand under each other."""
    each = sorted(rounding.ratio_decimals(span.low, span.high, span.estimate) for span in spans)
    return each[len(each) // 2] if each else 2


def aborts_limit(groups: Sequence[Group]) -> float:
    """The largest share of attempts that aborted in any cell of the groups, in per cent; 0 without blame runs."""
    rates = [
        100 * cell.blame["aborts"] / cell.blame["attempts"] for group in groups for cell in group.cells
        if cell.blame and cell.blame.get("attempts") and "aborts" in cell.blame
    ]  # fmt: skip
    timed = [
        100 * metric.estimate for group in groups for cell in group.cells
        if cell.blame and (metric := cell.metrics.get("aborts_per_attempt")) and metric.estimate is not None
    ]  # fmt: skip
    return max(rates + timed, default=0.0)


def aborts(study: Study, case: Case, group: Group, name: str, limit: float) -> svg.Drawing:
    """Stacked causes of aborts per attempt from the blame runs; a stem shows the rate of the timing runs.

    limit: right end of the axis in per cent, shared by the panels that are read together
    """
    cells = [cell for cell in group.cells if cell.copy == 0]
    high = limit * 1.04 or 1.0
    canvas = Canvas(len(cells), (0, high), "aborted attempts, %", rounding.ticks(0, high))
    bars, stems, notes, figures, told = [], [], [], [], []
    for y, cell in enumerate(cells):
        attempts = cell.blame.get("attempts", 0.0) if cell.blame else 0.0
        if not cell.blame or not attempts:
            notes.append({"y": y, "t": "no blame run" if not cell.blame else "no attempt"})
            figures.append("")
            told.append(f"{cell.name}: {notes[-1]['t']}")
            continue
        at, said = 0.0, []
        for key, label, _ in words.CAUSES:
            number = findings.cause_counts(cell.blame)[key]
            if not number:
                continue
            share = 100 * number / attempts
            text = f"{cell.name}: {label}, {rounding.significant(share)} % of attempts ({rounding.count(number)} aborts)"
            bars.append({"x": at, "x2": at + share, "y": y - 0.29, "y2": y + 0.29, "c": palette.CAUSES[key], "d": text})
            said.append(f"{label} {rounding.significant(share)} %")
            at += share
        total = cell.blame.get("aborts", 0.0) / attempts
        figures.append(rounding.percent(total))
        told.append(f"{cell.name}: {rounding.percent(total)} of attempts aborted ({', '.join(said) or 'none'})")
        timed = cell.metrics.get("aborts_per_attempt")
        if timed and timed.estimate is not None:
            text = f"{cell.name}: {rounding.percent(timed.estimate)} in the timing runs"
            stems.append({"x": 100 * timed.estimate, "y": y - 0.42, "y2": y + 0.42, "d": text})
    canvas.bars(bars)
    canvas.stems(stems)
    canvas.notes(notes)
    canvas.names([_label(cell) for cell in cells])
    canvas.figures(figures, "in all")
    where = mapping_title(group)
    title = f"Causes of aborts: {case.title}{', ' + where if where else ''}"
    return canvas.draw(name, title, f"Share of attempts by cause of abort, from blame runs. {'; '.join(told)}.")


def _ratio_frame(spans: Sequence[Interval]) -> tuple[tuple[float, float], list[float]]:
    low, high = _pad([1.0, *(value for span in spans for value in _ends(span))], 0.07)
    marks = rounding.ticks(low, high)
    return (low, high), marks if 1.0 in marks else sorted([*marks, 1.0])


def contrast(study: Study, case: Case, shown: Sequence[findings.Contrast], name: str) -> svg.Drawing:
    """One ratio with interval per allocator, against a line at 1 with the band of equivalence."""
    colours = palette.of_allocators([*study.allocators, *(c.allocator for c in shown if c.allocator not in study.allocators)])
    domain, marks = _ratio_frame([one.ratio for one in shown])
    canvas = Canvas(len(shown), domain, f"ratio of {words.metric(shown[0].metric)}", marks)
    canvas.reference(1.0, margin=0.02)
    decimals = column_decimals([one.ratio for one in shown])
    points, lines, figures, told = [], [], [], []
    for y, one in enumerate(shown):
        span, colour = one.ratio, colours[one.allocator]
        figures.append(rounding.ratio(span.estimate, decimals=decimals))
        text = f"{one.allocator}: {rounding.ratio(span.estimate, span.low, span.high)} {rounding.interval(span.estimate, span.low, span.high)}"
        told.append(text)
        if span.estimate is not None:
            points.append({"x": span.estimate, "y": y, "c": colour, "d": text})
        if span.low is not None and span.high is not None:
            lines.append({"x": span.low, "x2": span.high, "y": y, "c": colour})
    canvas.intervals(lines)
    canvas.points(points)
    canvas.names([(one.allocator, one.allocator, False) for one in shown])
    canvas.figures(figures, "ratio")
    return canvas.draw(name, f"{shown[0].what.capitalize()}: {case.title}", f"Ratio and 95 % interval. {'; '.join(told)}.")


SERIES = {"sequential": ("diamond", True), "table": ("circle", False), "shadow": ("square", False)}


def effect(study: Study, case: Case, name: str) -> svg.Drawing | None:
    """Each allocator's ratio to the baseline: in the sequential program, and synchronised with each mapping.

    returns: None where the case has no sequential twin, or nothing to compare
    """
    reference = reference_of(case.groups[0], study)
    if reference is None:
        return None
    series = [("sequential", "sequential", reference)]
    series += [(group.mapping, mapping_title(group) or group.sync, group) for group in case.groups]
    names = [name for name in study.allocators if name != study.baseline]
    found: list[tuple[int, int, str, str, Interval]] = []
    for row, allocator in enumerate(names):
        for index, (key, label, group) in enumerate(series):
            for cell in group.cells:
                if cell.allocator == allocator and cell.copy == 0 and cell.ratio and cell.ratio.estimate is not None:
                    found.append((row, index, key, label, cell.ratio))
    if not found:
        return None
    colours = palette.of_allocators(study.allocators)
    domain, marks = _ratio_frame([item[4] for item in found])
    canvas = Canvas(len(names), domain, f"× {study.baseline}"[:40], marks, row=36)
    canvas.reference(1.0, margin=0.02)
    step = 0.62 / max(1, len(series) - 1)
    points: dict[tuple[str, bool], list[Mark]] = {}
    lines, told = [], []
    for row, index, key, label, span in found:
        y, colour = row - 0.31 + index * step, colours[names[row]]
        text = f"{names[row]}, {label}: {rounding.ratio(span.estimate, span.low, span.high)} " + rounding.interval(
            span.estimate, span.low, span.high
        )
        told.append(text)
        if span.low is not None and span.high is not None:
            lines.append({"x": span.low, "x2": span.high, "y": y, "c": colour})
        points.setdefault(SERIES.get(key, ("circle", False)), []).append({"x": span.estimate, "y": y, "c": colour, "d": text})
    canvas.intervals(lines, width=1.6)
    for (shape, hollow), marks_of_shape in points.items():
        canvas.points(marks_of_shape, shape, hollow=hollow, size=44)
    canvas.names([(name, name, False) for name in names])
    return canvas.draw(
        name, f"Allocator effect, synchronised and sequential: {case.title}",
        f"Ratio to {study.baseline} with 95 % interval. {'; '.join(told)}.",
    )  # fmt: skip
