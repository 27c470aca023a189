"""What becomes of a chart after Vega: a small accessible SVG that follows the reader's light or dark theme.

Vega writes for its own runtime (roles, classes, handlers).  Here each mark keeps one thing of that, its
description, as a hover title; the ink colours of palette.py become currentColor; ids are the caller's.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from loam_lab.report.palette import FAINT, INK, MUTED

_SPACE = "http://www.w3.org/2000/svg"
_TAG = "{" + _SPACE + "}"
ET.register_namespace("", _SPACE)

FONTS = "Liberation Sans, Arial, Helvetica, sans-serif"
# What the three inks are on paper (PNG) and how strong they are in the reader's own text colour.
_PAPER = {INK: "#1f1e1c", MUTED: "#66645f", FAINT: "#dddad4"}
_STRENGTH = {MUTED: "0.68", FAINT: "0.16"}
_KEEP = {
    "d", "transform", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "fill-opacity",
    "stroke-opacity", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "text-anchor", "font-size", "font-weight",
    "font-style", "cx", "cy", "r",
}  # fmt: skip
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
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


def _short(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")


def refine(name: str, title: str, description: str, drawn: str) -> Drawing:
    """A Drawing from the SVG text that Vega wrote.

    name: unique in the page, of [a-z0-9-]; drawn: the SVG
    """
    root = ET.fromstring(drawn)
    width, height = round(float(root.get("width", "0"))), round(float(root.get("height", "0")))
    kept = "".join(_plain(child) for child in root)
    return Drawing(name, title, description, width, height, kept)


def _plain(element: ET.Element) -> str:
    """One element and what it holds as text, without what only Vega's runtime reads; "" where nothing is drawn."""
    tag = element.tag.removeprefix(_TAG)
    inside = "".join(_plain(child) for child in element)
    if tag == "g":
        attributes = _attributes(element)
        if not inside:
            return ""
        return f"<g{attributes}>{inside}</g>" if attributes else inside
    if tag == "text" and not (element.text or inside):
        return ""
    if tag == "path" and not element.get("d"):
        return ""
    if element.get("display") == "none" or element.get("class") in ("background", "foreground"):
        return ""
    label = element.get("aria-label") if element.get("aria-roledescription") else None
    hover = f"<title>{escape(label)}</title>" if label else ""
    content = hover + escape(element.text or "") + inside
    return f"<{tag}{_attributes(element)}>{content}</{tag}>" if content else f"<{tag}{_attributes(element)}/>"


def _attributes(element: ET.Element) -> str:
    given = {key: value for key, value in element.attrib.items() if key in _KEEP}
    for key in ("fill", "stroke"):
        ink = given.get(key, "")
        if ink in _PAPER:
            given[key] = "currentColor"
            if ink in _STRENGTH:
                given[f"{key}-opacity"] = _STRENGTH[ink]
    if given.get("opacity") == "1":
        del given["opacity"]
    if given.get("transform") == "translate(0,0)":
        del given["transform"]
    pairs = ((key, _DECIMALS.sub(_short, value)) for key, value in given.items())
    return "".join(f' {key}="{escape(value, {chr(34): "&quot;"})}"' for key, value in pairs)


@dataclass(frozen=True)
class Key:
    """One entry of a legend. colour: of the sample; shape: "bar", "circle", "square" or "diamond"."""

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
    parts = [_text(_EDGE, 32, _fitting(title, width - 2 * _EDGE, 16), 16, bold=True)]
    y = 44
    if legend:
        drawn, y = _legend(legend, _EDGE, y + 14, width - _EDGE)
        parts.append(drawn)
        y += 8
    for row in rows:
        y += 26
        if row.title:
            parts.append(_text(_EDGE, y, _fitting(row.title, width - 2 * _EDGE, 13), 13, bold=True))
            y += 8
        if any(caption for caption, _ in row.panels):
            y += 16
            for index, (caption, _) in enumerate(row.panels):
                shown = _fitting(caption, cell, 12)
                parts.append(_text(_EDGE + index * (cell + _GAP), y - 2, shown, 12, opacity="0.68"))
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
    return document.replace(_THEME, ground).replace("currentColor", _PAPER[INK])


def _text(x: int, y: int, words: str, size: int, *, bold: bool = False, opacity: str = "") -> str:
    weight = ' font-weight="600"' if bold else ""
    strength = f' fill-opacity="{opacity}"' if opacity else ""
    return f'<text x="{x}" y="{y}" font-size="{size}px" fill="currentColor"{weight}{strength}>{escape(words)}</text>'


def sample(key: Key, x: float, y: float) -> str:
    """The sample of a legend entry, centred on (x, y)."""
    if key.shape == "circle":
        return f'<circle cx="{x}" cy="{y}" r="4" fill="{key.colour}"/>'
    if key.shape == "square":
        return f'<rect x="{x - 3.5}" y="{y - 3.5}" width="7" height="7" fill="{key.colour}"/>'
    if key.shape == "diamond":
        points = f"M{x},{y - 5}L{x + 5},{y}L{x},{y + 5}L{x - 5},{y}Z"
        return f'<path d="{points}" fill="none" stroke="{key.colour}" stroke-width="1.6"/>'
    return f'<rect x="{x - 6}" y="{y - 5}" width="12" height="10" fill="{key.colour}"/>'


# Sheets are laid out without a font at hand: the mean advance of Liberation Sans per pixel of size, rounded up.
_ADVANCE = 0.49


def _fitting(words: str, width: float, size: int) -> str:
    """The words cut with an ellipsis where they would leave the sheet; bold ones run a tenth wider."""
    room = int(width / (1.1 * _ADVANCE * size))
    return words if len(words) <= room else words[: room - 1].rstrip() + "…"


def _legend(keys: Sequence[Key], x: int, y: int, right: int) -> tuple[str, int]:
    """The legend from (x, y) on, in as many lines as fit before right; and the y of its last line."""
    parts = []
    at = float(x)
    for key in keys:
        need = 17 + 12 * _ADVANCE * len(key.words)
        if at > x and at + need > right:
            at, y = float(x), y + 20
        parts.append(sample(key, at + 6, y - 4))
        parts.append(_text(round(at + 17), y, key.words, 12))
        at += need + 16
    return "".join(parts), y
