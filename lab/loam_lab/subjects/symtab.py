"""Names of functions and of static variables, by the symbol tables of their object file."""

from __future__ import annotations

import bisect
import subprocess
from functools import cache
from typing import NamedTuple

from loam_lab.setup import build

# nm's letters for data: with a first value, without one, read-only, weak, unique, small; of the file alone or not.
DATA = "DdBbRrVuGgSs"
CODE = "TtWwi"


class Symbol(NamedTuple):
    """A function or variable and where it lies, as its file's tables name the address."""

    start: int
    bytes: int
    name: str


def variable(file: str, address: int) -> Symbol | None:
    """The variable of an object file at an address; None where its symbols tell of none."""
    symbol = _at(file, address, DATA)
    # Versions and the unnamed namespace say nothing to a reader.
    return symbol and symbol._replace(name=symbol.name.partition("@")[0].replace("(anonymous namespace)::", ""))


def function(file: str, address: int) -> str:
    """The function of an object file around an address, with its types; "" where its symbols tell of none."""
    symbol = _at(file, address, CODE)
    return symbol.name if symbol else ""


def _at(file: str, address: int, kinds: str) -> Symbol | None:
    starts, known = _table(file, kinds)
    index = bisect.bisect_right(starts, address) - 1
    return known[index] if index >= 0 and address < known[index].start + known[index].bytes else None


@cache
def _table(file: str, kinds: str) -> tuple[list[int], list[Symbol]]:
    by_start: dict[int, Symbol] = {}
    for also in (["--dynamic"], []):
        command = ["nm", "--defined-only", "--demangle", "--print-size", *also, file]
        try:
            listing = subprocess.run(command, capture_output=True, text=True, check=False, env=build.tool_environment())
        except FileNotFoundError:
            break
        for line in listing.stdout.splitlines():
            words = line.split(" ", 3)
            if len(words) == 4 and words[2] in kinds:
                start = int(words[0], 16)
                by_start[start] = Symbol(start, int(words[1], 16), words[3])
    ordered = [by_start[start] for start in sorted(by_start)]
    return [one.start for one in ordered], ordered
