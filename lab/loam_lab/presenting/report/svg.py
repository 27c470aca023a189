"""Drawings and what becomes of them: inline in the page, or on stand-alone sheets that follow the viewer's theme."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from loam_lab.presenting.report import marks
from loam_lab.presenting.report.palette import MUTED

_SPACE = "http://www.w3.org/2000/svg"
FONTS = "Liberation Sans, Arial, Helvetica, sans-serif"
# The reader's text colour on paper (PNG).
_PAPER = "#1f1e1c"
_THEME = "<style>svg{color:#1f1e1c}@media(prefers-color-scheme:dark){svg{color:#e8e6e1}}</style>"


@dataclass(frozen=True)
class Drawing:
    """One drawn panel. body: its elements, in theme colours; sizes in pixels; title, description: for readers who
    cannot see it, and for the caption of a stand-alone file."""

    name: str
    title: str
    description: str
    width: int
    height: int
    body: str

    def inline(self) -> str:
        """For the HTML page: no namespace, labelled, scales with its box."""
        return (
            f'<svg role="img" aria-labelledby="{self.name}-t {self.name}-d" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}"><title id="{self.name}-t">{escape(self.title)}</title>'
            f'<desc id="{self.name}-d">{escape(self.description)}</desc>{self.body}</svg>'
        )


@dataclass(frozen=True)
class Key:
    """One entry of a legend. colour: of the sample; shape: "bar", "line", or a point of marks.py."""

    words: str
    colour: str
    shape: str = "bar"


@dataclass(frozen=True)
class Row:
    """One line of a sheet: a title and the panels beside each other, each with a caption above."""

    title: str
    panels: Sequence[tuple[str, Drawing]]


_GAP, _EDGE = 28, 20


def sheet(title: str, rows: Sequence[Row], legend: Sequence[Key] = ()) -> str:
    """One stand-alone SVG that holds panels in rows, with titles and legend: what goes into a paper or a slide.

    returns: the document; text colours follow the viewer's theme where it has one
    """
    columns = max((len(row.panels) for row in rows), default=1)
    cell = max((drawing.width for row in rows for _, drawing in row.panels), default=320)
    width = 2 * _EDGE + columns * cell + (columns - 1) * _GAP
    parts = [marks.text(_EDGE, 32, title, size=16, bold=True, room=width - 2 * _EDGE)]
    y = 44
    if legend:
        drawn, y = _legend(legend, _EDGE, y + 14, width - _EDGE)
        parts.append(drawn)
        y += 8
    for row in rows:
        y += 26
        if row.title:
            parts.append(marks.text(_EDGE, y, row.title, size=13, bold=True, room=width - 2 * _EDGE))
            y += 8
        if any(caption for caption, _ in row.panels):
            y += 16
            for index, (caption, _) in enumerate(row.panels):
                parts.append(marks.text(_EDGE + index * (cell + _GAP), y - 2, caption, ink=MUTED, room=cell))
        for index, (_, drawing) in enumerate(row.panels):
            parts.append(f'<g transform="translate({_EDGE + index * (cell + _GAP)},{y + 4})">{drawing.body}</g>')
        y += 4 + max(drawing.height for _, drawing in row.panels)
    height = y + _EDGE
    return (
        f'<svg xmlns="{_SPACE}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONTS}" '
        f'role="img"><title>{escape(title)}</title>{_THEME}{"".join(parts)}</svg>\n'
    )


def paper(document: str) -> str:
    """The same stand-alone SVG in fixed dark ink on white, for PNG."""
    width, height = re.findall(r'(?:width|height)="(\d+)"', document)[:2]
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return document.replace(_THEME, ground).replace("currentColor", _PAPER)


def sample(key: Key, x: float, y: float) -> str:
    """The sample of a legend entry, centred on (x, y)."""
    if key.shape == "bar":
        return marks.rect(x - 6, y - 5, 12, 10, key.colour)
    if key.shape == "line":
        return marks.line(x - 7, y, x + 7, y, key.colour, width=2.4)
    return marks.point(x, y, key.shape, key.colour, hollow=key.shape == "diamond", size=49)


def _legend(keys: Sequence[Key], x: int, y: int, right: int) -> tuple[str, int]:
    """The legend from (x, y) on, in as many lines as fit before right; and the y of its last line."""
    parts = []
    at = float(x)
    for key in keys:
        need = 17 + 12 * marks.ADVANCE * len(key.words)
        if at > x and at + need > right:
            at, y = float(x), y + 20
        parts.append(sample(key, at + 6, y - 4))
        parts.append(marks.text(round(at + 17), y, key.words))
        at += need + 16
    return "".join(parts), y
