"""Real programs in a result of `./loam study run programs`: what each used under each allocator, block by block."""

from __future__ import annotations

from collections.abc import Iterator

from loam_lab.model.result import Cell, Result
from loam_lab.presenting.pages.parts.cells import compared
from loam_lab.presenting.pages.parts.paired import Case

SYNC = "programs"
STUDY = "./loam study run programs"


def cells(result: Result, python: str) -> Iterator[Cell]:
    """The cells of programs that are set beside each other.

    python: of cells with the parameter `python` those with this level
    """
    for cell in compared(result):
        if cell.factors.sync == SYNC and cell.parameters.get("python", python) == python:
            yield cell


def cases(result: Result, python: str) -> list[Case]:
    """Processor seconds of each program that is compared in speed, by allocator and block.

    raises: ValueError if the result has none
    """
    speed = {group.name for group in result.groups if group.role == "main"}
    timed = [cell for cell in cells(result, python) if cell.group in speed and "cpu_s" in cell.metrics]
    if not timed:
        raise ValueError(f"this result times no program; {STUDY} does")
    blocks: dict[str, set[int]] = {}
    for cell in timed:
        blocks.setdefault(cell.factors.workload, set()).update(cell.metrics["cpu_s"].blocks or ())
    by_name: dict[str, Case] = {}
    for cell in timed:
        name, metric = cell.factors.workload, cell.metrics["cpu_s"]
        of_block = dict(zip(metric.blocks or (), metric.values, strict=True))
        values = [of_block.get(block) for block in sorted(blocks[name])]
        by_name.setdefault(name, Case(name, 0)).values[cell.allocator] = values
    return list(by_name.values())


def peaks(result: Result, python: str) -> list[Case]:
    """Peak memory of the largest process of each program; of those whose peak is known in every run under every allocator."""
    by_name: dict[str, Case] = {}
    partial = set()
    for cell in cells(result, python):
        name, values = cell.factors.workload, cell.values("rss_peak_bytes")
        if len(values) < cell.runs:
            partial.add(name)
        by_name.setdefault(name, Case(name, 0)).values[cell.allocator] = list(values)
    return [case for name, case in by_name.items() if name not in partial]


def amount(result: Result) -> str:
    """How often each was run, and where, for the head of a page."""
    machine = result.machine
    return (
        f"in up to {result.blocks} paired blocks, {machine['cpu']}, {machine['cores']} cores, {result.created_utc[:10]}"
    )
