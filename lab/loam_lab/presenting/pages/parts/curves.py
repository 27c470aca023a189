"""Curves of several rows over one factor, a panel for each case, as the picture that a page begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loam_lab.presenting.report import rounding, svg
from loam_lab.presenting.report.charts import slug
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.palette import THREADS

# A row's values by the level of the factor, both above 0.
Course = Mapping[int, float]

_MILLION = 1e6


def picture(
    title: str, factor: str, panels: Mapping[str, Mapping[str, Course]], faded: Callable[[str], bool] = lambda _: False
) -> str:
    """One SVG file; both axes are logarithmic, values are shown in millions.

    factor: what runs across; panels: by the case's name, rows by name; faded: rows that are drawn thin, as a yardstick is
    """
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    colours = {name: THREADS[place % len(THREADS)] for place, name in enumerate(names)}
    drawn = [(case, _panel(case, factor, rows, colours, faded)) for case, rows in panels.items() if any(rows.values())]
    return svg.sheet(title, [svg.Row("", drawn)], [svg.Key(name, colours[name], "line") for name in names])


def _panel(
    case: str, factor: str, rows: Mapping[str, Course], colours: Mapping[str, str], faded: Callable[[str], bool]
) -> svg.Drawing:
    levels = sorted({level for course in rows.values() for level in course})
    values = [value for course in rows.values() for value in course.values()]
    across = Axis(factor, *span(levels, log=True), log=True, ticks=tuple(map(float, levels)))
    frame = Frame(across, Axis("", *span(values, log=True), log=True, factor=_MILLION))
    descriptions = []
    for name, course in rows.items():
        places = sorted(course.items())
        frame.line(places, colours[name], width=1.0 if faded(name) else 2.2, hover=name)
        for level, value in places:
            descriptions.append(f"{name}, {factor} {level}: {rounding.significant(value / _MILLION)} M/s")
            frame.point(level, value, colours[name], hollow=faded(name), hover=descriptions[-1])
    return frame.draw(slug("curves", case), case, "; ".join(descriptions))
