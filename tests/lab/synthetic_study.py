"""A made-up Result of a whole study: sizes, threads, timeline, memory, counters, claims, pictures, a paper's figures.

Nothing here was measured; the shapes are those that the report has to draw.
"""

from __future__ import annotations

import math
import random
from typing import Any

import synthetic_results
from synthetic_results import ALLOCATORS, Maker

SIZES = tuple(16 << power for power in range(12))
THREADS = (1, 2, 4, 8)
BOUNDS = (0, 1, 2, 3, 4, 6, 8, 16, 32, 64, 256, 1024)


def _memory(rng: random.Random, factor: float) -> dict[str, Any]:
    samples = []
    for step in range(60):
        pss = factor * (4e6 + 9e6 * (1 - math.exp(-step / 12))) * (1 + 0.05 * math.sin(step / 5)) + rng.gauss(0, 6e4)
        samples.append([step * 0.05, round(pss * 1.1), round(pss), round(pss * 0.6)])
    pss_values = [sample[2] for sample in samples]
    return {
        "samples": samples, "peak_rss_bytes": max(s[1] for s in samples), "peak_pss_bytes": max(pss_values),
        "mean_pss_bytes": sum(pss_values) / 60, "area_pss_byte_s": sum(pss_values) * 0.05,
        "live_peak_bytes": max(s[3] for s in samples),
        "faults_minor": 3120, "faults_major": 0, "fit": True, "reasons": [],
    }  # fmt: skip


def _dress(rng: random.Random, cells: list[dict[str, Any]]) -> None:
    """Memory, counters, histograms, adjusted p and disturbance for the cells of a study."""
    for index, cell in enumerate(cells):
        place = ALLOCATORS.index(cell["factors"]["allocator"])
        if cell["copy"] == 0 and cell["factors"]["threads"] == 2:
            cell["memory"] = _memory(rng, 0.9 + 0.13 * place)
            cell["counters"] = [
                {"source": "callgrind", "per": "operation", "instructions": 812.4 + 31 * place},
                {"source": "cachegrind", "per": "operation", "instructions": 813.0, "l1d_misses": 4.2 + place,
                 "l1d_miss_ratio": 0.013, "llc_miss_ratio": 0.0004},
            ]  # fmt: skip
        if cell["metrics"].get("aborts_per_attempt") and cell["copy"] == 0:
            tail = 0.2 + 0.05 * place
            counts = [round(2e5 * (1 - tail) * tail**step) for step in range(len(BOUNDS))]
            cell["aborts_per_commit"] = {"bounds": list(BOUNDS), "counts": counts}
        if cell["ratio_to_baseline"]:
            apart = cell["verdict"] in ("better", "worse")
            cell["ratio_to_baseline"]["q"] = 0.004 if apart else 0.4
        cell["contaminated"] = 2 if index % 17 == 4 else 0
        cell["ratio_without_contaminated"] = (
            {"estimate": 1.021, "low": 1.012, "high": 1.03, "n": 8} if cell["contaminated"] else None
        )


def _timeline(cells: list[dict[str, Any]], metrics: dict[str, str]) -> list[dict[str, Any]]:
    entries, order = [], 0
    for block in range(max(cell["runs"] for cell in cells)):
        for index, cell in enumerate(cells):
            values = cell["metrics"].get(metrics[cell["factors"]["workload"]], {}).get("values", [])
            if block < len(values):
                entries.append({
                    "order": order, "t_s": order * 0.13, "cell": index, "block": block, "copy": cell["copy"],
                    "attempt": 1 if block == 3 else 0, "value": values[block], "share": 0.04 if block == 3 else 0.002,
                })  # fmt: skip
                order += 1
    return entries


