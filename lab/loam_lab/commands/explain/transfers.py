"""The cache lines that moved most between cores of a simulated machine: who asked for them, and which blocks lie in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.commands.explain.evidence import Block, Conflict
from loam_lab.subjects.symbols import UNKNOWN, Site

if TYPE_CHECKING:
    from loam_lab.subjects.symbols import Place

LINE_BYTES, LINES_SHOWN = 64, 8
# Of the misses that sharing caused, how many must be of one kind for the line to be called so.
CLEAR_SHARE = 0.8


@dataclass(frozen=True)
class Moved:
    """One line.

    transfers: how often it came from another core's cache, or was taken away from others
    true_sharing, false_sharing: misses after which a byte that another core had written was used, or none
    aborts: hardware transactions that it ended; cores: those that it came to
    shared_cycles: that cores were at it while another one used it; 0 where that was not counted
    sites: where the code asked for it, with how often, the most frequent first; their numbers are those of `sites`
    """

    address: int
    transfers: int
    true_sharing: int
    false_sharing: int
    aborts: int
    cores: tuple[int, ...]
    sites: tuple[tuple[int, int], ...]
    shared_cycles: int = 0

    @property
    def sharing(self) -> str:
        """ "true", "false" or "both"; "none" where no miss was caused by sharing."""
        together = self.true_sharing + self.false_sharing
        if not together:
            return "none"
        false_share = self.false_sharing / together
        return "false" if false_share >= CLEAR_SHARE else "true" if false_share <= 1 - CLEAR_SHARE else "both"


def read(text: str, first_site: int) -> tuple[list[Moved], dict[int, Site]]:
    """The lines of the simulator's statistics, the most moved first, and the sites of code that they name.

    first_site: the number of the first site, so that none is that of another
    raises: KeyError, TypeError or ValueError where the text has not the simulator's form
    """
    numbers: dict[tuple[str, int], int] = {}
    lines = []
    for line in json.loads(text)["lines"]:
        counts = []
        for site in line["sites"]:
            place = (str(site["object"]), int(site["address"]))
            counts.append((numbers.setdefault(place, first_site + len(numbers)), int(site["count"])))
        lines.append(Moved(
            int(line["address"]), int(line["transfers"]), int(line["true_sharing"]), int(line["false_sharing"]),
            int(line["aborts"]), tuple(map(int, line["cores"])), tuple(counts),
            int(line.get("shared_cycles", 0)),
        ))  # fmt: skip
    return lines, {number: Site(number, *place) for place, number in numbers.items()}


def blocks_in(line: Moved, conflicts: Iterable[Conflict]) -> list[Block]:
    """The blocks of sampled conflicts that lie in a line, by address; each once."""
    blocks: dict[int, Block] = {}
    for conflict in conflicts:
        for party in (conflict.mine, conflict.theirs):
            block = party.block if party else None
            if block and block.start < line.address + LINE_BYTES and block.start + max(1, block.bytes) > line.address:
                blocks.setdefault(block.start, block)
    return [blocks[start] for start in sorted(blocks)]


def as_json(
    lines: Sequence[Moved], conflicts: Sequence[Conflict], places: Mapping[int, Place],
) -> list[dict[str, Any]]:  # fmt: skip
    """The lines as an explanation has them."""

    def text(site: int) -> str:
        return places[site].text if site in places else UNKNOWN.text

    def asked(site: int) -> str:
        own = places[site].own if site in places else None
        return f"{own.place} ({own.function})" if own else text(site)

    return [
        {
            "address": line.address, "transfers": line.transfers, "sharing": line.sharing,
            "true_sharing": line.true_sharing, "false_sharing": line.false_sharing, "aborts": line.aborts,
            "cores": list(line.cores),
            "asked_by": [{"place": asked(site), "count": count} for site, count in line.sites],
            "blocks": [
                {"offset": block.start - line.address, "bytes": block.bytes, "made": text(block.site)}
                for block in blocks_in(line, conflicts)
            ],
        }
        for line in lines
    ]  # fmt: skip


def show(lines: Sequence[Mapping[str, Any]]) -> None:
    """Print the table of the lines that moved most; nothing where none did. lines: as as_json makes them"""
    if lines:
        heads = ["transfers", "sharing", "cores", "asked for most often by", "what lies in it"]
        title = "Cache lines that moved most between cores"
        table = console.table(heads, rows(lines[:LINES_SHOWN]), numeric=["transfers", "cores"], title=title)
        console.out().print(table)


def rows(lines: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The table of lines: transfers, sharing, cores, who asked most, what lies in it."""
    made = []
    for line in lines:
        blocks = line["blocks"]
        kinds = dict.fromkeys(f"{block['bytes']} B of {block['made']}" for block in blocks)
        lies = f"{len(blocks)} blocks: " if len(blocks) > 1 else ""
        asked = line["asked_by"][0]["place"] if line["asked_by"] else UNKNOWN.text
        where = lies + "; ".join(kinds) if blocks else f"no block that is known ({line['address']:#x})"
        made.append([str(line["transfers"]), line["sharing"], str(len(line["cores"])), asked, where])
    return made
