"""A paper's claims and figures beside ours."""

from __future__ import annotations

from typing import ClassVar

from loam_lab.model import words
from loam_lab.model.result.parts import Interval, Level, Part


class PaperValue(Part, frozen=True):
    """A number that a paper prints."""

    what: str = ""
    value: Level | bool | None = None


class Compared(Interval, frozen=True):
    """A comparison that decides a claim."""

    what: str = ""
    unit: str = ""


class Tried(Part, frozen=True):
    """What becomes of a claim with another value of what it assumes."""

    value: str
    verdict: str = ""
    reason: str = ""


class Assumed(Part, frozen=True):
    """What a verdict rests on that the paper does not say. value: that was taken; tried: others"""

    parameter: str
    value: str = ""
    tried: list[Tried] = []

    def words(self) -> str:
        """What was assumed, and what becomes of the verdict over the values that were tried, in words."""
        tried = [f"with {other.value} it is {other.verdict}" for other in self.tried]
        return (
            f"assumed: {self.parameter}, {self.value}; {words.listing(tried) if tried else 'no other value was tried'}"
        )


class Claim(Part, frozen=True):
    """A sentence and what became of it.

    machine: fingerprints of what measured it; follows_from: claims that say it
    groups: of the study, that its predicates read; machines, allocators: names of those whose cells they read
    inputs: the workloads of these with their parameters
    assumed: what the verdict rests on; guessed: of each simulated machine the keys whose values are guesses
    """

    id: str
    section: str = ""
    figure: str = ""
    sentence: str = ""
    predicate: str = ""
    groups: list[str] = []
    verdict: str = "undecided"
    reason: str = ""
    note: str = ""
    needs: list[str] = []
    paper: list[PaperValue] = []
    ours: list[Compared] = []
    machine: str = ""
    by_preset: bool = False
    self_contradicting: bool = False
    follows_from: list[str] = []
    machines: list[str] = []
    allocators: list[str] = []
    inputs: list[str] = []
    assumed: list[Assumed] = []
    guessed: dict[str, list[str]] = {}


class Value(Interval, frozen=True):
    """A measured value in a table. unit: "%" where it is a share"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"unit"})

    unit: str | None = None


Entry = Value | Level | bool | None


class PaperTable(Part, frozen=True):
    """A table of a paper, or ours beside it; the first columns name the rows."""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"note"})

    columns: list[str] = []
    rows: list[list[Entry]] = []
    note: str | None = None


class PaperFigure(Part, frozen=True):
    """A figure or table of a paper beside ours. kind: line, bar, table"""

    id: str
    title: str = ""
    kind: str = ""
    paper: PaperTable = PaperTable()
    ours: PaperTable = PaperTable()
    groups: list[str] = []


class Block(Part, frozen=True):
    """A live block. bytes: usable; record: index of its ownership record"""

    thread: int = 0
    address: int = 0
    bytes: int = 0
    record: int = 0


class Placement(Part, frozen=True):
    """Live blocks of one run. shift: bits of an address that records ignore"""

    allocator: str = ""
    kind: str = ""
    title: str = ""
    figure: str = ""
    threads: int = 1
    bytes_per_line: int = 64
    shift: int = 0
    blocks: list[Block] = []
