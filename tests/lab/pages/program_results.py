"""Results of real programs that a test makes up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def cell(program: str, allocator: str, seconds: Sequence[float], peak: float | None, **changed: Any) -> dict[str, Any]:
    """A cell of a program: processor seconds by block, and the peak of every run, None where it is not known."""
    metrics: dict[str, Any] = {"cpu_s": {"estimate": 0.0, "values": list(seconds), "blocks": list(range(len(seconds)))}}
    if peak is not None:
        metrics["rss_peak_bytes"] = {"estimate": 0.0, "values": [peak] * len(seconds)}
    whole = {
        "group": program, "copy": 0, "runs": len(seconds), "state": "ok", "parameters": {"amount": 1}, "metrics": metrics,
        "factors": {"workload": program, "sync": "programs", "allocator": allocator, "machine": "host", "threads": 1},
    }  # fmt: skip
    return {**whole, **changed}


def result(cells: Sequence[Mapping[str, Any]], **changed: Any) -> dict[str, Any]:
    """A result of such cells."""
    groups = [{"name": name, "role": "main"} for name in dict.fromkeys(str(cell["group"]) for cell in cells)]
    machine = {"cpu": "made up", "cores": 2}
    return {
        "cells": list(cells), "groups": groups, "machine": machine, "blocks": 8, "baseline": "glibc", "failures": [],
        "created_utc": "2026-01-01T00:00:00Z", **changed,
    }  # fmt: skip
