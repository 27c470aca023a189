"""What `loam explain --json -- COMMAND` prints, as classes: the shape of the document, and what its page is drawn from.

schema/explanation.schema.json is written from them: `python -P -m loam_lab.model.explanation`. A test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from loam_lab.base import paths

FILE = "schema/explanation.schema.json"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the document: it has these names and no others."""


class Frame(Part, frozen=True):
    """A line of source, or with line 0 a function of an object file."""

    function: str
    file: str
    line: int


class Place(Frame, frozen=True):
    """A line of source with the functions around it, innermost first."""

    chain: tuple[Frame, ...]


class Share(Part, frozen=True):
    """A share of the threads' time, 0 to 1, with its exact 95 % interval; caught: watches that it rests on, of samples."""

    share: float
    low: float
    high: float
    caught: int
    samples: int


class Kind(Share, frozen=True):
    """The share of one kind of sharing."""

    kind: str
    meaning: str


class Threads(Share, frozen=True):
    """The share of two threads, by the numbers that the kernel gives them."""

    threads: tuple[int, int]


class Lines(Share, frozen=True):
    """The share of two source lines."""

    sampled: Place | None
    other: Place | None


class Word(Part, frozen=True):
    """One of the eight words of a cache line: how often the sampled thread used it, and how often others."""

    word: int
    own: int
    other: int


class Block(Part, frozen=True):
    """A block of a pair. offset: of the word in it; name: what it is where it is no block"""

    bytes: int
    made: Place | None
    offset: int | None
    name: str = ""


class Holder(Part, frozen=True):
    """What lies in a line. start: from the line's first byte; bytes: 0 where not known; made: with the call stack"""

    start: int
    bytes: int
    thread: int
    name: str
    made: Place | None


class Access(Part, frozen=True):
    """What a thread did with bytes of a line, first to last, 0 to 63. how: read, wrote, or "read or wrote" """

    thread: int
    first: int
    last: int
    how: str
    times: int
    at: Place | None


class Picture(Part, frozen=True):
    """The line of a pair that was caught most often. watches: so many caught it"""

    address: str
    watches: int
    blocks: tuple[Holder, ...]
    accesses: tuple[Access, ...]


class Pair(Share, frozen=True):
    """The share of two blocks. apart: bytes between their starts; named: whether enough watches caught it"""

    named: bool
    cause: str
    words: str
    neighbours: bool
    apart: int | None
    blocks: tuple[Block | None, Block | None]
    line: tuple[Word, ...]
    picture: Picture | None


class Run(Part, frozen=True):
    """The run. ending: "" if it ended well; wall_s: seconds, watched"""

    command: str
    allocator: str
    processes: int
    threads: int
    source: str
    window_us: float
    period_us: float
    wall_s: float
    ending: str


class Apart(Part, frozen=True):
    """What `--apart` found: shares and time with the blocks of the sites apart, over those without."""

    file: str
    sites: tuple[str, ...]
    blocks: int
    before: Share
    after: Share
    time_ratio: float
    time_ratio_low: float | None
    time_ratio_high: float | None
    words: tuple[str, ...]
    complaints: tuple[str, ...]


class Explanation(Part, frozen=True):
    """One run. words: the first sentence is the answer; beside: share of watches in which another thread ran"""

    schema: int
    run: Run
    samples: int
    watched: int
    beside: float
    lost: int
    shared: Share
    words: tuple[str, ...]
    kinds: tuple[Kind, ...]
    blocks: tuple[Pair, ...]
    lines: tuple[Lines, ...]
    threads: tuple[Threads, ...]
    apart: Apart | None = None


class Compared(Part, frozen=True):
    """One allocator of a comparison. problem: why its run is none, or how it ended"""

    allocator: str
    problem: str
    explained: Explanation | None


class Comparison(Part, frozen=True):
    """The same program under several allocators. words: what to do"""

    schema: int
    command: str
    words: tuple[str, ...]
    runs: tuple[Compared, ...]


def typed(document: Mapping[str, Any]) -> Explanation:
    """A document as its class; raises: msgspec.ValidationError with the place of what does not fit"""
    return msgspec.convert(document, Explanation)


def text() -> str:
    """The schema as its file has it."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What loam explain --json -- COMMAND prints",
    }
    (one, several), parts = msgspec.json.schema_components(
        [Explanation, Comparison], ref_template="#/$defs/{name}"
    )  # fmt: skip
    return json.dumps({**head, "anyOf": [one, several], "$defs": parts}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (paths.root() / FILE).write_text(text())
