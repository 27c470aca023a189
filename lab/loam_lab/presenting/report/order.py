"""Order and drift: every block of a group against the time since the campaign began, disturbance marked.

A drift of the machine moves all allocators together; paired ratios do not see it, single estimates do.
"""

from __future__ import annotations

import statistics

from loam_lab.model.result import TimelineRun
from loam_lab.presenting.report import palette, rounding, svg
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.palette import INK
from loam_lab.presenting.report.view import Group, Study

# Shown per group at most: enough for the eye, and the page stays small.
_POINTS_MAX = 600


def by_group(study: Study) -> list[tuple[Group, list[TimelineRun]]]:
    """Groups with their entries of the Result's timeline, in the order of time; groups without any are left out."""
    owner = {id(cell): group for group in study.every for cell in group.cells}
    entries: dict[int, list[TimelineRun]] = {}
    for entry in study.raw.timeline:
        if 0 <= entry.cell < len(study.cells) and entry.t_s is not None and entry.value is not None:
            entries.setdefault(id(owner[id(study.cells[entry.cell])]), []).append(entry)
    return [(group, sorted(entries[id(group)], key=_when)) for group in study.groups if id(group) in entries]


def _when(entry: TimelineRun) -> float:
    return entry.t_s or 0.0


def _value(entry: TimelineRun) -> float:
    return entry.value or 0.0


def disturbed(entry: TimelineRun) -> bool:
    """Whether an entry belongs to a block that was run again because it was disturbed."""
    return entry.attempt > 0


def draw(study: Study, group: Group, entries: list[TimelineRun], name: str, title: str) -> svg.Drawing | None:
    """Each value relative to its allocator's median, against time; rings are of disturbed or repeated blocks.

    returns: None where every median is zero, so that nothing can be related to it
    """
    colours = palette.of_allocators(study.allocators)
    by_cell: dict[int, list[float]] = {}
    for entry in entries:
        by_cell.setdefault(entry.cell, []).append(_value(entry))
    middle = {cell: statistics.median(values) for cell, values in by_cell.items()}
    places = [
        (_when(entry), 100 * (_value(entry) / middle[entry.cell] - 1), entry) for entry in entries if middle[entry.cell]
    ]
    if not places:
        return None
    places = places[:: -(-len(places) // _POINTS_MAX)]
    reach = max([1.0, *(abs(y) for _, y, _ in places)])
    times = [x for x, _, _ in places]
    frame = Frame(
        Axis("seconds since the campaign began", *span(times, room=0.03)), Axis("", -reach * 1.08, reach * 1.08), 210
    )
    frame.line([(frame.across.low, 0), (frame.across.high, 0)], INK, width=0.8)
    marked = 0
    quiet: dict[str, list[tuple[float, float]]] = {}
    for x, y, entry in places:
        cell = study.cells[entry.cell]
        if not disturbed(entry):
            quiet.setdefault(colours[cell.allocator], []).append((x, y))
            continue
        marked += 1
        hover = f"{cell.name}, block {entry.block + 1}: {y:+.1f} % after {x:.1f} s"
        hover += f", disturbed {rounding.percent(entry.share)} of the time" if entry.share else ""
        frame.point(x, y, colours[cell.allocator], hollow=True, hover=hover)
    for colour, dots in quiet.items():
        frame.dots(dots, colour)
    extent = f"{len(places)} runs, from {min(y for _, y, _ in places):.1f} % to {max(y for _, y, _ in places):.1f} %"
    return frame.draw(
        name,
        f"Order and drift: {title}",
        f"Difference to the allocator's median, per cent. {extent}; {marked} disturbed.",
    )


def remark(entries: list[TimelineRun]) -> str:
    """How far the second half of the time lies from the first, over all allocators together."""
    by_cell: dict[int, list[tuple[float, float]]] = {}
    for entry in entries:
        by_cell.setdefault(entry.cell, []).append((_when(entry), _value(entry)))
    moves = []
    for values in by_cell.values():
        half = len(values) // 2
        if half and (base := statistics.median(v for _, v in values[:half])):
            moves.append(statistics.median(v for _, v in values[-half:]) / base - 1)
    if not moves:
        return ""
    drift = 100 * statistics.median(moves)
    return f"drift {drift:+.1f}\u00a0%".replace("-", "−")
