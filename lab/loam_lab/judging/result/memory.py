"""Memory runs in a result: `memory` of its cells, and their warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from loam_lab.model.result import Memory

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Run

LIVE = "live_bytes"
DAMON = (
    "DAMON is active on this machine; while memory was sampled it could take pages that a program freed lazily "
    "(MADV_FREE), no others; compare memory only between runs under the same setting, or turn it off"
)


def of_cell(runs: Sequence[Run]) -> Memory | None:
    """The memory of a cell, from its memory run, of several that whose peak is the median; None without a good one.

    runs: of the purpose "memory"
    returns: samples [[t_s, rss, pss, live or null]], peaks, mean and area of the PSS in bytes and bytes x seconds,
    faults, and whether it may decide anything (fit) with the reasons why not
    """
    good = sorted(
        (run for run in runs if run.state == "ok" and run.observed),
        key=lambda run: float(run.observed["peak_pss_bytes"]),
    )
    if not good:
        return None
    run = good[len(good) // 2]
    seen = run.observed
    live = [int(line[LIVE]) for line in run.records() if line.get("kind") == "iteration" and LIVE in line]
    inside = run.figure("rss_peak_bytes")
    samples = [[*sample, None] for sample in seen["samples"]]
    if live and samples:
        # The workload counts once, at the end of its timed part: nobody knows its course.
        samples[-1][3] = live[-1]
    return Memory(
        samples=samples,
        # The probe sees the peak from inside; a look from outside may come before or after it.
        peak_rss_bytes=max(seen["peak_rss_bytes"], int(inside or 0)),
        peak_pss_bytes=seen["peak_pss_bytes"],
        mean_pss_bytes=seen["mean_pss_bytes"],
        area_pss_byte_s=seen["area_pss_byte_s"],
        live_peak_bytes=max(live) if live else None,
        faults_minor=seen["faults_minor"],
        faults_major=seen["faults_major"],
        fit=seen["fit"],
        reasons=seen["reasons"],
    )


def of_campaign(runs: Iterable[Run]) -> list[str]:
    """What the reader of all memory figures should know, said once; runs: of the purpose "memory"."""
    return [DAMON] if any(run.observed.get("damon") for run in runs) else []


def warnings(runs: Sequence[Run]) -> list[str]:
    """What the reader of a cell's memory should know; runs: as of_cell."""
    if not runs:
        return []
    run = next((run for run in reversed(runs) if run.state == "ok" and run.observed), None)
    if run is None:
        return [
            f"its memory run failed ({runs[-1].detail}); memory over time is not known; see failures in result.json"
        ]
    unfit = [f"its memory figures decide nothing: {reason}" for reason in run.observed["reasons"]]
    return unfit + list(run.observed["warnings"])
