"""RSS and PSS of a process tree over time, read from /proc by the lab while the process runs.

Reading takes the measured process's memory lock, so the reading is bounded: after a look that took x of CPU time the
next one comes no sooner than x / SHARE_MAX (FIRST_S, until something could be read).  Hence a run that is sampled is never timed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.base import processes
from loam_lab.model.protocol import ALLOCATOR_VARIABLES

# By this a process knows where to say who serves it: all that run under the allocator have it.
PROOF = "LOAM_PROBE"
SHARE_MAX = 0.01
PERIOD_MIN_S = 0.005
FIRST_S = 0.001
KEPT_MAX = 200
KIB = 1024


@dataclass
class Sample:
    """One look at the whole process tree. t_s: since the process began; the others in bytes; lazy: MADV_FREE pages"""

    t_s: float
    rss: int
    pss: int
    lazy: int


@dataclass
class Sampler:
    """Looks at a process tree; give `look` to execute() as its watch.

    proc: where /proc is, for tests
    """

    proc: Path = Path("/proc")
    _known: set[int] = field(default_factory=set)
    _started_with: set[tuple[int, str]] = field(default_factory=set)
    _kept: list[Sample] = field(default_factory=list)
    _last: Sample | None = None
    _began_s: float | None = None
    _period_s: float = PERIOD_MIN_S
    _looked_s: float = 0.0
    _looks: int = 0
    _most: int = 0
    _peak_rss: int = 0
    _peak_pss: int = 0
    _peak_lazy: int = 0
    _area: float = 0.0

    def look(self, pid: int) -> float:
        """Take one sample; returns the seconds to wait before the next."""
        now_s, used_s = time.monotonic(), time.thread_time()
        if self._began_s is None:
            self._began_s = now_s
        sample = self._sample(pid, now_s - self._began_s)
        cost_s = time.thread_time() - used_s
        self._looked_s += cost_s
        self._looks += 1
        if sample is not None:
            self._add(sample)
        if self._last is None:
            # Nothing could be read yet: a process that is just being loaded has no pages.  A short one must not be
            # missed for it, and there are few such looks.
            return FIRST_S
        return max(self._period_s, cost_s / SHARE_MAX)

    def _sample(self, pid: int, t_s: float) -> Sample | None:
        """The sums over the tree; None where no process of it can be read any more."""
        for root in self._roots(pid):
            self._known |= processes.tree(root, self.proc)
        sums = [0, 0, 0]
        for member in sorted(self._known):
            rollup = _rollup(self.proc / str(member) / "smaps_rollup")
            if rollup is None:
                self._known.discard(member)
            else:
                sums = [total + part for total, part in zip(sums, rollup, strict=True)]
        self._most = max(self._most, len(self._known))
        return Sample(t_s, *sums) if self._known and sums[0] else None

    def _roots(self, pid: int) -> list[int]:
        """The processes that run under the allocator, not what starts or loads them; the process itself where none is
        told to.
        """
        members = processes.tree(pid, self.proc)
        under = [member for member in sorted(members) if self._has(member, PROOF)]
        return under or ([] if self._has(pid, ALLOCATOR_VARIABLES) else [pid])

    def _has(self, pid: int, variable: str) -> bool:
        """Whether a process was started with a variable; one that was is not asked again."""
        if (pid, variable) in self._started_with:
            return True
        try:
            has = f"\0{variable}=".encode() in b"\0" + (self.proc / str(pid) / "environ").read_bytes()
        except OSError:
            return False
        if has:
            self._started_with.add((pid, variable))
        return has

    def _add(self, sample: Sample) -> None:
        if self._last is not None:
            self._area += (self._last.pss + sample.pss) / 2 * (sample.t_s - self._last.t_s)
        self._last = sample
        self._peak_rss = max(self._peak_rss, sample.rss)
        self._peak_pss = max(self._peak_pss, sample.pss)
        self._peak_lazy = max(self._peak_lazy, sample.lazy)
        self._kept.append(sample)
        if len(self._kept) == 2 * KEPT_MAX:
            self._kept = thinned(self._kept)
            # What is kept of a long run is this far apart at least; looking more often would tell nothing more.
            self._period_s = max(self._period_s, (self._kept[-1].t_s - self._kept[0].t_s) / (2 * KEPT_MAX))

    @property
    def processes(self) -> int:
        """The most processes of the tree that lived at one look; 0 where none could be looked at."""
        return self._most

    def result(self, wall_s: float) -> dict[str, Any]:
        """What was seen; bytes and seconds.

        wall_s: how long the run took; the last sample counts until then
        returns: samples [[t_s, rss, pss]], peaks, mean and area of the PSS, how many looks and their share of the time,
        how many processes at most; empty where the process ended before the first look
        """
        if self._last is None:
            return {}
        rest_s = max(0.0, wall_s - self._last.t_s)
        area = self._area + self._last.pss * rest_s
        kept = thinned(self._kept) if len(self._kept) > KEPT_MAX else self._kept
        return {
            "samples": [[round(s.t_s, 6), s.rss, s.pss] for s in kept],
            "peak_rss_bytes": self._peak_rss,
            "peak_pss_bytes": self._peak_pss,
            "peak_lazy_bytes": self._peak_lazy,
            "mean_pss_bytes": round(area / max(wall_s, self._last.t_s, 1e-9)),
            "area_pss_byte_s": area,
            "looks": self._looks,
            "processes": self._most,
            "looking_share": self._looked_s / max(wall_s, 1e-9),
        }


def thinned(samples: list[Sample]) -> list[Sample]:
    """Of every two neighbours the one with more memory, so that peaks stay; an odd one out at the end is kept."""
    pairs = [samples[i : i + 2] for i in range(0, len(samples), 2)]
    return [max(pair, key=lambda sample: sample.pss) for pair in pairs]


def _rollup(file: Path) -> tuple[int, int, int] | None:
    """(RSS, PSS, lazily freed) of one process in bytes; None once it has ended or may not be read."""
    try:
        text = file.read_text()
    except OSError:
        return None
    values = {"Rss:": 0, "Pss:": 0, "LazyFree:": 0}
    for line in text.splitlines()[1:]:
        name, _, rest = line.partition(" ")
        if name in values:
            values[name] = int(rest.split()[0]) * KIB
    return values["Rss:"], values["Pss:"], values["LazyFree:"]
