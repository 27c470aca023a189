"""The same seed gives the same counts and clocks, whatever the process's surroundings; another seed another schedule."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from simulating import built, statistics

from loam_lab.base.errors import LoamError
from loam_lab.subjects import simulated
from loam_lab.subjects.allocators import registry

RUNS = 20 if os.environ.get("LOAM_TEST_ALL") else 4
LIST = (
    "intset", "--threads", 4, "--warmup-ms", 0, "--records", "/dev/null", "-p", "structure=list", "-p", "elements=128",
    "-p", "range=256", "-p", "operations=100",
)  # fmt: skip


def of_list(folder: Path, seed: int = 1, preload: Sequence[str] = (), **environment: str) -> dict[str, Any]:
    return statistics(folder, "etl-wb", *LIST, "--seed", 7, seed=seed, preload=preload, environment=environment)


def library(name: str) -> str:
    if name == "loam":
        return built("malloc")
    try:
        return registry.load(name).libraries[0]
    except LoamError as problem:
        pytest.skip(problem.line())


def test_runs_of_one_seed_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    first = of_list(tmp_path)
    assert first["total"]["true_sharing"] > 100
    for run in range(1, RUNS):
        assert of_list(tmp_path, PADDING="x" * 117 * run) == first


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "tbb", "mimalloc", "loam"])
def test_runs_under_a_preloaded_allocator_are_the_same(name: str, tmp_path: Path) -> None:
    preload = [library(name)]
    assert of_list(tmp_path, preload=preload) == of_list(tmp_path, preload=preload, PADDING="x" * 1001)


def test_seeds_differ(tmp_path: Path) -> None:
    clocks = {of_list(tmp_path, seed=seed)["cycles"] for seed in range(1, 6)}
    assert len(clocks) == 5


def test_seeds_differ_in_cache_sets_where_a_way_of_the_cache_is_a_page(tmp_path: Path) -> None:
    """One thread: no schedule differs. With addresses that shift by whole pages each seed had the same misses."""
    machine = simulated.registry()["mppa16"].values
    alone = ["1" if before == "--threads" else word for before, word in zip(("", *LIST), LIST, strict=False)]
    misses = {
        statistics(tmp_path, "etl-wb", *alone, "--seed", 7, seed=seed, machine=machine)["total"]["misses"]
        for seed in range(1, 6)
    }
    assert len(misses) > 2


def test_the_engine_of_threads_and_a_token_counts_the_same(tmp_path: Path) -> None:
    """Its donors' stacks are used alike, so even addresses are the same."""
    assert of_list(tmp_path, LOAM_SIM_ENGINE="threads") == of_list(tmp_path)


def test_running_ahead_hardly_differs_from_the_exact_order(tmp_path: Path) -> None:
    """The quantum may reorder private accesses only."""
    ahead, exact = of_list(tmp_path)["cycles"], of_list(tmp_path, LOAM_SIM_QUANTUM="0")["cycles"]
    assert ahead == pytest.approx(exact, rel=0.02)
