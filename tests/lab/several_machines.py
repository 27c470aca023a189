"""Results of several machines with planted effects, for the tests of what is said across machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loam_lab.model.schema import SCHEMA

ALLOCATORS = ("plain", "fast", "slow")


def result(
    effects: Mapping[str, Mapping[str, float]], *, cases: int = 2, blocks: Mapping[str, int] | int = 15, seed: int = 1,
    noise: float = 0.01, better: str = "higher", speed: Mapping[str, float] | None = None,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A result of machines.

    effects: by machine how many times as good as "plain" its allocators are; speed: how fast each machine is
    """
    random = np.random.default_rng(seed)
    cells = []
    for machine, ratios in effects.items():
        count = blocks if isinstance(blocks, int) else blocks[machine]
        for size in range(1, cases + 1):
            drift = np.exp(random.normal(0, noise / 2, count))
            for name in ALLOCATORS:
                good = ratios.get(name, 1.0) * (speed or {}).get(machine, 1.0)
                values = (
                    drift * np.exp(random.normal(0, noise, count)) * (good if better == "higher" else 1 / good) * 1e6
                )
                cells.append({
                    "group": "one", "copy": 0, "state": "ok", "runs": count, "failed": 0, "parameters": {"size": size},
                    "factors": {"workload": "w", "allocator": name, "sync": "stm", "machine": machine, "threads": 1},
                    "metrics": {"m": {
                        "estimate": float(np.median(values)), "low": None, "high": None, "unit": "1/s", "better": better,
                        "values": [float(value) for value in values], "blocks": list(range(count)),
                    }},
                })  # fmt: skip
    kind = {"cpu": "made up", "cores": 2, "fingerprint": "aa"}
    machines = {name: {**kind, **(facts or {}).get(name, {})} for name in effects}
    return {
        "schema": SCHEMA, "study": "s", "created_utc": "2026-01-01T00:00:00Z", "baseline": "plain", "machine": kind,
        "machines": machines, "primary_metrics": {"w": "m"}, "groups": [{"name": "one", "role": "main"}], "cells": cells,
        "build": {"revision": "r"}, "syncs": [], "allocators": [],
    }  # fmt: skip
