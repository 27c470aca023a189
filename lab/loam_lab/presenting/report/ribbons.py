"""Ribbons: the primary metric against a factor with at least three levels (threads, sizes), one band per allocator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loam_lab.model import words
from loam_lab.presenting.report import charts, findings, palette, rounding, svg
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.view import Case, Group, Study, number

# Fewer levels are a comparison, not a course.
_LEVELS_MIN = 3


@dataclass(frozen=True)
class Course:
    """Groups that differ in one numeric factor only, in its order. factor: "threads" or a parameter's name."""

    factor: str
    levels: tuple[float, ...]
    groups: tuple[Group, ...]
    case: Case


def courses(study: Study) -> list[Course]:
    """Every course of the study: per factor, the groups that agree in all else."""
    of_factors = []
    factors = ["threads", *dict.fromkeys(key for group in study.groups for key in group.parameters)]
    for factor in factors:
        by_rest: dict[tuple[object, ...], dict[float, Group]] = {}
        for group in study.groups:
            level = number(group.threads if factor == "threads" else group.parameters.get(factor))
            if level is not None:
                by_rest.setdefault(_rest(group, factor), {})[level] = group
        for members in by_rest.values():
            if len(members) >= _LEVELS_MIN:
                levels = tuple(sorted(members))
                groups = tuple(members[level] for level in levels)
                of_factors.append(Course(factor, levels, groups, _case(study, groups, factor)))
    return of_factors


def _rest(group: Group, factor: str) -> tuple[object, ...]:
    rest = tuple((key, str(value)) for key, value in group.parameters.items() if key != factor)
    return (group.workload, group.sync, group.machine, 0 if factor == "threads" else group.threads, *rest)


def _case(study: Study, groups: Sequence[Group], factor: str) -> Case:
    """What all groups of a course share, as a case of its own: telling parameters in the title, others in the detail."""
    first = groups[0]
    peers = [group for group in study.groups if group.workload == first.workload]
    telling: list[str] = []
    fixed: list[str] = []
    for key, value in first.parameters.items():
        if key != factor:
            varies = len({str(peer.parameters.get(key)) for peer in peers}) > 1
            (telling if varies or key == "structure" else fixed).append(first.in_words(key, value))
    if len({peer.sync for peer in peers}) > 1:
        telling.append(first.sync)
    elif first.sync not in ("", "none"):
        fixed.append(first.sync)
    if factor != "threads":
        varies = len({peer.threads for peer in peers}) > 1
        (telling if varies else fixed).append(words.threads(first.threads))
    title = ", ".join([first.workload, *telling])
    return Case(title, ", ".join(fixed), tuple(groups), ("",) * len(groups), same_work=False)


def caption(study: Study, course: Course) -> str:
    """What stands over the panel: the metric, its unit and the factor."""
    scale = charts.throughput_scale(course.groups)
    unit = rounding.rate_unit(scale, words.noun(course.groups[0].metric))
    return f"{words.metric(course.groups[0].metric)}, {unit}" if unit else words.metric(course.groups[0].metric)


def _logarithmic(levels: Sequence[float]) -> bool:
    return levels[0] > 0 and levels[-1] >= 4 * levels[0] and len(levels) > 2


def draw(study: Study, course: Course, name: str) -> svg.Drawing | None:
    """Lines through the estimates with their 95 % bands; None without any estimate."""
    colours = palette.of_allocators(study.allocators)
    known = [
        value for group in course.groups for cell in group.cells
        if not cell.copy and (metric := group.primary(cell))
        for value in (metric.estimate, metric.low, metric.high) if value is not None
    ]  # fmt: skip
    if not known:
        return None
    scale = charts.throughput_scale(course.groups)
    # Where allocators or sizes differ by orders of magnitude a linear axis would show one of them only.
    log_up = min(known) > 0 and max(known) > 8 * min(known)
    log_across = _logarithmic(course.levels)
    title = "threads" if course.factor == "threads" else course.factor.replace("_", " ")
    across = Axis(title, *span(course.levels, log=log_across), log=log_across, ticks=course.levels)
    frame = Frame(across, Axis("", *span(known, log=log_up), log=log_up, factor=scale.factor))
    descriptions = []
    for allocator in study.allocators:
        colour = colours[allocator]
        middle, band, raw, points = [], [], [], []
        for level, group in zip(course.levels, course.groups, strict=True):
            cell = next((cell for cell in group.cells if cell.allocator == allocator and not cell.copy), None)
            metric = group.primary(cell) if cell else None
            if metric is None or metric.estimate is None:
                continue
            middle.append((level, metric.estimate))
            if metric.low is not None and metric.high is not None:
                band.append((level, metric.low, metric.high))
            low, high = frame.up.low, frame.up.high
            raw += [(level, value) for value in metric.values if low <= value <= high]
            at = f"{_level(course, level)}: {scale.show(metric.estimate)}"
            points.append((level, metric.estimate, f"{allocator}, {at} {scale.unit}"))
            descriptions.append(f"{allocator}, {at}")
        if len(band) > 1:
            frame.ribbon(band, colour)
        if len(middle) > 1:
            frame.line(middle, colour, hover=allocator)
        for x, y, hover in points:
            frame.point(x, y, colour, hover=hover)
        frame.raw(raw, colour)
    what = f"{words.metric(course.groups[0].metric).capitalize()} against {title}: {course.case.title}"
    return frame.draw(name, what, f"Estimates with 95 % bands. {'; '.join(descriptions)}.")


def remark(study: Study, course: Course) -> str:
    """How the order of allocators changes from the first level to the last, in a sentence."""
    ranked = [findings.ranking(group) for group in (course.groups[0], course.groups[-1])]
    if any(len(cells) < 2 for cells in ranked):
        return ""
    first, last = (_level(course, level) for level in (course.levels[0], course.levels[-1]))
    if ranked[0][0].allocator == ranked[1][0].allocator:
        return f"{ranked[0][0].allocator} has the best estimate at {first} and at {last}."
    return f"The best estimate is {ranked[0][0].allocator}'s at {first} and {ranked[1][0].allocator}'s at {last}."


def _level(course: Course, level: float) -> str:
    """One level in words: "2 threads", "64 B blocks"."""
    exact = int(level) if level == int(level) else level
    return words.threads(int(level)) if course.factor == "threads" else course.groups[0].in_words(course.factor, exact)
