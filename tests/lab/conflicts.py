"""Made-up records of an explained run: conflicts and footprints in 16-byte blocks that follow each other from BASE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loam_lab.subjects.symbols import Frame, Place

BASE = 1 << 20
FIND = Place(Frame("List::find", "structures/list.hpp", 97))
INSERT = Place(Frame("List::insert", "structures/list.hpp", 49))
REMOVE = Place(Frame("List::remove", "structures/list.hpp", 58))
PLACES = {1: FIND, 2: INSERT, 3: REMOVE}


def block(start: int, size: int = 16, site: int = 2) -> dict[str, int]:
    return {"start": BASE + start, "bytes": size, "ordinal": 1, "thread": 0, "site": site}


def conflict(cause: str, lost: int, wrote: int, *, weight: int = 1, won: int = 2, **changed: Any) -> dict[str, Any]:
    """A conflict between two words of 16-byte blocks: the access to the first (offset from BASE) lost."""
    line = {
        "kind": "conflict", "cause": cause, "met": "newer", "weight": weight, "record": 7, "shift": 5,
        "mine": {"word": BASE + lost, "site": 1, "thread": 0, "block": block(lost & ~15)},
        "theirs": {"word": BASE + wrote, "site": won, "thread": 1, "block": block(wrote & ~15)},
    }  # fmt: skip
    return {**line, **changed}


def footprint(
    thread: int, reads: Sequence[int], writes: Sequence[int], *, size: int = 16, number: int = 0
) -> dict[str, Any]:
    """A footprint of words (offsets from BASE) in blocks of one size that follow each other."""
    rows: dict[int, list[int]] = {}
    for column, words in ((3, reads), (4, writes)):
        for word in words:
            start = BASE + word // size * size
            row = rows.setdefault(start, [start, size, 0, 0, 0])
            row[column] |= 1 << (word % size // 8)
    return {"kind": "footprint", "transaction": number, "thread": thread, "weight": 1, "whole": True,
            "rows": [rows[start] for start in sorted(rows)]}  # fmt: skip
