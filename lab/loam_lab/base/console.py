"""Terminal output: one console per stream, the few styles that mean something, and tables that fit 80 columns.

Results, journals and traces may come from strangers, and their names may hold anything. So no control character of a text
reaches a terminal: the consoles here replace them, and guard() does the same for what is printed past them.

rich is imported on first use, so that a start which prints JSON or nothing does not pay for it.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Colour carries meaning only: what was typed or may be typed, what is good, doubtful, bad, and what is aside.
STYLES = {
    "command": "bold cyan",
    "good": "green",
    "doubt": "yellow",
    "bad": "bold red",
    "aside": "bright_black",
    "head": "bold",
}

NAME_MAX = 24

# Control characters have no place in HTML, XML or a terminal, nor have those that change the direction of writing; tab and
# newline may stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")  # those that JSON lets stand


def plain(text: str) -> str:
    """The text with each control or direction-changing character replaced by U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


class _Guarded:
    """A stream that writes plain text only; `beneath` is for those who know what they write."""

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        self.beneath.write(plain(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def guard() -> Iterator[None]:
    """Within, what is printed to standard output or standard error, by whatever module, is plain text."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Guarded(beneath(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def beneath(stream: TextIO) -> TextIO:
    """The stream itself, for control sequences of our own."""
    return stream.beneath if isinstance(stream, _Guarded) else stream


def _console(stream: Any) -> Console:
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment
    from rich.theme import Theme

    class Plain(Console):
        """Colours are its own; what it is given to print is plain text."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else plain(segment.text)
                yield segment if text == segment.text else Segment(text, segment.style)

    # Not on a terminal: a fixed width, so that a log or a pipe never gets lines folded at a guess of 80.
    width = None if stream.isatty() or "COLUMNS" in os.environ else 120
    return Plain(file=beneath(stream), theme=Theme(STYLES), highlight=False, soft_wrap=False, width=width)


@functools.cache
def out() -> Console:
    """The console for results (standard output). Honours NO_COLOR and COLUMNS."""
    return _console(sys.stdout)


@functools.cache
def err() -> Console:
    """The console for progress, warnings and errors (standard error)."""
    return _console(sys.stderr)


def _as_json(value: object) -> object:
    """What JSON has no form for: parts of a result as their own, all else as text."""
    return value.as_json() if hasattr(value, "as_json") else str(value)


def print_json(value: object) -> None:
    """The one JSON document of a --json command, on standard output, with a newline."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=_as_json)
    sys.stdout.write(_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """A plain progress line on standard error (no markup)."""
    sys.stderr.write(plain(text) + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """A warning on standard error: fact; consequence; next step (no markup)."""
    err().print(f"[doubt]warning:[/doubt] {_escape(text)}", soft_wrap=True)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[RenderableType | str]],
    *,
    numeric: Iterable[str] = (),
    title: str = "",
) -> RenderableType:
    """A table in the house style: bold heads, no frame, figures aligned right, last column wraps.

    columns: heads; rows: cells in order (rich markup allowed); numeric: heads of the right-aligned columns; title: a line
    above, as wide as the screen and not as the table
    """
    from rich import box
    from rich.console import Group
    from rich.markup import render
    from rich.table import Table
    from rich.text import Text

    right = set(numeric)
    lines = [list(row) for row in rows]
    # The first column is the one of names: a long one gives way before a figure is cut off.
    names = [render(line[0]).plain if isinstance(line[0], str) else str(line[0]) for line in lines]
    long = any(len(name) > NAME_MAX for name in names)
    made = Table(box=box.SIMPLE_HEAD, header_style="head", pad_edge=False, padding=(0, 1), collapse_padding=True)
    for index, head in enumerate(columns):
        wraps = index == len(columns) - 1 or (index == 0 and long)
        made.add_column(head, justify="right" if head in right else "left", no_wrap=not wraps, overflow="fold")
    for line in lines:
        made.add_row(*line)
    return Group(Text.from_markup(title, style="head"), made) if title else made
