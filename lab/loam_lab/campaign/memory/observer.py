"""A memory run: the sampler while it runs, and what the kernel says about its fitness before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.campaign.memory import fitness
from loam_lab.campaign.memory.sampler import Sampler
from loam_lab.campaign.process.observer import Observer

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome


# Fewer looks than this show neither a peak nor a mean: a process that is being loaded has hardly any pages.
LOOKS_MIN = 3


class MemoryObserver(Observer):
    """Samples one run.

    root: of the file system in which /proc and /sys are read, for tests
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._sampler = Sampler()
        self._before: dict[str, int] = {}
        self.watch = self._sampler.look

    def begin(self) -> None:
        """See Observer."""
        self._before = fitness.counters(self._root)

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """See Observer; what was observed: see Sampler.result, with faults, fit, reasons, warnings, damon."""
        after = fitness.counters(self._root)
        seen = self._sampler.result(outcome.wall_s)
        if not seen:
            return {}, "ended before its memory could be looked at"
        reasons = [*fitness.reclaimable(self._root), *fitness.taken(self._before, after)]
        if len(seen["samples"]) < LOOKS_MIN:
            times = "once" if len(seen["samples"]) == 1 else f"{len(seen['samples'])} times"
            reasons.append(
                f"its memory was looked at only {times} in {outcome.wall_s * 1000:.0f} ms, so its peak and mean are not "
                "known; measure a longer run"
            )
        warned = fitness.warnings(
            self._before, after, peak_lazy_bytes=seen["peak_lazy_bytes"], peak_bytes=seen["peak_pss_bytes"]
        )
        return {
            **seen, "faults_minor": outcome.faults_minor, "faults_major": outcome.faults_major, "fit": not reasons,
            "reasons": reasons, "warnings": warned, "damon": fitness.damon(self._root),
        }, ""  # fmt: skip
