"""The heat map: every allocator in every group against the baseline, one coloured cell each.

Colour is the ratio on a log scale, blue where the allocator is better, orange where it is worse, whatever the
metric's direction.  Marks and figures stand in every cell, so that colour never carries meaning alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from loam_lab.model import words
from loam_lab.model.result import Cell
from loam_lab.presenting.report import findings, marks, palette, rounding, svg
from loam_lab.presenting.report.palette import INK, MUTED
from loam_lab.presenting.report.view import Group, Study

# Ratios at which the colour scale may end.
_ENDS = (1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
CHANCE = 0.05


@dataclass(frozen=True)
class Square:
    """One cell of the map. figure: the ratio; mark: of the verdict; colours as #rrggbb; values: per block, scaled.

    description: what a screen reader hears; contaminated: blocks that stayed disturbed; crashed: no measurement to show
    """

    allocator: str
    figure: str
    mark: str
    ground: str
    ink: str
    description: str
    values: tuple[str, ...]
    contaminated: int
    crashed: bool


@dataclass(frozen=True)
class Row:
    """A group: its label, its unit, and a square per allocator of the study (None where it was not planned)."""

    label: str
    unit: str
    squares: tuple[Square | None, ...]


@dataclass(frozen=True)
class Heat:
    """The whole map. end: the ratio at which the colours saturate."""

    allocators: tuple[str, ...]
    rows: tuple[Row, ...]
    end: float

    def legend(self) -> list[tuple[str, str]]:
        """(words, colour) from the worst to the best end."""
        steps = [(1 / self.end, -1.0), (self.end**-0.5, -0.5), (1.0, 0.0), (self.end**0.5, 0.5), (self.end, 1.0)]
        texts = [f"{ratio:.2f}" for ratio, _ in steps]
        texts[0], texts[-1] = f"≤ {texts[0]}", f"≥ {texts[-1]}"
        return [(text, colour(place)) for text, (_, place) in zip(texts, steps, strict=True)]


def verdict(cell: Cell) -> str:
    """The cell's verdict in the family of all cells: a difference that chance explains there is inconclusive."""
    ratio = cell.ratio_to_baseline
    if cell.verdict in ("better", "worse") and ratio and ratio.q is not None and ratio.q >= CHANCE:
        return "inconclusive"
    return cell.verdict


def build(study: Study) -> Heat | None:
    """The map of a study; None where fewer than two allocators were compared."""
    groups = [group for group in study.groups if any(cell.ratio_to_baseline for cell in group.cells if not cell.copy)]
    if not groups:
        return None
    compared = [ratio for group in groups for c in group.cells if not c.copy and (ratio := c.ratio_to_baseline)]
    end = end_of(ratio.estimate for ratio in compared)
    rows = tuple(_row(study, group, math.log(end)) for group in groups)
    return Heat(study.allocators, rows, end)


def end_of(ratios: Iterable[float | None]) -> float:
    """The ratio at which a scale of colours ends: the first round one that covers four fifths of the ratios."""
    sizes = sorted(abs(math.log(ratio)) for ratio in ratios if ratio and ratio > 0)
    reach = sizes[int(0.8 * (len(sizes) - 1))] if sizes else 0.0
    return next((end for end in _ENDS if math.log(end) >= reach), _ENDS[-1])


def colour(place: float) -> str:
    """place: -1 (worst) to 1 (best)."""
    return palette.mix(palette.LEVEL, palette.BETTER if place > 0 else palette.WORSE, min(1.0, abs(place)))


def _row(study: Study, group: Group, reach: float) -> Row:
    known = [metric for cell in group.cells if (metric := group.primary(cell))]
    scale = rounding.scale_for([metric.estimate for metric in known], known[0].unit if known else "1")
    decimals = max(scale.decimals, 1)
    label = findings.group_label(study, group)
    members = {cell.allocator: cell for cell in group.cells if cell.copy == 0}
    squares = tuple(
        _square(study, group, members[name], label, reach, scale.factor, decimals) if name in members else None
        for name in study.allocators
    )
    return Row(label, f"{words.metric(group.metric)}, {rounding.rate_unit(scale, words.noun(group.metric))}", squares)


