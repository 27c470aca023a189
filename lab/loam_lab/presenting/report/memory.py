"""Memory: its course over time, the trade of time against memory, and which counters there are."""

from __future__ import annotations

from loam_lab.model import words
from loam_lab.model.result import Cell
from loam_lab.presenting.report import charts, findings, palette, rounding, svg
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.palette import MUTED
from loam_lab.presenting.report.view import Group, Study

_SAMPLES_MAX = 200


def samples(cell: Cell) -> list[tuple[float, float]]:
    """(seconds, PSS or else RSS in bytes) of a cell's memory run; none where it has no such run."""
    points = []
    for sample in cell.memory.samples[:_SAMPLES_MAX] if cell.memory else ():
        if len(sample) < 2:
            continue
        pss = sample[2] if len(sample) > 2 else None
        value = pss if pss is not None else sample[1]
        if (when := sample[0]) is not None and value is not None:
            points.append((when, value))
    return points


def courses(study: Study, group: Group, name: str, title: str) -> svg.Drawing | None:
    """Memory over time, one line per allocator; None without samples."""
    known = [(cell, course) for cell in group.cells if not cell.copy and len(course := samples(cell)) > 1]
    if not known:
        return None
    colours = palette.of_allocators(study.allocators)
    factor = rounding.scale_for([value for _, course in known for _, value in course], "B").factor
    times = [when for _, course in known for when, _ in course]
    values = [value for _, course in known for _, value in course]
    frame = Frame(Axis("seconds", *span(times, room=0)), Axis("", *span(values, zero=True), factor=factor), 210)
    descriptions = []
    for cell, course in known:
        peak = max(value for _, value in course)
        frame.line(course, colours[cell.allocator], hover=f"{cell.name}: peak {rounding.size(peak)}")
        descriptions.append(f"{cell.name}: peak {rounding.size(peak)}")
    return frame.draw(name, f"Memory over time: {title}", f"Proportional set size. {'; '.join(descriptions)}.")


def unit(group: Group) -> str:
    """The unit in which courses() draws a group: "MiB"."""
    return rounding.scale_for([value for cell in group.cells for _, value in samples(cell)], "B").unit


def amount(cell: Cell) -> float | None:
    """The memory by which a cell enters the trade: mean PSS of its memory run; None without such a run."""
    return cell.memory.mean_pss_bytes if cell.memory else None


def trade(study: Study, group: Group, name: str, title: str) -> svg.Drawing | None:
    """Primary metric against memory; rings are of allocators that another one beats in both. None below two points."""
    pairs = [
        (cell, metric, bytes_)
        for cell in group.cells
        if not cell.copy and (metric := group.primary(cell)) and metric.estimate is not None
        and (bytes_ := amount(cell)) is not None
    ]  # fmt: skip
    if len(pairs) < 2:
        return None
    colours = palette.of_allocators(study.allocators)
    scale = charts.throughput_scale([group])
    memory = rounding.scale_for([bytes_ for _, _, bytes_ in pairs], "B")
    ends = [v for _, m, _ in pairs for v in (m.low, m.estimate, m.high) if v is not None]
    across = Axis(f"mean memory, {memory.unit}", *span([b for _, _, b in pairs], room=0.12), factor=memory.factor)
    frame = Frame(across, Axis("", *span(ends), factor=scale.factor))
    sign = -1 if findings.less_is_better(group) else 1
    points = [(bytes_, sign * (metric.estimate or 0.0)) for _, metric, bytes_ in pairs]
    lost = [any(b <= bytes_ and v > value for b, v in points) for bytes_, value in points]
    front = sorted((bytes_, sign * value) for (bytes_, value), out in zip(points, lost, strict=True) if not out)
    if len(front) > 1:
        frame.line(front, MUTED, width=1)
    descriptions = []
    for (cell, metric, bytes_), beaten in zip(pairs, lost, strict=True):
        value = metric.estimate or 0.0
        text = f"{cell.name}: {scale.show(value)} {scale.unit}, {rounding.size(bytes_)}"
        descriptions.append(text + (" (beaten in both)" if beaten else ""))
        if metric.low is not None and metric.high is not None:
            centre = bytes_, bytes_
            frame.cross(centre, (metric.low, metric.high), colours[cell.allocator])
        frame.point(bytes_, value, colours[cell.allocator], hollow=beaten, hover=text)
    return frame.draw(
        name, f"Time and memory: {title}", f"{words.metric(group.metric)} against memory. {'; '.join(descriptions)}."
    )


def table(study: Study, group: Group) -> Table | None:
    """The memory runs of a group in figures; None where it has none."""
    rows, keys = [], []
    for cell in group.cells:
        taken = cell.memory
        if not taken:
            continue
        reasons = "; ".join(taken.reasons)
        fit = "fit" if taken.fit else "unfit for a verdict"
        rows.append((
            cell.name,
            *map(rounding.size, (taken.peak_rss_bytes, taken.peak_pss_bytes, taken.mean_pss_bytes, taken.live_peak_bytes)),
            rounding.count(taken.faults_minor), rounding.count(taken.faults_major), f"{fit}: {reasons}" if reasons else fit,
        ))  # fmt: skip
        keys.append(cell.allocator)
    if not rows:
        return None
    heads = ("Peak RSS", "Peak PSS", "Mean PSS", "Live, peak", "Minor faults", "Major faults")
    columns = (Column("Allocator"), *(Column(head, numeric=True) for head in heads), Column("Fitness"))
    return Table(f"Memory: {findings.group_label(study, group)}", columns, tuple(rows), tuple(keys))


_COUNTERS = {
    "instructions": "instructions", "cycles": "cycles", "l1d_misses": "L1 misses", "l1d_miss_ratio": "L1 miss ratio",
    "llc_misses": "last-level misses", "llc_miss_ratio": "last-level miss ratio", "dtlb_misses": "TLB misses",
    "dtlb_misses_large": "TLB misses, 2 MiB pages", "dtlb_first_misses": "first-level TLB misses", "hitm": "HITM",
    "calls": "blocks asked for", "requested_bytes": "bytes asked for", "padding": "padding", "external": "external fragmentation",
}  # fmt: skip


def counters(study: Study, group: Group) -> Table | None:
    """Counts per operation by source; None where the group has none."""
    given = [(cell, entry) for cell in group.cells for entry in cell.counters]
    if not given:
        return None
    present = [key for key in _COUNTERS if any(getattr(entry, key) is not None for _, entry in given)]
    rows = tuple(
        (
            cell.name,
            entry.source,
            *(rounding.significant(getattr(entry, key)) for key in present),
        )
        for cell, entry in given
    )
    columns = (Column("Allocator"), Column("Counted by"), *(Column(_COUNTERS[key], numeric=True) for key in present))
    per = given[0][1].per
    return Table(
        f"Counters per {per}: {findings.group_label(study, group)}",
        columns,
        rows,
        tuple(cell.allocator for cell, _ in given),
    )
