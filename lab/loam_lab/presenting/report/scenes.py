"""The figures over an axis or of addresses: courses, retries, placement, moved lines, trade, memory over time, order."""

from __future__ import annotations

from collections.abc import Callable

from loam_lab.model import words
from loam_lab.presenting.report import charts, findings, ribbons, rounding, svg
from loam_lab.presenting.report import memory as memory_charts
from loam_lab.presenting.report import moves as moved_lines
from loam_lab.presenting.report import order as order_charts
from loam_lab.presenting.report import placement as pictures
from loam_lab.presenting.report import retries as retry_charts
from loam_lab.presenting.report.plates import Figure, Names, Plate, allocator_legend
from loam_lab.presenting.report.view import Case, Group, Study

# Diagnostics of more groups than this are for files that a script reads, not for a page.
_GROUPS_MAX = 60


def courses(study: Study, names: Names) -> Figure:
    """Primary metric against threads or a size, one plate per workload and factor."""
    plates = []
    of_study = ribbons.courses(study)
    for course in of_study:
        name = names.make("course", course.factor, course.case.title)
        drawing = ribbons.draw(study, course, names.make(name, "panel"))
        if drawing is not None:
            remark = ribbons.remark(study, course)
            panels = ((ribbons.caption(study, course), drawing),)
            plates.append(Plate(course.case, name, panels, (remark,) if remark else ()))
    factors = [course.factor.replace("_", " ") for course in of_study]
    title = f"Against {words.listing(dict.fromkeys(factors))}"
    return Figure("course", title, "Courses", tuple(plates), allocator_legend(study))


def _each(
    study: Study, names: Names, key: str, draw: Callable[[Group, str, str], tuple[str, svg.Drawing] | None]
) -> tuple[Plate, ...]:
    """One plate per case: the panels that draw() has for its groups. draw(group, name, title) -> (caption, drawing)."""
    plates = []
    for case in (*study.cases, *_references(study)):
        name = names.make(key, case.title)
        labelled = [
            (case.label(group), drawn)
            for group in case.groups[:_GROUPS_MAX]
            if (drawn := draw(group, names.make(name, case.label(group), "panel"), case.full(group))) is not None
        ]
        panels = tuple(
            (", ".join(part for part in (label, caption) if part), drawing) for label, (caption, drawing) in labelled
        )
        if panels:
            plates.append(Plate(case, name, panels))
    return tuple(plates)


def _references(study: Study) -> list[Case]:
    return [
        Case(findings.group_label(study, group), "", (group,), ("",), same_work=False) for group in study.references
    ]


def retries(study: Study, names: Names) -> Figure:
    """How often transactions aborted before they committed."""

    def draw(group: Group, name: str, title: str) -> tuple[str, svg.Drawing] | None:
        drawing = retry_charts.draw(study, group, name, title)
        return ("", drawing) if drawing else None

    return Figure(
        "retries", "Aborts per commit", "Retries", _each(study, names, "retries", draw), allocator_legend(study)
    )


def placement(study: Study, names: Names) -> Figure:
    """Pictures of live addresses, those of one title beside each other."""
    placements = pictures.pictures(study)
    plates = []
    for title in dict.fromkeys(picture.title for picture in placements):
        mine = [picture for picture in placements if picture.title == title]
        name = names.make("placement", title)
        panels = tuple((one.allocator, pictures.draw(one, names.make(name, one.allocator))) for one in mine)
        # Pictures belong to no group of cells.
        case = Case(title or "Live blocks", "", (), (), same_work=False)
        plates.append(Plate(case, name, panels, tuple(pictures.remark(one) for one in mine)))
    return Figure("placement", "Where blocks lie", "Placement", tuple(plates), pictures.legend(placements))


def moves(study: Study, names: Names) -> Figure:
    """Lines that moved between the cores of a simulated machine, one panel per allocator."""
    plates = []
    for case in (*study.cases, *_references(study)):
        name = names.make("moves", case.title)
        panels, remarks = [], []
        for group in case.groups[:_GROUPS_MAX]:
            for cell in group.cells:
                if cell.copy == 0 and (moved := moved_lines.of_cell(cell)):
                    caption = ", ".join(part for part in (case.label(group), cell.allocator) if part)
                    panels.append((caption, moved_lines.draw(cell.allocator, moved, names.make(name, caption))))
                    remarks.append(moved_lines.remark(caption, moved))
        if panels:
            plates.append(Plate(case, name, tuple(panels), tuple(remarks)))
    return Figure("moves", "Which lines move between cores", "Moving lines", tuple(plates), moved_lines.legend())


def trade(study: Study, names: Names) -> Figure:
    """Speed against memory."""

    def draw(group: Group, name: str, title: str) -> tuple[str, svg.Drawing] | None:
        drawing = memory_charts.trade(study, group, name, title)
        unit = rounding.rate_unit(charts.throughput_scale([group]), words.noun(group.metric))
        return (f"{words.metric(group.metric)}, {unit}", drawing) if drawing else None

    return Figure(
        "trade", "Time and memory", "Time and memory", _each(study, names, "trade", draw), allocator_legend(study)
    )


def memory(study: Study, names: Names) -> Figure:
    """Memory over time."""

    def draw(group: Group, name: str, title: str) -> tuple[str, svg.Drawing] | None:
        drawing = memory_charts.courses(study, group, name, title)
        return (f"memory, {memory_charts.unit(group)}", drawing) if drawing else None

    return Figure("memory", "Memory over time", "Memory", _each(study, names, "memory", draw), allocator_legend(study))


def order(study: Study, names: Names) -> Figure:
    """Every run against the time at which it ran."""
    entries = {id(group): runs for group, runs in order_charts.by_group(study)}

    def draw(group: Group, name: str, title: str) -> tuple[str, svg.Drawing] | None:
        runs = entries.get(id(group))
        drawing = order_charts.draw(study, group, runs, name, title) if runs else None
        return (order_charts.remark(runs), drawing) if runs and drawing else None

    plates = _each(study, names, "order", draw)
    return Figure("order", "Order and drift", "Order", plates, allocator_legend(study), about_runs=True)
