"""Campaigns by ssh to a server of the test's own on this machine, which plays two hosts that share nothing with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import sshd
from campaigns import study
from sshd import Server

from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet import archive
from loam_lab.campaign.fleet.job import End, Job
from loam_lab.campaign.fleet.ssh import Ssh
from loam_lab.campaign.measure import plan as plans
from loam_lab.model.store import journal

# Stands where ./loam stands on a real host: an agent that takes its time and writes as many lines as it is told.
AGENT = """#!/bin/sh
[ "$2" = describe ] && { echo "welcome"; echo "loam-agent: {\\"lab\\": \\"0\\", \\"question\\": $3}"; exit 0; }
folder=$3 job=$4
echo $$ > "$folder/.fleet/agent.pid"
mkdir -p "$folder/journal"
host=${job#*-}
n=0
while [ $n -lt 3 ]; do
  echo "{\\"id\\": \\"$job $n\\"}" >> "$folder/journal/$host.jsonl"
  n=$((n + 1))
  sleep 0.1
done
printf '{"torn' >> "$folder/journal/$host.jsonl"
sleep "${SLOW:-0}" </dev/null >/dev/null 2>&1
echo '{"schema": 1, "problem": "", "utc": "2026-01-01T00:00:00Z"}' > "$folder/.fleet/$job.end.json"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if why := sshd.lacking():
        pytest.skip(why)
    folder = tmp_path / "server"
    folder.mkdir()
    started = Server(folder)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def engine(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ssh]:
    """An engine whose sources are an agent of a few lines."""
    source = server.folder / "source"
    source.mkdir()
    (source / "loam").write_text(AGENT)
    (source / "loam").chmod(0o755)
    monkeypatch.setattr(archive.paths, "root", lambda: source)
    monkeypatch.setattr(archive, "names", lambda: ["loam"])
    over_ssh = Ssh(["alpha", "beta"], server.options)
    yield over_ssh
    over_ssh.close()


def opened(engine: Ssh, folder: Path) -> dict[str, Job]:
    """A campaign's folder that the engine knows, and a job for each host."""
    (folder / ".fleet").mkdir(parents=True, exist_ok=True)
    (folder / "campaign.json").write_text("{}")
    for host in engine.hosts():
        engine.ask(host, {"study": "it's"})
    engine.open(folder, engine.hosts())
    runs = tuple(plans.make(study()).runs[:1])
    jobs = {host: Job(f"0000{n}-{host}", host, runs, 0.0) for n, host in enumerate(engine.hosts())}
    for job in jobs.values():
        job.write(folder)
    return jobs


def until_ended(engine: Ssh, *jobs: Job) -> dict[str, Any]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        statuses = engine.poll(jobs)
        if all(status.state != "running" for status in statuses.values()):
            return {name: status.state for name, status in statuses.items()}
        time.sleep(0.05)
    raise AssertionError("the agents did not end")


def until_torn(server: Server) -> None:
    """Wait until an agent has written all of its lines, and a part of one."""
    until = time.monotonic() + 60
    while time.monotonic() < until and not any("torn" in file.read_text() for file in server.home.rglob("alpha.jsonl")):
        time.sleep(0.05)


def test_a_host_answers_and_sources_are_sent_once(engine: Ssh, server: Server) -> None:
    answer = engine.ask("alpha", {"a": "it's; $(x)"})
    assert answer["question"] == {"a": "it's; $(x)"}
    (kept,) = (server.home / ".cache/loam/sources").iterdir()
    changed = kept.stat().st_mtime_ns
    engine.ask("beta", {})
    assert [kept] == list((server.home / ".cache/loam/sources").iterdir())
    assert kept.stat().st_mtime_ns == changed


def test_lines_of_both_hosts_come_back_whole_and_once(engine: Ssh, tmp_path: Path) -> None:
    jobs = opened(engine, tmp_path / "out")
    for job in jobs.values():
        engine.submit(job)
    assert set(until_ended(engine, *jobs.values()).values()) == {"ended"}
    for job in [*jobs.values(), *jobs.values()]:
        engine.fetch(job)
    lines = [json.loads(line) for file in journal.files(tmp_path / "out") for line in file.read_text().splitlines()]
    assert Counter(line["id"] for line in lines) == {f"{job.name} {n}": 1 for job in jobs.values() for n in range(3)}
    assert all(End.read(tmp_path / "out", job.name) for job in jobs.values())


def test_a_cut_connection_is_a_lost_job_whose_lines_are_kept(
    engine: Ssh, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = opened(engine, tmp_path / "out")["alpha"]
    engine.submit(job)
    time.sleep(0.15)
    engine._agents[job.name].kill()
    engine._agents[job.name].wait()
    subprocess.run(["ssh", *engine._multiplexed(), "-O", "exit", "alpha"], capture_output=True, check=False)
    assert engine.poll([job])[job.name].state in ("lost", "ended")
    until = time.monotonic() + 20
    while End.read(tmp_path / "out", job.name) is None and time.monotonic() < until:
        engine.fetch(job)
        time.sleep(0.1)
    assert End.read(tmp_path / "out", job.name) is not None
    assert len((tmp_path / "out" / "journal" / "alpha.jsonl").read_text().splitlines()) == 3


def test_a_new_start_ends_the_agent_that_is_left(
    engine: Ssh, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW", "60")
    engine._options = (*engine._options, "-oSendEnv=SLOW")
    job = opened(engine, tmp_path / "out")["alpha"]
    engine.submit(job)
    until_torn(server)
    began = time.monotonic()
    engine.open(tmp_path / "out", ["alpha"])
    assert engine._agents[job.name].wait(10) != 0
    assert time.monotonic() - began < 50, "it would sleep for 60 seconds"
    assert len((tmp_path / "out" / "journal" / "alpha.jsonl").read_text().splitlines()) == 3


def test_an_agent_that_the_kernel_killed_is_a_lost_job_and_says_why(
    engine: Ssh, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW", "60")
    engine._options = (*engine._options, "-oSendEnv=SLOW")
    job = opened(engine, tmp_path / "out")["alpha"]
    engine.submit(job)
    until_torn(server)
    (agent,) = (int(file.read_text()) for file in server.home.rglob("agent.pid"))
    os.kill(agent, signal.SIGKILL)
    engine._agents[job.name].wait(20)
    status = engine.poll([job])[job.name]
    assert status.state == "lost"
    assert "the agent was killed there, as by a kernel that is out of memory" in status.reason
    engine.fetch(job)
    assert len((tmp_path / "out" / "journal" / "alpha.jsonl").read_text().splitlines()) == 3


def test_a_host_key_that_changed_is_refused_by_name(engine: Ssh, server: Server) -> None:
    other = server.folder / "other"
    server.new_key("other")
    server.known.write_text("loopback " + other.with_suffix(".pub").read_text())
    with pytest.raises(LoamError, match=r"alpha: its host key changed.*ssh-keygen -R alpha"):
        engine.ask("alpha", {})
    server.known.write_text("")
    with pytest.raises(LoamError, match=r"alpha: its host key is not known here.*ssh alpha"):
        engine.ask("alpha", {})


def test_a_key_that_is_not_taken_and_a_server_that_is_not_there_are_named(engine: Ssh, server: Server) -> None:
    (server.folder / "authorized_keys").write_text("")
    with pytest.raises(LoamError, match=r"takes none of your keys.*ssh-copy-id alpha"):
        engine.ask("alpha", {})
    server.stop()
    with pytest.raises(LoamError, match="no ssh server answers there"):
        engine.ask("beta", {})


def test_names_that_ssh_would_take_for_options_are_refused() -> None:
    with pytest.raises(LoamError, match="is no host's name"):
        Ssh(["-oProxyCommand=x"]).hosts()


def test_the_archive_follows_contents_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive.paths, "root", lambda: tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a b").write_text("one")
    (tmp_path / "link").symlink_to("a b")
    (tmp_path / "ignored").write_text("never sent")
    subprocess.run(["git", "-C", str(tmp_path), "add", "a b", "link"], check=True)
    digest, names = archive.contents()
    first = archive.packed(names)
    assert names == ["a b", "link"]
    os.utime(tmp_path / "a b", (1, 1))
    assert (archive.contents()[0], archive.packed(names)) == (digest, first)
    with tarfile.open(fileobj=BytesIO(first)) as opened_again:
        assert opened_again.getnames() == [*names, ".loam-sent"]
    (tmp_path / "a b").chmod(0o755)
    assert archive.contents()[0] != digest
    (tmp_path / "a b").write_text("two")
    assert archive.contents()[0] != digest
