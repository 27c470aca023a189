"""The check of services: its promises, what it keeps when it is ended, its services and their loads."""

from __future__ import annotations

import http.server
import json
import os
import re
import runpy
import socketserver
import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from campaigns import FAKES

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import exit_status, services
from loam_lab.dev.selfcheck.services import Service, Walk
from loam_lab.setup import build

FOLDER = paths.root() / services.FOLDER
# The module of a script, which lies in no package.
amqp = SimpleNamespace(**runpy.run_path(str(FOLDER / "amqp_load.py")))

GOOD = Walk("redis", "root", 100.0, 4, 4, "tcmalloc", {"tcmalloc": "better", "jemalloc": "inconclusive"})


def ten(*changed: dict[str, Any]) -> list[Walk]:
    """Ten good walks, of which the first ones are changed."""
    return [replace(GOOD, **(changed[i] if i < len(changed) else {})) for i in range(10)]


OTHER = {"allocator": "glibc", "told": {"tcmalloc": "inconclusive"}}
WORSE = {"allocator": "glibc", "told": {"tcmalloc": "worse"}}


@pytest.mark.parametrize(
    ("walks", "kept"),
    [
        (ten(), True),
        (ten(OTHER), True),
        (ten(OTHER, OTHER), False),
        (ten(WORSE), False),
        (ten({"proven": 3}), False),
        (ten({"seconds": 301.0}), False),
        (ten({"problem": "the load ended with status 1"}), False),
        (ten()[:9], None),
        (ten(WORSE)[:2], False),
        (ten(OTHER)[:2], None),
    ],
)
def test_what_is_promised(walks: list[Walk], kept: bool | None) -> None:
    (row,) = services.judge(walks)
    assert row.kept is kept


def test_walks_of_another_user_are_a_row_of_their_own() -> None:
    rows = services.judge([*ten(), *[replace(one, started_by="nobody") for one in ten(WORSE)]])
    assert [(row.started_by, row.kept, row.opposite) for row in rows] == [
        ("root", True, ()), ("nobody", False, ("tcmalloc",)),
    ]  # fmt: skip


def result(by: str, state: str = "ok") -> dict[str, Any]:
    def cell(name: str, copy: int, verdict: str, processor: str) -> dict[str, Any]:
        return {
            "factors": {"allocator": name}, "copy": copy, "verdict": verdict, "state": state,
            "processor_ratio": {"verdict": processor},
        }  # fmt: skip

    return {
        "cells": [
            cell("glibc", 0, "baseline", ""), cell("glibc", 1, "equivalent", "equivalent"), cell("x", 0, "better", "worse"),
        ],
        "recommendation": {"allocator": "x", "by": by}, "failures": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (json.dumps(result("wall_s")), ("x", 3, 3, {"x": "better"}, "")),
        (json.dumps(result("processor_s")), ("x", 3, 3, {"x": "worse"}, "")),
        (json.dumps(result("wall_s", "unproven")), ("x", 3, 0, {"x": "better"}, "")),
        (json.dumps({"error": {"message": "no such thing"}}), ("", 0, 0, {}, "no such thing")),
        ("", ("", 0, 0, {}, "bench printed no JSON")),
    ],
)
def test_what_bench_printed_is_read(printed: str, expected: tuple[Any, ...]) -> None:
    one = services.walk_of("s", "root", 1.0, printed.encode())
    assert (one.allocator, one.cells, one.proven, one.told, one.problem) == expected


def service(name: str) -> Service:
    return Service(name, "true", "true", "x", "higher", ("sh",), ("dash",))


def test_services_take_turns_and_what_was_walked_is_not_walked_again(tmp_path: Path) -> None:
    walked: list[str] = []

    def one(what: Service, user: str, allocators: str, blocks: int | None) -> Walk:
        if len(walked) == 3:
            raise KeyboardInterrupt
        walked.append(what.name)
        return replace(GOOD, service=what.name, started_by=user)

    file, both = tmp_path / "walks.jsonl", [service("a"), service("b")]
    walks = services.run(file, both, "nobody", 2, "glibc", None, one)
    assert walked == ["a", "b", "a"] and len(walks) == 3
    with file.open("a") as torn:
        torn.write('{"service": "b"')
    walked.clear()
    walks = services.run(file, both, "nobody", 2, "glibc", None, one)
    assert walked == ["b"] and walks[:3] == services.read(file)[:3]


