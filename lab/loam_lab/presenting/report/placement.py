"""Placement pictures from live addresses: which threads' blocks share a cache line, which share a record.

Addresses are shown relative to the first block's line: absolute ones differ from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass

from loam_lab.model import words
from loam_lab.model.result import Block
from loam_lab.presenting.report import marks, palette, rounding, svg
from loam_lab.presenting.report.palette import FAINT, INK, MUTED
from loam_lab.presenting.report.view import Study

_WIDTH, _LEFT = 382, 74
_LINES_MAX, _BLOCKS_MAX = 32, 64


@dataclass(frozen=True)
class Picture:
    """Live blocks of one allocator. line: bytes of a cache line; shift: bits that records ignore of an address."""

    allocator: str
    kind: str
    title: str
    line: int
    shift: int
    blocks: tuple[Block, ...]


def pictures(study: Study) -> list[Picture]:
    """The placements of the Result that have blocks, each at most 64 of them."""
    drawn = []
    for item in study.raw.placements or ():
        blocks = item.blocks[:_BLOCKS_MAX]
        if blocks:
            figure, title = item.figure, item.title
            drawn.append(
                Picture(
                    item.allocator, item.kind,
                    ": ".join(part for part in (figure[:1].upper() + figure[1:], title) if part),
                    item.bytes_per_line or 64, item.shift,
                    tuple(sorted(blocks, key=lambda block: block.address)),
                )
            )  # fmt: skip
    return drawn


def _colour(thread: int) -> str:
    return palette.THREADS[thread % len(palette.THREADS)]


def legend(drawn: list[Picture]) -> tuple[svg.Key, ...]:
    """One key per thread, and one for what is shared."""
    threads = sorted({block.thread for picture in drawn for block in picture.blocks})
    keys = [svg.Key(f"thread {thread}", _colour(thread)) for thread in threads]
    return (*keys, svg.Key("shared by threads", palette.SHARED, "line"))


def shared_lines(picture: Picture) -> tuple[int, int]:
    """(cache lines in which blocks of several threads lie, cache lines with any block)."""
    owners: dict[int, set[int]] = {}
    for block in picture.blocks:
        for line in _lines(block, picture.line):
            owners.setdefault(line, set()).add(block.thread)
    return sum(len(threads) > 1 for threads in owners.values()), len(owners)


def shared_records(picture: Picture) -> tuple[int, int]:
    """(records at which blocks of several threads meet, records with any block)."""
    owners: dict[int, set[int]] = {}
    for block in picture.blocks:
        owners.setdefault(block.record, set()).add(block.thread)
    return sum(len(threads) > 1 for threads in owners.values()), len(owners)


def _lines(block: Block, size: int) -> range:
    return range(block.address // size, (block.address + max(block.bytes, 1) - 1) // size + 1)


def remark(picture: Picture) -> str:
    """What the picture shows, in a sentence."""
    if picture.kind == "records":
        shared, every = shared_records(picture)
        return f"{picture.allocator}: at {shared} of {every} records blocks of several threads meet."
    shared, every = shared_lines(picture)
    return f"{picture.allocator}: {shared} of {every} cache lines hold blocks of several threads."


def draw(picture: Picture, name: str) -> svg.Drawing:
    """The picture by its kind."""
    return _records(picture, name) if picture.kind == "records" else _neighbours(picture, name)


def _neighbours(picture: Picture, name: str) -> svg.Drawing:
    """Cache lines as boxes from top to bottom, blocks inside in their thread's colour; gaps as one thin row."""
    size = picture.line
    per_byte = (_WIDTH - _LEFT - 14) / size
    used = sorted({line for block in picture.blocks for line in _lines(block, size)})
    shown, rest = used[:_LINES_MAX], len(used) - _LINES_MAX
    parts: list[str] = []
    y, place = 8.0, {}
    for index, line in enumerate(shown):
        if index and line > shown[index - 1] + 1:
            gap = (line - shown[index - 1] - 1) * size
            parts.append(marks.text(_LEFT, y + 8, f"⋯ {rounding.size(gap)}", size=9, ink=MUTED))
            y += 12
        place[line] = y
        parts.append(marks.text(_LEFT - 8, y + 12, f"+{(line - shown[0]) * size}", size=10, anchor="end", ink=MUTED))
        parts.append(marks.rect(_LEFT, y, size * per_byte, 16, FAINT, edge=FAINT))
        y += 20
    owners: dict[int, set[int]] = {}
    for block in picture.blocks:
        for line in _lines(block, size):
            owners.setdefault(line, set()).add(block.thread)
            if line not in place:
                continue
            start = max(block.address, line * size) - line * size
            end = min(block.address + max(block.bytes, 1), (line + 1) * size) - line * size
            x, wide = _LEFT + start * per_byte, (end - start) * per_byte
            hover = f"thread {block.thread}: {block.bytes} bytes at +{block.address - shown[0] * size}"
            parts.append(marks.rect(x + 0.5, place[line] + 1, max(wide - 1, 1), 14, _colour(block.thread), hover=hover))
    for line, threads in owners.items():
        if len(threads) > 1 and line in place:
            parts.append(marks.rect(_LEFT - 4, place[line], 2.5, 16, palette.SHARED, hover="shared by threads"))
    if rest > 0:
        parts.append(marks.text(_LEFT, y + 10, f"and {rest} more cache lines", size=11, ink=MUTED, italic=True))
        y += 16
    title = f"{picture.allocator}: {picture.title or 'neighbours in cache lines'}"
    return svg.Drawing(name, title, remark(picture), _WIDTH, round(y + 10), "".join(parts))


