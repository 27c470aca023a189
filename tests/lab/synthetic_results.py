"""Result dictionaries made up from a seed, for the tests of the report: a tour, an ad-hoc run, a run that went wrong.

The figures have the shape of real ones (which allocator is fast where, which cause of aborts goes away with
shadow records), but nothing here was measured.
"""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

from loam_lab.model.schema import SCHEMA

ALLOCATORS = ("glibc", "glibc:tcache=0", "jemalloc", "tcmalloc", "tbb", "mimalloc")
WORDS = {
    "same_word": "same word", "same_block": "same block, another word", "other_block": "another block, same stripe",
    "other_stripe": "another stripe, same record", "capacity": "too large for the hardware", "unknown": "not told apart",
}  # fmt: skip
LABELS = {
    "structure=list": "sorted list", "structure=hash": "hash set", "structure=tree": "red-black tree",
    "update_percent=*": "{}\u00a0% updates", "duration_ms=*": "{}\u00a0ms per run",
}  # fmt: skip
CAUSES = tuple(f"aborts_{name}" for name in WORDS)
KINDS = {"etl-wb": "transactional", "sequential": "none", "none": "none"}

# Operations per second of the baseline, and what each allocator makes of it (in the order of ALLOCATORS).
SPEED = {
    "list": (1.32e5, (1.0, 0.992, 1.118, 1.064, 1.071, 1.127)),
    "hash": (1.61e7, (1.0, 0.921, 1.043, 0.962, 1.031, 1.049)),
    "tree": (4.70e6, (1.0, 0.968, 1.083, 1.112, 1.091, 1.118)),
}
# Aborts per attempt with the table: true conflicts, same block, other block, other stripe.
ABORTS = {
    "list": (0.092, 0.0, (0.012, 0.012, 0.081, 0.078, 0.080, 0.079), 0.0011),
    "hash": (1.1e-5, 0.0, (2.1e-6, 2.1e-6, 9.0e-6, 2.2e-5, 7.5e-6, 8.1e-6), 6.4e-5),
    "tree": (0.0031, 0.0017, (0.0006, 0.0006, 0.0007, 0.0021, 0.0008, 0.0007), 0.0004),
}
PAIRS = {16: (9.1e7, (1.0, 0.31, 1.27, 1.41, 0.88, 1.62)), 64: (9.0e7, (1.0, 0.30, 1.26, 1.71, 0.86, 1.60))}


