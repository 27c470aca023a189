"""What placement alone would do under another mapping: pairs of transactions of different threads, as if they overlapped.

A pair conflicts if the one has touched a word whose ownership record guards a word that the other has written. Its cause
is the closest relation between any two such words, as a blame run gives it. How often transactions overlap, and which of
them aborts, is left out: the shares of causes compare with those of aborts, the number of pairs does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loam_lab.commands.explain.evidence import Footprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHIFTS = range(3, 9)
SHADOW_SHIFT = 4
HASH_SHIFT = 5
_SPREAD = 0.6180339887498949 / 64  # kSpread of runtime/tm/records/mapping.hpp
CAUSES = ("same_word", "same_block", "other_block", "other_stripe", "unknown")
FALSE_CAUSES = ("other_block", "other_stripe")
_MIX = 0x9E3779B97F4A7C15  # odd, of high entropy


@dataclass(frozen=True)
class Prediction:
    """What a mapping makes of the sampled pairs.

    conflicting: share of all pairs; causes: shares of the conflicting ones, which sum to 1 unless there are none
    """

    mapping: str
    shift: int
    conflicting: float
    causes: dict[str, float]

    @property
    def false(self) -> float:
        """Share of all pairs that conflict without a word, or a block, in common."""
        return self.conflicting * sum(self.causes[cause] for cause in FALSE_CAUSES)


def predict(footprints: Sequence[Footprint], records_log2: int, hash_shift: int = HASH_SHIFT) -> list[Prediction]:
    """Predictions for tables of 2^records_log2 records with each shift of SHIFTS, for the hash with hash_shift and as
    many, then for shadow records.

    returns: nothing if no two footprints are of different threads, or none wrote anything
    """
    pairs = [
        (reader, writer)
        for reader in range(len(footprints))
        for writer in range(len(footprints))
        if footprints[reader].thread != footprints[writer].thread and footprints[writer].written.any()
    ]
    if not pairs:
        return []
    predictions = [_predict(footprints, pairs, "table", shift, records_log2) for shift in SHIFTS]
    predictions.append(_predict(footprints, pairs, "hash", hash_shift, records_log2))
    return [*predictions, _predict(footprints, pairs, "shadow", SHADOW_SHIFT, None)]


def _stripes(words: NDArray[np.uint64], mapping: str, shift: int, records_log2: int | None) -> NDArray[np.uint64]:
    """The stripe of each word, numbered through the address space, as RecordMap::stripe() of the runtime."""
    import numpy as np

    if mapping != "hash" or records_log2 is None:
        return words >> np.uint64(shift)
    drop = 64 - records_log2
    apart = int(_SPREAD * (1 << records_log2)) | 1
    multiplier = (1 << (drop - shift)) + (apart << (drop - shift - records_log2))
    return np.array([int(word) * multiplier >> drop for word in words], dtype=np.uint64)


class _View:
    """A footprint as a mapping sees it: sorted sets to look words up in."""

    def __init__(self, footprint: Footprint, mapping: str, shift: int, records_log2: int | None) -> None:
        import numpy as np

        self._records_log2 = records_log2
        stripes = _stripes(footprint.words, mapping, shift, records_log2)
        known = footprint.blocks != 0
        self.words = footprint.words  # ascending
        self.stripes = np.unique(stripes)
        self.known_stripes = np.unique(stripes[known])
        self.blocks = np.unique(_keys(stripes[known], footprint.blocks[known]))
        self.records = np.unique(self._records(stripes))
        # Of what was written:
        self.own_words = footprint.words[footprint.written]
        self.own_stripes = stripes[footprint.written]
        own_blocks = footprint.blocks[footprint.written]
        self.own_known = own_blocks != 0
        self.own_blocks = _keys(self.own_stripes, own_blocks)
        self.own_records = self._records(self.own_stripes)

    def _records(self, stripes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        import numpy as np

        return stripes if self._records_log2 is None else stripes & np.uint64((1 << self._records_log2) - 1)

    def cause_from(self, writer: _View) -> str | None:
        """Why this transaction would abort if the writer's commit fell into it; None if it would not."""
        if _any_in(writer.own_words, self.words):
            return "same_word"
        if _any_in(writer.own_blocks[writer.own_known], self.blocks):
            return "same_block"
        if _any_in(writer.own_stripes[writer.own_known], self.known_stripes):
            return "other_block"
        in_stripe = _in(writer.own_stripes, self.stripes)
        if bool((_in(writer.own_records, self.records) & ~in_stripe).any()):
            return "other_stripe"
        return "unknown" if bool(in_stripe.any()) else None


def _keys(stripes: NDArray[np.uint64], blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One number for a block's share of a stripe; two shares have the same number once in 2^64."""
    import numpy as np

    return (stripes * np.uint64(_MIX)) ^ blocks


def _in(values: NDArray[np.uint64], ascending: NDArray[np.uint64]) -> NDArray[np.bool_]:
    import numpy as np

    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    matches: NDArray[np.bool_] = ascending[places] == values
    return matches


def _any_in(values: NDArray[np.uint64], ascending: NDArray[np.uint64]) -> bool:
    return bool(_in(values, ascending).any())


def _predict(
    footprints: Sequence[Footprint],
    pairs: Sequence[tuple[int, int]],
    mapping: str,
    shift: int,
    records_log2: int | None,
) -> Prediction:
    views = [_View(footprint, mapping, shift, records_log2) for footprint in footprints]
    total = 0
    counts = dict.fromkeys(CAUSES, 0)
    for reader, writer in pairs:
        weight = footprints[reader].weight * footprints[writer].weight
        total += weight
        cause = views[reader].cause_from(views[writer])
        if cause is not None:
            counts[cause] += weight
    conflicting = sum(counts.values())
    return Prediction(
        mapping, shift, conflicting / total,
        {cause: count / conflicting if conflicting else 0.0 for cause, count in counts.items()},
    )  # fmt: skip
