"""bench of a server, ended by a signal at twenty moments from its start to its end: no process is left, --resume goes on.

A whole campaign takes its time first; the moments are spread evenly over as long. What each of them hits is left to chance, and
what has to hold does not depend on it. Some ten minutes: ./loam test --all
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaigns import FAKES

from loam_lab.setup import build

MOMENTS = 20
MARK = "FAKE_MARK"


def started(folder: Path, port: int, mark: str, *more: str) -> subprocess.Popen[str]:
    """The command line of a campaign, which is the coordinator; all that it starts has its mark."""
    server = f"{sys.executable} {FAKES / 'fake-server'}"
    words = [
        "bench", "--server", f"{server} {port} workers", "--ready", str(port), "--load", f"{server} load {port} 10",
        "--metric", r"([\d.]+) requests per second", "--allocator", "glibc,jemalloc", "--blocks", "2", "--out", str(folder),
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "loam_lab.cli", *words, *more], env={**os.environ, MARK: mark},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may have had it ignored
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its status, and what it said."""
    _, output = process.communicate(timeout=240)
    return process.returncode, output


def left(mark: str) -> list[str]:
    """The command lines of the processes that have a mark."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                commands.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return commands


def check_whole(folder: Path) -> None:
    """Whether each run is in the journal once, and all of them are good."""
    lines = [json.loads(line) for line in (folder / "journal" / "local.jsonl").read_text().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines), "no run twice"
    manifest = json.loads((folder / "campaign.json").read_text())
    assert len(lines) >= manifest["plan"]["runs"]
    result = json.loads((folder / "result.json").read_text())
    assert {cell["state"] for cell in result["cells"]} == {"ok"}, result["failures"]


@pytest.fixture(scope="module")
def whole_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long a campaign takes that nothing ends."""
    build.ensure_built(["probe"])
    folder = tmp_path_factory.mktemp("whole") / "o"
    began = time.monotonic()
    status, output = ended(started(folder, free_port(), "whole"))
    assert status == 0, output
    check_whole(folder)
    return time.monotonic() - began


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.exhaustive
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_and_resume_goes_on(tmp_path: Path, whole_s: float, number: signal.Signals) -> None:
    for moment in range(MOMENTS):
        folder, port, mark = tmp_path / str(moment), free_port(), f"{number.name}-{os.getpid()}-{moment}"
        process = started(folder, port, mark)
        time.sleep(whole_s * (moment + 0.5) / MOMENTS)
        process.send_signal(number)
        status, output = ended(process)
        where = f"moment {moment} of {MOMENTS}: {output}"
        assert status in (0, 130, -number), where
        assert "Traceback" not in output, where
        for _ in range(1500):  # of a killed coordinator the kernel tells the driver, which ends the others
            if not left(mark):
                break
            time.sleep(0.02)
        assert left(mark) == [], where
        begun = (folder / "campaign.json").is_file()
        status, output = ended(started(folder, port, mark, "--resume"))
        if not begun:
            assert status == 2 and "leave out --resume to start one" in output, where
            status, output = ended(started(folder, port, mark))
        assert status == 0, f"{where}\nthen {output}"
        check_whole(folder)
        assert left(mark) == []
