"""Histograms that workloads record, added up over the runs of a cell."""

from __future__ import annotations

from collections.abc import Iterable

from loam_lab.judging.statistics.data import Run
from loam_lab.model.result import Histogram


def total(runs: Iterable[Run], name: str) -> Histogram | None:
    """Counts of all good runs by lower bound; None where no run has the histogram.

    Runs whose bounds differ from the first one's are of another build: they are left out, not added to wrong bars.
    """
    bounds: list[float] | None = None
    counts: list[float] = []
    for run in runs:
        if run.state != "ok":
            continue
        for line in run.others:
            if line.get("kind") != "histogram" or line.get("name") != name:
                continue
            if bounds is None:
                bounds, counts = list(line["bounds"]), [0] * len(line["bounds"])
            if list(line["bounds"]) == bounds and len(line["counts"]) == len(bounds):
                counts = [a + int(b) for a, b in zip(counts, line["counts"], strict=True)]
    return None if bounds is None else Histogram(bounds, counts)
