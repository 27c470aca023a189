"""Results that a test makes up as the dictionaries of their JSON, as readers get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loam_lab.model import result
from loam_lab.model.result import Cell, Result
from loam_lab.model.schema import SCHEMA


def typed(content: Mapping[str, Any], source: str = "result") -> Result:
    """A Result; this lab's schema, and estimates of 0, where the content has none."""
    whole = {"schema": SCHEMA, **content}
    if isinstance(whole.get("cells"), list):
        whole["cells"] = [_whole(cell) for cell in whole["cells"]]
    return result.of_json(whole, source)


def _whole(cell: Any) -> Any:
    if not isinstance(cell, dict):
        return cell
    cell = {**cell, "factors": {"workload": "made up", "allocator": "glibc", **cell.get("factors", {})}}
    metrics = cell.get("metrics")
    if not isinstance(metrics, dict):
        return cell
    made = {name: {"estimate": 0.0, **one} if isinstance(one, dict) else one for name, one in metrics.items()}
    return {**cell, "metrics": made}


def typed_cell(content: Mapping[str, Any]) -> Cell:
    """One cell; made-up factors where the content has none."""
    made = {"factors": {"workload": "made up", "allocator": "glibc"}, **content}
    return typed({"cells": [made]}).cells[0]