def _placements() -> list[dict[str, Any]]:
    placements = []
    for allocator, step in (("glibc", 32), ("jemalloc", 16), ("tcmalloc", 48)):
        base = 0x7F3A_1000_0040
        blocks = [
            {"thread": i % 2, "address": base + i * step + (4096 if i > 15 else 0), "bytes": 16, "record": (i * step >> 5) % 24}
            for i in range(24)
        ]  # fmt: skip
        for kind, title in (("neighbours", "Figure 2: neighbours"), ("records", "Figure 5: nodes and records")):
            placements.append({
                "allocator": allocator, "kind": kind, "title": title, "threads": 2, "bytes_per_line": 64, "shift": 5,
                "blocks": blocks,
            })  # fmt: skip
    return placements


def _claims() -> list[dict[str, Any]]:
    common = {"section": "5.1", "machine": "this machine", "by_preset": False, "self_contradicting": False, "needs": []}
    return [
        {**common, "id": "C01", "figure": "figure 3", "sentence": "The allocator changes the throughput by more than a tenth.",
         "predicate": "ratio", "verdict": "reproduced", "reason": "the interval lies above 1.1",
         "paper": [{"what": "best over worst", "value": 1.37}],
         "ours": [{"what": "best over worst", "estimate": 1.284, "low": 1.262, "high": 1.301, "unit": "1"}]},
        {**common, "id": "C02", "figure": "table 3", "sentence": "glibc has the fewest aborts on the list.", "predicate": "order",
         "verdict": "contradicted", "reason": "jemalloc has fewer", "paper": [{"what": "glibc", "value": "0.12 %"}],
         "ours": [{"what": "jemalloc", "estimate": 0.0312, "low": 0.0301, "high": 0.0325, "unit": "1"}], "by_preset": True},
        {**common, "id": "C03", "figure": "figure 4", "sentence": "The gap grows with eight threads.", "predicate": "trend",
         "verdict": "undecided", "reason": "eight threads run on two cores here", "needs": ["8 cores"], "paper": [], "ours": [],
         "self_contradicting": True},
    ]  # fmt: skip


def _paper_figures() -> list[dict[str, Any]]:
    rows = [[size, round(9.1 * 0.93**index, 2), round(12.4 * 0.9**index, 2)] for index, size in enumerate(SIZES)]
    ours = [
        [size, {"estimate": 8.71, "low": 8.6, "high": 8.8}, {"estimate": 11.0, "low": 10.9, "high": 11.2}]
        for size in SIZES
    ]
    columns = ["size, B", "glibc", "jemalloc"]
    return [
        {"id": "figure 3", "title": "Pairs per second against the size", "kind": "line", "groups": ["sizes"],
         "paper": {"columns": columns, "rows": rows, "note": "read off the plot to ± 3 %"},
         "ours": {"columns": columns, "rows": ours}},
        {"id": "table 1", "title": "The machines", "kind": "table", "groups": [],
         "paper": {"columns": ["what", "value"], "rows": [["cores", 8], ["caches", "32 KiB, 6 MiB"]]},
         "ours": {"columns": ["what", "value"], "rows": [["cores", 2], ["caches", None]]}},
    ]  # fmt: skip


def _flames() -> list[dict[str, Any]]:
    """Call stacks under two allocators, and one that could not be sampled."""

    def time(fast: float) -> list[Any]:
        work: list[Any] = [
            "work",
            0.5 + fast,
            [["malloc (allocator)", fast, [["mmap (kernel)", fast / 2, []]]], ["parse", 0.3, []]],
        ]
        return ["all", 0.6 + fast, [["main", 0.6 + fast, [["report", 0.1, []], work]]]]

    asked = ["all", 3e6, [["main", 3e6, [["read<&>", 2e6, []], ["list::insert", 1e6, [["grow", 9e5, []]]]]]]]
    flames = [{"allocator": name, "command": "", "kind": "time", "unit": "s", "problem": "", "tree": time(fast)}
             for name, fast in (("glibc", 0.4), ("jemalloc", 0.2))]  # fmt: skip
    flames += [{"allocator": "glibc", "command": "", "kind": kind, "unit": unit, "problem": "", "tree": asked}
              for kind, unit in (("bytes", "B"), ("blocks", "1"))]  # fmt: skip
    return [*flames, {"allocator": "glibc", "command": "", "kind": "live", "unit": "B", "problem": "ended by a signal"}]


