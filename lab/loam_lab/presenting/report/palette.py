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
    "hoard": "#cc5a4a",
    "snmalloc": "#7a6bd0",
    "rpmalloc": "#8c922b",
    "scudo": "#8d6b4f",
    "mimalloc-2.5": "#d0708c",
    "mimalloc-3.6": "#9a79b8",
    "jemalloc-5.3.1": "#4fa3d9",
    "tcmalloc-percpu": "#d17d2a",
}
_SPARE = ("#3fa6a0", "#6c8f4e", "#a2709c", "#5a86a8", "#a5803f", "#7c7c4f", "#b3657a", "#5f9a7d")

_CAUSES = {
    "same_word": "#5f6d80",
    "same_block": "#98a5b5",
    "other_block": "#e0904a",
    "other_stripe": "#c04a1a",
    "unknown": "#b9b9b4",
}
_SPARE_CAUSES = ("#6c8f4e", "#5a86a8", "#a2709c", "#7c7c4f", "#3fa6a0", "#7a6bd0")

# Threads in placement pictures, in their order; pictures also write the number.
THREADS = ("#1f7ac2", "#bd8600", "#0f9b74", "#b55fa9", "#808080", "#7a6bd0", "#8c922b", "#d0708c")
# What two threads share though they need not: the same rust as aborts by placement.
SHARED = _CAUSES["other_stripe"]

# Stand-ins that svg.py turns into the reader's text colour, light or dark.
INK, MUTED, FAINT = "#010101", "#020202", "#030303"


# The ends of the heat map's scale and its middle: told apart by colour-blind readers (orange, grey, blue).
WORSE, LEVEL, BETTER = "#b4541a", "#f0eee9", "#1b66a8"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(first: str, second: str, share: float) -> str:
    """The colour that lies share (0 to 1) of the way from the first to the second."""
    pairs = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2, 0 to 1."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio by WCAG 2, 1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def on(ground: str) -> str:
    """Black or white, whichever reads better on that ground; one of them always reaches 4.5."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, ground))


def of_causes(names: Sequence[str]) -> dict[str, str]:
    """A colour per cause of aborts: its own where it is known, else the next spare one in the order of names."""
    spare = iter(_SPARE_CAUSES * (len(names) // len(_SPARE_CAUSES) + 1))
    return {name: _CAUSES.get(name) or next(spare) for name in names}


def of_allocators(names: Sequence[str]) -> dict[str, str]:
    """A colour per allocator: its own where it is known, else the next spare one in the order of names."""
    spare = iter(_SPARE * (len(names) // len(_SPARE) + 1))
    return {name: _KNOWN.get(name) or next(spare) for name in names}
