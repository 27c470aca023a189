"""Conflicts grouped: by how the two blocks lie, and by the two source lines. Weighted by the aborts they stand for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from loam_lab.commands.explain.evidence import Conflict, Party
from loam_lab.subjects.symbols import UNKNOWN, Place

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Kind:
    """Blocks of one kind: as large, and made at the same line. name: what it is, where it is no block"""

    bytes: int
    made: Place
    name: str = ""


@dataclass(frozen=True)
class BlockPair:
    """How the blocks of two conflicting words lie to each other; the two sides are not told apart.

    shift: log2 of the stripe; kinds: of both blocks (None: not known), ordered; apart: bytes between the blocks' starts,
    None where one is not known or the cause has nothing to do with distance; offsets: of the words in their blocks,
    ordered as kinds
    """

    cause: str
    shift: int
    kinds: tuple[Kind | None, Kind | None]
    apart: int | None
    offsets: tuple[int | None, int | None]

    @property
    def neighbours(self) -> bool:
        """Whether nothing lies between the two blocks."""
        return (
            self.cause == "other_block"
            and self.apart is not None
            and any(kind is not None and kind.bytes == self.apart for kind in self.kinds)
        )


@dataclass(frozen=True)
class LinePair:
    """The line whose access lost and the line whose write won."""

    lost: Place
    won: Place


@dataclass(frozen=True)
class PairShare:
    """A pair, and how many of the sampled aborts, weighted, it has; share: of all of them.

    parts: the same, split by cause for a pair of lines
    """

    pair: BlockPair | LinePair
    weight: int
    share: float
    parts: dict[str, int]


def by_blocks(conflicts: Iterable[Conflict], places: Mapping[int, Place]) -> list[PairShare]:
    """The pairs of blocks that abort each other, most first."""
    return _grouped(conflicts, lambda conflict: block_pair(conflict, places))


def by_lines(conflicts: Iterable[Conflict], places: Mapping[int, Place]) -> list[PairShare]:
    """The pairs of source lines of which one aborts the other, most first."""

    return _grouped(conflicts, lambda conflict: line_pair(conflict, places))


def _grouped(conflicts: Iterable[Conflict], pair_of: Callable[[Conflict], BlockPair | LinePair]) -> list[PairShare]:
    parts: dict[BlockPair | LinePair, dict[str, int]] = {}
    for conflict in conflicts:
        causes = parts.setdefault(pair_of(conflict), {})
        causes[conflict.cause] = causes.get(conflict.cause, 0) + conflict.weight
    total = sum(sum(causes.values()) for causes in parts.values())
    groups = [PairShare(pair, weight := sum(causes.values()), weight / total, causes) for pair, causes in parts.items()]
    return sorted(groups, key=lambda group: -group.weight)


def line_pair(conflict: Conflict, places: Mapping[int, Place]) -> LinePair:
    """The source lines of a conflict."""

    def place(party: Party | None) -> Place:
        return places.get(party.site, UNKNOWN) if party else UNKNOWN

    return LinePair(place(conflict.mine), place(conflict.theirs))


def block_pair(conflict: Conflict, places: Mapping[int, Place]) -> BlockPair:
    """How the blocks of a conflict lie to each other."""
    # In the order of addresses: which of the two lost makes another pair of lines, not of blocks.
    sides = sorted((conflict.mine, conflict.theirs), key=lambda party: party.word if party else 0)
    apart: int | None = None
    low, high = sides
    if conflict.cause in ("other_block", "other_stripe") and low and high and low.block and high.block:
        apart = high.block.start - low.block.start
    return BlockPair(
        cause=conflict.cause, shift=conflict.shift, apart=apart,
        kinds=(_kind(low, places), _kind(high, places)),
        offsets=(_offset(low), _offset(high)),
    )  # fmt: skip


def _kind(party: Party | None, places: Mapping[int, Place]) -> Kind | None:
    if party is None or party.block is None:
        return None
    return Kind(party.block.bytes, places.get(party.block.site, UNKNOWN), party.block.name)


# A large block has as many offsets as words: they would split one pair into thousands.
_LARGE_BYTES = 4096


def _offset(party: Party | None) -> int | None:
    if party is None or party.block is None or not 0 < party.block.bytes < _LARGE_BYTES:
        return None
    return party.offset
