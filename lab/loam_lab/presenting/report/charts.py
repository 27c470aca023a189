"""The kinds of panels: throughput, causes of aborts, contrasts, effect beside the sequential program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loam_lab.model import words
from loam_lab.model.result import Cell, Ends
from loam_lab.presenting.report import findings, palette, rounding, svg
from loam_lab.presenting.report.canvas import Canvas, Mark
from loam_lab.presenting.report.marks import shortened
from loam_lab.presenting.report.view import Case, Group, Study, reference_of


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


def _ends(span: Ends) -> list[float]:
    return [value for value in (span.estimate, span.low, span.high) if value is not None]


def _bracketed(span: Ends, scale: rounding.Scale) -> str:
    if span.low is None or span.high is None:
        return f"{scale.show(span.estimate)} (no interval)"
    return f"{scale.show(span.estimate)} [{scale.show(span.low)}, {scale.show(span.high)}]"


def throughput_scale(groups: Sequence[Group]) -> rounding.Scale:
    """One display unit for the primary metric of several groups."""
    known = [m for group in groups for cell in group.cells if (m := group.primary(cell))]
    return rounding.scale_for([metric.estimate for metric in known], known[0].unit if known else "1")


def throughput_domain(groups: Sequence[Group]) -> tuple[float, float] | None:
    """A common x domain for groups that a reader will compare, in the metric's own unit; None without any value.

    All intervals are inside.  Single blocks are too, unless they lie further out than the intervals are wide
    together: one interrupted run would squeeze everything else into a corner.
    """
    known = [metric for group in groups for cell in group.cells if (metric := group.primary(cell))]
    ends = [value for metric in known for value in _ends(metric)]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    reach = high - low
    single = [value for metric in known for value in metric.values if low - reach <= value <= high + reach]
    return _pad([low, high, *single])


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
    decimals = column_decimals([ratio for cell in group.cells if (ratio := cell.ratio_to_baseline)])
    lines, rug, beyond, notes, figures, descriptions = [], [], [], [], [], []
    for y, cell in enumerate(group.cells):
        metric, colour = group.primary(cell), colours[cell.allocator]
        figures.append(_figure(cell, decimals))
        if metric is None or metric.estimate is None:
            notes.append({"y": y, "t": cell.state if cell.state != "ok" else "not measured"})
            descriptions.append(f"{cell.name}: {notes[-1]['t']}")
            continue
        text = f"{cell.name}: {_bracketed(metric, scale)} {unit}"
        if ratio := cell.ratio_to_baseline:
            shown = rounding.ratio(ratio.estimate, ratio.low, ratio.high)
            text += f"; {shown} × {study.baseline}, {words.judged(cell.verdict, cell.rough)}"
        descriptions.append(text)
        points[bool(cell.copy)].append({"x": metric.estimate / scale.factor, "y": y, "c": colour, "d": text})
        if metric.low is not None and metric.high is not None:
            lines.append({"x": metric.low / scale.factor, "x2": metric.high / scale.factor, "y": y, "c": colour})
        rug += [{"x": v / scale.factor, "y": y, "c": colour} for v in metric.values if domain[0] <= v <= domain[1]]
        beyond += _beyond(cell, metric.values, domain, y, unit, scale)
        if cell.verdict == "baseline":
            canvas.reference(metric.estimate / scale.factor)
    canvas.rug(rug)
    canvas.edges(beyond)
    canvas.intervals(lines)
    canvas.points(points[False])
    canvas.points(points[True], hollow=True)
    canvas.notes(notes)
    canvas.names([_label(cell) for cell in group.cells])
    symbols = [
        words.verdict_mark(cell.verdict) if cell.ratio_to_baseline and not cell.copy else "" for cell in group.cells
    ]
    canvas.figures(figures, f"× {shortened(study.baseline, 12)}", symbols)
    title = f"{words.metric(group.metric).capitalize()}: {case.full(group)}"
    return canvas.draw(name, title, f"Estimate and 95 % interval per allocator. {'; '.join(descriptions)}.")


def _beyond(
    cell: Cell, values: Sequence[float], domain: tuple[float, float], y: int, unit: str, scale: rounding.Scale
) -> list[Mark]:
    """Marks at the ends of a row for the blocks that the axis leaves out."""
    beyond: list[Mark] = []
    for right, outside in ((False, [v for v in values if v < domain[0]]), (True, [v for v in values if v > domain[1]])):
        if outside:
            text = f"{cell.name}: {len(outside)} of {len(values)} blocks beyond the axis, "
            text += f"{'up' if right else 'down'} to {scale.show(max(outside) if right else min(outside))} {unit}"
            beyond.append({"y": y, "t": "›" if right else "‹", "d": text, "right": right})
    return beyond


def _figure(cell: Cell, decimals: int) -> str:
    if cell.verdict == "baseline":
        return rounding.fixed(1.0, decimals)
    return rounding.ratio(ratio.estimate, decimals=decimals) if (ratio := cell.ratio_to_baseline) else ""


def column_decimals(spans: Sequence[Ends]) -> int:
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
    decimals = max(1, rounding.decimals_for(limit)) if limit else 0
    colours = palette.of_causes([cause.name for cause in study.causes])
    bars, stems, notes, figures, descriptions = [], [], [], [], []
    for y, cell in enumerate(cells):
        attempts = cell.blame.get("attempts", 0.0) if cell.blame else 0.0
        if not cell.blame or not attempts:
            notes.append({"y": y, "t": "no blame run" if not cell.blame else "no attempt"})
            figures.append("")
            descriptions.append(f"{cell.name}: {notes[-1]['t']}")
            continue
        at, shares = 0.0, []
        for cause in study.causes:
            number = cell.blame.get(cause.counter, 0.0)
            if not number:
                continue
            share = 100 * number / attempts
            text = (
                f"{cell.name}: {cause.words}, {rounding.significant(share)} % of attempts "
                f"({rounding.count(number)} aborts)"
            )
            bars.append({"x": at, "x2": at + share, "y": y - 0.29, "y2": y + 0.29, "c": colours[cause.name], "d": text})
            shares.append(f"{cause.words} {rounding.significant(share)} %")
            at += share
        total = cell.blame.get("aborts", 0.0) / attempts
        figures.append(rounding.fixed(100 * total, decimals) + "\u00a0%")
        descriptions.append(
            f"{cell.name}: {rounding.percent(total)} of attempts aborted ({', '.join(shares) or 'none'})"
        )
        timed = cell.metrics.get("aborts_per_attempt")
        if timed and timed.estimate is not None:
            text = f"{cell.name}: {rounding.percent(timed.estimate)} in the timing runs"
            stems.append({"x": 100 * timed.estimate, "y": y - 0.42, "y2": y + 0.42, "d": text})
    canvas.bars(bars)
    canvas.stems(stems)
    canvas.notes(notes)
    canvas.names([_label(cell) for cell in cells])
    canvas.figures(figures, "in all")
    title = f"Causes of aborts: {case.full(group)}"
    return canvas.draw(name, title, f"Share of attempts by cause of abort, from blame runs. {'; '.join(descriptions)}.")


def _ratio_text(span: Ends) -> str:
    ends = (span.estimate, span.low, span.high)
    return f"{rounding.ratio(*ends)} {rounding.interval(*ends)}"


def _ratio_frame(spans: Sequence[Ends]) -> tuple[tuple[float, float], list[float]]:
    low, high = _pad([1.0, *(value for span in spans for value in _ends(span))], 0.07)
    marks = rounding.ticks(low, high)
    return (low, high), marks if 1.0 in marks else sorted([*marks, 1.0])


def contrast(study: Study, case: Case, shown: Sequence[findings.Contrast], name: str) -> svg.Drawing:
    """One ratio with interval per allocator, against a line at 1 with the band of equivalence."""
    colours = palette.of_allocators(
        [*study.allocators, *(c.allocator for c in shown if c.allocator not in study.allocators)]
    )
    domain, marks = _ratio_frame([one.ratio for one in shown])
    canvas = Canvas(len(shown), domain, f"ratio of {words.metric(shown[0].metric)}", marks)
    canvas.reference(1.0, margin=0.02)
    decimals = column_decimals([one.ratio for one in shown])
    points, lines, figures, descriptions = [], [], [], []
    for y, one in enumerate(shown):
        span, colour = one.ratio, colours[one.allocator]
        figures.append(rounding.ratio(span.estimate, decimals=decimals))
        text = f"{one.allocator}: {_ratio_text(span)}"
        descriptions.append(text)
        if span.estimate is not None:
            points.append({"x": span.estimate, "y": y, "c": colour, "d": text})
        if span.low is not None and span.high is not None:
            lines.append({"x": span.low, "x2": span.high, "y": y, "c": colour})
    canvas.intervals(lines)
    canvas.points(points)
    canvas.names([(one.allocator, one.allocator, False) for one in shown])
    canvas.figures(figures, "ratio")
    return canvas.draw(
        name, f"{shown[0].title.capitalize()}: {case.title}", f"Ratio and 95 % interval. {'; '.join(descriptions)}."
    )


# Marks of the series in an effect panel: the sequential twin first, then the case's groups in order.
_TWIN = ("diamond", True)
_SERIES = (("circle", False), ("square", False), ("triangle-up", False), ("triangle-down", False))


def series(case: Case) -> list[tuple[str, str]]:
    """Shape and words of the series in a case's effect panel."""
    shapes = [("diamond", "sequential, 1 thread")]
    for index, group in enumerate(case.groups):
        shapes.append((_SERIES[index % len(_SERIES)][0], case.label(group) or group.sync))
    return shapes


