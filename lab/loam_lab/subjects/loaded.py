"""What lies where in a process, by the kernel's list of its mappings: which file, and which address in it."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+\s*(.*)$")
_FIXED = b"\x02\x00"  # e_type of an executable that is not position-independent


@dataclass(frozen=True)
class Mapping:
    """One range of addresses. name: of a file, "[stack]", or "" for memory without a file"""

    start: int
    end: int
    offset: int
    name: str
    executable: bool = False

    @property
    def is_file(self) -> bool:
        """Whether a file of the file system lies there."""
        return self.name.startswith("/")


def parse(line: str) -> Mapping | None:
    """A line of /proc/PID/maps; None for what is none."""
    match = _LINE.match(line)
    if not match:
        return None
    start, end, rights, offset, name = match.groups()
    return Mapping(int(start, 16), int(end, 16), int(offset, 16), name, "x" in rights)


@dataclass
class Loaded:
    """All mappings of one moment."""

    mappings: list[Mapping] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _bases: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, mappings: Iterable[Mapping]) -> Loaded:
        """From mappings in any order."""
        made = cls(sorted(mappings, key=lambda one: one.start))
        made._starts = [one.start for one in made.mappings]
        for one in made.mappings:
            if one.is_file:
                made._bases.setdefault(one.name, one.start - one.offset)
        return made

    def mapping(self, address: int) -> Mapping | None:
        """The mapping of an address."""
        at = bisect.bisect_right(self._starts, address) - 1
        return self.mappings[at] if at >= 0 and address < self.mappings[at].end else None

    def in_file(self, address: int) -> tuple[str, int] | None:
        """The file that an address belongs to, and the address as the file's tables name it.

        A file's variables without a first value lie in memory without a file, behind its last mapping.
        """
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self.mappings[at].end:
            return None
        mapping = self.mappings[at]
        if mapping.name == "" and at > 0 and self.mappings[at - 1].end == mapping.start:
            mapping = self.mappings[at - 1]
        if not mapping.is_file:
            return None
        return mapping.name, address if fixed(mapping.name) else address - self._bases[mapping.name]


@cache
def fixed(file: str) -> bool:
    """Whether the file's addresses are those of the process: an executable that is not position-independent."""
    try:
        with Path(file).open("rb") as opened:
            return opened.read(18)[16:] == _FIXED
    except OSError:
        return False
