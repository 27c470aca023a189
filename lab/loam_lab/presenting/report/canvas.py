"""The skeleton that all row panels share: names left of a plot of fixed width, figures right of it, numbered rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loam_lab.presenting.report import marks, rounding, svg
from loam_lab.presenting.report.palette import FAINT, INK, MUTED

LEFT, PLOT, RIGHT = 116, 196, 70
TOP, BOTTOM, ROW = 20, 38, 22

Mark = dict[str, Any]


@dataclass
class Canvas:
    """A panel under construction: layers over a plot whose x axis runs over domain and whose rows are numbered."""

    rows: int
    domain: tuple[float, float]
    title: str
    ticks: Sequence[float]
    row: int = ROW
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        bottom = TOP + self.rows * self.row
        decimals = rounding.tick_decimals(self.ticks)
        labelled = -1e9
        for tick in self.ticks:
            x, label = self._x(tick), rounding.fixed(tick, decimals)
            self.parts.append(marks.line(x, TOP, x, bottom, FAINT))
            room = 3 * len(label) + 5
            if x - room < labelled:
                continue
            labelled = x + room
            self.parts.append(marks.text(x, bottom + 15, label, size=11, anchor="middle", ink=MUTED))
        if self.title:
            middle = LEFT + PLOT / 2
            self.parts.append(
                marks.text(middle, bottom + 31, self.title, size=11, anchor="middle", ink=MUTED, room=PLOT + 100)
            )

    def _x(self, value: float) -> float:
        low, high = self.domain
        return LEFT + (value - low) / (high - low) * PLOT

    def _y(self, row: float) -> float:
        return TOP + (row + 0.5) * self.row

    def names(self, labels: Sequence[tuple[str, str, bool]]) -> None:
        """Row names. labels: (text, hover text, whether the row is a remark and not a competitor)."""
        for row, (text, hover, aside) in enumerate(labels):
            ink = MUTED if aside else INK
            self.parts.append(
                marks.text(LEFT - 10, self._y(row) + 4, text, anchor="end", ink=ink, hover=hover, room=LEFT - 14)
            )

    def figures(self, texts: Sequence[str], head: str = "", symbols: Sequence[str] = ()) -> None:
        """The column of figures right of the plot, one symbol behind each; head stands above it."""
        right = LEFT + PLOT + RIGHT - (22 if symbols else 4)
        for row, text in enumerate(texts):
            if text:
                self.parts.append(marks.text(right, self._y(row) + 4, text, anchor="end"))
        if head:
            self.parts.append(marks.text(right, TOP - 5, head, size=11, anchor="end", ink=MUTED))
        for row, text in enumerate(symbols):
            if text:
                x = LEFT + PLOT + RIGHT - 9
                self.parts.append(marks.text(x, self._y(row) + 4, text, size=10, anchor="middle"))

    def notes(self, texts: Sequence[Mark]) -> None:
        """Words inside the plot, for rows with nothing to draw: {"y", "t"}."""
        for mark in texts:
            self.parts.append(marks.text(LEFT + 2, self._y(mark["y"]) + 4, mark["t"], ink=MUTED, italic=True))

    def edges(self, signs: Sequence[Mark]) -> None:
        """Signs at the left or right end of a row for what lies beyond the axis: {"y", "t", "d", "right"}."""
        for mark in signs:
            x, anchor = (LEFT + PLOT + 2, "start") if mark["right"] else (LEFT - 2, "end")
            self.parts.append(
                marks.text(x, self._y(mark["y"]) + 4, mark["t"], anchor=anchor, ink=MUTED, hover=mark["d"])
            )

    def reference(self, x: float, *, margin: float = 0.0) -> None:
        """A thin line over all rows, with a faint band of that relative margin around it."""
        if not self.domain[0] <= x <= self.domain[1]:
            return
        bottom = TOP + self.rows * self.row
        if margin:
            low, high = max(self.domain[0], x * (1 - margin)), min(self.domain[1], x * (1 + margin))
            left = self._x(low)
            self.parts.append(marks.rect(left, TOP, self._x(high) - left, bottom - TOP, FAINT, opacity=0.5))
        self.parts.append(marks.line(self._x(x), TOP, self._x(x), bottom, MUTED, dash="2,2"))

    def rug(self, dots: Sequence[Mark]) -> None:
        """Single measurements as small dots just under their row: {"x", "y", "c"}."""
        by_colour: dict[str, list[tuple[float, float]]] = {}
        for mark in dots:
            by_colour.setdefault(mark["c"], []).append((self._x(mark["x"]), self._y(mark["y"]) + 6.5))
        self.parts += [marks.dots(places, 1.4, colour, 0.5) for colour, places in by_colour.items()]

    def intervals(self, lines: Sequence[Mark], width: float = 2.4) -> None:
        """Interval lines: {"x", "x2", "y", "c"}."""
        for mark in lines:
            y = self._y(mark["y"])
            self.parts.append(
                marks.line(self._x(mark["x"]), y, self._x(mark["x2"]), y, mark["c"], width=width, cap="round")
            )

    def points(self, estimates: Sequence[Mark], shape: str = "circle", *, hollow: bool = False, size: int = 54) -> None:
        """Estimates with hover text: {"x", "y", "c", "d"}."""
        for mark in estimates:
            x, y = self._x(mark["x"]), self._y(mark["y"])
            self.parts.append(marks.point(x, y, shape, mark["c"], hollow=hollow, size=size, hover=mark["d"]))

    def bars(self, segments: Sequence[Mark]) -> None:
        """Parts of horizontal bars with hover text: {"x", "x2", "y", "y2", "c", "d"}."""
        for mark in segments:
            x, y = self._x(mark["x"]), self._y(mark["y"])
            width, height = self._x(mark["x2"]) - x, self._y(mark["y2"]) - y
            self.parts.append(marks.rect(x, y, width, height, mark["c"], hover=mark["d"]))

    def stems(self, lines: Sequence[Mark]) -> None:
        """Short upright lines across a row: {"x", "y", "y2", "d"}."""
        for mark in lines:
            x = self._x(mark["x"])
            self.parts.append(
                marks.line(x, self._y(mark["y"]), x, self._y(mark["y2"]), INK, width=1.4, hover=mark["d"])
            )

    def draw(self, name: str, title: str, description: str) -> svg.Drawing:
        """The finished panel."""
        height = TOP + self.rows * self.row + BOTTOM
        return svg.Drawing(name, title, description, LEFT + PLOT + RIGHT, height, "".join(self.parts))
