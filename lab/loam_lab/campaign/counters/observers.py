"""Counting runs: hardware counters around the work or the process, or the process inside valgrind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.campaign.counters import events, valgrind
from loam_lab.campaign.counters.marks import marked
from loam_lab.campaign.process.observer import Observer
from loam_lab.model.records import parse, totals

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome


class PerfObserver(Observer):
    """Hardware counters of one run: of a workload that marks its work those that it opens itself, else of all it does.

    wanted: events, None for all of this processor
    """

    def __init__(self, wanted: Iterable[events.Event] | None = None) -> None:
        self._wanted = tuple(wanted) if wanted is not None else events.events()
        self._counting: events.Counting | None = None
        self._inside = False

    def command(self, argv: Sequence[str]) -> list[str]:
        """See Observer."""
        self._inside = marked(argv[0])
        if self._inside:
            self.environment = {"LOAM_COUNT_EVENTS": events.as_text(self._wanted)}
        return list(argv)

    def begin(self) -> None:
        """See Observer."""
        self._counting = events.Counting(self._wanted)
        if self._inside:
            # Only to know why what is refused is refused: two sets of counters would share the registers.
            self._counting.close()

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """See Observer; observed: {"source", "events": by name, "shares": of the time it counted, by name}."""
        assert self._counting is not None, "begin() comes first"
        read = events.counts_of(totals(parse(outcome.records).lines)) if self._inside else self._counting.read()
        if not any(count.value > 0 for count in read.values()):
            why = next(iter(self._counting.refused.values()), "all counters stood still")
            return {}, f"nothing was counted: {why}"
        return {
            "source": "perf_event",
            "events": {name: count.value for name, count in read.items()},
            "shares": {name: round(count.share, 4) for name, count in read.items()},
        }, ""  # fmt: skip

    def close(self) -> None:
        """See Observer."""
        if self._counting is not None:
            self._counting.close()


class ValgrindObserver(Observer):
    """One run inside valgrind.

    tool: "callgrind" or "cachegrind"; options: further ones of the tool; scratch: folder for its files
    """

    # Valgrind takes 30 to 100 times as long as the processor.
    timeout_min_s = 1800.0

    def __init__(self, tool: str, options: Sequence[str], scratch: Path) -> None:
        self._tool, self._options, self._scratch = tool, options, scratch

    def command(self, argv: Sequence[str]) -> list[str]:
        """See Observer."""
        return valgrind.command(self._tool, argv, self._scratch, self._options)

    def begin(self) -> None:
        """See Observer."""
        valgrind.clear(self._scratch)

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """See Observer; observed: {"source", "events": by valgrind's name, "caches", "version"}."""
        counted, caches, problem = valgrind.read(self._scratch, outcome.pid)
        if problem:
            return {}, problem
        return {"source": self._tool, "events": counted, "caches": caches, "version": valgrind.available()[1]}, ""
