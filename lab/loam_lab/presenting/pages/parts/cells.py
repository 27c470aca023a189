"""Which cells of a result a page sets beside each other."""

from __future__ import annotations

from msgspec.structs import replace

from loam_lab.model.result import Cell, Result
from loam_lab.subjects import simulated


def compared(result: Result) -> list[Cell]:
    """Cells without second copies, of groups that have the baseline among their allocators, on machines that exist.

    Allocators that stand for others are measured in groups of their own, beside one another only; and no time of a simulated
    machine stands beside one of a real one. Where all was simulated, those cells are returned; and all groups where none has
    the baseline.
    """
    baseline = result.baseline
    own = [cell for cell in result.cells if not cell.copy]
    real = [cell for cell in own if not cell.factors.machine.startswith(simulated.PREFIX)] or own
    beside = {cell.group for cell in real if not baseline or cell.allocator == baseline}
    return [cell for cell in real if cell.group in beside] if beside else real


def by_machine(result: Result) -> dict[str, list[Cell]]:
    """The cells of compared(), machine by machine, the simulated ones too: tables of one machine may stand below another's."""
    own: dict[str, list[Cell]] = {}
    for cell in result.cells:
        own.setdefault(cell.factors.machine, []).append(cell)
    return {name: compared(replace(result, cells=cells)) for name, cells in own.items()}
