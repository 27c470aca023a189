"""A study by ssh from end to end: `./loam study run` here, and the real agent on two servers that share nothing with it.

First with hosts that find the sources, which `test_ssh.py` sends, and our Python packages: each builds and measures.
Then with two empty homes, which take the tour.  Both build for minutes, so ./loam test --all alone runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sshd
from sshd import Server
from two_hosts import check_tour, written

from loam_lab.base import paths
from loam_lab.campaign.fleet import archive
from loam_lab.model.store import journal

LOAM = str(paths.root() / "loam")
HOSTS = ("alpha", "beta")
# Variables that both hosts take from this machine: its compiler cache, languages, and access to packages. Each host has
# a home folder of its own.
LENT = ("CCACHE_", "CMAKE_", "LANG", "LC_", "PIP_", "SSL_")


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Server]]:
    if why := sshd.lacking():
        pytest.skip(why)
    environment = {
        name: value for name, value in os.environ.items() if name.startswith(LENT) or name.lower().endswith("_proxy")
    }
    if "CCACHE_DIR" in environment:  # so that the cache finds a file although the home folder differs each time
        environment |= {"CCACHE_BASEDIR": str(tmp_path), "CCACHE_NOHASHDIR": "1"}
    servers = {}
    for name in HOSTS:
        (tmp_path / name).mkdir()
        servers[name] = Server(tmp_path / name, name, environment)
        servers[name].start()
    (tmp_path / "ssh_config").write_text("".join(server.config for server in servers.values()))
    yield servers
    for server in servers.values():
        server.stop()


def furnish(hosts: dict[str, Server]) -> list[Path]:
    """Lend our .venv to the trees that are sent; returns: the trees"""
    digest, names = archive.contents()
    content, trees = archive.packed(names), []
    for server in hosts.values():
        tree = server.home / ".cache/loam/sources" / digest
        tree.mkdir(parents=True)
        subprocess.run(["tar", "-xf", "-", "-C", str(tree)], input=content, check=True)
        (tree / ".venv").symlink_to(paths.root() / ".venv")
        trees.append(tree)
    return trees


def run(
    folder: Path, study: str, *words: str, hosts: Sequence[str] = HOSTS, seconds: float = 280
) -> subprocess.CompletedProcess[str]:
    command = [LOAM, "study", "run", study, "--engine", "ssh", "--hosts", ",".join(hosts),
               f"--engine-option=-F{folder}/ssh_config", "--out", "out", "--json", *words]  # fmt: skip
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)


def check(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert {cell["factors"]["machine"] for cell in result["cells"]} == set(HOSTS)
    assert {(cell["state"], cell["runs"]) for cell in result["cells"]} == {("ok", 6)}
    assert {allocator["proof"] for allocator in result["allocators"]} == {"proven"}, (
        "proven in the processes over there"
    )
    assert {file.stem for file in journal.files(folder / "out")} == set(HOSTS)
    counted = Counter(line["id"] for line in journal.read(folder / "out"))
    assert set(counted.values()) == {1}
    # A block that was disturbed ran again: its runs are none of the plan's.
    planned = [line for line in journal.read(folder / "out") if not line["attempt"]]
    assert len(planned) == json.loads((folder / "out/campaign.json").read_text())["plan"]["runs"]
    assert (folder / "out/report.html").read_text().count('id="machines"') == 1
    (answer,) = result["across_machines"]
    assert answer["machines"] == list(HOSTS)


@pytest.mark.exhaustive
@pytest.mark.timeout(1500)
def test_a_study_runs_on_two_hosts_by_ssh(hosts: dict[str, Server], tmp_path: Path) -> None:
    study = str(written(tmp_path, 6))
    trees = furnish(hosts)
    done = run(tmp_path, study, "--identical", "alpha,beta", seconds=1100)
    check(tmp_path, done)
    for tree in trees:
        assert (tree / "build/release/loam-paths.json").is_file(), "what was measured was built there"
    (compared,) = json.loads(done.stdout)["identical"]
    assert compared["machines"] == list(HOSTS)
    # A home of a host holds what its jobs wrote; the campaign on this side has a copy of it.
    for name, server in hosts.items():
        (there,) = server.home.glob(".cache/loam/campaigns/*/journal/*.jsonl")
        assert there.read_bytes() == (tmp_path / f"out/journal/{name}.jsonl").read_bytes()
    # A host whose key changed is left out by name, and the other one is measured.
    hosts["beta"].new_key("other")
    hosts["beta"].known.write_text("beta " + (hosts["beta"].folder / "other.pub").read_text())
    done = run(tmp_path, study, "--out", "again")
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert {cell["factors"]["machine"] for cell in result["cells"]} == {"alpha"}
    (warning,) = (text for text in result["warnings"] if "host beta is left out" in text)
    assert "its host key changed" in warning and "ssh-keygen -R beta" in warning
    assert result["across_machines"] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_two_empty_homes_are_set_up_and_take_the_tour(hosts: dict[str, Server], tmp_path: Path) -> None:
    named = ("alpha", "root@beta")
    check_tour(tmp_path, run(tmp_path, "tour", hosts=named, seconds=3500), named)
    for server in hosts.values():
        (tree,) = (server.home / ".cache/loam/sources").iterdir()
        assert (tree / ".venv/bin/python").exists() and not (tree / ".venv").is_symlink()
