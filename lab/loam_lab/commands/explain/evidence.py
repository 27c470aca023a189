"""The records of an explained run, read without trust: conflicts, footprints of transactions, sites of code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loam_lab.subjects.symbols import Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORD_BYTES = 8
ROW_WORDS = 32


@dataclass(frozen=True)
class Block:
    """A block of the allocator's.

    bytes: 0 where its details are not known; ordinal: of its thread's blocks, 0 if made outside of transactions
    site: number of where it was allocated, 0 where that is not known
    name: what it is, where it is no block of the allocator's
    """

    start: int
    bytes: int
    ordinal: int
    thread: int
    site: int
    name: str = ""


@dataclass(frozen=True)
class Party:
    """One side of a conflict: the word it touched, where (0: not known), and the word's block if that is known."""

    word: int
    site: int
    thread: int
    block: Block | None

    @property
    def offset(self) -> int | None:
        """Where in its block the word lies."""
        return self.word - self.block.start if self.block else None


@dataclass(frozen=True)
class Conflict:
    """One abort of the sample; it stands for `weight` aborts. A side that is not known is None.

    met: locked (the winner had not committed yet) or newer
    """

    cause: str
    met: str
    weight: int
    record: int
    shift: int
    mine: Party | None
    theirs: Party | None


@dataclass
class Footprint:
    """What a committed transaction touched: words in ascending order, each with its block's start (0: not known)."""

    thread: int
    weight: int
    whole: bool
    words: NDArray[np.uint64]
    blocks: NDArray[np.uint64]
    written: NDArray[np.bool_]


@dataclass
class Evidence:
    """All of a run's records that explain it."""

    conflicts: list[Conflict] = field(default_factory=list)
    sites: dict[int, Site] = field(default_factory=dict)
    footprints: list[Footprint] = field(default_factory=list)


def read(lines: Iterable[Mapping[str, Any]]) -> Evidence:
    """The evidence in a run's records.

    raises: KeyError, TypeError or ValueError where a record has not the schema's form
    """
    evidence = Evidence()
    rows: dict[int, tuple[Mapping[str, Any], list[Sequence[int]]]] = {}
    for line in lines:
        if line["kind"] == "conflict":
            evidence.conflicts.append(_conflict(line))
        elif line["kind"] == "site":
            site = Site(int(line["number"]), str(line["object"]), int(line["address"]))
            evidence.sites[site.number] = site
        elif line["kind"] == "footprint":
            # A long one comes in several records.
            rows.setdefault(line["transaction"], (line, []))[1].extend(line["rows"])
    evidence.footprints = [_footprint(line, content) for line, content in rows.values()]
    return evidence


def _conflict(line: Mapping[str, Any]) -> Conflict:
    return Conflict(
        cause=str(line["cause"]), met=str(line["met"]), weight=int(line["weight"]), record=int(line["record"]),
        shift=int(line["shift"]), mine=_party(line["mine"]), theirs=_party(line["theirs"]),
    )  # fmt: skip


def _party(value: Mapping[str, Any]) -> Party | None:
    if "word" not in value:
        return None
    return Party(
        word=int(value["word"]), site=int(value["site"]), thread=int(value["thread"]),
        block=_block(value["block"]) if value.get("block") else None,
    )  # fmt: skip


def _block(value: Mapping[str, Any]) -> Block:
    start, size, ordinal, thread, site = (int(value[name]) for name in ("start", "bytes", "ordinal", "thread", "site"))
    return Block(start, size, ordinal, thread, site)


def _footprint(line: Mapping[str, Any], rows: Sequence[Sequence[int]]) -> Footprint:
    import numpy as np

    # Columns: start of the block, its bytes, index of the row's first word in it, and two masks of words from there.
    table = np.array(rows, dtype=np.uint64).reshape(-1, 5)
    bits = np.arange(ROW_WORDS, dtype=np.uint64)
    one = np.uint64(1)
    read_or_written = ((table[:, 3:4] | table[:, 4:5]) >> bits) & one == one
    words = table[:, 0:1] + (table[:, 2:3] + bits) * np.uint64(WORD_BYTES)
    written = (table[:, 4:5] >> bits) & one == one
    blocks = np.broadcast_to(table[:, 0:1], words.shape)
    order = np.argsort(words[read_or_written], kind="stable")
    return Footprint(
        thread=int(line["thread"]), weight=int(line["weight"]), whole=bool(line["whole"]),
        words=words[read_or_written][order], blocks=blocks[read_or_written][order],
        written=written[read_or_written][order],
    )  # fmt: skip
