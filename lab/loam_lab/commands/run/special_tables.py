"""Console tables of what was not timed: counts per operation and memory over time, with the source of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loam_lab.base import console
from loam_lab.commands.run.tables import name_of, share
from loam_lab.model import words as wording
from loam_lab.model.result import Cell, Memory, Result

if TYPE_CHECKING:
    from rich.console import RenderableType


def show(result: Result) -> None:
    """Print counters and memory of a Result on standard output, a table per family; nothing where it has none."""
    families: dict[str, list[Cell]] = {}
    for cell in result.cells:
        if cell.copy == 0:
            families.setdefault(_where(cell), []).append(cell)
    for where, cells in families.items():
        _counters(where, [cell for cell in cells if cell.counters])
    for where, cells in families.items():
        _memory(where, [cell for cell in cells if cell.memory])


def _counters(where: str, cells: list[Cell]) -> None:
    rows: list[list[RenderableType | str]] = [
        [
            name_of(cell), counted.source, counted.per, _count(counted.instructions),
            _count(counted.cycles), _count(counted.l1d_misses), share(counted.l1d_miss_ratio),
            _count(counted.llc_misses), _count(counted.dtlb_misses), _count(counted.dtlb_misses_large),
            _count(counted.hitm), _count(counted.transfers),
            _count(counted.false_sharing_misses), _count(counted.true_sharing_misses),
            _count(counted.calls), _count(counted.requested_bytes), share(counted.external),
        ]
        for cell in cells
        for counted in cell.counters
    ]  # fmt: skip
    heads = [
        "instructions",
        "cycles",
        "L1D misses",
        "ratio",
        "LLC misses",
        "TLB misses",
        "TLB, 2 MiB",
        "HITM",
        "transfers",
        "false sharing",
        "true sharing",
        "blocks",
        "bytes",
        "external",
    ]
    _print(["allocator", "source", "per", *heads], rows, f"Counts · {where}", numeric=heads)


def _memory(where: str, cells: list[Cell]) -> None:
    rows: list[list[RenderableType | str]] = []
    for cell in cells:
        memory = cell.memory or Memory()
        rows.append([
            name_of(cell), _bytes(memory.peak_pss_bytes), _bytes(memory.mean_pss_bytes),
            _bytes(memory.live_peak_bytes), _count(memory.faults_minor), "yes" if memory.fit else "no",
        ])  # fmt: skip
    heads = ["peak PSS", "mean PSS", "live", "minor faults"]
    _print(["allocator", *heads, "fit"], rows, f"Memory over time · {where}", numeric=heads)


def _print(columns: list[str], rows: list[list[RenderableType | str]], title: str, *, numeric: list[str]) -> None:
    """Print a table without the columns that are empty in every row; nothing without rows.

    One that is wider than the screen goes on in a second one, with the columns that are not numeric again.
    """
    kept = [index for index in range(len(columns)) if any(row[index] != "" for row in rows)]
    names = [index for index in kept if columns[index] not in numeric]
    width = {index: 2 + max(len(columns[index]), *(len(str(row[index])) for row in rows)) for index in kept}
    parts: list[list[int]] = []
    for index in (index for index in kept if index not in names):
        if not parts or sum(width[one] for one in (*names, *parts[-1], index)) > console.out().width:
            parts.append([])
        parts[-1].append(index)
    for part in parts:
        picked = [index for index in kept if index in names or index in part]
        shown = [columns[index] for index in picked]
        cut = [[row[index] for index in picked] for row in rows]
        console.out().print(console.table(shown, cut, numeric=[head for head in numeric if head in shown], title=title))


def _where(cell: Cell) -> str:
    factors = cell.factors
    parameters = " ".join(f"{name}={value}" for name, value in cell.parameters.items() if name != "command")
    words = (factors.workload, parameters, factors.sync, f"{factors.threads}T")
    return " ".join(str(word) for word in words if word)


def _bytes(value: float | None) -> str:
    return "" if value is None else wording.quantity(value, "B")


def _count(value: float | None) -> str:
    if value is None:
        return ""
    return _whole(value) if value >= 100 else f"{value:.3g}"


def _whole(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")
