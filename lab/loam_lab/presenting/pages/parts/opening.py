"""How a page of docs/performance begins: what it found in a few lines, and one picture of ratios; its tables follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model import words
from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding, svg
from loam_lab.presenting.report.canvas import Canvas, Mark
from loam_lab.presenting.report.palette import MUTED, THREADS

# Of the series in their order; what is not ours is grey.
_SHAPES = ("circle", "square", "triangle-up", "diamond")
_OURS = THREADS[0]
_ROW, _SPREAD = 30, 0.4

# What a row shows of each series: an estimate with its interval.
Ratios = Mapping[str, Interval]


def lines(title: str, page: str, opening: Sequence[str], caption: str) -> list[str]:
    """The first lines of a page. opening: sentences; caption: of the picture, which lies beside the page as PAGE.svg"""
    sentences = [sentence.replace("\u00a0", " ") for sentence in opening]
    return [f"# {title}", "", *(f"- {sentence}" for sentence in sentences), "", f"![{caption}]({page}.svg)", ""]


def picture(title: str, axis: str, rows: Mapping[str, Ratios], ours: Collection[str] = ()) -> str:
    """Ratios as points with intervals against a line at 1, as one SVG file.

    rows: by name, from the top, each by series; ours: the rows that stand out
    """
    ends = [end for row in rows.values() for one in row.values() for end in one.ends if end is not None]
    low, high = min([1.0, *ends]), max([1.0, *ends])
    room = 0.05 * (high - low or 1.0)
    domain = (low - room, high + room)
    canvas = Canvas(len(rows), domain, axis, rounding.ticks(*domain), row=_ROW)
    canvas.reference(1.0)
    series = list(dict.fromkeys(name for row in rows.values() for name in row))
    step = _SPREAD / max(1, len(series) - 1)
    spans, descriptions = [], []
    points: dict[str, list[Mark]] = {name: [] for name in series}
    for y, (name, row) in enumerate(rows.items()):
        colour = _OURS if name in ours or not ours else MUTED
        for which, ratio in row.items():
            place = {"y": y + series.index(which) * step - _SPREAD / 2 * (len(series) > 1), "c": colour}
            descriptions.append(f"{name}, {which}: {paired.text_of(ratio)}")
            points[which].append({"x": ratio.estimate, "d": descriptions[-1], **place})
            if ratio.low is not None and ratio.high is not None:
                spans.append({"x": ratio.low, "x2": ratio.high, **place})
    canvas.intervals(spans, width=1.6)
    for which, shape in zip(series, _SHAPES, strict=False):
        canvas.points(points[which], shape, size=44)
    canvas.names([(name, name, bool(ours) and name not in ours) for name in rows])
    drawing = canvas.draw("opening", title, "; ".join(descriptions))
    keys = [svg.Key(which, MUTED, shape) for which, shape in zip(series, _SHAPES, strict=False)]
    return svg.sheet(title, [svg.Row("", [("", drawing)])], keys if len(series) > 1 else ())


def machine(result: Result) -> str:
    """Where and when a result was measured, as one sentence."""
    facts = result.machine
    return f"{facts['cpu']}, {facts['cores']} cores, kernel {facts['kernel']}, {result.created_utc[:10]}."


def by_threads(cases: Sequence[Case], name: str, base: str) -> dict[str, Interval]:
    """The geometric mean of one over another for each number of threads, as a row of the picture."""
    rows = {}
    for threads in sorted({case.threads for case in cases}):
        ratio = paired.mean_ratio([case for case in cases if case.threads == threads], name, base)
        if ratio is not None:
            rows[words.threads(threads)] = ratio
    return rows


def slower(cases: Sequence[Case], ours: Sequence[str], others: Sequence[str]) -> str:
    """In how many cases the fastest of ours is slower than the fastest of the others, and where most."""
    losses = []
    for case in cases:
        best, rival = case.fastest(ours), case.fastest(others)
        ratio = None if best is None or rival is None else case.ratio(best, rival)
        if ratio is not None and ratio.high is not None and ratio.high < 1:
            place = f"{case.name}, {words.threads(case.threads)}: {paired.text_of(ratio)} times the rate of {rival}"
            losses.append((ratio.estimate, place))
    most = "" if not losses else f": {losses[0][1]}" if len(losses) == 1 else f", most in {min(losses)[1]}"
    return f"Slower than the fastest of the others in {len(losses)} of {len(cases)} cases{most or ', by intervals of 95 %'}."


def counted(cases: Sequence[Case]) -> str:
    """ "18 cases of intset with 1 and 2 threads"."""
    workloads = dict.fromkeys(case.name.split()[0] for case in cases)
    threads = words.listing(str(one) for one in sorted({case.threads for case in cases}))
    plural = "" if threads == "1" else "s"
    return f"{len(cases)} case{'s' * (len(cases) > 1)} of {words.listing(workloads)} with {threads} thread{plural}"
