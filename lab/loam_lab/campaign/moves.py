"""The lines that moved between the cores of a simulated machine, and when: what a timed run has beside its records.

The simulator counts them anyway, and writing them down when the program has ended changes nothing in the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.process.observer import Observer
from loam_lab.subjects import symbols

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome

STATISTICS = "LOAM_SIM_STATISTICS"
# As many lines as a reader looks at; the simulator has the course of eight.
LINES_MAX = 6


class MovesObserver(Observer):
    """Has the simulator write down what it counted.

    program: that runs; its line table says who asked for a line
    """

    def __init__(self, scratch: Path, program: Path) -> None:
        self._file, self._program = scratch / "moves", program
        self.environment = {STATISTICS: str(self._file)}

    def begin(self) -> None:
        """See Observer."""
        self._file.unlink(missing_ok=True)

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """See Observer; a run that wrote nothing has failed for reasons of its own."""
        try:
            return {"moves": read(self._file.read_text(), self._program)}, ""
        except (OSError, KeyError, TypeError, ValueError):
            return {}, ""


def read(text: str, program: Path) -> dict[str, Any]:
    """What a result has of the simulator's statistics.

    returns: begin_ms, end_ms (of the machine's time, from the first transfer of these lines to the last), one_in (of so many
    transfers one is in arrived and between), columns (of time), lines: the most moved first, each with transfers, true_sharing,
    false_sharing, asked_by ("" where it is not known), arrived by core and column, between as [from, to, count]
    raises: KeyError, TypeError or ValueError where the text has not the simulator's form
    """
    statistics = json.loads(text)
    lines = [line for line in statistics["lines"][:LINES_MAX] if line["arrived"]]
    sites = [symbols.Site(number, str(line["sites"][0]["object"]), int(line["sites"][0]["address"]))
             for number, line in enumerate(lines) if line["sites"]]  # fmt: skip
    try:
        places = symbols.places(sites, program, paths.root())
    except LoamError:  # addr2line is missing: the lines are worth having without names
        places = {}
    begin_ms, end_ms = (
        int(statistics[name]) / int(statistics["megahertz"]) / 1000 for name in ("moves_begin", "moves_end")
    )
    return {
        "begin_ms": begin_ms, "end_ms": end_ms, "one_in": int(statistics["moves_one_in"]),
        "columns": len(lines[0]["arrived"][0]["counts"]) if lines else 0,
        "lines": [_line(line, places.get(number)) for number, line in enumerate(lines)],
    }  # fmt: skip


def _line(line: Mapping[str, Any], place: symbols.Place | None) -> dict[str, Any]:
    own = place.own if place else None
    return {
        "transfers": int(line["transfers"]), "true_sharing": int(line["true_sharing"]),
        "false_sharing": int(line["false_sharing"]), "asked_by": f"{own.place} ({own.function})" if own else "",
        "arrived": {str(int(one["core"])): [int(count) for count in one["counts"]] for one in line["arrived"]},
        "between": [[int(pair["from"]), int(pair["to"]), int(pair["count"])] for pair in line["between"]],
    }  # fmt: skip
