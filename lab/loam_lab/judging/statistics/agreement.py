"""Runs of the same work have the same result, whatever the allocator: where records say what was computed, it is compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from loam_lab.model.cell import Cell, canonical


class Judged(Protocol):
    """What is asked of a run, and what may be changed in it (statistics.data.Run)."""

    cell: str
    block: int
    state: str
    failure: str
    detail: str
    result: str | None


def judge(runs: Iterable[Judged], cells: Mapping[str, Cell], baselines: Mapping[str, str]) -> None:
    """Mark good runs as failed whose result is not that of the first good run under the baseline.

    runs: timing runs, changed in place; cells: by key; baselines: the allocator to go by, by group
    Where no run under the baseline went well, the first of all is the rule
    """
    of_work: dict[str, list[Judged]] = {}
    works: dict[str, str] = {}
    for run in runs:
        if run.state == "ok" and run.result is not None and run.cell in cells:
            if run.cell not in works:
                works[run.cell] = _work(cells[run.cell])
            of_work.setdefault(works[run.cell], []).append(run)
    for same_work in of_work.values():
        own = [run for run in same_work if cells[run.cell].allocator == baselines[cells[run.cell].group]]
        rule = (own or same_work)[0]
        for run in same_work:
            if run.result != rule.result:
                run.state, run.failure = "failed", "verification"
                run.detail = (
                    f"its result differs from that under {cells[rule.cell].allocator} in block {rule.block + 1}"
                )


def _work(cell: Cell) -> str:
    """What a cell computes, whatever the allocator."""
    return canonical([cell.group, cell.machine, cell.workload, cell.sync, dict(cell.parameters), cell.threads])
