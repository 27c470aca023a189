"""Which run comes next: the plan's turns, disturbed blocks once more, and no block that nobody needs.

A block in which one run was disturbed is run again whole, because its other runs were measured to be compared with that
one.  It is repeated after its turn, at most twice; all attempts are kept, and the last one counts.  What is repeated
follows from the journal alone, so that a resumed campaign goes on exactly as the interrupted one would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from loam_lab.campaign.measure import plan as plans
from loam_lab.model.cell import PlannedRun

ATTEMPTS_MAX = 3
# Of the planned runs.  A machine that needs more is not fit for measuring, and waiting for it would be no method.
REPEATS_SHARE_MAX = 0.25

Line = Mapping[str, Any]


class Schedule:
    """The runs still to do, in order; iterate once.

    repeated: runs of further attempts so far; refused: blocks that stayed disturbed because no more repetitions are
    allowed, or there was no time; closed: columns that need no more blocks
    """

    def __init__(
        self,
        plan: plans.Plan,
        line: Callable[[PlannedRun], Line | None],
        *,
        stops: Callable[[int], bool] = lambda turn: False,
        close: Callable[[int, AbstractSet[int]], AbstractSet[int]] = lambda turn, closed: frozenset(),
        sensitive: Callable[[PlannedRun], bool] = lambda run: True,
        spare: Callable[[int, int], bool] = lambda turn, runs: True,
        minimum: int | None = None,
    ) -> None:
        """What is known from before is asked again for each run, so that this and an earlier start are one.

        line: a run's line of the journal, None while it has none; stops: whether no further turn is to begin
        close: columns that need none from this turn on, given those known; it must follow from the turns before
        sensitive: whether what a run is compared by depends on time; minimum: turns planned for sure, None for all
        spare: whether there is time to repeat so many runs of a turn: blocks that were planned go before
        """
        self._plan, self._line, self._stops, self._close = plan, line, stops, close
        self._sensitive, self._spare = sensitive, spare
        self._minimum = len(plan.turns) if minimum is None else minimum
        self.repeated = 0
        self.refused = 0
        self.closed: set[int] = set()

    def __iter__(self) -> Iterator[PlannedRun]:
        for batch in self.batches():
            for block in batch:
                yield from block

    def batches(self) -> Iterator[list[list[PlannedRun]]]:
        """Whole blocks, without runs that are known, that may be measured in any order and at the same time.

        The runs of a batch must be known, or given up, before the next one is asked for.
        """
        if special := self._missing([run for run in self._plan.runs if not run.timing]):
            yield [special]
        for number, turn in enumerate(self._plan.turns):
            self.closed |= self._close(number, self.closed)
            blocks = [block for block in turn if block[0].column not in self.closed]
            if missing := [left for block in blocks if (left := self._missing(block))]:
                # A turn that was begun before is finished, whatever would be decided of it now.
                if not any(self._line(run) for block in blocks for run in block) and self._stops(number):
                    return
                yield missing
            yield from self._repetitions(number, blocks)

    def _repetitions(self, turn: int, blocks: Sequence[Sequence[PlannedRun]]) -> Iterator[list[list[PlannedRun]]]:
        for first in blocks:
            block: Sequence[PlannedRun] = first
            for attempt in range(1, ATTEMPTS_MAX):
                if not self.disturbed(block):
                    break
                allowed = self.repeated + len(block) <= REPEATS_SHARE_MAX * self._planned(turn)
                if not allowed or not self._spare(turn, len(block)):
                    self.refused += 1
                    break
                block = plans.again(self._plan, first, attempt)
                self.repeated += len(block)
                if missing := self._missing(block):
                    yield [missing]

    def disturbed(self, block: Sequence[PlannedRun]) -> bool:
        """Whether a good run of the block lost so much to others that the block has to be run again."""
        if not any(self._sensitive(run) for run in block):
            return False
        lines = [line for run in block if (line := self._line(run)) is not None]
        return any(line["state"] == "ok" and line.get("disturbance", {}).get("contaminated") for line in lines)

    def _missing(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        return [run for run in runs if self._line(run) is None]

    def _planned(self, turn: int) -> int:
        """Timing runs that are planned for sure at this point."""
        return sum(len(block) for blocks in self._plan.turns[: max(self._minimum, turn + 1)] for block in blocks)
