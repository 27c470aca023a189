"""When a campaign has measured enough: every interval of a column is narrow enough.  Never because of what it shows.

Stopping as soon as a difference looks significant would find differences where there are none.  The width of an
interval says nothing of where it lies, so it may decide.  Two kinds of intervals count: each allocator's ratio to the
baseline, and what the study's claims compare, which may be two synchronisations under one allocator.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.judging.claims import predicates
from loam_lab.judging.claims.values import Evidence, names
from loam_lab.judging.statistics import contrasts, data
from loam_lab.judging.statistics.intervals import half_width
from loam_lab.model.store import journal

if TYPE_CHECKING:
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.judging.statistics.intervals import Interval
    from loam_lab.model.cell import Cell
    from loam_lab.model.study import Study

BATCH = 5
# The half-width asked for where the user gives none, as a fraction.
TARGET_WIDTH = 0.02


class Narrow:
    """Asked before each turn: which columns have only intervals whose half-width is at most the study's target_width?

    plan, study: of the campaign; folder: with its journal
    """

    def __init__(self, study: Study, plan: Plan, folder: Path) -> None:
        self._study, self._plan, self._folder = study, plan, folder
        self._columns = {run.cell.key: run.column for block in (plan.turns or [[]])[0] for run in block}
        self._least = {group.name: study.blocks_of(group) for group in study.groups}
        self._loaded: tuple[int, Campaign] | None = None

    def _campaign(self) -> Campaign:
        """The campaign so far; read again only once its journal has grown: a resumed one asks for every turn at once."""
        size = sum(file.stat().st_size for file in journal.files(self._folder))
        if self._loaded is None or self._loaded[0] != size:
            self._loaded = (size, data.load(self._folder))
        return self._loaded[1]

    def close(self, turn: int, closed: AbstractSet[int]) -> AbstractSet[int]:
        """Columns that are narrow enough after `turn` blocks; closed: those known already.

        Judged at every BATCH-th turn from a group's own number of blocks on, so that reading the journal stays cheap, and
        by the blocks before that turn alone, so that a resumed campaign decides as the interrupted one did
        """
        target = self._study.target_width
        least = min(self._least.values())
        everything = closed >= set(self._columns.values())
        if target is None or turn < least or (turn - least) % BATCH or everything:
            return frozenset()
        campaign = self._campaign().before(turn)
        widths: dict[int, float] = {}
        for columns, width in (*self._to_baselines(campaign), *self._of_claims(campaign)):
            for column in columns:
                widths[column] = max(widths.get(column, 0.0), width)
        ready = {column for cell, column in self._columns_of(campaign) if turn >= self._least[cell.group]}
        return frozenset(column for column in ready - closed if widths.get(column, 0.0) <= target)

    def _columns_of(self, campaign: Campaign) -> Iterator[tuple[Cell, int]]:
        return ((cell, self._columns[cell.key]) for cell in campaign.cells)

    def _to_baselines(self, campaign: Campaign) -> Iterator[tuple[set[int], float]]:
        for cell, column in self._columns_of(campaign):
            ratio = contrasts.to_baseline(campaign, cell)
            # Where nothing is compared, or every run failed, more blocks would make nothing narrower.
            if ratio is not None:
                yield {column}, half_width(ratio.low, ratio.high)

    def _of_claims(self, campaign: Campaign) -> Iterator[tuple[set[int], float]]:
        """Of each predicate that something was measured for: the columns that it reads, and its widest interval."""
        for claim in self._study.claims:
            decisions = predicates.decide(Evidence(campaign), claim.predicates, claim.all_but)
            for predicate, decision in zip(claim.predicates, decisions, strict=True):
                read = predicate.selections()
                columns = {
                    column for cell, column in self._columns_of(campaign) if any(names(one, cell) for one in read)
                }
                yield columns, max((_width(one.interval) for one in decision.comparisons), default=0.0)


def _width(of: Interval) -> float:
    """The half-width; 0 for what was counted and never varies, be it 0 itself."""
    return 0.0 if of.low is not None and of.low == of.high else half_width(of.low, of.high)
