"""What the newest A/A comparison of this machine says: how small a difference it can show."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.model.result import Result
from loam_lab.model.store.folder import read_result
from loam_lab.subjects import machine

RECENT_S = 7 * 24 * 3600.0
_LOOKED_AT = 20


@dataclass(frozen=True)
class Fitness:
    """reach: the largest difference that an A/A interval of that result allows, as a fraction; age_s: since it was written."""

    reach: float
    result: str
    age_s: float


def newest(results: Path) -> Fitness | None:
    """From the newest result in that folder that is of this machine, at most a week old, and has an A/A sentinel."""
    files = []
    for file in results.glob("*/result.json"):
        try:
            files.append((file.stat().st_mtime, file))
        except OSError:
            continue
    files = [(at, file) for at, file in files if not file.parent.is_symlink()]
    for at, file in sorted(files, reverse=True)[:_LOOKED_AT]:
        age = time.time() - at
        if age > RECENT_S:
            return None
        try:
            reach = reach_of(read_result(file))
        except LoamError:
            continue  # a result of another version, or half a file: an older one may do
        if reach is not None:
            return Fitness(reach, file.parent.name, max(age, 0.0))
    return None


def reach_of(result: Result) -> float | None:
    """The largest A/A difference of a result; None where it has no sentinel or is of another machine."""
    if result.machine.get("fingerprint") != machine.identity():
        return None
    ratios = [cell.ratio_to_baseline for cell in result.cells if cell.copy == 1]
    ends = [one.reach for one in ratios if one and one.low is not None and one.high is not None]
    return max(ends, default=None)


def sentence(fitness: Fitness | None) -> str:
    """The verdict on the first line of doctor."""
    if fitness is None:
        return "Fitness unknown: no recent A/A comparison of this machine here; run ./loam tour"
    size = f"{100 * fitness.reach:.1f}"
    return (
        f"Fit for differences of about {size} %, by the A/A comparison of {fitness.result}, {_ago(fitness.age_s)} ago"
    )


def _ago(seconds: float) -> str:
    for length, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "less than a minute"
