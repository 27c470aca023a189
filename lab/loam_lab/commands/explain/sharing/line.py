"""One cache line of a pair of blocks, byte by byte: whose blocks lie in it, and which thread used which bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from loam_lab.commands.explain import pairs
from loam_lab.commands.explain.evidence import Party
from loam_lab.commands.explain.sharing.estimate import number
from loam_lab.commands.explain.sharing.findings import Catch, Finding, Seen
from loam_lab.commands.explain.sharing.watches import LINE_BYTES, WORD_BYTES
from loam_lab.subjects.symbols import UNKNOWN

# What a thread did with bytes. A trap says which word was used. Where the sampled access reads, only writes trap; where it
# writes, reads trap too, and the processor does not say which it was.
READ, WROTE, USED = "read", "wrote", "read or wrote"


def picture(one: Finding, seen: Seen) -> dict[str, Any] | None:
    """The line of the pair that was caught most often; None where nothing was caught.

    start: of a block, from the beginning of the line, negative if it begins before; first, last: bytes of the line
    watches: how many times the line was caught
    """
    if not one.catches:
        return None
    lines = Counter((catch.at, catch.watch.line) for catch in one.catches)
    (at, line), _ = lines.most_common(1)[0]
    catches = [catch for catch in one.catches if (catch.at, catch.watch.line) == (at, line)]
    return {
        "address": f"{line:#x}",
        "watches": len({id(catch.watch) for catch in catches}),
        "blocks": _blocks(catches, line, seen),
        "accesses": _accesses(catches, seen),
    }


def _blocks(catches: list[Catch], line: int, seen: Seen) -> list[dict[str, Any]]:
    blocks: dict[tuple[int, int], dict[str, Any]] = {}
    for catch in catches:
        parties: tuple[Party | None, ...] = (catch.conflict.mine, catch.conflict.theirs)
        for party in parties:
            block = party.block if party is not None else None
            if block is None or (block.start, block.bytes) in blocks:
                continue
            blocks[block.start, block.bytes] = {
                "start": block.start - line, "bytes": block.bytes, "thread": block.thread, "name": block.name,
                "made": pairs.place_json(seen.names.places.get(block.site, UNKNOWN)),
            }  # fmt: skip
    return [blocks[key] for key in sorted(blocks)]


def _accesses(catches: list[Catch], seen: Seen) -> list[dict[str, Any]]:
    counts: Counter[tuple[int, int, int, str, int]] = Counter()
    watches = set()
    for catch in catches:
        watch, caught = catch.watch, catch.caught
        if id(watch) not in watches:
            watches.add(id(watch))
            first = watch.address % LINE_BYTES
            last = min(LINE_BYTES, first + max(1, watch.bytes)) - 1
            code = seen.names.of_code(catch.at, watch.ip + 1, watch.callers)
            counts[watch.thread, first, last, WROTE if watch.writes else READ, code] += 1
        first = number(caught.word) * WORD_BYTES
        code = seen.names.of_code(catch.at, caught.ip, caught.callers)
        counts[caught.thread, first, first + WORD_BYTES - 1, USED if watch.writes else WROTE, code] += 1
    merged: dict[tuple[int, int, int, str, Any], dict[str, Any]] = {}
    for (thread, first, last, how, code), times in counts.items():
        place = seen.names.places.get(code, UNKNOWN)
        key = (thread, first, last, how, place.frame)
        one = merged.setdefault(key, {
            "thread": thread, "first": first, "last": last, "how": how, "times": 0, "at": pairs.place_json(place),
        })  # fmt: skip
        one["times"] += times
    return sorted(merged.values(), key=lambda one: (one["first"], one["thread"], -one["times"]))
