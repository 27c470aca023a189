"""SVG elements as text: the few shapes that every figure is made of, in colours that follow the reader's theme.

Coordinates are pixels.  Ink stand-ins of palette.py become the reader's text colour; hover texts become the titles
that browsers and screen readers tell.  All text is escaped here, so that captured names can never become markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from loam_lab.presenting.report.palette import FAINT, INK, MUTED

# How strong an ink is in the reader's own text colour.
_STRENGTH = {MUTED: "0.72", FAINT: "0.16"}
# Drawings are laid out without a font at hand: the mean advance of Liberation Sans per pixel of size, rounded up.
ADVANCE = 0.49


def px(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def fitting(words: str, width: float, size: float) -> str:
    """The words cut with an ellipsis where they would need more than width pixels; bold ones run a tenth wider.

    An allocator with settings is cut in the middle: what tells it from another one stands at its end.
    """
    return shortened(words, max(2, int(width / (1.1 * ADVANCE * size))))


def shortened(words: str, room: int) -> str:
    """The words in at most so many characters, two or more; see fitting()."""
    if len(words) <= room:
        return words
    tail = (room - 1) * 2 // 3 if "=" in words else 0
    return words[: room - 1 - tail].rstrip() + "…" + words[len(words) - tail :]


def paint(kind: str, colour: str) -> str:
    """A fill or stroke attribute; kind: "fill" or "stroke"."""
    if colour in (INK, MUTED, FAINT):
        strength = f' {kind}-opacity="{_STRENGTH[colour]}"' if colour in _STRENGTH else ""
        return f' {kind}="currentColor"{strength}'
    return f' {kind}="{colour}"'


def _closed(tag: str, attributes: str, hover: str) -> str:
    return (
        f"<{tag}{attributes}><title>{escape(hover)}</title></{tag}>"
        if hover and hover.strip()
        else f"<{tag}{attributes}/>"
    )


def text(
    x: float, y: float, words: str, *, size: float = 12, anchor: str = "start", ink: str = INK, bold: bool = False,
    italic: bool = False, hover: str = "", room: float = 0,
) -> str:  # fmt: skip
    """Words whose baseline is at y; anchor: start, middle or end; room: pixels after which they are cut (0: never)."""
    shown = fitting(words, room, size) if room else words
    style = ' font-weight="600"' if bold else ""
    style += ' font-style="italic"' if italic else ""
    style += f' text-anchor="{anchor}"' if anchor != "start" else ""
    full_text = hover or (words if shown != words else "")
    title = f"<title>{escape(full_text)}</title>" if full_text else ""
    return f'<text x="{px(x)}" y="{px(y)}" font-size="{px(size)}px"{style}{paint("fill", ink)}>{title}{escape(shown)}</text>'


def line(
    x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dash: str = "", hover: str = "",
    cap: str = "",
) -> str:  # fmt: skip
    """A straight line; dash: SVG dash array; cap: "round" or nothing."""
    style = f' stroke-width="{px(width)}"' if width != 1 else ""
    style += f' stroke-dasharray="{dash}"' if dash else ""
    style += f' stroke-linecap="{cap}"' if cap else ""
    place = f' x1="{px(x1)}" y1="{px(y1)}" x2="{px(x2)}" y2="{px(y2)}"'
    return _closed("line", place + paint("stroke", colour) + style, hover)


def rect(
    x: float, y: float, width: float, height: float, colour: str, *, opacity: float = 1, hover: str = "", edge: str = ""
) -> str:
    """A filled box; edge: colour of its outline or nothing."""
    style = f' opacity="{px(opacity)}"' if opacity != 1 else ""
    style += paint("stroke", edge) if edge else ""
    place = f' x="{px(x)}" y="{px(y)}" width="{px(max(0.0, width))}" height="{px(height)}"'
    return _closed("rect", place + paint("fill", colour) + style, hover)


def circle(x: float, y: float, radius: float, colour: str, *, hollow: bool = False, hover: str = "") -> str:
    """A dot, or a ring of 1.6 px."""
    style = paint("stroke", colour) + ' stroke-width="1.6" fill="none"' if hollow else paint("fill", colour)
    return _closed("circle", f' cx="{px(x)}" cy="{px(y)}" r="{px(radius)}"' + style, hover)


def dots(places: Sequence[tuple[float, float]], radius: float, colour: str, opacity: float) -> str:
    """Many small dots of one colour as a single path: a result may hold ten thousand of them."""
    if not places:
        return ""
    # Strokes of no length with round ends: a quarter of the bytes of arcs.
    steps = "".join(f"M{x:.1f},{y:.1f}h.01" for x, y in places)
    style = f' stroke-width="{px(2 * radius)}" stroke-linecap="round" fill="none" opacity="{px(opacity)}"'
    return f'<path d="{steps}"{paint("stroke", colour)}{style}/>'


def path(d: str, colour: str, *, filled: bool = True, width: float = 1.6, opacity: float = 1, hover: str = "") -> str:
    """A path, filled or drawn as a line."""
    style = paint("fill", colour) if filled else f' fill="none"{paint("stroke", colour)} stroke-width="{px(width)}"'
    style += ' stroke-linejoin="round"' if not filled else ""
    style += f' opacity="{px(opacity)}"' if opacity != 1 else ""
    return _closed("path", f' d="{d}"' + style, hover)


def polyline(places: Sequence[tuple[float, float]], *, close: bool = False) -> str:
    """The path data through the places."""
    return "M" + "L".join(f"{px(x)},{px(y)}" for x, y in places) + ("Z" if close else "")


def point(
    x: float, y: float, shape: str, colour: str, *, hollow: bool = False, size: float = 54, hover: str = ""
) -> str:
    """An estimate's mark. shape: circle, square, diamond, triangle-up or triangle-down; size: area in pixels."""
    half = float(size**0.5) / 2
    if shape == "circle":
        return circle(x, y, half * 1.13, colour, hollow=hollow, hover=hover)
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
        "triangle-up": ((0, -1.2), (1.2, 1), (-1.2, 1)),
        "triangle-down": ((0, 1.2), (1.2, -1), (-1.2, -1)),
    }[shape]
    d = polyline([(x + dx * half, y + dy * half) for dx, dy in corners], close=True)
    return path(d, colour, filled=not hollow, hover=hover)


def hatch(x: float, y: float, width: float, height: float, colour: str, step: float = 5) -> str:
    """Slanting lines over a box, drawn one by one: patterns need ids and references, which files may not have."""
    parts = []
    at = step
    while at < width + height:
        x1, y1 = (x + at, y) if at <= width else (x + width, y + at - width)
        x2, y2 = (x, y + at) if at <= height else (x + at - height, y + height)
        parts.append(f"M{px(x1)},{px(y1)}L{px(x2)},{px(y2)}")
        at += step
    return f'<path d="{"".join(parts)}" fill="none"{paint("stroke", colour)} stroke-width="1"/>'