def _square(study: Study, group: Group, cell: Cell, label: str, reach: float, factor: float, decimals: int) -> Square:
    span, metric = cell.ratio_to_baseline, group.primary(cell)
    crashed = cell.state != "ok" or metric is None or metric.estimate is None
    ground, figure = palette.LEVEL, "×" if crashed else "1"
    if span is not None and span.estimate and span.estimate > 0 and not crashed:
        place = math.log(span.estimate) / reach
        ground = colour(-place if findings.less_is_better(group) else place)
        figure = rounding.ratio(span.estimate)
    judged = verdict(cell)
    description = f"{cell.allocator}, {label}: "
    if crashed:
        description += cell.state if cell.state != "ok" else "not measured"
    elif span is None:
        description += "the baseline"
    else:
        description += f"{figure} times {study.baseline} {findings.spoken(span)}, {words.judged(judged, cell.rough)}"
        if judged != cell.verdict:
            description += f" ({cell.verdict} on its own; among all cells, chance can explain it)"
    if cell.contaminated:
        description += f"; {cell.contaminated} blocks stayed disturbed"
        if cell.ratio_without_contaminated is not None:
            description += f", without them {rounding.ratio(cell.ratio_without_contaminated.estimate)}"
    values = metric.values if metric else ()
    mark = "" if crashed or span is None else words.verdict_mark(judged)
    return Square(
        cell.allocator, figure, mark, ground, palette.on(ground), description,
        tuple(f"{value / factor:.{decimals + 1}f}" for value in values), cell.contaminated, crashed,
    )  # fmt: skip


_LABEL, _WIDE, _HIGH, _HEAD = 250, 74, 26, 40


def draw(study: Study, heat: Heat, name: str) -> svg.Drawing:
    """The map as a drawing, for files; the page has it as a table."""
    parts = []
    for column, allocator in enumerate(heat.allocators):
        x = _LABEL + (column + 0.5) * _WIDE
        parts.append(marks.text(x, _HEAD - 10, allocator, size=10, anchor="middle", ink=MUTED, room=_WIDE))
    for index, row in enumerate(heat.rows):
        y = _HEAD + index * _HIGH
        parts.append(marks.text(0, y + 17, row.label, size=11, room=_LABEL - 8))
        for column, square in enumerate(row.squares):
            if square is None:
                continue
            x = _LABEL + column * _WIDE
            parts.append(marks.rect(x + 1, y + 1, _WIDE - 2, _HIGH - 2, square.ground, hover=square.description))
            if square.contaminated:
                parts.append(marks.hatch(x + 1, y + 1, _WIDE - 2, _HIGH - 2, square.ink, 9))
            shown = f"{square.figure} {square.mark}".strip()
            parts.append(marks.text(x + _WIDE / 2, y + 17, shown, size=11, anchor="middle", ink=square.ink))
    y = _HEAD + len(heat.rows) * _HIGH + 22
    for index, (label, ground) in enumerate(heat.legend()):
        x = _LABEL + index * _WIDE
        parts.append(marks.rect(x + 1, y, _WIDE - 2, 14, ground))
        parts.append(marks.text(x + _WIDE / 2, y + 28, label, size=10, anchor="middle", ink=MUTED))
    parts.append(marks.text(0, y + 11, f"× {study.baseline}, log scale", size=11, ink=INK, room=_LABEL - 8))
    width = _LABEL + max(len(heat.allocators), 5) * _WIDE
    description = "; ".join(square.description for row in heat.rows for square in row.squares if square)
    return svg.Drawing(name, "Every allocator in every case", description, width, y + 36, "".join(parts))
