"""What placement is predicted to do under other mappings, on made-up footprints of transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conflicts import BASE, footprint

from loam_lab.commands.explain import evidence, placement


def predicted(*lines: dict[str, Any], records_log2: int = 20) -> dict[tuple[str, int], placement.Prediction]:
    predictions = placement.predict(
        evidence.read([{**line, "transaction": index} for index, line in enumerate(lines)]).footprints, records_log2
    )
    return {(p.mapping, p.shift): p for p in predictions}


def test_neighbouring_blocks_part_at_the_shift_of_their_size() -> None:
    predictions = predicted(footprint(0, [0, 8], []), footprint(1, [], [24]))
    for shift in placement.SHIFTS:
        expected = "other_block" if shift >= 5 else None
        p = predictions["table", shift]
        assert p.conflicting == (1 if expected else 0), shift
        assert [cause for cause, share in p.causes.items() if share] == ([expected] if expected else [])
    assert predictions["shadow", 4].conflicting == 0
    assert predicted(footprint(0, [0], []), footprint(1, [], [0]))["hash", 5].causes["same_word"] == 1


def test_the_closest_relation_is_the_cause() -> None:
    # Words of four 16-byte blocks; the second transaction writes +8 of the second block.
    def cause(reads: Sequence[int], shift: int) -> dict[str, float]:
        p = predicted(footprint(0, reads, []), footprint(1, [], [24]))["table", shift]
        return {name: share for name, share in p.causes.items() if share}

    assert cause([0, 16, 24], 5) == {"same_word": 1}
    assert cause([0, 16], 5) == {"same_block": 1}
    assert cause([0, 48], 5) == {"other_block": 1}
    assert cause([32], 5) == {}
    assert cause([32], 6) == {"other_block": 1}
    assert cause([16], 3) == {}, "another word of the block has a record of its own"


def test_a_table_aliases_by_its_size_and_shadow_records_never() -> None:
    period = 1 << 15  # shift 5, 2^10 records
    lines = footprint(0, [period], []), footprint(1, [], [0])
    small = predicted(*lines, records_log2=10)
    assert small["table", 5].causes["other_stripe"] == 1 and small["table", 5].false == 1
    assert small["table", 6].conflicting == 0 and small["shadow", 4].conflicting == 0
    assert small["hash", 5].conflicting == 0, "a period apart is no longer the same record"
    assert small["table", 4].causes["other_stripe"] == 1, "a multiple of the smaller period"
    assert predicted(*lines, records_log2=20)["table", 5].conflicting == 0


def test_transactions_of_one_thread_never_meet_and_weights_count() -> None:
    assert predicted(footprint(0, [0], [0]), footprint(0, [0], [0])) == {}
    assert predicted(footprint(0, [0], []), footprint(1, [0], [])) == {}, "nobody writes"
    heavy = {**footprint(0, [24], []), "weight": 3}
    predictions = predicted(heavy, footprint(0, [0], []), footprint(1, [], [24]))
    assert predictions["table", 3].conflicting == 0.75
    assert predictions["table", 5].conflicting == 1
    assert predictions["table", 5].causes == {
        "same_word": 0.75, "same_block": 0, "other_block": 0.25, "other_stripe": 0, "unknown": 0,
    }  # fmt: skip


def test_words_of_no_known_block_stay_unknown() -> None:
    stray = {**footprint(0, [], []), "rows": [[0, 0, BASE // 8, 1, 0]]}
    p = predicted(stray, footprint(1, [], [24]))["table", 5]
    assert p.causes["unknown"] == 1
    assert predicted(stray, footprint(1, [], [0]))["table", 5].causes["same_word"] == 1
