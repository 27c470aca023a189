"""The shape of a result: which parts are objects, lists, texts or counts; for files that were damaged or edited by hand.

Only what is there is checked: every part but `cells` is optional, and null stands for "unknown" anywhere but in a list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loam_lab.base.errors import LoamError

# A type of the standard library stands for itself; {...}: an object with these parts, "*" for any key; [x]: a list of x.
COUNT = "count"
_FACTORS = {
    "workload": str, "allocator": str, "sync": str, "collector": str, "machine": str, "threads": COUNT,
}  # fmt: skip
_TABLE = {"columns": [str], "rows": [list]}
SHAPE: dict[str, Any] = {
    "study": str, "title": str,
    "remember": str, "question": str, "baseline": str, "command": str, "folder": str, "commands": [str],
    "primary_metrics": {"*": str}, "units": {"*": {"*": str}},
    "machine": dict, "machines": {"*": dict}, "build": dict, "warnings": [str],
    "allocators": [{"name": str, "settings": dict, "reasons": [str]}],
    "syncs": [dict], "abort_causes": [{"name": str, "words": str, "meaning": str}], "figures": [dict],
    "cells": [{
        "factors": _FACTORS, "parameters": dict, "metrics": {"*": {"values": list}}, "ratio_to_baseline": dict,
        "ratio_without_contaminated": dict, "processor_ratio": dict,
        "blame": dict, "warnings": [str], "copy": COUNT, "runs": COUNT, "failed": COUNT,
        "memory": {"samples": [list], "reasons": [str]}, "counters": [dict],
        "aborts_per_commit": {"bounds": list, "counts": list},
    }],
    "groups": [dict],
    "contrasts": [{"parameters": dict}], "headlines": [{"parameters": dict, "ratio": dict}],
    "failures": [{"cell": {"factors": _FACTORS, "parameters": dict, "threads": COUNT}, "count": COUNT}],
    "disturbed": {"by": dict}, "waiting": dict,
    "multiplicity": {"*": dict}, "stopping": dict, "timeline": [dict], "geomeans": [dict],
    "best": [dict], "counter_sources": [dict],
    "factors": [{
        "title": str, "baseline": str, "metric": str, "text": [str], "again": dict, "size": COUNT, "parameters": dict,
        "factors": [{"factor": str, "was": str, "verdict": str, "levels": [dict]}],
    }],
    "across_machines": [{
        "machines": [str], "cases": [{"parameters": dict, "ratios": [dict], "ranking": {"*": dict}, "differing": [dict]}],
        "pairs": dict, "reversals": [dict], "text": str,
    }],
    "identical": [{"machines": [str], "reasons": [str], "baseline": [dict], "pooled": [dict]}],
    "search": {"rounds": [{"candidates": [dict]}], "final": [{"to_best": dict, "to_baseline": dict}], "winner": dict},
    "claims": [{"needs": [str], "paper": [dict], "ours": [dict]}],
    "paper_figures": [{"paper": _TABLE, "ours": _TABLE}], "placements": [{"blocks": [dict]}],
}  # fmt: skip
_WORDS = {dict: "an object", list: "a list", str: "a text", COUNT: "a whole number"}


def check(result: Mapping[str, Any], source: str) -> None:
    """Refuse a result of which a part has another type than that part can have.

    result: the dictionary of result.json; source: its name for the message
    raises: LoamError that names the part, what it is and what belongs there
    """
    wrong = _wrong(result, SHAPE)
    if wrong is None:
        return
    where, value, kind = wrong
    text = repr(value)
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    limit = f"{_WORDS[kind]} belongs there"
    raise LoamError(f"{source}: {where.removeprefix('.')}", shown, limit, "measure again, or restore the file")


def _wrong(value: Any, shape: Any) -> tuple[str, Any, Any] | None:
    """The first part of another type: its place, its value, what belongs there. Places are only put together on the way
    back: a result has hundreds of thousands of parts, and nearly all are right."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return "", value, dict
        every = shape.get("*")
        for name, part in value.items():
            expected = shape.get(name, every)
            if part is not None and expected is not None and (found := _wrong(part, expected)) is not None:
                return f".{name}{found[0]}", found[1], found[2]
        return None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return "", value, list
        for index, part in enumerate(value):
            if (found := _wrong(part, shape[0])) is not None:
                return f"[{index}]{found[0]}", found[1], found[2]
        return None
    if shape == COUNT:
        right = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    else:
        right = isinstance(value, shape)
    return None if right else ("", value, shape)
