"""docs/performance/programs-speed.md: real programs under ours and under its peers, as fast as ours or not.

    ./loam study run programs
    ./loam page programs-speed [RESULT] [--page FILE] [--ours NAME]

Rates are runs in a second of processor time, in user and kernel mode; ratios are of runs that shared a block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loam_lab.model.result import Result
from loam_lab.presenting.pages.parts import paired, programs, rivals
from loam_lab.presenting.pages.parts.paired import Case
from loam_lab.presenting.report import rounding

# Here CPython asks malloc for small blocks too.
PYTHON = "malloc"


def page(result: Result, ours: str = "loam") -> str:
    """The page.

    raises: ValueError if the result has no programs, or not our allocator and another one
    """
    seconds = [case for case in programs.cases(result, PYTHON) if any(case.values.get(ours, ()))]
    peers = [name for name in dict.fromkeys(name for case in seconds for name in case.values) if _is_peer(name, ours)]
    if not peers:
        raise ValueError(f"this result does not compare {ours} with another allocator; {programs.STUDY} does")
    rates = [_rates(case, [ours, *peers]) for case in seconds]
    rows = []
    for case, rate in zip(seconds, rates, strict=True):
        top = rate.fastest([ours, *peers])
        texts = [rounding.significant(float(np.median([value for value in case.values[ours] if value])))]
        texts += [paired.text_of(rate.ratio(name, ours)) for name in peers]
        cells = [f"**{text}**" if name == top else text for name, text in zip((ours, *peers), texts, strict=True)]
        rows.append(f"| `{case.name}` | {' | '.join(cells)} |")
    means = [paired.text_of(paired.mean_ratio(rates, name, ours)) for name in peers]
    return "\n".join([
        "# Speed and memory of real programs", "",
        "```", "./loam study run programs", "./loam page programs-speed     writes this page of the newest result", "```", "",
        f"The column of {ours} has seconds of processor time in user and kernel mode, medians. The others have their rate over",
        f"{ours}'s, with a 95 % interval: above 1 is faster. **Bold**: the fastest.", "",
        f"Programs do the same work under each allocator with the same result, {programs.amount(result)}.",
        "python3 asks malloc for small blocks too.", "",
        f"| program | {ours}, s | " + " | ".join(peers) + " |", "| --- |" + " ---: |" * (len(peers) + 1), *rows,
        f"| geometric mean | 1 | {' | '.join(means)} |", "",
        *rivals.against(rates, ours, peers, "over these programs"),
        *rivals.memory(programs.peaks(result, PYTHON), ours, rates, peers),
    ]).rstrip("\n") + "\n"  # fmt: skip


def _is_peer(name: str, ours: str) -> bool:
    """Whether it is another allocator, not ours with other settings."""
    return name.partition(":")[0] != ours.partition(":")[0]


def _rates(case: Case, names: Sequence[str]) -> Case:
    kept = {name: case.values[name] for name in names if name in case.values}
    return Case(case.name, 0, {name: [1 / value if value else None for value in own] for name, own in kept.items()})


def main(arguments: Sequence[str]) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("programs-speed", __doc__)
    return paired.write_page_of_ours(parser, arguments, "the allocator that the others are set beside", page)
