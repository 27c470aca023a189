"""Colours of the figures: fixed per allocator, told apart by colour-blind readers, readable on white and on black.

Every hue has a contrast of about 3:1 against both backgrounds; names stand beside the marks in every figure, so
that colour never carries meaning alone. Rust is kept for one thing: aborts that placement causes.
"""

from __future__ import annotations

from collections.abc import Sequence

_KNOWN = {
    "glibc": "#808080",
    "glibc:tcache=0": "#a08c72",
    "jemalloc": "#1f7ac2",
    "tcmalloc": "#bd8600",
    "tbb": "#0f9b74",
    "mimalloc": "#b55fa9",
}
_SPARE = ("#4fa3d9", "#7a6bd0", "#8c922b", "#d0708c", "#3fa6a0", "#8d6b4f", "#6c8f4e", "#9a79b8")

CAUSES = {
    "word": "#5f6d80",
    "block": "#98a5b5",
    "other-block": "#e0904a",
    "other-stripe": "#c04a1a",
    "rest": "#b9b9b4",
}

# Stand-ins that svg.py turns into the reader's text colour, light or dark.
INK, MUTED, FAINT = "#010101", "#020202", "#030303"


def of_allocators(names: Sequence[str]) -> dict[str, str]:
    """A colour per allocator: its own where it is known, else the next spare one in the order of names."""
    spare = iter(_SPARE * (len(names) // len(_SPARE) + 1))
    return {name: _KNOWN.get(name) or next(spare) for name in names}
