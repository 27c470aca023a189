"""Cache lines over cores over time: which lines of a simulated run moved most, to which cores, and when.

For each line a strip with a row per core and a column per part of the run, the darker the more often the line came to that
core; beside it a square that tells from which core (row) to which (column).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loam_lab.model.result import Cell, MovedLine
from loam_lab.presenting.report import marks, palette, rounding, svg
from loam_lab.presenting.report.palette import FAINT, INK, MUTED

_WIDTH, _LEFT, _STRIP, _SQUARE = 382, 50, 216, 92
_HEAD, _FOOT, _GAP = 34, 16, 18
_LINES_MAX, _ROWS_MAX = 4, 16
# Of the misses that sharing caused, how many must be of one kind for the line to be called so.
_CLEAR = 0.8
_STEPS = 5


@dataclass(frozen=True)
class Line:
    """One line. transfers, true_sharing, false_sharing: counts; asked_by: a place in the code, "" if not known

    arrived: by core, how often it came in each part of the run; between: from, to, how often; both of a sample
    """

    transfers: int
    true_sharing: int
    false_sharing: int
    asked_by: str
    arrived: Mapping[int, Sequence[int]]
    between: Sequence[tuple[int, int, int]]

    @property
    def sharing(self) -> str:
        """What kind of misses it caused, in words."""
        together = self.true_sharing + self.false_sharing
        if not together:
            return "no miss by sharing"
        share = self.false_sharing / together
        return (
            "false sharing" if share >= _CLEAR else "true sharing" if share <= 1 - _CLEAR else "true and false sharing"
        )

    @property
    def cores(self) -> list[int]:
        """Those that took part."""
        return sorted({*self.arrived, *(core for pair in self.between for core in pair[:2])})


@dataclass(frozen=True)
class Moves:
    """What one cell's run moved. begin_ms, end_ms: of the machine's time; columns: parts of it"""

    begin_ms: float
    end_ms: float
    columns: int
    lines: tuple[Line, ...]


def of_cell(cell: Cell) -> Moves | None:
    """The lines that moved in a cell's first run; None where nothing did, or no simulator was there to see it."""
    moves = cell.moves
    if moves is None or not moves.lines:
        return None
    return Moves(moves.begin_ms, moves.end_ms, moves.columns, tuple(map(_line, moves.lines[:_LINES_MAX])))


def _line(item: MovedLine) -> Line:
    arrived = {int(core): counts for core, counts in item.arrived.items()}
    between = [(before, after, count) for before, after, count in item.between]
    return Line(item.transfers, item.true_sharing, item.false_sharing, item.asked_by, arrived, between)


def legend() -> tuple[svg.Key, ...]:
    """What the shades mean."""
    return svg.Key("seldom", _shade(1)), svg.Key("most often, of this line", _shade(_STEPS))


def remark(allocator: str, moves: Moves) -> str:
    """The line that moved most, in a sentence."""
    first = moves.lines[0]
    asked = f", asked for most often at {first.asked_by}" if first.asked_by else ""
    return (f"{allocator}: line A moved {rounding.count(first.transfers)} times between {len(first.cores)} cores "
            f"({first.sharing}){asked}.")  # fmt: skip


def draw(allocator: str, moves: Moves, name: str) -> svg.Drawing:
    """The lines of one run, the most moved first."""
    parts: list[str] = []
    y = 0.0
    for index, line in enumerate(moves.lines):
        letter = chr(ord("A") + index)
        heading = f"{letter}: {rounding.count(line.transfers)} transfers, {line.sharing}"
        parts.append(marks.text(0, y + 12, heading, size=12, bold=True, room=_WIDTH))
        if line.asked_by:
            parts.append(marks.text(0, y + 26, line.asked_by, size=10, ink=MUTED, room=_WIDTH, hover=line.asked_by))
        y += _HEAD
        drawn, high = _course(line, moves, y)
        parts += [*drawn, *_square(line, y)]
        y += max(high, _SQUARE) + _FOOT + _GAP
    description = "; ".join(
        f"line {chr(ord('A') + index)}, {line.asked_by or 'of unknown code'}: {line.transfers} transfers, {line.sharing}, "
        f"cores {', '.join(map(str, line.cores))}" for index, line in enumerate(moves.lines)
    )  # fmt: skip
    return svg.Drawing(
        name, f"Cache lines that moved between cores, under {allocator}", description, _WIDTH, int(y), "".join(parts)
    )


