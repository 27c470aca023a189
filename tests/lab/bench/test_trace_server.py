"""trace record --server: what a server allocates, from its start to its end, is in the trace, and nothing of its load."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaigns import FAKES

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import job_options, trace
from loam_lab.commands.bench.job import Job
from loam_lab.setup import build


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    build.ensure_built(["record", "replay"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def events_of(file: Path) -> int:
    player = paths.load_paths()["libraries"]["replay"]
    done = subprocess.run([player, file], capture_output=True, text=True, check=True)
    (events,) = re.findall(r"(\d+) events", done.stdout)
    return int(events)


def served(port: int, mode: str = "", load: str = "") -> Job:
    server = f"{sys.executable} {FAKES / 'fake-server'}"
    job = job_options.to_watch(
        "trace record", (), server=f"{server} {port} {mode}", ready=str(port), load=f"{server} load {port} 5 {load}", fill="true",
        timeout_s=60.0,
    )  # fmt: skip
    assert isinstance(job, Job)
    return job


def test_a_server_is_recorded_from_its_start_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trace.record(served(free_port()), out=tmp_path / "t", as_json=True) == 0
    (recorded,) = json.loads(capsys.readouterr().out)["traces"]
    assert recorded["file"] == str(tmp_path / "t"), "of the server alone, not of its load"
    assert recorded["ended"] and recorded["threads"] == 1 and recorded["unknown"] == 0
    assert events_of(tmp_path / "t") > 1000


@pytest.mark.parametrize(
    ("mode", "load", "message"),
    [
        ("", "fails", "the load ended with status 1: cannot load"),
        ("dies", "", "the server ended under load, with SIGSEGV"),
        ("fails", "", "before it was ready: no such configuration"),
    ],
)
def test_what_a_bad_server_allocated_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str, load: str, message: str
) -> None:
    count = 20 if mode == "dies" else 5
    job = served(free_port(), mode, load)
    job = replace(job, load=[*job.load[:4], str(count), *job.load[5:]])
    assert trace.record(job, out=tmp_path / "t") == 1
    stderr = " ".join(capsys.readouterr().err.split())
    assert message in stderr and "what was recorded is kept" in stderr
    assert trace.read(tmp_path / "t").bytes > 1000


@pytest.mark.parametrize(
    ("options", "command", "message"),
    [
        ({"ready": "1"}, (), "--server=true: needs --load too"),
        ({"ready": "1", "load": "true"}, ("true",), "only one of them can run"),
        ({"ready": "0", "load": "true"}, (), "--ready=0: is no port"),
        ({"ready": "1", "load": "/no/such"}, (), "no such program"),
        ({"server": None, "fill": "true"}, ("true",), "--fill: belongs to a server"),
        ({"server": None}, (), "no command was given"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: dict[str, str | None], command: tuple[str, ...], message: str
) -> None:
    given: dict[str, Any] = {"server": "true", "ready": None, "load": None, "fill": "", "timeout_s": 1.0, **options}
    with pytest.raises(LoamError, match=message):
        job_options.to_watch("trace record", command, **given)
