"""Flame graphs: call stacks as nested bars, callers above callees, each as wide as its share.

A click on a bar widens it to the whole picture (templates/flame.js); without a script the picture stands as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from loam_lab.model.frames import ALLOCATOR, KERNEL
from loam_lab.model.result import Flame
from loam_lab.presenting.report import marks, palette, rounding, svg
from loam_lab.presenting.report.plates import Figure, Names, Plate
from loam_lab.presenting.report.view import Case, Study

WIDTH, ROW = 1088, 18
_ROWS_MAX = 40
# Whose a frame is by the ending of its name, and the colour; other frames are the program's own.
_MARKED = {ALLOCATOR: ("the allocator", "#d98a3d"), KERNEL: ("the kernel", "#7f95ab")}
_OWN = ("the program", "#c9c2b4")
_KINDS = {
    "time": "Processor time",
    "bytes": "Bytes asked for",
    "blocks": "Blocks asked for",
    "live": "Live bytes at their peak",
}
_EMPTY = ["", 0, []]
# A difference of so much of the whole has the full colour.
_REACH = 0.05


@dataclass(frozen=True)
class _Bar:
    """One node. path: from the root; at, share: its left edge and width as shares of the whole"""

    name: str
    path: tuple[str, ...]
    value: float
    at: float
    share: float


def figure(study: Study, names: Names) -> Figure:
    """Every flame graph of a result: time under both allocators and their difference; allocation under the first."""
    graphs = [one for one in study.raw.flames or () if _whole(one) > 0]
    plates = []
    for command in dict.fromkeys(one.command for one in graphs):
        mine = [one for one in graphs if one.command == command]
        for kind, title in _KINDS.items():
            panels, remarks = _panels([one for one in mine if one.kind == kind], names)
            if panels:
                # A flame graph belongs to no group of cells.
                case = Case(title, command, (), (), same_work=False)
                plates.append(Plate(case, names.make("flame", kind, command), panels, remarks))
    legend = tuple(svg.Key(text, colour) for text, colour in (_OWN, *_MARKED.values()))
    return Figure("flame", "Where the time goes, and who allocates", "Flame graphs", tuple(plates), legend)


def _panels(given: list[Flame], names: Names) -> tuple[tuple[tuple[str, svg.Drawing], ...], tuple[str, ...]]:
    if not given:
        return (), ()
    first = given[0]
    if first.kind != "time":
        # What a program asks for is its own: under another allocator the picture is the same.
        return ((_amount(first, _whole(first)), draw(first, names.make("flame", first.kind))),), ()
    panels, remarks = [], []
    for one in given:
        panels.append((f"under {one.allocator}, {_amount(one, _whole(one))}", draw(one, names.make("flame", "time"))))
        shares = ", ".join(
            f"{rounding.percent(_below(one.tree or _EMPTY, end))} in {text}" for end, (text, _) in _MARKED.items()
        )
        remarks.append(f"Under {one.allocator}: {shares}.")
    if len(given) == 2:
        caption = (
            f"the difference: rust takes longer under {given[1].allocator} than under {first.allocator}, blue less"
        )
        panels.append((caption, draw(given[1], names.make("flame", "difference"), against=first)))
    return tuple(panels), tuple(remarks)


def _whole(one: Flame) -> float:
    return float(one.tree[1]) if one.tree else 0.0


def _below(node: list[Any], ending: str) -> float:
    whole = float(node[1])
    ending_s = sum(bar.value for bar in _bars(node) if bar.name.endswith(ending)
                and not any(name.endswith(ending) for name in bar.path[:-1]))  # fmt: skip
    return ending_s / whole if whole else 0.0


def _bars(tree: list[Any]) -> Iterator[_Bar]:
    whole = float(tree[1])

    def walk(node: list[Any], path: tuple[str, ...], at: float) -> Iterator[_Bar]:
        mine = (*path, str(node[0]))
        yield _Bar(str(node[0]), mine, float(node[1]), at, float(node[1]) / whole)
        for child in node[2]:
            yield from walk(child, mine, at)
            at += float(child[1]) / whole

    yield from walk(tree, (), 0.0)


def _amount(one: Flame, value: float) -> str:
    if one.unit == "s":
        return rounding.duration(value)
    return rounding.size(value) if one.unit == "B" else f"{rounding.count(value)} blocks"


def _group(bar: _Bar, box: str, x: float, y: float, label: str, ground: str) -> str:
    """A bar with its label, and what flame.js needs of it."""
    name = escape(bar.name, {'"': "&quot;"})
    label_text = (
        f'<text x="{marks.px(x + 4)}" y="{y + 13}" font-size="11px" fill="{palette.on(ground)}">{escape(label)}</text>'
    )
    return (
        f'<g class="bar" data-at="{bar.at:.6f}" data-share="{bar.share:.6f}" data-name="{name}">'
        f"{box}{label_text if label else ''}</g>"
    )


def draw(one: Flame, name: str, *, against: Flame | None = None) -> svg.Drawing:
    """The bars of a tree; against: another of the same program, whose values decide the colours."""
    bars = [bar for bar in _bars(one.tree or _EMPTY) if len(bar.path) <= _ROWS_MAX]
    before = {bar.path: bar.value for bar in _bars(against.tree or _EMPTY)} if against else {}
    whole = max(_whole(one), _whole(against) if against else 0.0)
    parts = []
    for bar in bars:
        x, y, wide = bar.at * WIDTH, ROW * (len(bar.path) - 1), bar.share * WIDTH
        hover = f"{bar.name}: {_amount(one, bar.value)}, {rounding.percent(bar.share)}"
        ground = next((colour for end, (_, colour) in _MARKED.items() if bar.name.endswith(end)), _OWN[1])
        if against:
            more = bar.value - before.get(bar.path, 0.0)
            place = max(-1.0, min(1.0, more / (_REACH * whole)))
            ground = palette.mix(palette.LEVEL, palette.WORSE if more > 0 else palette.BETTER, abs(place))
            hover += f"; {_amount(one, abs(more))} {'more' if more > 0 else 'less'} than under {against.allocator}"
        label = marks.fitting(bar.name, wide - 8, 11) if wide >= 34 else ""
        parts.append(
            _group(bar, marks.rect(x, y, max(wide - 0.6, 0.4), ROW - 1, ground, hover=hover), x, y, label, ground)
        )
    kind = _KINDS[one.kind]
    title = f"{kind} under {one.allocator}" + (f", against {against.allocator}" if against else "")
    widest = sorted((bar for bar in bars if len(bar.path) > 1), key=lambda bar: -bar.share)[:3]
    description = "Call stacks as bars, callers above. Widest: " + ", ".join(
        f"{b.name} {rounding.percent(b.share)}" for b in widest
    )
    height = ROW * max(len(bar.path) for bar in bars)
    return svg.Drawing(name, title, description, WIDTH, height, "".join(parts))
