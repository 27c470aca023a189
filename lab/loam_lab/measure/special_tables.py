"""Console tables of what was not timed: counts per operation and memory over time, with the source of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loam_lab import console
from loam_lab.measure.tables import name_of, quantity, share

if TYPE_CHECKING:
    from rich.console import RenderableType


def show(result: Mapping[str, Any]) -> None:
    """Print counters and memory of a Result on standard output; nothing where it has none."""
    cells = [cell for cell in result["cells"] if cell["copy"] == 0]
    _counters([cell for cell in cells if cell.get("counters")])
    _memory([cell for cell in cells if cell.get("memory")])


def _counters(cells: list[Mapping[str, Any]]) -> None:
    rows: list[list[RenderableType | str]] = [
        [
            _where(cell), name_of(cell), str(counted["source"]), str(counted["per"]), _count(counted.get("instructions")),
            _count(counted.get("l1d_misses")), share(counted.get("l1d_miss_ratio")), _count(counted.get("llc_misses")),
        ]
        for cell in cells
        for counted in cell["counters"]
    ]  # fmt: skip
    if rows:
        columns = ["where", "allocator", "source", "per", "instructions", "L1D misses", "of accesses", "LLC misses"]
        console.out().print(console.table(columns, rows, numeric=columns[4:], title="Counts"))


def _memory(cells: list[Mapping[str, Any]]) -> None:
    rows: list[list[RenderableType | str]] = []
    for cell in cells:
        memory = cell["memory"]
        live = memory["live_peak_bytes"]
        rows.append([
            _where(cell), name_of(cell), _bytes(memory["peak_pss_bytes"]), _bytes(memory["mean_pss_bytes"]),
            "" if live is None else _bytes(live), str(memory["faults_minor"]), "yes" if memory["fit"] else "no",
        ])  # fmt: skip
    if rows:
        columns = ["where", "allocator", "peak PSS", "mean PSS", "live", "faults", "fit"]
        console.out().print(console.table(columns, rows, numeric=columns[2:6], title="Memory over time"))


def _where(cell: Mapping[str, Any]) -> str:
    factors = cell["factors"]
    parameters = " ".join(f"{name}={value}" for name, value in cell["parameters"].items() if name != "command")
    return " ".join(part for part in (factors["workload"], parameters, f"{factors['threads']}T") if part)


def _bytes(value: float) -> str:
    return quantity({"value": value, "unit": "B"}, "value")


def _count(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