def study(seed: int = 11) -> dict[str, Any]:
    """Sizes, threads and structures with everything that a Result may hold beside the ratios."""
    maker = Maker(seed, 10)
    headlines = []
    for index, size in enumerate(SIZES):
        effects = tuple(1 + (e - 1) * (1 - index / 14) for e in (1.0, 0.6, 1.27, 1.41, 0.88, 1.62))
        cells = maker.group(
            "threadtest", "none", 2, {"size": size}, "pairs_per_s", 9e7 * 0.72**index, effects, noise=0.02
        )
        headlines.append(synthetic_results._headline(cells, "pairs_per_s"))
    for threads in THREADS:
        for structure, (base, effects) in synthetic_results.SPEED.items():
            parameters = {"structure": structure, "mapping": "table", "update_percent": 60}
            cells = maker.group(
                "intset", "etl-wb", threads, parameters, "ops_per_s", base * threads**0.6, effects, (structure, "table")
            )
            headlines.append(synthetic_results._headline(cells, "ops_per_s"))
    _dress(maker.rng, maker.cells)
    metrics = {"intset": "ops_per_s", "threadtest": "pairs_per_s"}
    return synthetic_results._result(
        maker, study="stm", title="Allocators under software transactional memory", command="./loam study run stm",
        commands=[], primary_metrics=metrics, timeline=_timeline(maker.cells, metrics), placements=_placements(),
        headlines=headlines, geomeans=[
            {"what": "mimalloc: times as good as glibc, geometric mean of 24 cases", "allocator": "mimalloc", "estimate": 1.213,
             "low": 1.205, "high": 1.222, "verdict": "better", "rough": False},
        ],
        best=[{"label": "threadtest, 16 B blocks", "allocator": "mimalloc", "probability": 0.93},
              {"label": "threadtest, 16 B blocks", "allocator": "tcmalloc", "probability": 0.07}],
        claims=_claims(), paper_figures=_paper_figures(), flames=_flames(),
        disturbed={"blocks": 240, "repeated": 24, "contaminated": 8, "by": {"run_delay": 20, "steal": 4, "pressure": 0}},
        multiplicity={"headlines": {"method": "Holm", "size": 24}, "cells": {"method": "Benjamini-Hochberg", "size": 144}},
        stopping={"target_width": 0.03, "reached": False, "cap_blocks": 30, "blocks": 10},
        counter_sources=[{"source": "perf_event", "counts": False, "why": "the hypervisor shows no counters"},
                         {"source": "callgrind", "counts": True, "why": ""}],
    )  # fmt: skip


def large(seed: int = 12) -> dict[str, Any]:
    """About 10 000 runs in about 300 cells, with everything: what a report must show in a few seconds."""
    maker = Maker(seed, 33)
    for structure, (base, effects) in synthetic_results.SPEED.items():
        for mapping in ("table", "shadow"):
            for updates in (0, 20, 60, 100):
                parameters = {"structure": structure, "mapping": mapping, "update_percent": updates}
                maker.group("intset", "etl-wb", 2, parameters, "ops_per_s", base, effects, (structure, mapping))
    for index, size in enumerate(SIZES):
        effects = tuple(1 + (e - 1) * (1 - index / 14) for e in (1.0, 0.6, 1.27, 1.41, 0.88, 1.62))
        maker.group("threadtest", "none", 2, {"size": size}, "pairs_per_s", 9e7 * 0.72**index, effects, noise=0.02)
    for index, size in enumerate(SIZES[:7]):
        effects = (1.0, 0.9, 1.1, 1.2, 1.0, 1.3)
        maker.group("larson", "sequential", 2, {"size": size}, "ops_per_s", 9e6 * 0.8**index, effects, noise=0.02)
    _dress(maker.rng, maker.cells)
    metrics = {"intset": "ops_per_s", "threadtest": "pairs_per_s", "larson": "ops_per_s"}
    timeline = _timeline(maker.cells, metrics)
    return synthetic_results._result(maker, study="large", primary_metrics=metrics, timeline=timeline)
