"""When a campaign has measured enough: every interval of a column is narrow enough.  Never because of what it shows.

Stopping as soon as a difference looks significant would find differences where there are none.  The width of an
interval says nothing of where it lies, so it may decide.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.judging.statistics import contrasts, data
from loam_lab.judging.statistics.intervals import half_width
from loam_lab.model.store import journal

if TYPE_CHECKING:
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.study import Study

BATCH = 5
# The half-width asked for where the user gives none, as a fraction.
TARGET_WIDTH = 0.02


class Narrow:
    """Asked before each turn: which columns have only ratios whose half-width is at most the study's target_width?

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
        campaign = self._campaign()
        later = frozenset(range(turn, len(self._plan.turns)))
        widths: dict[int, float] = {}
        for cell in campaign.cells:
            column = self._columns[cell.key]
            if column in closed or turn < self._least[cell.group]:
                continue
            ratio = contrasts.to_baseline(campaign, cell, without=later)
            # Where nothing is compared, or every run failed, more blocks would make nothing narrower.
            width = 0.0 if ratio is None else half_width(ratio.low, ratio.high)
            widths[column] = max(widths.get(column, 0.0), width)
        return frozenset(column for column, width in widths.items() if width <= target)
