"""Pairs of blocks and pairs of source lines, in documents and in tables: the same for aborts and for shared cache lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.commands.explain import grouping, story
from loam_lab.commands.run import tables

if TYPE_CHECKING:
    from loam_lab.subjects.symbols import Place


@dataclass(frozen=True)
class Words:
    """What a table of pairs of lines calls its columns and itself."""

    share: str
    one: str
    other: str
    title: str


def place_json(place: Place) -> dict[str, Any] | None:
    """A source line, with the functions it was inlined into."""
    if place.frame is None:
        return None
    chain = [{"function": frame.function, "file": frame.file, "line": frame.line} for frame in place.chain]
    return {"file": place.frame.file, "line": place.frame.line, "function": place.frame.function, "chain": chain}


def pair_of_blocks(pair: grouping.BlockPair, unit: str = "stripe") -> dict[str, Any]:
    """Both blocks, and how they lie to each other. unit: what they have in common"""
    return {
        "cause": pair.cause, "words": story.blocks_in_words(pair, unit),
        "neighbours": pair.neighbours, "apart": pair.apart,
        "blocks": [
            kind and {
                "bytes": kind.bytes, "made": place_json(kind.made), "offset": offset,
                **({"name": kind.name} if kind.name else {}),
            }
            for kind, offset in zip(pair.kinds, pair.offsets, strict=True)
        ],
    }  # fmt: skip


def blocks_json(group: grouping.PairShare) -> dict[str, Any]:
    """A pair of blocks with its share of the aborts."""
    assert isinstance(group.pair, grouping.BlockPair)
    return {"share": group.share, "aborts": group.weight, **pair_of_blocks(group.pair)}


def lines_json(group: grouping.PairShare) -> dict[str, Any]:
    """A pair of source lines with its share of the aborts."""
    pair = group.pair
    assert isinstance(pair, grouping.LinePair)
    return {
        "share": group.share, "aborts": group.weight, "lost": place_json(pair.lost), "won": place_json(pair.won),
        "causes": group.parts,
    }  # fmt: skip


def text(place: Mapping[str, Any] | None, *, chains: bool = False) -> str:
    """A source line of a document; chains: with the functions it was inlined into, a line each"""

    def one(frame: Mapping[str, Any]) -> str:
        where = f"{frame['file']}:{frame['line']}" if frame["line"] else frame["file"]
        return f"{where} ({frame['function']})"

    if place is None:
        return "an unknown line"
    return "\n".join([one(place), *(f"  {one(frame)}" for frame in place["chain"] if chains)])


def show_lines(
    groups: Sequence[Mapping[str, Any]], words: Words, *, chains: bool = False, sides: tuple[str, str] = ("lost", "won")
) -> None:
    """Print a table of pairs of lines. sides: their keys in a group"""
    rows = [
        [story.percent(group["share"]), *(text(group[side], chains=chains) for side in sides)] for group in groups
    ]  # fmt: skip
    heads = [words.share, words.one, words.other]
    if console.out().width < tables.WIDE:  # two columns of source lines need the room
        heads = [words.share, f"{words.one}, and {words.other}"]
        rows = [[share, f"{one}\n{other}"] for share, one, other in rows]
    console.out().print(console.table(heads, rows, numeric=[words.share], title=words.title))