def _records(picture: Picture, name: str) -> svg.Drawing:
    """Blocks left, the records that they meet right; lines in rust where several threads meet at a record."""
    first = picture.blocks[0].address // picture.line * picture.line
    owners: dict[int, list[int]] = {}
    for index, block in enumerate(picture.blocks):
        owners.setdefault(block.record, []).append(index)
    row = 15
    height = 26 + row * len(picture.blocks)
    # A record stands at the mean height of its blocks, pushed down where the one above needs the place.
    places: dict[int, float] = {}
    last = 0.0
    for record, members in sorted(owners.items(), key=lambda item: sum(item[1]) / len(item[1])):
        y = max(26 + row * (sum(members) / len(members)), last + row)
        places[record] = last = y
    height = max(height, round(last) + row)
    parts = [
        marks.text(_LEFT, 12, "blocks", size=11, ink=MUTED),
        marks.text(_WIDTH - 14, 12, "records", size=11, ink=MUTED, anchor="end"),
    ]
    left, right = _LEFT + 66, _WIDTH - 100
    for index, block in enumerate(picture.blocks):
        y = 26 + row * index
        met = len({picture.blocks[i].thread for i in owners[block.record]}) > 1
        colour = palette.SHARED if met else MUTED
        parts.append(marks.line(left, y, right, places[block.record], colour, width=1.6 if met else 0.8))
        hover = f"thread {block.thread}: {block.bytes} bytes at +{block.address - first}, record {block.record}"
        parts.append(marks.text(_LEFT - 8, y + 4, f"+{block.address - first}", size=10, anchor="end", ink=MUTED))
        parts.append(marks.rect(_LEFT, y - 5, 62, 10, _colour(block.thread), hover=hover))
    for record, members in owners.items():
        met = len({picture.blocks[i].thread for i in members}) > 1
        edge = palette.SHARED if met else MUTED
        parts.append(marks.rect(right + 4, places[record] - 6, 8, 12, edge))
        parts.append(marks.text(right + 18, places[record] + 4, f"{record}", size=10, ink=INK, room=80))
    title = f"{picture.allocator}: {picture.title or 'blocks and their records'}"
    description = f"{remark(picture)} Records ignore {words.listing([f'{picture.shift} bits'])} of an address."
    return svg.Drawing(name, title, description, _WIDTH, height, "".join(parts))
