"""The skeleton that all panels share: names left of a plot of fixed width, figures right of it, numbered rows.

Specifications are Vega-Lite, authored with altair and drawn to SVG by vl-convert.  Rows are placed by number and
names drawn as text marks: no captured text ever becomes part of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loam_lab.report import rounding, svg
from loam_lab.report.palette import FAINT, INK, MUTED

LEFT, PLOT, RIGHT = 116, 196, 70
TOP, BOTTOM, ROW = 20, 38, 22
_FONT = "Liberation Sans"

Mark = dict[str, Any]


@dataclass
class Canvas:
    """A panel under construction: layers over a plot whose x axis runs over domain and whose rows are numbered."""

    rows: int
    domain: tuple[float, float]
    title: str
    ticks: Sequence[float]
    row: int = ROW

    def __post_init__(self) -> None:
        import altair

        self.alt: Any = altair  # untyped in parts
        self.layers: list[Any] = []
        # Kept beside the specification until the last step: altair copies a chart at every call, data and all.
        self.data: dict[str, list[Mark]] = {}
        self.channels: dict[str, Any] = {}

    def _x(self) -> Any:
        axis = self.alt.Axis(
            values=list(self.ticks),
            format=f",.{rounding.tick_decimals(self.ticks)}f",
            domain=False,
            ticks=False,
            gridColor=FAINT,
            gridOpacity=1,
            labelColor=MUTED,
            labelFlush=False,
            labelOverlap="greedy",
            labelPadding=6,
            titleColor=MUTED,
            titleFontWeight="normal",
            titlePadding=6,
            zindex=0,
        )
        scale = self.alt.Scale(domain=list(self.domain), nice=False, zero=False)
        return self.alt.X("x:Q", scale=scale, title=self.title or None, axis=axis)

    def _y(self) -> Any:
        scale = self.alt.Scale(domain=[-0.5, self.rows - 0.5], reverse=True, nice=False, zero=False)
        return self.alt.Y("y:Q", scale=scale, axis=None)

    def _channel(self, name: str) -> Any:
        # Channel objects, not shorthand strings, and each made once: altair looks up and checks every one at great cost.
        if not self.channels:
            alt = self.alt
            self.channels = {
                "x": self._x(),
                "y": self._y(),
                "x2": alt.X2("x2:Q"),
                "y2": alt.Y2("y2:Q"),
                "color": alt.Color("c:N", scale=None),
                "text": alt.Text("t:N"),
                "description": alt.Description("d:N"),
            }
        return self.channels[name]

    def _add(self, marks: Sequence[Mark], kind: str, channels: str, *fixed: Any, **style: Any) -> None:
        """A layer of marks of a kind, with the named channels read from their fields and some at fixed places."""
        if not marks:
            return
        name = f"layer{len(self.layers)}"
        self.data[name] = list(marks)
        chart = self.alt.Chart(self.alt.NamedData(name=name))
        # Without a description of ours Vega would write one of its own: field names are of no use to a reader.
        drawn = getattr(chart, f"mark_{kind}")(aria="description" in channels, **style)
        self.layers.append(drawn.encode(*(self._channel(channel) for channel in channels.split()), *fixed))

    def names(self, labels: Sequence[tuple[str, str, bool]]) -> None:
        """Row names. labels: (text, hover text, whether the row is a remark and not a competitor)."""
        for aside in (False, True):
            marks = [{"y": i, "t": text, "d": hover} for i, (text, hover, quiet) in enumerate(labels) if quiet == aside]
            self._text(marks, self.alt.XValue(-10), "right", MUTED if aside else INK, limit=LEFT - 14)

    def figures(self, texts: Sequence[str], head: str = "", symbols: Sequence[str] = ()) -> None:
        """The column of figures right of the plot, one symbol behind each; head stands above it."""
        right = PLOT + RIGHT - (22 if symbols else 4)
        marks = [{"y": i, "t": text, "d": ""} for i, text in enumerate(texts) if text]
        self._text(marks, self.alt.XValue(right), "right", INK)
        if head:
            self._text(
                [{"y": 0, "t": head, "d": ""}], self.alt.XValue(right), "right", MUTED, y=self.alt.YValue(-9), size=11
            )
        marks = [{"y": i, "t": text, "d": ""} for i, text in enumerate(symbols) if text]
        self._text(marks, self.alt.XValue(PLOT + RIGHT - 9), "center", INK, size=10)

    def notes(self, marks: Sequence[Mark]) -> None:
        """Words inside the plot, for rows with nothing to draw: {"y", "t"}."""
        self._text([{**mark, "d": mark["t"]} for mark in marks], self.alt.XValue(2), "left", MUTED, italic=True)

    def edges(self, marks: Sequence[Mark]) -> None:
        """Signs at the left or right end of a row for what lies beyond the axis: {"y", "t", "d", "right"}."""
        for right in (False, True):
            chosen = [mark for mark in marks if mark["right"] is right]
            self._text(chosen, self.alt.XValue(PLOT + 2 if right else -2), "left" if right else "right", MUTED)

    def _text(
        self,
        marks: Sequence[Mark],
        x: Any,
        align: str,
        colour: str,
        *,
        limit: float = 0,
        y: Any = None,
        size: int = 12,
        italic: bool = False,
    ) -> None:
        style: dict[str, Any] = {"limit": limit} if limit else {}
        if italic:
            style["fontStyle"] = "italic"
        fixed = [x] if y is None else [x, y]
        channels = "y text description" if y is None else "text description"
        style |= {"align": align, "baseline": "middle", "color": colour, "fontSize": size, "font": _FONT}
        self._add(marks, "text", channels, *fixed, **style)

    def reference(self, x: float, *, margin: float = 0.0) -> None:
        """A thin line over all rows, with a faint band of that relative margin around it."""
        if not self.domain[0] <= x <= self.domain[1]:
            return
        top, bottom = -0.5, self.rows - 0.5
        if margin:
            low, high = max(self.domain[0], x * (1 - margin)), min(self.domain[1], x * (1 + margin))
            band = [{"x": low, "x2": high, "y": top, "y2": bottom}]
            self._add(band, "rect", "x x2 y y2", color=FAINT, opacity=0.5)
        line = [{"x": x, "y": top, "y2": bottom}]
        self._add(line, "rule", "x y y2", color=MUTED, strokeDash=[2, 2], strokeWidth=1)

    def rug(self, marks: Sequence[Mark]) -> None:
        """Single measurements as small dots just under their row: {"x", "y", "c"}."""
        self._add(marks, "circle", "x y color", size=7, opacity=0.42, yOffset=6.5)

    def intervals(self, marks: Sequence[Mark], width: float = 2.4) -> None:
        """Interval lines: {"x", "x2", "y", "c"}."""
        self._add(marks, "rule", "x x2 y color", strokeWidth=width, strokeCap="round")

    def points(self, marks: Sequence[Mark], shape: str = "circle", *, hollow: bool = False, size: int = 54) -> None:
        """Estimates with hover text: {"x", "y", "c", "d"}."""
        style = {"shape": shape, "size": size, "filled": not hollow, "opacity": 1, "strokeWidth": 1.6}
        self._add(marks, "point", "x y color description", **style)

    def bars(self, marks: Sequence[Mark]) -> None:
        """Parts of horizontal bars with hover text: {"x", "x2", "y", "y2", "c", "d"}."""
        self._add(marks, "rect", "x x2 y y2 color description")

    def stems(self, marks: Sequence[Mark]) -> None:
        """Short upright lines across a row: {"x", "y", "y2", "d"}."""
        self._add(marks, "rule", "x y y2 description", color=INK, strokeWidth=1.4)

    def draw(self, name: str, title: str, description: str) -> svg.Drawing:
        """The finished panel."""
        import vl_convert

        axis = {"labelFont": _FONT, "titleFont": _FONT, "labelFontSize": 11, "titleFontSize": 11}
        # All in one call: each configure_...() would copy and check every layer again.
        chart = self.alt.layer(
            *self.layers,
            width=PLOT,
            height=self.rows * self.row,
            autosize="none",
            padding={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
            config={"font": _FONT, "background": "transparent", "view": {"stroke": None}, "axis": axis},
        )
        drawn = vl_convert.vegalite_to_svg({**chart.to_dict(validate=False), "datasets": self.data})
        return svg.refine(name, title, description, drawn)
