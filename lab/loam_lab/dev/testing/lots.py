"""A share of many tests: another lot with each change of the runtime, and the same one wherever this tree is tested."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from loam_lab.base import paths

_FOLDERS = ("include", "runtime", "structures")


def sources_hash() -> int:
    """A number that changes with each file of the runtime, and does not depend on where the checkout lies."""
    root, value = paths.root(), 0
    for file in sorted(each for folder in _FOLDERS for each in (root / folder).rglob("*.[ch]*") if each.is_file()):
        value = zlib.crc32(file.read_bytes(), value)
    return value


def lot(names: Sequence[str], share: int, chosen: int) -> list[str]:
    """One in `share` of the names, in order: the lot `chosen`, counted modulo share."""
    return sorted(names)[chosen % share :: share]
