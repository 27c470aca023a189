"""The geometry of a cache that cachegrind models, as `bytes,ways,line`."""

from __future__ import annotations

LINE_BYTES_MIN = 16
EXAMPLE = "32768,8,64"


def problem(geometry: str) -> str:
    """Why valgrind would refuse a cache; "" if it takes it. Sets and line must be powers of two."""
    parts = geometry.split(",")
    if len(parts) != 3 or not all(part.isdigit() and int(part) > 0 for part in parts):
        return "not of the form bytes,ways,line"
    size, ways, line = map(int, parts)
    if line & (line - 1) or line < LINE_BYTES_MIN:
        return f"the line must be a power of two of at least {LINE_BYTES_MIN} bytes"
    sets, rest = divmod(size, ways * line)
    if rest or not sets or sets & (sets - 1):
        return "bytes / ways / line, the number of sets, must be a power of two"
    return ""
