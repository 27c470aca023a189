"""Lines that moved on a simulated machine: what the simulator counted, resolved to source lines and blocks."""

from __future__ import annotations

import json
from typing import Any

from conflicts import BASE, PLACES, conflict

from loam_lab.commands.explain import evidence, transfers
from loam_lab.subjects.symbols import Frame, Place


def statistics(**changed: Any) -> str:
    line = {
        "address": BASE, "transfers": 40, "true_sharing": 1, "false_sharing": 9, "aborts": 0, "cores": [0, 3],
        "sites": [{"object": "", "address": 16, "count": 30}, {"object": "/lib/x.so", "address": 16, "count": 10}],
        **changed,
    }  # fmt: skip
    return json.dumps({"machine": "m", "lines": [line, {**line, "sites": line["sites"][:1]}]})


def test_sites_are_numbered_once_and_after_those_of_the_run() -> None:
    lines, sites = transfers.read(statistics(), 7)
    assert [line.sites for line in lines] == [((7, 30), (8, 10)), ((7, 30),)]
    assert {number: (site.object, site.address) for number, site in sites.items()} == {
        7: ("", 16),
        8: ("/lib/x.so", 16),
    }


def test_sharing_is_what_most_of_its_misses_were() -> None:
    def sharing(true: int, false: int) -> str:
        return transfers.read(statistics(true_sharing=true, false_sharing=false), 1)[0][0].sharing

    assert [sharing(1, 9), sharing(9, 1), sharing(5, 5), sharing(0, 0)] == ["false", "true", "both", "none"]


def test_blocks_of_the_sample_that_overlap_the_line_are_named() -> None:
    line = transfers.read(statistics(), 1)[0][0]
    conflicts = evidence.read([conflict("other_block", 0, 24), conflict("other_block", 64, 80)]).conflicts
    starts = {block.start for block in transfers.blocks_in(line, conflicts)}
    assert starts == {party.block.start for party in (conflicts[0].mine, conflicts[0].theirs) if party and party.block}
    before = transfers.read(statistics(address=BASE + 128), 1)[0][0]
    assert transfers.blocks_in(before, conflicts) == []


def test_what_asked_is_a_line_of_the_program_not_of_the_library() -> None:
    lines, _ = transfers.read(statistics(), 7)
    library, own = Frame("load", "/usr/include/c++/12/bits/atomic_base.h", 488), Frame("read", "runtime/tm/x.hpp", 5)
    places = {**PLACES, 7: Place(library, (library, own))}
    conflicts = evidence.read([conflict("other_block", 0, 24)]).conflicts
    moved = transfers.as_json(lines, conflicts, places)[0]
    assert moved["asked_by"][0] == {"place": "runtime/tm/x.hpp:5 (read)", "count": 30}
    assert moved["asked_by"][1]["place"] == "an unknown line"
    row = transfers.rows([moved])[0]
    assert row[:4] == ["40", "false", "2", "runtime/tm/x.hpp:5 (read)"] and "2 blocks" in row[4]
