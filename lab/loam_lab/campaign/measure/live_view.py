"""A campaign as it can be seen from its folder while it runs: what is done, what is left, the intervals so far.

Reads the manifest once and of each journal only what was appended since the last look, and writes nothing.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.judging.statistics.intervals import half_width
from loam_lab.model.cell import Cell
from loam_lab.model.records import value_of
from loam_lab.model.store import folder as folders
from loam_lab.model.store import journal

if TYPE_CHECKING:
    from loam_lab.model.description import Metric
    from loam_lab.model.study import Study


class Watched:
    """One campaign's folder; call poll() for news, then read the rest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest: dict[str, Any] | None = None
        self._read: dict[Path, int] = {}
        self._seen: set[str] = set()
        # Values of the primary metric by cell and copy, then block: (attempt, value).
        self._values: dict[tuple[str, int], dict[int, tuple[int, float]]] = {}
        self._blocks: dict[str, set[int]] = {}
        self.failed = self.repeated = self.disturbed = 0
        self.by = {"run_delay": 0, "steal": 0, "pressure": 0}
        self.worst_share = 0.0
        self.measured_s = 0.0

    def poll(self) -> bool:
        """Read what was appended; returns: whether there was anything.

        raises: LoamError if there is no campaign in the folder, or it is of another version
        """
        if self._manifest is None:
            self._open(folders.read_manifest(self.folder))
        news = False
        for file in journal.files(self.folder):
            for line in self._appended(file):
                news = True
                self._note(line)
        return news

    def _open(self, manifest: dict[str, Any]) -> None:
        from loam_lab.model.description import Description
        from loam_lab.model.study import Study

        self._manifest = manifest
        self.study: Study = Study.model_validate(manifest["plan"]["study"])
        self.cells = [Cell.from_json(value) for value in manifest["plan"]["cells"]]
        described = {e["name"]: Description.model_validate(e["description"]) for e in manifest["executables"]}
        self._metrics: dict[str, Metric] = {}
        for cell in self.cells:
            workload = described[cell.sync].workload(cell.workload)
            if workload is not None:
                self._metrics[cell.key] = workload.metrics[0]

    def _appended(self, file: Path) -> Iterator[dict[str, Any]]:
        """Whole lines since the last look; a line still being written is left for the next one."""
        with file.open("rb") as handle:
            handle.seek(self._read.get(file, 0))
            while (raw := handle.readline()).endswith(b"\n"):
                self._read[file] = self._read.get(file, 0) + len(raw)
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue
                if isinstance(line, dict) and line.get("id") not in self._seen:
                    self._seen.add(line["id"])
                    yield line

    def _note(self, line: Mapping[str, Any]) -> None:
        attempt, key = line.get("attempt", 0), line["cell"]
        ok = line.get("state") == "ok"
        self.failed += not ok
        self.repeated += attempt > 0
        self.measured_s = max(self.measured_s, line.get("t_s", self.measured_s) + line.get("wall_s", 0.0))
        disturbance = line.get("disturbance", {})
        self.disturbed += bool(disturbance.get("contaminated"))
        self.worst_share = max(self.worst_share, disturbance.get("share", 0.0))
        for source in disturbance.get("why", ()):
            self.by[source] = self.by.get(source, 0) + 1
        if line.get("purpose", "timing") != "timing" or line.get("blame"):
            return
        self._blocks.setdefault(key, set()).add(line["block"])
        metric = self._metrics.get(key)
        if metric is None or not ok:
            return
        value = line.get(metric.name) if metric.name in line else value_of(metric, line.get("records", []))
        values = self._values.setdefault((key, line["copy"]), {})
        if value is not None and values.get(line["block"], (-1, 0.0))[0] <= attempt:
            values[line["block"]] = (attempt, value)

    @property
    def done(self) -> int:
        """Runs in the journal."""
        return len(self._seen)

    @property
    def planned(self) -> int:
        """Runs that the plan has, and those that were added because of disturbances."""
        return int((self._manifest or {"plan": {"runs": 0}})["plan"]["runs"]) + self.repeated

    def left_s(self) -> float | None:
        """Seconds for the rest if it takes as long per run as what was measured; None before there is anything."""
        if not self.done or not self.measured_s:
            return None
        return self.measured_s / self.done * max(0, self.planned - self.done)

    def intervals(self) -> list[dict[str, Any]]:
        """The ratio of each cell to its baseline so far, in the plan's order; the baseline's second copy is its own."""
        from loam_lab.judging.statistics.intervals import paired_ratio

        rows = []
        sisters = {json.dumps(_without_allocator(cell), sort_keys=True) + cell.allocator: cell for cell in self.cells}
        for cell in self.cells:
            group = next(group for group in self.study.groups if group.name == cell.group)
            first = self.study.allocators_of(group)[0]
            base = sisters.get(json.dumps(_without_allocator(cell), sort_keys=True) + first)
            copy = int(cell.allocator == first)
            above = self._values.get((cell.key, copy), {})
            below = self._values.get((base.key, 0), {}) if base is not None else {}
            blocks = [block for block in above if block in below and above[block][1] > 0 and below[block][1] > 0]
            if not blocks:
                continue
            ratio = paired_ratio([above[b][1] for b in blocks], [below[b][1] for b in blocks])
            width = half_width(ratio.low, ratio.high)
            rows.append({
                "group": cell.group, "workload": cell.workload, "parameters": dict(cell.parameters),
                "varied": {n: v for n, v in cell.parameters if len(group.levels().get(n, ())) > 1}, "sync": cell.sync,
                "threads": cell.threads, "allocator": cell.allocator, "copy": copy, "metric": self._metrics[cell.key].name,
                "better": self._metrics[cell.key].better, "estimate": ratio.estimate, "low": ratio.low, "high": ratio.high,
                "value": statistics.median(value for _, value in above.values()), "unit": self._metrics[cell.key].unit,
                "n": ratio.n, "half_width": None if math.isinf(width) else width,
            })  # fmt: skip
        return rows

    def running(self) -> bool:
        """Whether a process holds the campaign; asked of the kernel's list of locks, so that no lock is taken for it."""
        try:
            status = (self.folder / journal.LOCK).stat()
            locks = Path("/proc/locks").read_text()
        except OSError:
            return False
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        return any(place in line.split() and "FLOCK" in line for line in locks.splitlines())

    def as_json(self) -> dict[str, Any]:
        """All of it as one document (`loam top --json`)."""
        blocks = [len(runs) for runs in self._blocks.values()]
        return {
            "schema": 1,
            "study": self.study.name,
            "folder": str(self.folder),
            "running": self.running(),
            "done": self.done,
            "planned": self.planned,
            "at_most": self.study.target_width is not None,
            "left_s": self.left_s(),
            "blocks": {"fewest": min(blocks, default=0), "most": max(blocks, default=0)},
            "failed": self.failed,
            "disturbance": {
                "runs": self.disturbed, "repeated": self.repeated, "by": dict(self.by), "worst_share": self.worst_share,
            },
            "intervals": self.intervals(),
        }  # fmt: skip


def _without_allocator(cell: Cell) -> dict[str, Any]:
    return {name: value for name, value in cell.as_json().items() if name != "allocator"}
