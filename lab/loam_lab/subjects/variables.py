"""Names of static variables, by the symbol table of their object file."""

from __future__ import annotations

import bisect
import subprocess
from functools import cache
from typing import NamedTuple

from loam_lab.setup import build

# nm's letters for data: with a first value, without one, read-only, weak, unique, small; of the file alone or not.
_DATA = "DdBbRrVuGgSs"


class Variable(NamedTuple):
    """A variable and where it lies, as its file's tables name the address."""

    start: int
    bytes: int
    name: str


def at(file: str, address: int) -> Variable | None:
    """The variable of an object file at an address; None where its symbols tell of none."""
    starts, known = _table(file)
    found = bisect.bisect_right(starts, address) - 1
    if found < 0 or address >= known[found].start + max(1, known[found].bytes):
        return None
    return known[found]


@cache
def _table(file: str) -> tuple[list[int], list[Variable]]:
    found: dict[int, Variable] = {}
    for also in (["--dynamic"], []):
        command = ["nm", "--defined-only", "--demangle", "--print-size", *also, file]
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=False, env=build.tool_environment())
        except FileNotFoundError:
            break
        for line in said.stdout.splitlines():
            words = line.split(" ", 3)
            if len(words) == 4 and words[2] in _DATA:
                start = int(words[0], 16)
                # Versions and the unnamed namespace say nothing to a reader.
                name = words[3].partition("@")[0].replace("(anonymous namespace)::", "")
                found[start] = Variable(start, int(words[1], 16), name)
    ordered = [found[start] for start in sorted(found)]
    return [one.start for one in ordered], ordered