def effect(study: Study, case: Case, name: str) -> svg.Drawing | None:
    """Each allocator's ratio to the baseline: in the sequential program, and in each group of the case.

    returns: None where the case has no sequential twin, or nothing to compare
    """
    reference = reference_of(case.groups[0], study)
    if reference is None:
        return None
    given = [(_TWIN, "sequential", reference)]
    for index, group in enumerate(case.groups):
        given.append((_SERIES[index % len(_SERIES)], case.label(group) or group.sync, group))
    names = [name for name in study.allocators if name != study.baseline]
    ratios: list[tuple[int, int, tuple[str, bool], str, Ends]] = []
    for row, allocator in enumerate(names):
        for index, (mark, label, group) in enumerate(given):
            for cell in group.cells:
                if cell.allocator == allocator and cell.copy == 0 and (ratio := cell.ratio_to_baseline):
                    ratios.append((row, index, mark, label, ratio))
    if not ratios:
        return None
    colours = palette.of_allocators(study.allocators)
    domain, marks = _ratio_frame([item[4] for item in ratios])
    canvas = Canvas(len(names), domain, f"× {shortened(study.baseline, 38)}", marks, row=40)
    canvas.reference(1.0, margin=0.02)
    step = 0.52 / max(1, len(given) - 1)
    points: dict[tuple[str, bool], list[Mark]] = {}
    lines, descriptions = [], []
    for row, index, mark, label, span in ratios:
        y, colour = row - 0.26 + index * step, colours[names[row]]
        text = f"{names[row]}, {label}: {_ratio_text(span)}"
        descriptions.append(text)
        if span.low is not None and span.high is not None:
            lines.append({"x": span.low, "x2": span.high, "y": y, "c": colour})
        points.setdefault(mark, []).append({"x": span.estimate, "y": y, "c": colour, "d": text})
    canvas.intervals(lines, width=1.6)
    for (shape, hollow), marks_of_shape in points.items():
        canvas.points(marks_of_shape, shape, hollow=hollow, size=44)
    canvas.names([(name, name, False) for name in names])
    return canvas.draw(
        name, f"Allocator effect, synchronised and sequential: {case.title}",
        f"Ratio to {study.baseline} with 95 % interval. {'; '.join(descriptions)}.",
    )  # fmt: skip
