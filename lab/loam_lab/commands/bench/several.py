"""The recommendation for several commands together: by the geometric mean of their ratios, then for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.commands.bench import choices, recommend
from loam_lab.judging.statistics import multiplicity
from loam_lab.judging.statistics.verdicts import percent

if TYPE_CHECKING:
    from loam_lab.judging.statistics.intervals import Interval


def add(result: dict[str, Any], commands: Sequence[str], memory: Mapping[tuple[str, str], Interval]) -> None:
    """Put result["recommendation"] with "each": one for every command, as recommend.add and choices.add make it."""
    each = []
    for command in commands:
        part: dict[str, Any] = {
            **result,
            "cells": [cell for cell in result["cells"] if cell["parameters"]["command"] == command],
            "best": [line for line in result["best"] if line["parameters"].get("command") == command],
        }
        recommend.add(part, command)
        choices.add(part, {name: ratio for (where, name), ratio in memory.items() if where == command})
        each.append({"of": command, **part["recommendation"]})
    baseline = result["baseline"]
    means = [line for line in result["geomeans"] if line["low"] is not None]
    adjusted = multiplicity.holm([1.0 if line["p"] is None else line["p"] for line in means])
    shown = [
        line for line, p in zip(means, adjusted, strict=True)
        if line["verdict"] == "better" and p < multiplicity.SIGNIFICANCE
    ]  # fmt: skip
    if shown:
        best = max(shown, key=lambda line: float(line["estimate"]))
        name = str(best["allocator"])
        text = (
            f"Use {name}: over {len(commands)} commands it takes {percent(1 - 1 / best['estimate'])} less time than "
            f"{baseline} [{percent(1 - 1 / best['low'])}, {percent(1 - 1 / best['high'])}], in the geometric mean."
        )
    else:
        name = baseline
        text = f"Stay with {baseline}: over {len(commands)} commands no other was shown to be faster."
    lines = [{"for": f"'{one['of']}'", "allocator": one["allocator"], "text": one["text"]} for one in each]
    result["recommendation"] = {
        "allocator": name, "text": text, "command": "", "by": recommend.decides(result), "each": each, "choices": lines,
    }  # fmt: skip
