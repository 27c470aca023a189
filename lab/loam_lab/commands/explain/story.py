"""What was found, in words: the headline first, then what each pair is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loam_lab.commands.explain.grouping import BlockPair, Kind, PairShare
from loam_lab.commands.explain.placement import FALSE_CAUSES, Prediction


class Naming(NamedTuple):
    """What a mapping is called where a run is described, in the table of predictions, and in a sentence."""

    run: str
    row: str
    sentence: str


_MAPPINGS = {
    "table": Naming("a table with {bytes}-byte stripes", "shift {shift}", "shift {shift}"),
    "hash": Naming("a hash with {bytes}-byte stripes", "hash, shift {shift}", "the hash, shift {shift}"),
    "shadow": Naming("shadow records", "shadow", "shadow records"),
}
# Below this share of what there was, false conflicts count as gone, and of all aborts as of no account.
_GONE = 0.02
# Below this number a share of 30 % has an interval of more than 20 points.
FEW_CONFLICTS = 80
# From this share on, conflicts that another placement would avoid are what a reader should know first.
_WORTH_SAYING = 0.1


def percent(share: float) -> str:
    """A share as 63 %, small ones as 0.4 %, and never 0 % for what there is."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def interval(low: float, high: float, between: str = " to ") -> str:
    """The ends of an interval of a share: "48 to 66 %"."""
    return f"{percent(low).removesuffix(' %')}{between}{percent(high)}"


def headline(
    shares: Mapping[str, float],
    blocks: Sequence[PairShare],
    predictions: Sequence[Prediction],
    run: Mapping[str, Any],
    meanings: Mapping[str, str],
) -> list[str]:
    """Sentences that say what a reader should know first.

    shares: of each cause in all aborts; blocks: the pairs of blocks, most first; run: its allocator, mapping and shift
    meanings: of each cause
    """
    sentences = []
    main = max(shares, key=lambda cause: shares[cause])
    avoidable = max(FALSE_CAUSES, key=lambda cause: shares.get(cause, 0.0))
    if shares.get(avoidable, 0.0) >= _WORTH_SAYING:
        main = avoidable
    named = next((group for group in blocks if isinstance(group.pair, BlockPair) and group.pair.cause == main), None)
    share = percent(shares[main])
    if main == "other_block":
        pair = named.pair if named is not None else None
        near = "neighbouring blocks" if isinstance(pair, BlockPair) and pair.neighbours else "different blocks"
        of = f" ({both(pair)})" if isinstance(pair, BlockPair) else ""
        sentences.append(
            f"{share} of the aborts are between {near}{of} that {run['allocator']} puts into one "
            f"{1 << run['shift']}-byte stripe."
        )
    elif main == "other_stripe":
        sentences.append(
            f"{share} of the aborts are between stripes that have nothing in common but their ownership record: "
            "addresses alias in the table."
        )
    elif main == "same_block":
        sentences.append(f"{share} of the aborts are between different words of one block that share a stripe.")
    elif main == "same_word":
        sentences.append(f"{share} of the aborts are conflicts of the program's own: both sides touch the same word.")
    else:
        sentences.append(f"{share} of the aborts: {meanings[main]}.")
    return sentences + _remedy(shares, predictions, run)


def few(conflicts: int) -> list[str]:
    """A caution where the sample is small."""
    if conflicts >= FEW_CONFLICTS:
        return []
    seen = "1 conflict was" if conflicts == 1 else f"{conflicts} conflicts were"
    return [f"Only {seen} recorded, so shares are rough: run longer (-p duration_ms=10000)."]


def _remedy(shares: Mapping[str, float], predictions: Sequence[Prediction], run: Mapping[str, Any]) -> list[str]:
    """What a different mapping would do about false conflicts, as far as there are any."""
    false = shares.get("other_block", 0.0) + shares.get("other_stripe", 0.0)
    now = next((p for p in predictions if (p.mapping, p.shift) == (run["mapping"], run["shift"])), None)
    if now is None or now.conflicting == 0:
        return []
    if false < _GONE:
        return [f"Placement is not to blame: {percent(false)} of the aborts are between different blocks."]
    clean = [p for p in predictions if p.false <= now.false * _GONE or p.false < 1e-6]
    tables = [p for p in clean if p.mapping == "table"]
    # The largest stripe that does it: smaller ones take more records.  Then what costs least: the hash before shadows.
    best = max(tables, key=lambda p: p.shift) if tables else next(iter(clean), None)
    if best is None:
        least = min(predictions, key=lambda p: p.false)
        name = naming(least.mapping, least.shift).sentence
        return [
            f"No mapping here avoids conflicts between different blocks; fewest with {name}: predicted in "
            f"{percent(least.false)} of the pairs of transactions instead of {percent(now.false)}."
        ]
    name = naming(best.mapping, best.shift).sentence
    return [
        f"With {name} conflicts between different blocks would vanish: predicted in {percent(best.false)} of "
        f"the pairs of transactions instead of {percent(now.false)}."
    ]


def naming(mapping: str, shift: int) -> Naming:
    """What a mapping is called; one that is not known here is described as a table."""
    names = _MAPPINGS.get(mapping, _MAPPINGS["table"])
    return Naming(*(name.format(shift=shift, bytes=1 << shift) for name in names))


def blocks_in_words(pair: BlockPair, unit: str = "stripe") -> str:
    """A pair of blocks as one phrase. unit: what of so many bytes the two have in common"""
    low, high = pair.offsets
    stripe = f"one {1 << pair.shift}-byte {unit}"
    if None in pair.kinds:
        return f"{_kind(pair.kinds[0])} and {_kind(pair.kinds[1])}"
    if pair.cause == "same_word":
        return f"one word, {_at(low)}{_kind(pair.kinds[0])}"
    if pair.cause == "same_block":
        return f"two words, {_at(low, high)}{_kind(pair.kinds[0])}"
    where = f"words at {_signed(low)} and {_signed(high)}" if low is not None and high is not None else ""
    if pair.cause == "other_block":
        how = "neighbouring blocks" if pair.neighbours else f"blocks {pair.apart} bytes apart"
        return ", ".join(part for part in (f"{how} in {stripe}", where, both(pair)) if part)
    if pair.cause == "other_stripe" and pair.apart is not None:
        return f"blocks {pair.apart:#x} bytes apart on one record, {both(pair)}"
    return both(pair)


def _at(*offsets: int | None) -> str:
    known = [_signed(offset) for offset in offsets if offset is not None]
    return f"{' and '.join(known)} of " if len(known) == len(offsets) else ""


def _signed(offset: int | None) -> str:
    return f"+{offset}"


def _kind(kind: Kind | None) -> str:
    if kind is None:
        return "an unknown block"
    if kind.name:
        return kind.name
    size = f"{kind.bytes}-byte block" if kind.bytes else "block"
    named = f"{_article(kind.bytes)} {size}"
    return f"{named} made at {kind.made.text}" if kind.made.frame else named


def _article(number: int) -> str:
    """What stands before a number that is spoken: an 8-byte block."""
    return "an" if str(number).startswith("8") or number in (11, 18) else "a"


def both(pair: BlockPair) -> str:
    """What the two blocks are."""
    low, high = pair.kinds
    if low is not None and low == high:
        if low.name:
            return low.name
        size = f"{low.bytes}-byte blocks" if low.bytes else "blocks"
        return f"{size} made at {low.made.text}" if low.made.frame else size
    return f"{_kind(low)} and {_kind(high)}"
