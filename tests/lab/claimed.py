"""Campaigns whose values a test makes up, for the claims that are decided by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typed import typed_cell

from loam_lab.judging.claims import evaluate
from loam_lab.judging.statistics.data import Campaign, Run
from loam_lab.judging.statistics.reader import Reader
from loam_lab.model import result as results
from loam_lab.model.cell import Cell
from loam_lab.model.description import Description
from loam_lab.model.schema import SCHEMA
from loam_lab.model.study import Study

DESCRIPTION = Description.model_validate({
    "schema": SCHEMA,
    "sync": {"name": "stm", "kind": "transactional", "threads_max": 64, "blame": True, "parameters": [
        {"name": "shift", "type": "integer", "min": 3, "max": 12, "default": 5},
    ]},
    "workloads": [{"name": "intset", "kinds": ["transactional"], "metrics": [
        {"name": "ops_per_s", "unit": "1/s", "better": "higher", "kind": "ratio", "of": ["operations", "elapsed_s"]},
        {"name": "elapsed_s", "unit": "s", "kind": "time"},
        {"name": "aborts", "kind": "count"}, {"name": "attempts", "kind": "count"},
        {"name": "aborts_per_attempt", "better": "lower", "kind": "ratio", "of": ["aborts", "attempts"]},
        {"name": "room_bytes", "unit": "B", "kind": "bytes"},
    ]}],
})  # fmt: skip

# Record of one run: (cell, block) -> fields of the iteration; None for a run that failed.
Values = Callable[[Cell, int], dict[str, float] | None]


def study(claims: Sequence[dict[str, Any]], **changed: Any) -> Study:
    """A study of one group "list" over two shifts, two allocators and the threads given, with claims."""
    content: dict[str, Any] = {
        "schema": 2, "name": "tiny", "title": "tiny", "question": "?", "baseline": "a", "allocators": ["a", "b"],
        "groups": [{"name": "list", "workload": "intset", "sync": ["stm"], "threads": [1, 2],
                    "parameters": {"shift": [5, 4]}}],
        "claims": list(claims),
    }  # fmt: skip
    return Study.model_validate({**content, **changed})


def campaign(made: Study, values: Values, *, blocks: int = 10, **machine: Any) -> Campaign:
    """A campaign of every cell of a study with made-up values. machine: replaces parts of a machine of two cores"""
    cells = [
        Cell(group.name, group.workload, sync, allocator, threads, (("shift", shift),), 0)
        for group in made.groups
        for sync in group.sync
        for shift in (5, 4)
        for threads in group.threads
        for allocator in made.allocators_of(group)
    ]
    made_up = Campaign(
        folder=Path(), manifest={"machines": {"host": {"cores": 2, "rtm": "absent", "fingerprint": "f", **machine}}},
        study=made, cells=cells, descriptions={"stm": DESCRIPTION},
    )  # fmt: skip
    for cell in cells:
        runs = [_run(cell, block, values(cell, block)) for block in range(blocks)]
        made_up.timed[cell.key, 0] = runs
    return made_up


def _run(cell: Cell, block: int, values: dict[str, float] | None) -> Run:
    return Reader(Path()).run(json.dumps({
        "cell": cell.key, "block": block, "copy": 0, "attempt": 0, "order": block, "purpose": "timing",
        "state": "ok" if values is not None else "failed", "failure": "" if values is not None else "exit",
        "detail": "" if values is not None else "gave up",
        "records": [{"kind": "iteration", "index": 0, "elapsed_s": 1.0, **(values or {})}],
    }).encode())  # fmt: skip


def entries(made: Campaign) -> dict[str, results.Cell]:
    """Cells as results have them, as far as figures read them: medians and ranges."""
    from statistics import median

    by_key: dict[str, results.Cell] = {}
    for cell in made.cells:
        metrics = {}
        for metric in DESCRIPTION.workloads[0].metrics:
            values = list(made.values(cell, 0, metric).values())
            if values:
                metrics[metric.name] = {"estimate": median(values), "low": min(values), "high": max(values)}
        by_key[cell.key] = typed_cell({
            "state": "ok", "factors": {"workload": cell.workload, "allocator": cell.allocator}, "metrics": metrics,
        })  # fmt: skip
    return by_key


def ledger(
    made: Campaign, cells: Mapping[str, Any], counter_sources: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """What evaluate.entries() makes of a campaign, as the JSON of a result. cells: typed ones, or their dictionaries"""
    known = {key: cell if isinstance(cell, results.Cell) else typed_cell(cell) for key, cell in cells.items()}
    parts = evaluate.entries(made, known, [results.CounterSource(**source) for source in counter_sources])
    return {name: [one.as_json() for one in part] for name, part in parts.items()}


def counts(made: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[results.Counts]]:
    """What was counted of cells, from the dictionaries of their JSON."""
    return {key: [results.Counts(**one) for one in of_cell] for key, of_cell in made.items()}
