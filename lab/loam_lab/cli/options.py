"""Options that several commands share, and how lists on the command line are cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing

if TYPE_CHECKING:
    from loam_lab.model.cell import Purpose

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output; progress goes to standard error.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted campaign instead of starting a new one.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Folder of the result (default: results/NAME-TIME).")
]
Allocators = Annotated[
    list[str] | None,
    typer.Option(
        "--allocator",
        metavar="A,B",
        autocompletion=completing.allocators,
        help="Allocators, with settings as in glibc:tcache=0; see list allocators.",
    ),
]


Blocks = Annotated[int | None, typer.Option("--blocks", metavar="N", help="Blocks; each holds one run of every cell.")]
TargetWidth = Annotated[
    float | None,
    typer.Option(
        "--target-width",
        metavar="F",
        help="Measure until every ratio's interval is within ± F, such as 0.02; --blocks is the minimum.",
    ),
]
MaxBlocks = Annotated[
    int | None,
    typer.Option("--max-blocks", metavar="N", help="At most N blocks while intervals are too wide (default: 60)."),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget", metavar="SECONDS", help="Start no block that would end after this time, but run six in any case."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the order of runs, and of the workloads.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="End a run that takes longer, and record it.")
]


# Of 64 bits, as every workload takes them.
SEED_MAX = (1 << 64) - 1
# A year, and more blocks than a year holds of anything that is worth a comparison.
SECONDS_MAX = 366 * 86_400
BLOCKS_MAX = 100_000


def names(values: Sequence[str] | None) -> list[str]:
    """The names of a repeatable, comma-separated option, in order, without repetitions."""
    return list(dict.fromkeys(part.strip() for value in values or () for part in value.split(",") if part.strip()))


def allocator_names(values: Sequence[str] | None) -> list[str]:
    """The same of allocators: a part "key=value" is a setting of the one before it, as in design:base,cache=0."""
    specs: list[str] = []
    for value in values or ():
        first = len(specs)
        for part in (part.strip() for part in value.split(",")):
            if "=" in part and ":" not in part and len(specs) > first:
                specs[-1] += f":{part}"
            elif part:
                specs.append(part)
    return list(dict.fromkeys(specs))


def integers(option: str, values: Sequence[str] | None) -> list[int]:
    """The numbers of a repeatable, comma-separated option, in order, without repetitions.

    raises: LoamError if a part is no integer or below 1
    """
    numbers = []
    for part in names(values):
        try:
            number = int(part)
        except ValueError:
            raise LoamError(option, part, "not a whole number", f"for example {option} 1,2") from None
        if number < 1:
            raise LoamError(option, number, "must be at least 1")
        numbers.append(number)
    return numbers


def chosen(**purposes: bool) -> list[Purpose]:
    """The purposes of further runs that were asked for."""
    from loam_lab.model.cell import SPECIAL

    return [purpose for purpose in SPECIAL if purposes.get(purpose)]


def at_least(option: str, value: int | None, least: int) -> None:
    """Refuse a number below its least value with the house's kind of message.

    raises: LoamError
    """
    if value is not None and value < least:
        raise LoamError(option, value, f"must be at least {least}")


def positive(option: str, value: float | None) -> None:
    """Refuse a time that is not above 0, or longer than anybody waits.

    raises: LoamError
    """
    if value is not None and not value > 0:
        raise LoamError(option, value, "must be above 0 seconds")
    if value is not None and value > SECONDS_MAX:
        raise LoamError(option, value, f"must be at most {SECONDS_MAX} seconds", "leave it out for no limit of yours")


def check(blocks: int | None, timeout: float | None, seed: int = 0) -> None:
    """Refuse what no campaign can do: no block, or no time for a run, or a seed that no program takes.

    raises: LoamError
    """
    count("--blocks", blocks)
    positive("--timeout", timeout)
    if not 0 <= seed <= SEED_MAX:
        raise LoamError("--seed", seed, f"must be a whole number from 0 to {SEED_MAX}")


def count(option: str, blocks: int | None) -> None:
    """Refuse a number of blocks that no campaign can have.

    raises: LoamError
    """
    at_least(option, blocks, 1)
    if blocks is not None and blocks > BLOCKS_MAX:
        raise LoamError(option, blocks, f"must be at most {BLOCKS_MAX}", "more blocks hardly make intervals narrower")
