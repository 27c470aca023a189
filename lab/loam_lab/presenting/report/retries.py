"""Aborts per commit: the share of transactions that aborted at least so often before they committed."""

from __future__ import annotations

from loam_lab.model.result import Cell, Histogram
from loam_lab.presenting.report import palette, rounding, svg
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.view import Group, Study


def shares(cell: Cell) -> list[tuple[float, float]]:
    """(aborts, share of commits that took at least so many) of a cell, from one abort on; none without a histogram."""
    given = cell.aborts_per_commit or Histogram()
    bounds, counts = given.bounds, given.counts
    total = sum(counts)
    if not total or len(bounds) != len(counts):
        return []
    points = [(bound, sum(counts[index:]) / total) for index, bound in enumerate(bounds) if bound]
    return [(bound, share) for bound, share in points if share > 0]


def draw(study: Study, group: Group, name: str, title: str) -> svg.Drawing | None:
    """One line per allocator over logarithmic axes; None where no cell of the group has aborted and been counted."""
    known = [(cell, points) for cell in group.cells if not cell.copy and (points := shares(cell))]
    if not known:
        return None
    colours = palette.of_allocators(study.allocators)
    aborts = sorted({bound for _, points in known for bound, _ in points})
    percents = [100 * share for _, points in known for _, share in points]
    across = Axis("aborts before the commit, at least", *span(aborts, log=True), log=True, ticks=tuple(aborts))
    frame = Frame(across, Axis("", *span(percents, log=True), log=True), 220)
    descriptions = []
    for cell, points in known:
        colour = colours[cell.allocator]
        if len(points) > 1:
            frame.line([(bound, 100 * share) for bound, share in points], colour, hover=cell.name)
        for bound, share in points:
            text = (
                f"{cell.name}: {rounding.percent(share)} of transactions aborted {rounding.count(bound)} times or more"
            )
            frame.point(bound, 100 * share, colour, hover=text)
        descriptions.append(
            f"{cell.name}: {rounding.percent(points[0][1])} at least once, worst {rounding.count(points[-1][0])} or more"
        )
    return frame.draw(
        name, f"Aborts per commit: {title}", f"Share of transactions, per cent. {'; '.join(descriptions)}."
    )