def _course(line: Line, moves: Moves, top: float) -> tuple[list[str], float]:
    """The strip of one line, and its height."""
    rows = _rows(line.cores)
    high = 14 if len(rows) <= 6 else 6
    wide = _STRIP / max(1, moves.columns)
    sums = [
        [sum(line.arrived[core][at] for core in row if core in line.arrived) for at in range(moves.columns)]
        for row in rows
    ]
    most = max((count for row in sums for count in row), default=0)
    boxes: dict[int, list[str]] = {}
    for place, row in enumerate(sums):
        for at, count in enumerate(row):
            if count:
                box = _box(_LEFT + at * wide, top + place * high, wide, high - 1)
                boxes.setdefault(_step(count, most), []).append(box)
    whole = len(rows) * high
    parts = [marks.rect(_LEFT, top, _STRIP, whole - 1, FAINT)]
    parts += [marks.path("".join(shapes), _shade(step)) for step, shapes in sorted(boxes.items())]
    for place, row in enumerate(rows):
        if high >= 14 or place in (0, len(rows) - 1):
            label = f"core {row[0]}" if len(row) == 1 else f"{row[0]}–{row[-1]}"
            parts.append(
                marks.text(_LEFT - 6, top + place * high + high / 2 + 3, label, size=9, anchor="end", ink=MUTED)
            )
    parts.append(marks.text(_LEFT, top + whole + 11, f"{moves.begin_ms:.3g} ms", size=9, ink=MUTED))
    end = f"{moves.end_ms:.3g} ms"
    parts.append(marks.text(_LEFT + _STRIP, top + whole + 11, end, size=9, anchor="end", ink=MUTED))
    return parts, whole


def _square(line: Line, top: float) -> list[str]:
    """From which core to which."""
    rows = _rows(line.cores)
    place = {core: index for index, row in enumerate(rows) for core in row}
    sums: dict[tuple[int, int], int] = {}
    for before, after, count in line.between:
        at = place[before], place[after]
        sums[at] = sums.get(at, 0) + count
    left, size = _WIDTH - _SQUARE, _SQUARE / max(1, len(rows))
    most = max(sums.values(), default=0)
    boxes: dict[int, list[str]] = {}
    for (before, after), count in sums.items():
        boxes.setdefault(_step(count, most), []).append(_box(left + after * size, top + before * size, size, size))
    parts = [marks.rect(left, top, _SQUARE, _SQUARE, FAINT)]
    parts += [marks.path("".join(shapes), _shade(step)) for step, shapes in sorted(boxes.items())]
    parts.append(marks.text(left, top + _SQUARE + 11, "from ↓ to →", size=9, ink=INK))
    return parts


def _rows(cores: Sequence[int]) -> list[list[int]]:
    """The cores, some to a row where there are more than rows."""
    each = math.ceil(len(cores) / _ROWS_MAX) or 1
    return [list(cores[at : at + each]) for at in range(0, len(cores), each)]


def _box(x: float, y: float, wide: float, high: float) -> str:
    return f"M{marks.px(x)},{marks.px(y)}h{marks.px(wide)}v{marks.px(high)}h-{marks.px(wide)}z"


def _step(count: int, most: int) -> int:
    """How dark, from 1 to as dark as there is: by the root, so that what is rare is seen."""
    return max(1, math.ceil(_STEPS * math.sqrt(count / most)))


def _shade(step: int) -> str:
    return palette.mix(palette.LEVEL, palette.WORSE, 0.2 + 0.8 * (step - 1) / (_STEPS - 1))
