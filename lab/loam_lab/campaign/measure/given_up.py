"""What earlier runs of a campaign say about later ones: which cells are given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loam_lab.model.cell import SURROUNDED, Cell

# A cell that hangs is given this many chances; each further one would cost a whole timeout and tell nothing new.
TIMEOUTS_MAX = 2


class GivenUp:
    """Cells for which further runs would only repeat what is known."""

    def __init__(self) -> None:
        self._timeouts: dict[str, int] = {}
        self._unproven: set[tuple[str, str]] = set()
        self._proven: set[tuple[str, str]] = set()
        self._changed: set[str] = set()

    def note(self, cell: Cell, line: Mapping[str, Any]) -> None:
        """Remember what became of a run."""
        if line["purpose"] in SURROUNDED:
            return
        place = cell.allocator, cell.sync
        if line["state"] == "timeout":
            self._timeouts[cell.key] = self._timeouts.get(cell.key, 0) + 1
        # One that was proven before works; a later run that is not was disturbed, and the next one may be fine.
        if line["state"] == "ok":
            self._proven.add(place)
        if line["state"] == "unproven" and place not in self._proven:
            self._unproven.add(place)

    def change(self, cell: Cell) -> None:
        """Remember that a file of the cell's subject is not what it was; a later start of the campaign looks again."""
        self._changed.add(cell.key)

    def reason(self, cell: Cell) -> str:
        """Why the cell is given up; "" if it is not."""
        if cell.key in self._changed:
            return "changed"
        if (cell.allocator, cell.sync) in self._unproven:
            return "unproven"
        return "timeout" if self._timeouts.get(cell.key, 0) >= TIMEOUTS_MAX else ""
