"""A paper's curve or bar figure as measured here: lines with 95 % bands over the factor of its horizontal axis."""

from __future__ import annotations

from collections.abc import Sequence

from loam_lab.model.result import Ends, Entry, PaperFigure, Value
from loam_lab.presenting.report import palette, rounding, svg
from loam_lab.presenting.report.charts import slug
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.view import Study, number

_LEVELS_MIN = 2


def draw(study: Study, item: PaperFigure) -> tuple[tuple[str, svg.Drawing], ...]:
    """One panel per part of a figure of the Result's paper_figures: ("Here: list, in k", drawing); none for tables.

    The columns of ours are an optional "of" (the part), the factor, and one per allocator.
    """
    columns, rows = item.ours.columns, item.ours.rows
    if item.kind not in ("line", "bar") or len(columns) < 2:
        return ()
    labelled = columns[0] == "of"
    parts: dict[str, list[Sequence[Entry]]] = {}
    for row in rows:
        if len(row) == len(columns):
            parts.setdefault(str(row[0]) if labelled else "", []).append(row[1:] if labelled else row)
    heads = columns[1:] if labelled else columns
    panels = []
    for part, lines in parts.items():
        panel = _panel(study, item.id, item.title, part, heads, lines)
        if panel is not None:
            panels.append(panel)
    return tuple(panels)


def _interval(value: Entry) -> Ends | None:
    if isinstance(value, Value):
        return value
    plain = number(value)
    return None if plain is None else Ends(plain, None, None)


def _panel(
    study: Study, figure: str, title: str, part: str, heads: Sequence[str], rows: Sequence[Sequence[Entry]]
) -> tuple[str, svg.Drawing] | None:
    levels = [number(row[0]) for row in rows]
    places = sorted({level for level in levels if level is not None})
    values = {head: [_interval(row[1 + index]) for row in rows] for index, head in enumerate(heads[1:])}
    ends = [
        end for spans in values.values() for one in spans if one is not None
        for end in (one.estimate, one.low, one.high) if end is not None
    ]  # fmt: skip
    if None in levels or len(places) < _LEVELS_MIN or not ends:
        return None
    colours = palette.of_allocators([*study.allocators, *(head for head in heads[1:] if head not in study.allocators)])
    scale = rounding.scale_for(ends, "")
    log_up = min(ends) > 0 and max(ends) > 8 * min(ends)
    log_across = places[0] > 0 and places[-1] >= 4 * places[0]
    across = Axis(heads[0].replace("_", " "), *span(places, log=log_across), log=log_across, ticks=tuple(places))
    frame = Frame(across, Axis("", *span(ends, log=log_up), log=log_up, factor=scale.factor))
    descriptions = []
    for head, spans in values.items():
        course = sorted((x, one) for x, one in zip(levels, spans, strict=True) if x is not None and one is not None)
        band = [(x, one.low, one.high) for x, one in course if one.low is not None and one.high is not None]
        if len(band) > 1:
            frame.ribbon(band, colours[head])
        if len(course) > 1:
            frame.line([(x, one.estimate or 0.0) for x, one in course], colours[head], hover=head)
        for x, one in course:
            text = f"{head}, {heads[0]} {rounding.significant(x, 3)}: {scale.show(one.estimate)} {scale.unit}".strip()
            frame.point(x, one.estimate or 0.0, colours[head], hover=text)
            descriptions.append(text)
    caption = ", ".join(
        word for word in (f"Here: {part}" if part else "Here", f"in {scale.unit}" if scale.unit else "") if word
    )
    drawing = frame.draw(
        slug("beside", figure, part), f"{figure}, {part or title}", f"Measured here. {'; '.join(descriptions)}."
    )
    return caption, drawing