def test_a_service_that_cannot_be_prepared_is_a_broken_promise(tmp_path: Path) -> None:
    def one(*_: object) -> Walk:
        raise LoamError("a", None, "cannot be prepared: no room", "")

    (row,) = services.judge(services.run(tmp_path / "w", [service("a")], "", 1, "glibc", None, one))
    assert row.kept is False and "no room" in row.problems[0]


@pytest.mark.parametrize("name", services.known(FOLDER))
def test_each_file_is_a_whole_service(name: str) -> None:
    one = services.known(FOLDER)[name]
    assert one.better in ("higher", "lower") and re.compile(one.metric).groups == 1
    assert one.programs and one.packages and "{port}" in one.server + "".join(one.files.values())
    values = {"{port}": "1", "{port2}": "2", "{folder}": "/f", "{services}": str(FOLDER), "{python}": sys.executable}
    for text in (one.server, one.prepare, one.fill, one.load, *one.files.values()):
        whole = services.filled(text, values)
        assert not re.search(r"\{(port|folder|services|python)\w*\}", whole)
        assert all(Path(path).is_file() for path in re.findall(rf"{FOLDER}/\S+", whole))
    for script in (one.prepare, one.fill, one.load):
        subprocess.run(["sh", "-n", "-c", services.filled(script, values)], check=True)
    assert (FOLDER / f"{name}.toml").read_text().startswith("# "), "what it is, in a sentence"


def test_a_name_that_is_none_and_programs_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LoamError, match="did you mean redis"):
        services.main(["--service", "rediss"])
    with pytest.raises(LoamError, match="is no user of this machine"):
        services.main(["--user", "nobody-of-this-name"])
    monkeypatch.setattr(
        services, "known", lambda _: {"a": service("a"), "b": replace(service("b"), programs=("no-such",))}
    )
    arguments = ["--out", str(tmp_path), "--repeats", "10"]
    assert services.main(arguments, lambda *_: replace(GOOD, service="a", started_by="root")) == exit_status.TOO_FEW
    printed = capsys.readouterr()
    assert "| a | root | 10 | 100 s | all | tcmalloc 10 | none | kept |" in printed.out
    assert "b is left out: no-such not found; as root: apt-get install dash" in " ".join(printed.err.split())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root names another user")
def test_a_user_who_may_not_start_python_is_refused_before_any_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    python = tmp_path / "python"
    python.symlink_to("/usr/bin/python3")
    monkeypatch.setattr(sys, "executable", str(python))
    walked: list[Service] = []

    def one(what: Service, *_: Any) -> Walk:
        walked.append(what)
        return GOOD

    with pytest.raises(LoamError, match="may not start") as refused:
        services.main(["--user", "nobody", "--out", str(tmp_path)], one)
    assert str(tmp_path) in refused.value.line() and "chmod o+x" in refused.value.line()
    assert not walked


@pytest.mark.slow
@pytest.mark.alone
def test_a_walk_is_a_bench_of_its_own(tmp_path: Path) -> None:
    build.ensure_built(["probe"])
    program = f"{{python}} {FAKES / 'fake-server'}"
    fake = replace(
        service("fake"), server=f"{program} {{port}}", load=f"{program} load {{port}} 10", fill="test -f {folder}/made",
        metric=r"([\d.]+) requests per second", prepare="echo '{port}' >{folder}/made",
    )  # fmt: skip
    one = services.walk(fake, "", "glibc,jemalloc", 1)
    assert (one.problem, one.cells, one.proven) == ("", 3, 3)
    with pytest.raises(LoamError, match="cannot be prepared: no way"):
        services.walk(replace(fake, prepare="echo no way >&2; false"), "", "glibc", 1)


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers of each form: with a length, in chunks, and with the end of the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"x0\r\n\r\n" * 1000
        self.send_response(404 if self.path == "/none" else 200)
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (body[:4000], body[4000:], b""):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            return
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/close":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class Memcached(socketserver.StreamRequestHandler):
    """Values that are never kept, but for every third read."""

    def handle(self) -> None:
        count = 0
        while line := self.rfile.readline():
            words = line.split()
            if words[0] == b"set":
                self.rfile.read(int(words[4]) + 2)
            elif words[0] == b"get":
                count += 1
                self.wfile.write(b"VALUE k 0 3\r\nabc\r\nEND\r\n" if count % 3 == 0 else b"END\r\n")


