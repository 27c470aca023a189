"""A plot over two axes, linear or logarithmic: what lines, ribbons and scattered points are drawn on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from loam_lab.presenting.report import marks, rounding, svg
from loam_lab.presenting.report.palette import FAINT, MUTED

WIDTH, LEFT, TOP, RIGHT, BOTTOM = 382, 58, 12, 14, 42
HEIGHT = 250


@dataclass(frozen=True)
class Axis:
    """One axis. low, high: its ends in the values' own unit; factor: what a value is divided by for its label."""

    title: str
    low: float
    high: float
    log: bool = False
    factor: float = 1.0
    ticks: tuple[float, ...] = ()

    def place(self, value: float) -> float:
        """Where a value lies, 0 to 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marked(self) -> list[tuple[float, str]]:
        """(value, label) of the ticks."""
        if self.ticks:
            values = list(self.ticks)
        elif self.log:
            values = log_ticks(self.low, self.high)
        else:
            values = [tick * self.factor for tick in rounding.ticks(self.low / self.factor, self.high / self.factor)]
        shown = [float(f"{value / self.factor:.9g}") for value in values]
        if self.log or self.ticks:
            return [(value, short(label)) for value, label in zip(values, shown, strict=True)]
        decimals = rounding.tick_decimals(shown)
        return [(value, rounding.fixed(label, decimals)) for value, label in zip(values, shown, strict=True)]


def short(value: float) -> str:
    """A tick's number in few characters: 64, 1 Ki, 0.05."""
    for power, name in ((20, "Mi"), (10, "Ki")):
        if value >= 1 << power and value % (1 << power) == 0:
            return f"{int(value) >> power}\u202f{name}"
    return rounding.fixed(value, rounding.tick_decimals([value]))


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten inside [low, high]; the powers alone where that is plenty, even steps where the range
    is too narrow for three of them."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        values = [step * 10.0**power for power in decades for step in steps]
        inside = [value for value in values if low * 0.999 <= value <= high * 1.001]
        if len(inside) >= 3:
            return inside
    return rounding.ticks(low, high)


def span(values: Sequence[float], *, log: bool = False, zero: bool = False, room: float = 0.06) -> tuple[float, float]:
    """Ends of an axis that holds the values with some room; zero: it starts there."""
    low, high = min(values), max(values)
    if log:
        if high <= low:
            return low / 1.2, high * 1.2
        extra = (high / low) ** room
        return low / extra, high * extra
    if zero:
        return 0.0, high * (1 + room) or 1.0
    if high <= low:
        return low - abs(low) * 0.05 - 1e-12, high + abs(high) * 0.05 + 1e-12
    return low - (high - low) * room, high + (high - low) * room


@dataclass
class Frame:
    """A plot under construction."""

    across: Axis
    up: Axis
    height: int = HEIGHT
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        bottom, right = self.height - BOTTOM, WIDTH - RIGHT
        last = float("inf")
        for value, label in self.up.marked():
            y = self.y(value)
            self.parts.append(marks.line(LEFT, y, right, y, FAINT))
            if last - y >= 13:
                self.parts.append(marks.text(LEFT - 8, y + 4, label, size=11, anchor="end", ink=MUTED))
                last = y
        end = -1e9
        for value, label in self.across.marked():
            x, half = self.x(value), 3 * len(label) + 3
            self.parts.append(marks.line(x, bottom, x, bottom + 4, MUTED))
            if x - half >= end:
                self.parts.append(marks.text(x, bottom + 17, label, size=11, anchor="middle", ink=MUTED))
                end = x + half
        middle = (LEFT + right) / 2
        self.parts.append(marks.line(LEFT, bottom, right, bottom, MUTED))
        room = right - LEFT + 40
        self.parts.append(
            marks.text(middle, bottom + 35, self.across.title, size=11, anchor="middle", ink=MUTED, room=room)
        )

    def x(self, value: float) -> float:
        """The pixel of a value across."""
        return LEFT + self.across.place(value) * (WIDTH - RIGHT - LEFT)

    def y(self, value: float) -> float:
        """The pixel of a value upwards."""
        return self.height - BOTTOM - self.up.place(value) * (self.height - BOTTOM - TOP)

    def line(self, places: Sequence[tuple[float, float]], colour: str, *, width: float = 1.8, hover: str = "") -> None:
        """A line through values."""
        drawn = [(self.x(a), self.y(b)) for a, b in places]
        self.parts.append(marks.path(marks.polyline(drawn), colour, filled=False, width=width, hover=hover))

    def ribbon(self, places: Sequence[tuple[float, float, float]], colour: str) -> None:
        """A band: (across, low, high)."""
        around = [(self.x(a), self.y(high)) for a, _, high in places]
        around += [(self.x(a), self.y(low)) for a, low, _ in reversed(places)]
        self.parts.append(marks.path(marks.polyline(around, close=True), colour, opacity=0.26))

    def cross(self, x: tuple[float, float], y: tuple[float, float], colour: str) -> None:
        """The intervals of a point in both directions, as thin lines that cross there; either may be empty."""
        middle = (sum(x) / 2, sum(y) / 2)
        if x[1] > x[0]:
            self.parts.append(
                marks.line(self.x(x[0]), self.y(middle[1]), self.x(x[1]), self.y(middle[1]), colour, width=1.4)
            )
        if y[1] > y[0]:
            self.parts.append(
                marks.line(self.x(middle[0]), self.y(y[0]), self.x(middle[0]), self.y(y[1]), colour, width=1.4)
            )

    def point(
        self, x: float, y: float, colour: str, *, shape: str = "circle", hollow: bool = False, hover: str
    ) -> None:
        """One mark with what it says on hovering."""
        self.parts.append(marks.point(self.x(x), self.y(y), shape, colour, hollow=hollow, size=44, hover=hover))

    def dots(self, places: Sequence[tuple[float, float]], colour: str) -> None:
        """Many points of one colour, without hover texts: a page may hold ten thousand of them."""
        self.parts.append(marks.dots([(self.x(a), self.y(b)) for a, b in places], 2.4, colour, 0.9))

    def raw(self, places: Sequence[tuple[float, float]], colour: str) -> None:
        """Single blocks, shown by the page on demand; hidden in files."""
        if places:
            drawn = marks.dots([(self.x(a), self.y(b)) for a, b in places], 1.8, colour, 0.75)
            self.parts.append(f'<g class="raw" visibility="hidden">{drawn}</g>')

    def draw(self, name: str, title: str, description: str) -> svg.Drawing:
        """The finished panel; the vertical axis' title belongs into its caption."""
        return svg.Drawing(name, title, description, WIDTH, self.height, "".join(self.parts))
