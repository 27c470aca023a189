"""docs/performance/record-sharing.md: aborts between unrelated stripes, allocator by allocator, as one Markdown page.

    ./loam study run record-sharing
    ./loam page record-sharing RESULT [--page FILE] [--ours NAME]

RESULT is the folder of that study's result.  Its explained runs tell causes apart: an abort on another stripe needs two
addresses that are a multiple of 32 MiB apart, less than a stripe (paper 000, section 5), which is the allocator's doing;
one on another block of the same stripe is its doing too, and finer stripes end it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import paired
from loam_lab.presenting.report import rounding

# Of attempts; what an allocator may add at most while its heap is smaller than what the records tell apart.
LIMIT = 1e-4
CAUSES = ("other_stripe", "other_block")


@dataclass
class Share:
    """Aborts of one cause over attempts, over the algorithms of an allocator and structure."""

    events: float = 0
    attempts: float = 0
    worst: float = 0.0  # of one algorithm

    def add(self, events: float, attempts: float) -> None:
        self.events += events
        self.attempts += attempts
        self.worst = max(self.worst, events / attempts if attempts else 0.0)

    def text(self) -> str:
        if not self.events:
            return "0"
        return f"{rounding.significant(self.events / self.attempts)} (worst {rounding.significant(self.worst)})"


def shares(result: Result, cause: str) -> dict[str, dict[str, Share]]:
    """Of each allocator its structures' shares, in the order of the result."""
    by_allocator: dict[str, dict[str, Share]] = {}
    for cell in result.cells:
        blame = cell.blame
        if cell.copy or not blame:
            continue
        of_allocator = by_allocator.setdefault(cell.allocator, {})
        share = of_allocator.setdefault(str(cell.parameters["structure"]), Share())
        share.add(blame[cause], blame["attempts"])
    return by_allocator


def page(result: Result, ours: str = "loam") -> str:
    """The page.

    raises: ValueError if the result has no explained runs of ours
    """
    if ours not in shares(result, "aborts_other_stripe"):
        raise ValueError(f"this result has no explained runs of {ours}; ./loam study run record-sharing makes them")
    machine = result.machine
    syncs = dict.fromkeys(cell.factors.sync for cell in result.cells if cell.blame)
    lines = [
        "# Aborts that placement alone causes", "",
        "```", "./loam study run record-sharing     measures",
        "./loam page record-sharing          writes this page from the result", "```", "",
        "Each cell is the share of all attempts that aborted for this cause, over all algorithms, then of the worst one.", "",
        f"Explained runs of `intset` on {machine['cpu']}, {result.created_utc[:10]}, under {', '.join(syncs)}.",
        "Their tables have 2^20 records; each guards stripes of 32 bytes.", "",
    ]  # fmt: skip
    words = {cause.name: cause.words for cause in result.abort_causes}
    for cause in CAUSES:
        rows, name = shares(result, f"aborts_{cause}"), words[cause]
        structures = list(dict.fromkeys(structure for row in rows.values() for structure in row))
        lines += [f"## {name[0].upper()}{name[1:]}", "", "| allocator | " + " | ".join(structures) + " |"]
        lines.append("| --- |" + " ---: |" * len(structures))
        for allocator, row in rows.items():
            cells = [row[structure].text() if structure in row else rounding.MISSING for structure in structures]
            lines.append(f"| {allocator} | " + " | ".join(cells) + " |")
        lines.append("")
    worst = max(share.worst for share in shares(result, "aborts_other_stripe")[ours].values())
    verdict = "passed" if worst <= LIMIT else "failed"
    lines.append(f"{ours}: at most {rounding.significant(worst)} on another stripe; the limit is {LIMIT:g}: {verdict}.")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("record-sharing", __doc__)
    return paired.write_page_of_ours(parser, arguments, "the allocator that is judged", page)