class Broker(socketserver.StreamRequestHandler):
    """Queues of AMQP: what is published comes back at once, with heartbeats between, its body in two pieces."""

    ANSWERS: ClassVar = {
        amqp.START_OK: amqp.TUNE, amqp.OPEN: amqp.OPEN_OK, amqp.CHANNEL_OPEN: amqp.CHANNEL_OPEN_OK,
        amqp.DECLARE: amqp.DECLARE_OK, amqp.CONSUME: amqp.CONSUME_OK,
    }  # fmt: skip

    def handle(self) -> None:
        assert self.rfile.read(8) == b"AMQP\0\0\x09\x01"
        self.wfile.write(amqp.method(0, amqp.START, b""))
        count = 0
        while head := self.rfile.read(7):
            kind, _, length = struct.unpack(">BHI", head)
            payload = self.rfile.read(length + 1)[:-1]
            if kind == amqp.METHOD:
                which = struct.unpack(">HH", payload[:4])
                if which in self.ANSWERS:
                    self.wfile.write(amqp.method(0, self.ANSWERS[which], b""))
                if which == amqp.ACK:
                    tag, all_before = struct.unpack(">QB", payload[4:])
                    assert tag % amqp.BATCH == 0 and tag <= count and all_before == 1
            elif kind == amqp.HEADER:
                header = payload
            else:
                count += 1
                half = len(payload) // 2
                self.wfile.write(
                    amqp.method(1, amqp.DELIVER, b"\x03tag" + struct.pack(">Q", count)) + amqp.frame(amqp.HEADER, 1, header)
                    + amqp.frame(amqp.BODY, 1, payload[:half]) + amqp.frame(amqp.HEARTBEAT, 0, b"")
                    + amqp.frame(amqp.BODY, 1, payload[half:])
                )  # fmt: skip


class Refusing(socketserver.StreamRequestHandler):
    """A broker that ends every connection."""

    def handle(self) -> None:
        self.rfile.read(8)


def loaded(
    script: str, handler: type[socketserver.BaseRequestHandler], *words: str
) -> subprocess.CompletedProcess[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return subprocess.run(
                [sys.executable, FOLDER / script, str(server.server_address[1]), *words], capture_output=True, text=True,
                timeout=60, check=False,
            )  # fmt: skip
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("script", "handler", "words"),
    [
        ("http_load.py", Answers, ("60", "3", "4", "/a", "/chunks")),
        ("http_load.py", Answers, ("20", "2", "1", "/a", "/close")),
        ("memcached_load.py", Memcached, ("600", "2")),
        ("memcached_load.py", Memcached, ("600", "2", "write")),
        ("amqp_load.py", Broker, ("600", "2")),
    ],
)
def test_loads_read_every_answer(
    script: str, handler: type[socketserver.BaseRequestHandler], words: tuple[str, ...]
) -> None:
    done = loaded(script, handler, *words)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"[\d.]+ (requests|messages) per second\n", done.stdout)


def test_a_load_that_is_refused_says_so() -> None:
    done = loaded("http_load.py", Answers, "4", "1", "1", "/none")
    assert done.returncode == 1 and "the server answered HTTP/1.1 404" in done.stderr
    done = loaded("amqp_load.py", Refusing, "100", "1")
    assert done.returncode == 1 and "the broker closed a connection" in done.stderr
