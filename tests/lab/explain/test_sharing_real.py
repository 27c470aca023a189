"""Shared cache lines of real processes: planted programs under the sampler, each kind with its blocks and source lines.

Watches last long here, up to the first trap, and the planted program runs until there were enough of them: so these tests
hold on a machine that is busy with other work, too, where threads seldom run at the same time. What shares of time are worth
is another test's: it needs a quiet machine.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sampler

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import job_options
from loam_lab.commands.explain.sharing import run
from loam_lab.subjects import symbols

# Two threads must meet.
pytestmark = pytest.mark.alone
VICTIMS = "tests/planted/victims.cpp"


@pytest.fixture(scope="module")
def victims() -> str:
    """The planted program."""
    return sampler.built("planted-victims")["planted-victims"]


def explained(*words: str, allocator: str = "jemalloc", window_us: int = 100_000) -> dict[str, Any]:
    """The document of a run whose watches wait for the first trap."""
    command = [str(paths.root() / "loam"), "explain", "--json", "--allocator", allocator, "--", *words]
    environment = {**os.environ, "LOAM_SHARING_WINDOW_US": str(window_us), "LOAM_SHARING_PERIOD_US": "2000"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.root(), env=environment, check=False)
    if "the kernel refused" in done.stdout:
        pytest.skip(f"not run: {json.loads(done.stdout)['error']['message']}")
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def line_of(text: str) -> str:
    """Where a line of the planted program stands."""
    number = next(n for n, line in enumerate(Path(paths.root() / VICTIMS).read_text().splitlines(), 1) if text in line)
    return f"{VICTIMS}:{number}"


def first(result: dict[str, Any]) -> dict[str, Any]:
    """The pair of blocks that is named first."""
    named = [pair for pair in result["blocks"] if pair["named"]]
    assert named, result
    return dict(named[0])


def made_at(pair: dict[str, Any]) -> set[str]:
    return {f"{one['made']['file']}:{one['made']['line']}" for one in pair["blocks"]}


def test_two_blocks_in_one_line_are_named_by_where_they_were_made(victims: str) -> None:
    result = explained(victims, "false_blocks", "12c")
    pair = first(result)
    assert pair["cause"] == "other_block", result
    assert {one["bytes"] for one in pair["blocks"]} == {8}
    assert made_at(pair) == {line_of("std::malloc(sizeof(Counter))")}
    line = result["lines"][0]
    for side in ("sampled", "other"):
        assert f"{line[side]['file']}:{line[side]['line']}" == line_of("counter->n = counter->n + 1")
    assert re.search(
        r"8-byte blocks made at .* share a cache line; about .* % of the time is spent there", result["words"][0]
    )


def test_blocks_of_operator_new_are_told_apart_by_who_asked(victims: str) -> None:
    # jemalloc has operators of its own: on the way to them one function of the sampler's library calls another.
    pair = first(explained(victims, "two_places", "12c"))
    assert pair["cause"] == "other_block"
    assert {one["made"]["function"] for one in pair["blocks"]} == {"make_left", "make_right"}


def test_blocks_that_lie_apart_share_nothing(victims: str) -> None:
    result = explained(victims, "apart", "40w", window_us=20_000)
    assert not [pair for pair in result["blocks"] if pair["named"]], result


@pytest.mark.parametrize(
    ("case", "cause", "name"), [("true", "same_word", "variable one"), ("static", "static", "variable neighbours")]
)
def test_static_variables_are_named(victims: str, case: str, cause: str, name: str) -> None:
    result = explained(victims, case, "12c")
    pair = first(result)
    assert pair["cause"] == cause, result
    assert name in pair["words"]


def test_a_lock_is_named_by_who_takes_it(victims: str) -> None:
    result = explained(victims, "lock", "30c")
    waits = [line for line in result["lines"] if "pthread_mutex" in line["sampled"]["function"]]
    assert waits, result["lines"]
    assert {line["sampled"]["file"] for line in waits} == {VICTIMS}


def test_two_words_of_one_block_are_told_from_two_blocks(victims: str) -> None:
    pair = first(explained(victims, "same_block", "12c"))
    assert pair["cause"] == "same_block"
    assert {one["offset"] for one in pair["blocks"]} == {0, 8}
    assert symbols.Frame("", *_split(line_of("whole = new Counter"))).place in made_at(pair)


def _split(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return file, int(line)


def test_a_server_is_watched_while_it_is_loaded() -> None:
    """Python's server makes a thread for each request; nothing is asked of what they share.

    The last request is half a second in coming, so that its thread is there whenever the monitor looks for threads
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    asks = (
        f"[urllib.request.urlopen('http://127.0.0.1:{port}/').read() for _ in range(20)]; "
        f"slow = socket.create_connection(('127.0.0.1', {port})); slow.sendall(b'GET / HTTP/1.0'); time.sleep(0.5); "
        "slow.sendall(bytes([13, 10, 13, 10])); slow.recv(1)"
    )
    job = job_options.to_watch(
        "explain", (), server=f"{sys.executable} -m http.server --bind 127.0.0.1 {port}", ready=str(port),
        load=f"{sys.executable} -c \"import socket, time, urllib.request; {asks}\"", fill="", timeout_s=60.0,
    )  # fmt: skip
    sampler.built()
    try:
        performed = run.perform(job, "glibc")
    except LoamError as problem:
        if "the kernel refused" not in str(problem):
            raise
        pytest.skip(f"not run: {problem}")
    assert performed.ending == ""
    (process,) = performed.processes
    assert process.threads >= 2, "one for each request beside the main one; the load is a process of its own"


def test_a_server_that_fails_is_told() -> None:
    job = job_options.to_watch(
        "explain", (), server=f"{sys.executable} -c 'import threading; t = threading.Thread(target=print); t.start(); t.join()'",
        ready="never", load="true", fill="", timeout_s=60.0,
    )  # fmt: skip
    sampler.built()
    performed = run.perform(job, "glibc")
    assert performed.ending.startswith("failed: the server ended with status 0 before it was ready")
