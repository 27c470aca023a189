"""What a campaign writes down before its first run: what is measured, where, by whom, and the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import loam_lab
from loam_lab.base.paths import revision
from loam_lab.model.schema import SCHEMA
from loam_lab.subjects.subject import digest_of

if TYPE_CHECKING:
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.model.study import Study
    from loam_lab.subjects.allocators.registry import Allocator
    from loam_lab.subjects.machines import Machine


def of(
    study: Study, plan: Plan, allocators: Mapping[str, Allocator], machines: Mapping[str, Machine], host: Machine,
    named: Iterable[str], head: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The manifest.

    allocators, machines: of the plan's cells, by name; host: that the lab runs on; named: files that parameters name
    head: "kind", "command", "preset", "counter_sources"
    """
    return {
        "schema": SCHEMA,
        "lab": loam_lab.__version__,
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        **head,
        "machine": host.facts(),
        "machines": {
            name: {**machine.facts(), "deterministic": machine.deterministic} for name, machine in machines.items()
        },
        "revision": revision(),
        "allocators": [_allocator(allocator) for allocator in allocators.values()],
        "executables": [
            {
                "name": executable.label,
                "machine": machine,
                **executable.subject.as_json(),
                "build_id": executable.build_id,
                "description": executable.description.model_dump(by_alias=True, mode="json"),
            }
            for (machine, _), executable in plan.executables.items()
        ],
        "files": [{"name": file, "sha256": digest_of([file])} for file in sorted(named)],
        # Only this part must be the same for a resumed campaign; JSON text, so that reading it back compares equal.
        "plan": {
            "study": study.model_dump(by_alias=True, mode="json"),
            "cells": [cell.as_json() for cell in plan.cells()],
            "notes": plan.notes,
            "runs": len(plan.runs),
        },
    }


def _allocator(allocator: Allocator) -> dict[str, Any]:
    return {
        "name": allocator.name,
        "version": allocator.version,
        "path": allocator.path or "",
        "soname": allocator.soname,
        "build_id": allocator.build_id,
        "sha256": allocator.sha256,
        "package": allocator.package,
        "settings": dict(allocator.settings),
    }
