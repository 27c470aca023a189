"""A cache line drawn byte by byte: the blocks that lie in it above, and below what each thread did with which bytes."""

from __future__ import annotations

from loam_lab.model.explanation import Access, Pair, Place
from loam_lab.presenting.report import marks, palette
from loam_lab.presenting.report.palette import FAINT, INK, MUTED
from loam_lab.presenting.report.svg import Drawing

BYTES, WORD = 64, 8
LEFT, BYTE, RIGHT = 90, 13, 16
_TOP, _BAR, _ROW = 26, 34, 26


def colours(pair: Pair) -> dict[int, str]:
    """A colour for each thread that used the line, in the order of their numbers."""
    return {thread: palette.THREADS[n % len(palette.THREADS)] for n, thread in enumerate(threads_of(pair))}


def threads_of(pair: Pair) -> list[int]:
    """The threads that used the line, in the order in which they are numbered from 1."""
    assert pair.picture is not None
    return sorted({access.thread for access in pair.picture.accesses})


def label(block: int) -> str:
    """The letter of a block, by its place in the line: a line of 64 bytes has eight words."""
    return chr(ord("A") + block)


def where(place: Place | None) -> str:
    """A source line in one phrase."""
    if place is None:
        return "an unknown line"
    return f"{place.file}:{place.line} ({place.function})" if place.line else f"{place.function} in {place.file}"


def draw(pair: Pair, name: str) -> Drawing:
    """The line that a pair of blocks was caught in most often. name: unique in the page"""
    picture = pair.picture
    assert picture is not None
    of_thread = colours(pair)
    threads = threads_of(pair)
    right = LEFT + BYTES * BYTE
    bars = _TOP + _BAR + 10
    bottom = bars + len(threads) * _ROW
    parts = [marks.text(LEFT - 8, _TOP + 21, "bytes of", anchor="end", ink=MUTED)]
    for word in range(0, BYTES + 1, WORD):
        x = LEFT + word * BYTE
        parts.append(marks.line(x, _TOP - 4, x, bottom, FAINT))
        if word < BYTES:
            parts.append(marks.text(x + 2, _TOP - 8, f"+{word}", size=11, ink=MUTED))
    for n, block in enumerate(picture.blocks):
        first, last = max(0, block.start), min(BYTES, block.start + max(1, block.bytes))
        if last <= first:
            first, last = 0, BYTES  # it has no known extent, and holds the bytes that were used
        width = (last - first) * BYTE
        what = block.name or f"a {block.bytes}-byte block made at {where(block.made)}"
        parts.append(marks.rect(LEFT + first * BYTE + 1, _TOP, width - 2, _BAR, FAINT, edge=INK, hover=what))
        parts.append(marks.text(LEFT + first * BYTE + width / 2, _TOP + 22, label(n), anchor="middle", bold=True))
    for n, thread in enumerate(threads):
        y = bars + n * _ROW
        parts.append(marks.text(LEFT - 8, y + 15, f"thread {n + 1}", anchor="end"))
        for access in _merged(thread, picture.accesses):
            x, width = LEFT + access.first * BYTE + 1, (access.last - access.first + 1) * BYTE - 2
            description = f"thread {n + 1} {access.how} bytes {access.first} to {access.last}, {access.times} times"
            parts.append(marks.rect(x, y, width, _ROW - 6, of_thread[thread], hover=description))
            ink = palette.on(of_thread[thread])
            parts.append(marks.text(x + width / 2, y + 14, access.how, size=11, anchor="middle", ink=ink, room=width))
    description = "; ".join(
        f"thread {threads.index(a.thread) + 1} {a.how} bytes {a.first} to {a.last}" for a in picture.accesses
    )  # fmt: skip
    return Drawing(
        name, f"The cache line {picture.address}, {BYTES} bytes", description, right + RIGHT, bottom + 8, "".join(parts)
    )


def _merged(thread: int, accesses: tuple[Access, ...]) -> list[Access]:
    """What the thread did with the same bytes, once: the surest of it. A sampled access says more than a trap."""
    best: dict[tuple[int, int], Access] = {}
    for access in accesses:
        if access.thread != thread:
            continue
        before = best.get((access.first, access.last))
        if before is None or (before.how == "read or wrote" or access.how == "wrote"):
            best[access.first, access.last] = access
    return list(best.values())
