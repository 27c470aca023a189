"""Campaigns on a Slurm of two nodes: the same kind of result as here, and nothing lost or doubled by what is killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cluster as clusters
import pytest
from two_hosts import check_tour, written

from loam_lab.base import paths
from loam_lab.model.store import journal

LOAM = str(paths.root() / "loam")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    if why := clusters.lacking():
        pytest.skip(f"no Slurm: {why}")
    cluster = clusters.Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return written(tmp_path, 6)


def loam(slurm: clusters.Cluster, folder: Path, *words: str, seconds: float = 280) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LOAM, *words], cwd=folder, env=slurm.environment, capture_output=True, text=True, timeout=seconds, check=False
    )


def counted(folder: Path) -> Counter[str]:
    """How often each run is in the journals of a campaign."""
    return Counter(line["id"] for line in journal.read(folder))


def planned(folder: Path) -> int:
    return int(json.loads((folder / "campaign.json").read_text())["plan"]["runs"])


def counts(result: dict[str, Any]) -> set[str]:
    """The metrics of the first cell. On a busy machine so short a run may have no attempt, and then it has no ratio."""
    return {name for name, metric in result["cells"][0]["metrics"].items() if metric["kind"] != "ratio"}


def test_a_study_on_two_nodes_gives_the_same_kind_of_result(
    slurm: clusters.Cluster, study: Path, tmp_path: Path
) -> None:
    here = loam(slurm, tmp_path, "study", "run", str(study), "--out", "here", "--json")
    there = loam(slurm, tmp_path, "study", "run", str(study), "--out", "there", "--json", "--engine", "slurm")
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    one, two = json.loads(here.stdout), json.loads(there.stdout)
    assert {cell["factors"]["machine"] for cell in two["cells"]} == set(clusters.NODES)
    assert len(two["cells"]) == 2 * len(one["cells"])
    assert two.keys() == one.keys()
    assert two["cells"][0].keys() == one["cells"][0].keys()
    assert counts(two) == counts(one)
    assert {(cell["state"], cell["runs"]) for cell in two["cells"]} == {
        (cell["state"], cell["runs"]) for cell in one["cells"]
    }
    assert (tmp_path / "there" / "report.html").is_file()
    files = {file.stem for file in journal.files(tmp_path / "there")}
    assert files == set(clusters.NODES)
    assert set(counted(tmp_path / "there").values()) == {1}
    done = loam(slurm, tmp_path, "top", "there", "--json")
    assert json.loads(done.stdout)["done"] == len(counted(tmp_path / "there"))


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_two_nodes_take_the_tour(slurm: clusters.Cluster, tmp_path: Path) -> None:
    words = ("study", "run", "tour", "--engine", "slurm", "--partition", "bench", "--hosts", ",".join(clusters.NODES))
    check_tour(tmp_path, loam(slurm, tmp_path, *words, "--out", "out", "--json", seconds=1700), clusters.NODES)


def test_an_unknown_partition_or_node_is_named_with_what_there_is(
    slurm: clusters.Cluster, study: Path, tmp_path: Path
) -> None:
    for words, wrong, known in (("--partition", "bensh", "bench"), ("--hosts", "bench9", "of partition bench")):
        done = loam(slurm, tmp_path, "study", "run", str(study), "--engine", "slurm", words, wrong)
        assert done.returncode == 2
        assert wrong in done.stderr
        assert known in done.stderr
    assert not list(tmp_path.glob("results/*"))


def killed(slurm: clusters.Cluster, coordinator: subprocess.Popen[str], what: str) -> None:
    """Kill one part at once and bring back what only an administrator would."""
    if what == "coordinator":
        coordinator.kill()
    elif what == "controller":
        slurm.kill("slurmctld")
        time.sleep(1)
        slurm.start_controller()
    elif what == "node":
        slurm.kill("slurmd bench1")
        time.sleep(1)
        slurm.start_node("bench1")
    else:
        for number in slurm.command("squeue", "-h", "-o", "%i").split():
            slurm.command("scancel", "--signal=KILL", "--full", number)
            break


@pytest.mark.parametrize(
    "what",
    [
        "coordinator",
        # Slurm saves what its jobs do every few seconds. One that is killed may remember jobs that have ended, and then
        # keeps their nodes for minutes: nothing of ours decides how long.
        pytest.param("controller", marks=pytest.mark.exhaustive),
        "node",
        "job",
    ],
)
def test_kills_lose_and_double_no_run(slurm: clusters.Cluster, tmp_path: Path, what: str) -> None:
    chance = random.Random(what)
    for number in range(int(os.environ.get("LOAM_FLEET_KILLS", "1"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [LOAM, "study", "run", str(written(folder, 3)), "--engine", "slurm", "--out", "out"]
        log = (folder / "log").open("w")
        coordinator = subprocess.Popen(
            command, cwd=folder, env=slurm.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
        )
        until = time.monotonic() + 60
        while not journal.files(folder / "out") and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 3))
        killed(slurm, coordinator, what)
        coordinator.wait(240)
        if coordinator.returncode != 0 and (folder / "out" / "result.json").is_file() is False:
            done = loam(slurm, folder, *command[1:], "--resume")
            assert done.returncode == 0, f"{what}: {done.stderr}"
        times = counted(folder / "out")
        places = {
            (line["cell"], line["purpose"], line["block"], line["copy"])
            for line in journal.read(folder / "out")
            if not line["attempt"]
        }
        assert len(places) == planned(folder / "out"), f"{what}: {(folder / 'log').read_text()}"
        assert set(times.values()) == {1}, what
