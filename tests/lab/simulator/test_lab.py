"""A simulated machine in the lab: `./loam run --machine sim:NAME`, what its result says, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from simulating import built

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.model.store import journal
from loam_lab.setup import build
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.allocators import costs, registry

# The first test builds what the command needs.
pytestmark = pytest.mark.timeout(900)
MACHINE = "sim:xeon-e5405"
RUN = (
    "run", "intset", "-p", "structure=list", "-p", "elements=64", "-p", "range=128", "-p", "operations=60", "--machine",
    MACHINE, "--threads", "1,4", "--allocator", "glibc,loam", "--blocks", "2", "--json",
)  # fmt: skip


def result(folder: Path, sync: str = "etl-wb") -> dict[str, Any]:
    command = [str(paths.root() / "loam"), *RUN, "--sync", sync, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def runs_of(folder: Path) -> list[dict[str, Any]]:
    return list(journal.read(folder))


def counts(measured: dict[str, Any]) -> list[Any]:
    return [(cell["factors"], cell["metrics"]["ops_per_s"], cell["metrics"]["attempts"], cell["counters"])
            for cell in measured["cells"]]  # fmt: skip


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    built("etl-wb")
    built("malloc")
    folder = tmp_path_factory.mktemp("first") / "out"
    return result(folder), runs_of(folder)


def test_the_same_command_gives_the_same_counts(first: tuple[dict[str, Any], Any], tmp_path: Path) -> None:
    assert counts(result(tmp_path / "out")) == counts(first[0])


@pytest.mark.exhaustive  # compiles every workload with two algorithms, for more than a minute
def test_the_default_synchronisation_runs_there(tmp_path: Path) -> None:
    cells = result(tmp_path / "out", sync="auto")["cells"]
    assert len(cells) >= 4 and all(min(cell["metrics"]["ops_per_s"]["values"]) > 0 for cell in cells)


def test_the_result_says_that_it_was_simulated(first: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    document, lines = first
    machine = document["machines"][MACHINE]
    assert machine["simulated"] and machine["deterministic"] and machine["cores"] == 8
    begins = [record for line in lines for record in line["records"] if record["kind"] == "begin"]
    assert begins
    for begin in begins:
        assert begin["simulated"]["machine"] == "xeon-e5405"
        assert begin["simulated"]["costs"] == "per access"
    how = {line["identity"]["allocator"]["name"]: record["simulated"]["allocation"] for line in lines
           for record in line["records"] if record["kind"] == "begin"}  # fmt: skip
    assert how["loam"] == "instrumented"
    table = costs.find(registry.load("glibc"))
    assert how["glibc"] == (f"counted: glibc {table.version}" if table else "fixed")
    assert {line["identity"]["machine"]["name"] for line in lines} == {MACHINE}


def test_blocks_and_the_second_copy_are_seeds(first: tuple[Any, list[dict[str, Any]]]) -> None:
    seeds = {
        record["simulated"]["seed"] for line in first[1] for record in line["records"] if record["kind"] == "begin"
    }
    assert len(seeds) == 4


def test_misses_and_transfers_stand_beside_the_rate(first: tuple[dict[str, Any], Any]) -> None:
    cells = {
        (cell["factors"]["threads"], cell["factors"]["allocator"]): cell
        for cell in first[0]["cells"]
        if cell["copy"] == 0
    }
    alone, four = (cells[threads, "glibc"]["counters"][0] for threads in (1, 4))
    assert alone["source"] == four["source"] == "simulator"
    assert alone["transfers"] == 0 < four["transfers"]


def test_the_lines_that_moved_stand_with_their_cores_and_times(first: tuple[dict[str, Any], Any]) -> None:
    cells = [cell for cell in first[0]["cells"] if cell["factors"]["threads"] == 4 and cell["copy"] == 0]
    assert len(cells) == 2
    for cell in cells:
        moves = cell["moves"]
        top = moves["lines"][0]
        assert 0 < moves["begin_ms"] < moves["end_ms"]
        assert top["transfers"] > 0
        assert len(top["arrived"]) <= 4 < moves["columns"]
        assert ":" in top["asked_by"]
        # What arrived is what went from one core to another; a sample of the transfers.
        arrived = sum(sum(counts) for counts in top["arrived"].values())
        assert arrived == sum(count for _, _, count in top["between"])
        assert arrived <= top["transfers"] <= 2 * arrived * moves["one_in"]


def test_a_program_without_hooks_is_refused() -> None:
    build.ensure_built(["etl-wb"])
    with pytest.raises(LoamError, match="without the simulator's hooks"):
        workloads.check_instrumented(workloads.resolve_syncs(["etl-wb"]), machines.find(MACHINE))


@pytest.mark.parametrize("name", ["libitm", "loam-itm"])
def test_a_synchronisation_without_a_simulated_build_is_refused(name: str) -> None:
    assert name in workloads.subjects_of()
    with pytest.raises(LoamError, match=f"{name}: has no build with the simulator's hooks"):
        workloads.resolve_syncs([name], machines.find(MACHINE).preset)
    with pytest.raises(LoamError, match="did you mean libitm"):
        workloads.resolve_syncs(["libitn"])


def test_more_threads_than_cores_are_refused() -> None:
    with pytest.raises(LoamError, match=f"machine {MACHINE} has 8 hardware threads"):
        workloads.check_threads([9], [], machines.find(MACHINE), oversubscribe=False)