def _metric(values: list[float], unit: str, better: str) -> dict[str, Any]:
    ordered = sorted(values)
    return {
        "estimate": statistics.median(values), "low": ordered[len(values) // 6], "high": ordered[-1 - len(values) // 6],
        "unit": unit, "better": better, "values": values,
    }  # fmt: skip


def _ratio(values: list[float], base: list[float]) -> dict[str, float]:
    logs = [math.log(a / b) for a, b in zip(values, base, strict=True)]
    centre, spread = statistics.median(logs), 0.75 * statistics.pstdev(logs)
    return {"estimate": math.exp(centre), "low": math.exp(centre - spread), "high": math.exp(centre + spread)}


def _verdict(ratio: dict[str, float]) -> str:
    if ratio["low"] >= 0.98 and ratio["high"] <= 1.02:
        return "equivalent"
    return "better" if ratio["low"] > 1 else "worse" if ratio["high"] < 1 else "inconclusive"


def _rough(ratio: dict[str, float] | None) -> bool:
    return ratio is not None and ratio["high"] / ratio["low"] - 1 > 0.05


def _blame(rng: random.Random, structure: str, mapping: str, index: int) -> dict[str, Any]:
    word, block, other, stripe = ABORTS[structure]
    attempts = int(SPEED[structure][0] / 9 * rng.uniform(0.95, 1.05))
    shares = [word, block, other[index], stripe] if mapping == "table" else [word * 0.98, block * 0.1, 0.0, 0.0]
    counts = [round(attempts * share * rng.uniform(0.9, 1.1)) for share in shares]
    unknown = round(sum(counts) * 0.003)
    values: dict[str, Any] = dict.fromkeys(CAUSES, 0)
    values.update(zip(CAUSES[:4], counts, strict=True))
    values["aborts_unknown"] = unknown
    aborts = sum(counts) + unknown
    return {"attempts": attempts, "aborts": aborts, **values, "aborts_per_attempt": aborts / attempts}


class Maker:
    """Collects cells block by block, with ratios against the baseline of the same group."""

    def __init__(self, seed: int, blocks: int, allocators: tuple[str, ...] = ALLOCATORS) -> None:
        self.rng = random.Random(seed)
        self.blocks = blocks
        self.allocators = allocators
        self.cells: list[dict[str, Any]] = []

    def group(
        self, workload: str, sync: str, threads: int, parameters: dict[str, Any], metric: str, base: float,
        effects: tuple[float, ...], aborts: tuple[str, str] | None = None, noise: float = 0.012, sentinel: bool = True,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """One cell per allocator, and the second copy of the baseline; returns the new cells."""
        rng = self.rng
        drift = [math.exp(rng.gauss(0, 0.02)) for _ in range(self.blocks)]
        made: list[dict[str, Any]] = []
        baseline: list[float] = []
        for name, copy in [(name, 0) for name in self.allocators] + ([(self.allocators[0], 1)] if sentinel else []):
            index = self.allocators.index(name)
            values = [base * effects[index] * d * math.exp(rng.gauss(0, noise)) for d in drift]
            baseline = baseline or values
            metrics = {
                metric: _metric(values, "1/s", "higher"),
                "wall_s": _metric([0.128 + abs(rng.gauss(0, 0.002)) for _ in drift], "s", "lower"),
                "rss_peak_bytes": _metric([float(rng.randrange(9_000, 12_000) * 1024) for _ in drift], "B", "lower"),
            }
            blame = None
            for extra, unit in (("user_s", "s"), ("system_s", "s"), ("faults_minor", "1"), ("faults_major", "1")):
                metrics[extra] = _metric([float(rng.randrange(0, 900)) for _ in drift], unit, "lower")
            if aborts is not None:
                if copy == 0:
                    blame = _blame(rng, aborts[0], aborts[1], index)
                word, block, other, stripe = ABORTS[aborts[0]]
                rate = word + block * 0.5 + ((other[index] + stripe) if aborts[1] == "table" else 0)
                rates = [rate * math.exp(rng.gauss(0, 0.05)) for _ in drift]
                metrics["aborts_per_attempt"] = _metric(rates, "1", "lower")
            first = name == self.allocators[0] and copy == 0
            ratio = None if first else {"metric": metric, **_ratio(values, baseline), "n": self.blocks}
            made.append({
                "group": sync,
                "factors": {"workload": workload, "allocator": name, "sync": sync, "machine": "host", "threads": threads},
                "parameters": parameters, "copy": copy, "runs": self.blocks, "failed": 0, "state": "ok", "metrics": metrics,
                "ratio_to_baseline": ratio, "verdict": "baseline" if ratio is None else _verdict(ratio), "blame": blame,
                "rough": _rough(_ratio(values, baseline)) and not first, "warnings": [],
            })  # fmt: skip
        self.cells += made
        return made


def _headline(cells: list[dict[str, Any]], metric: str) -> dict[str, Any]:
    ranked = sorted((c for c in cells if c["copy"] == 0), key=lambda c: float(c["metrics"][metric]["estimate"]))
    worst, best = ranked[0], ranked[-1]
    ratio = _ratio(best["metrics"][metric]["values"], worst["metrics"][metric]["values"])
    verdict = _verdict(ratio)
    factors = best["factors"]
    names = factors["allocator"], worst["factors"]["allocator"]
    return {
        "workload": factors["workload"], "sync": factors["sync"], "threads": factors["threads"],
        "parameters": {k: v for k, v in best["parameters"].items() if k in ("structure", "mapping", "size")},
        "best": names[0], "worst": names[1], "ratio": ratio, "verdict": verdict, "rough": _rough(ratio),
        "p_holm": 0.001, "comparisons": 8,
        "text": f"{factors['workload']}, some case, 2 threads: {names[0]} is best, {ratio['estimate']:.2f} times "
                f"as fast as {names[1]}, the worst [{ratio['low']:.2f}, {ratio['high']:.2f}].",
    }  # fmt: skip


def _contrasts(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    contrasts = []
    for shadow in cells:
        if shadow["parameters"].get("mapping") != "shadow" or shadow["copy"]:
            continue
        wanted = {**shadow["parameters"], "mapping": "table"}
        for table in cells:
            if table["parameters"] == wanted and table["factors"] == shadow["factors"] and table["copy"] == 0:
                ratio = _ratio(shadow["metrics"]["ops_per_s"]["values"], table["metrics"]["ops_per_s"]["values"])
                contrasts.append({
                    "what": "shadow against table", "factor": "mapping", "workload": "intset", "sync": "etl-wb", "threads": 2,
                    "parameters": {"structure": wanted["structure"]},
                    "allocator": shadow["factors"]["allocator"], "metric": "ops_per_s", **ratio,
                    "verdict": _verdict(ratio), "rough": _rough(ratio),
                })  # fmt: skip
    for cell in cells:
        if (
            cell["factors"]["sync"] == "sequential"
            and cell["ratio_to_baseline"]
            and cell["factors"]["workload"] == "intset"
        ):
            name = cell["factors"]["allocator"]
            contrasts.append({
                "what": f"{name} against glibc, without synchronisation", "factor": "sequential", "workload": "intset",
                "sync": "sequential", "threads": 1, "parameters": {"structure": cell["parameters"]["structure"]},
                "allocator": name, "metric": "ops_per_s", **_ratio([1.01], [1.0]),
            })  # fmt: skip
    return contrasts


def _result(maker: Maker, **changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "units": {"intset": LABELS, "threadtest": {"size=*": "{}\u00a0B blocks", "duration_ms=*": "{}\u00a0ms per run"}},
        "schema": SCHEMA, "study": "tour", "title": "A tour of six allocators under transactions",
        "question": "Does the choice of allocator change the speed and the abort rate of transactional data structures?",
        "created_utc": "2026-11-21T10:12:13Z", "folder": "results/tour-20261121T101213Z-5f3a", "baseline": "glibc",
        "primary_metrics": {"intset": "ops_per_s", "threadtest": "pairs_per_s"}, "command": "./loam tour",
        "commands": [
            "./loam tour --resume --out results/tour-20261121T101213Z-5f3a",
            "./loam run intset -p structure=list -p mapping=table,shadow --allocator " + ",".join(ALLOCATORS)
            + " --threads 2 --blocks 10 --blame",
            "./loam run threadtest -p size=16,64 --allocator " + ",".join(ALLOCATORS) + " --threads 2 --blocks 10",
        ],
        "blocks": maker.blocks, "elapsed_s": 93.1,
        "machine": {
            "cpu": "Intel(R) Xeon(R) Processor @ 2.80GHz", "cores": 2, "memory_bytes": 25_282_641_920, "kernel": "6.1.141",
            "microcode": "0x1", "thp": "madvise", "aslr": 2, "rtm": "absent", "hypervisor": "kvm", "fingerprint": "8c1f3e5ab0d2",
        },
        "build": {"compiler": "GCC 12.2.0", "preset": "release", "revision": "153d35e0c0ffee"},
        "allocators": [
            {
                "name": name, "version": version, "path": None if name.startswith("glibc") else f"/usr/lib/x86_64-linux-gnu/{so}",
                "soname": so, "build_id": f"{index:02x}" * 20, "sha256": f"{index + 160:02x}" * 32,
                "settings": {"tcache": "0"} if ":" in name else {}, "proof": "proven", "reasons": [],
            }
            for index, (name, version, so) in enumerate(zip(
                ALLOCATORS, ("2.36", "2.36", "5.3.0", "2.10", "2021.8", "2.0.9"),
                ("libc.so.6", "libc.so.6", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libtbbmalloc.so.2",
                 "libmimalloc.so.2"),
                strict=True,
            ))
        ],
        "syncs": [{"name": name, "kind": kind} for name, kind in KINDS.items()],
        "abort_causes": [{"name": name, "words": words, "meaning": words} for name, words in WORDS.items()],
        "cells": maker.cells, "contrasts": _contrasts(maker.cells), "headlines": [], "warnings": [], "failures": [],
    }  # fmt: skip
    result.update(changes)
    result.setdefault("machines", {"host": result["machine"]})
    return result


def tour(seed: int = 7) -> dict[str, Any]:
    """Three structures with both mappings, their sequential twins, and threadtest with two sizes."""
    maker = Maker(seed, 10)
    headlines = []
    for structure, (base, effects) in SPEED.items():
        for mapping in ("table", "shadow"):
            parameters = {"structure": structure, "mapping": mapping, "update_percent": 60, "duration_ms": 100}
            level = base * (1.0 if mapping == "table" else 1.06)
            shown = effects if mapping == "table" else tuple(1 + (e - 1) * 0.4 for e in effects)
            cells = maker.group("intset", "etl-wb", 2, parameters, "ops_per_s", level, shown, (structure, mapping))
            headlines.append(_headline(cells, "ops_per_s"))
        plain = tuple(1 + (e - 1) * 0.35 for e in effects)
        maker.group(
            "intset",
            "sequential",
            1,
            {"structure": structure, "update_percent": 60, "duration_ms": 50},
            "ops_per_s",
            base * 0.9,
            plain,
        )
    for size, (base, effects) in PAIRS.items():
        cells = maker.group(
            "threadtest", "none", 2, {"size": size, "duration_ms": 100}, "pairs_per_s", base, effects, noise=0.02
        )
        headlines.append(_headline(cells, "pairs_per_s"))
    thp = "transparent huge pages are on request only; allocators that ask for them gain; compare with ./loam doctor"
    noisy = "the interval is 6.1 % wide; small differences do not show; run longer with --blocks 30"
    maker.cells[3]["warnings"].append(noisy)
    maker.cells[9]["warnings"].append(noisy)
    return _result(maker, headlines=headlines, warnings=[thp])


def ad_hoc(seed: int = 8) -> dict[str, Any]:
    """What ./loam run prints: one structure, two allocators, one and two threads, no headlines, no sentinel."""
    maker = Maker(seed, 5, ("glibc", "jemalloc"))
    for threads in (1, 2):
        parameters = {"structure": "list", "mapping": "table"}
        maker.group(
            "intset",
            "etl-wb",
            threads,
            parameters,
            "ops_per_s",
            7e4 * threads,
            (1.0, 1.1),
            ("list", "table"),
            sentinel=False,
        )
    return _result(
        maker, study="run", title="intset", question="", command="./loam run intset --allocator glibc,jemalloc --threads 1,2",
        commands=[], primary_metrics={"intset": "ops_per_s"}, elapsed_s=4.2,
    )  # fmt: skip


def bench(seed: int = 9) -> dict[str, Any]:
    """What ./loam bench makes: a command of the user's, where less time is better."""
    maker = Maker(seed, 10)
    cells = maker.group("command", "none", 1, {}, "ops_per_s", 1.0, (1.0,) * 6)
    for cell in cells:
        slow = 0.41 * (1 + 0.03 * ALLOCATORS.index(cell["factors"]["allocator"]))
        cell["metrics"] = {
            "wall_s": _metric([slow * math.exp(maker.rng.gauss(0, 0.004)) for _ in range(10)], "s", "lower")
        }
        if cell["ratio_to_baseline"] is not None:
            ratio = _ratio(cell["metrics"]["wall_s"]["values"], cells[0]["metrics"]["wall_s"]["values"])
            cell["ratio_to_baseline"] = {"metric": "wall_s", **ratio, "n": 10}
            verdict = _verdict(ratio)
            cell["verdict"] = {"better": "worse", "worse": "better"}.get(verdict, verdict)
            cell["rough"] = _rough(ratio)
    return _result(
        maker, study="bench", title="python3 -c pass", question="", primary_metrics={"command": "wall_s"},
        command="./loam bench -- python3 -c pass", commands=[],
    )  # fmt: skip


def troubled(seed: int = 10) -> dict[str, Any]:
    """A tour in which cells crashed, could not be proven, were skipped, or lack metrics, intervals and blame."""
    result = tour(seed)
    cells = result["cells"]
    factors = cells[2]["factors"]
    cells[2].update(
        state="failed", failed=10, runs=10, metrics={}, ratio_to_baseline=None, verdict="failed", blame=None
    )
    cells[4].update(state="unproven", metrics={}, ratio_to_baseline=None, verdict="unproven", blame=None)
    cells[5].update(failed=1, runs=10)
    cells[8].update(state="skipped", runs=0, metrics={}, ratio_to_baseline=None, verdict="inconclusive", blame=None)
    cells[10]["metrics"]["ops_per_s"].update(low=None, high=None)
    cells[11]["metrics"] = {"wall_s": cells[11]["metrics"]["wall_s"]}
    cells[12]["blame"] = {"attempts": 0, "aborts": 0}
    result["allocators"][4].update(
        proof="unproven", reasons=["malloc is provided by libc.so.6"], build_id=None, sha256=None
    )
    result["failures"] = [
        {"cell": {**factors, "parameters": cells[2]["parameters"], "group": "transactions"}, "state": "signal",
         "detail": "killed by signal 11 (SIGSEGV) after 0.08 s", "count": 10},
        {"cell": {"factors": cells[4]["factors"], "parameters": cells[4]["parameters"]}, "state": "unproven",
         "detail": "malloc is provided by libc.so.6", "count": 10},
        {"cell": {"factors": cells[5]["factors"], "parameters": cells[5]["parameters"]}, "state": "timeout",
         "detail": "no end record after 30 s", "count": 1},
    ]  # fmt: skip
    return result


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&]]>--><b>"


def hostile() -> dict[str, Any]:
    """Markup in every place that a user, a program or a file name can fill."""
    result = ad_hoc()
    for cell in result["cells"]:
        cell["factors"]["sync"] = "etl</title><script>x</script>"
        cell["parameters"] = {**cell["parameters"], "note<i>": HOSTILE}
        if cell["factors"]["allocator"] == "jemalloc":
            cell["factors"]["allocator"] = HOSTILE
        cell["warnings"] = [f"{HOSTILE}; {HOSTILE}; {HOSTILE}"]
    for allocator in result["allocators"]:
        allocator.update(version=HOSTILE, path=f"/tmp/{HOSTILE}.so", soname=HOSTILE, reasons=[HOSTILE])
    result["allocators"][2]["name"] = HOSTILE
    result.update(
        title=HOSTILE,
        question=HOSTILE,
        command=f"./loam bench -- sh -c '{HOSTILE}'",
        commands=[HOSTILE],
        warnings=[HOSTILE],
    )
    result["machine"]["cpu"] = HOSTILE
    result["build"]["compiler"] = HOSTILE
    result["failures"] = [{"cell": result["cells"][0], "state": "exit", "detail": f"stderr: {HOSTILE}", "count": 1}]
    result["headlines"] = [
        {"workload": "intset", "parameters": result["cells"][0]["parameters"], "sync": "etl</title><script>x</script>",
         "best": HOSTILE, "worst": "glibc", "ratio": {"estimate": 1.1, "low": 1.0, "high": 1.2}, "verdict": "better",
         "text": HOSTILE}
    ]  # fmt: skip
    return result
