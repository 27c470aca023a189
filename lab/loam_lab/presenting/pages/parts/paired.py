"""Cases that several programs ran in the same paired blocks: ratios, geometric means, and tables of them.

A case is a workload with its parameters at one thread count; what is compared in it (synchronisations, allocators) goes
by name.  Ratios are of paired blocks, with signed-rank intervals of 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from loam_lab.base import paths, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.judging.statistics import intervals
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Cell, Result
from loam_lab.model.store.folder import read_result
from loam_lab.presenting.pages.parts import writing
from loam_lab.presenting.report import rounding


@dataclass
class Case:
    """One workload, its parameters and a thread count: values by name and block."""

    name: str
    threads: int
    values: dict[str, list[float | None]] = field(default_factory=dict)

    def ratio(self, above: str, below: str) -> Interval | None:
        """The paired ratio of two; None where one was not measured."""
        logs = self.logs(above, below)
        return None if logs is None else intervals.exponential(intervals.hodges_lehmann(logs))

    def logs(self, above: str, below: str) -> list[float] | None:
        """Logarithms of the ratios of the blocks that both have."""
        if above not in self.values or below not in self.values:
            return None
        pairs = zip(self.values[above], self.values[below], strict=False)
        logs = [float(np.log(a / b)) for a, b in pairs if a and b]
        return logs or None

    def fastest(self, names: Sequence[str]) -> str | None:
        """Of some the one with the highest median."""
        known = [(float(np.median([v for v in self.values[n] if v])), n) for n in names if any(self.values.get(n, ()))]
        return max(known)[1] if known else None


def by_block(cell: Cell, metric: str) -> list[float | None]:
    """A metric of a cell with its values at the places of their blocks; None where a block's run failed.

    Without the gaps the values of two cells would be of different blocks, from the first failed run on.
    """
    metrics = cell.metrics
    values = metrics[metric].values
    # Only the workload's primary metric names its blocks; the others are of the same runs.
    named = next((other.blocks for other in metrics.values() if other.blocks), None)
    blocks = named if named is not None and len(named) == len(values) else range(len(values))
    value_of_block = dict(zip(blocks, values, strict=True))
    return [value_of_block.get(block) for block in range(max(value_of_block, default=-1) + 1)]


def table(own: Sequence[Case], shown: Sequence[str], base: str, rivals: Sequence[str]) -> list[str]:
    """Rows of a Markdown table: the rate of `base` and the ratios of the others to it, the fastest of `rivals` in bold."""
    best = [case.fastest(rivals) for case in own]
    lines = [
        "| | " + " | ".join(case.name for case in own) + " | geometric mean |",
        "| --- |" + " ---: |" * (len(own) + 1),
    ]
    for name in [base, *(other for other in shown if other != base)]:
        texts = [rate(case, name) if name == base else text_of(case.ratio(name, base)) for case in own]
        cells = [f"**{text}**" if winner == name else text for text, winner in zip(texts, best, strict=True)]
        mean = "1" if name == base else text_of(mean_ratio(own, name, base))
        lines.append(f"| {name} | " + " | ".join([*cells, mean]) + " |")
    return lines


def rate(case: Case, name: str) -> str:
    """The median of one, in millions a second."""
    values = [value for value in case.values.get(name, ()) if value]
    return f"{rounding.significant(float(np.median(values)) / 1e6)} M/s" if values else rounding.MISSING


def mean_ratio(own: Sequence[Case], above: str, below: str) -> Interval | None:
    """The geometric mean over the cases that have both; None where they have different numbers of blocks."""
    rows = [logs for case in own if (logs := case.logs(above, below)) is not None]
    if not rows or len({len(row) for row in rows}) != 1:
        return None
    return intervals.geometric_mean(rows)


def leader(cases: Sequence[Case], names: Sequence[str]) -> str | None:
    """Of those that every case has, the one with the best geometric mean of medians."""
    means = []
    for name in names:
        medians = [float(np.median([v for v in case.values.get(name, ()) if v] or [0.0])) for case in cases]
        if medians and min(medians) > 0:
            means.append((float(np.mean(np.log(medians))), name))
    return max(means)[1] if means else None


def text_of(ratio: Interval | None) -> str:
    """Ratio and interval."""
    if ratio is None:
        return rounding.MISSING
    return f"{rounding.ratio(ratio.estimate, ratio.low, ratio.high)} {rounding.interval(ratio.estimate, ratio.low, ratio.high)}"


def write_page(
    given: Path | None,
    page: Path,
    text_of_result: Callable[[Result], str],
    picture_of_result: Callable[[Result], str] | None = None,
) -> int:
    """Write the page of a result's folder; None: the newest result.

    text_of_result: raises ValueError if the result is of another kind; picture_of_result: that the page begins with, if any
    returns: the exit status
    raises: LoamError where there is nothing to write
    """
    folder = paths.latest_result() if given is None else given
    result = read_result(folder)
    try:
        text = text_of_result(result)
    except ValueError as problem:
        raise LoamError(str(folder), None, str(problem)) from problem
    if picture_of_result is not None:
        page.with_suffix(".svg").write_text(picture_of_result(result))
    return writing.write(page, text)


def page_parser(name: str, text: str | None) -> subcommands.Parser:
    """The options of a page that is made of a result: the result's folder, and --page.

    name: of the page; text: the docstring of its module
    """
    parser = subcommands.Parser("page", name, text)
    parser.add_argument("result", type=Path, nargs="?", help="folder of a result; the newest one without it")
    parser.add_argument("--page", type=Path, default=writing.place(name), help="file to write")
    return parser


def write_page_of_ours(
    parser: subcommands.Parser,
    arguments: Sequence[str],
    judged: str,
    text_of_result: Callable[[Result, str], str],
    picture_of_result: Callable[[Result, str], str] | None = None,
) -> int:
    """Write the page of a result in which one name is ours (--ours).

    judged: help of --ours; text_of_result, picture_of_result: as write_page() has them, of a result and our name
    returns: as write_page
    """
    parser.add_argument("--ours", default="loam", help=judged)
    options = parser.parse_args(arguments)
    return write_page(
        options.result,
        options.page,
        lambda result: text_of_result(result, options.ours),
        None if picture_of_result is None else lambda result: picture_of_result(result, options.ours),
    )
