"""Servers on sockets of a session's folder: they listen on no port, and end with the session."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

from loam_lab.setup import system
from loam_lab.subjects.programs.running import Failed, Program, Session

_VERSION = system.here().versions.postgresql
POSTGRES = f"/usr/lib/postgresql/{_VERSION}/bin"
READY_S = 60.0


def _wait(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_S
    while not ready():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not ready within {READY_S:.0f} s")
        time.sleep(0.05)


# ---- redis


def _filling(count: int) -> bytes:
    """Commands in redis's protocol that fill, change and shrink strings, hashes, lists and sorted sets."""
    numbers = random.Random(1)
    wire = bytearray()

    def send(*words: object) -> None:
        wire.extend(b"*%d\r\n" % len(words))
        for word in words:
            text = str(word).encode()
            wire.extend(b"$%d\r\n%s\r\n" % (len(text), text))

    for n in range(count):
        key = numbers.randrange(count // 4 + 1)
        value = f"{n:x}" * numbers.choice((1, 10, 100, 1000))
        send("SET", f"string:{key}", value)
        send("APPEND", f"string:{numbers.randrange(count)}", value)
        send("HSET", f"hash:{key % 97}", f"field:{key}", value)
        send("RPUSH", f"list:{key % 89}", value, n)
        send("ZADD", f"sorted:{key % 83}", n % 1009, value[:50])
        if n % 5 == 0:
            send("DEL", f"string:{numbers.randrange(count)}")
            send("LPOP", f"list:{numbers.randrange(89)}")
        if n % 500 == 0:
            send("UNLINK", f"list:{numbers.randrange(89)}")
    return bytes(wire)


def _redis(session: Session) -> bytes:
    """A benchmark of all commands, then data that are read back, saved by a forked child, and loaded by a new server."""
    socket = session.folder / "socket"
    server = (
        "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", session.folder,
        "--enable-debug-command", "local", "--io-threads", "2", "--lazyfree-lazy-user-del", "yes",
    )  # fmt: skip

    def ask(*words: str, given: bytes = b"", may_fail: bool = False) -> bytes:
        return session.output("redis-cli", "-s", socket, *words, given=given, may_fail=may_fail, timeout_s=600)

    def saved() -> bool:
        return b"rdb_bgsave_in_progress:0" in ask("INFO", "persistence")

    def answers() -> bool:
        return ask("PING", may_fail=True) == b"PONG\n"  # an error while the dump is being loaded

    count = session.amount
    with session.server(*server):
        _wait(answers, "redis-server")
        session.output(
            "redis-benchmark", "-s", socket, "-n", str(count), "-c", "20", "-P", "8", "-d", "300", "-r", "5000", "-q",
            timeout_s=1800,
        )  # fmt: skip
        ask("FLUSHALL", "ASYNC")
        replies = ask("--pipe", given=_filling(count)).splitlines()[-1]  # errors and replies
        replies += b"\n" + ask(given="".join(f"GET string:{n}\n" for n in range(0, count, 3)).encode())
        replies += ask("LRANGE", "list:7", "0", "-1") + ask("ZRANGE", "sorted:7", "0", "-1", "WITHSCORES")
        replies += ask("DEBUG", "DIGEST")
        ask("BGSAVE")
        _wait(saved, "redis-server's dump")
    with session.server(*server):
        _wait(answers, "redis-server")
        return replies + ask("DEBUG", "DIGEST")


def _lists(session: Session) -> bytes:
    """Lists that grow by ten elements in each request, and of which the first ten are read: as many requests of each."""
    socket = session.folder / "socket"
    server = ("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", session.folder)
    load = ("redis-benchmark", "-s", socket, "-q", "-n", str(session.amount), "-P", "16", "-r", "1000")

    def ask(*words: str) -> bytes:
        return session.output("redis-cli", "-s", socket, *words, may_fail=True, timeout_s=600)

    elements = [f"element:{n}" for n in range(10)]
    with session.server(*server):
        _wait(lambda: ask("PING") == b"PONG\n", "redis-server")
        session.output(*load, "LPUSH", "list", *elements, timeout_s=1800)
        session.output(*load, "LRANGE", "list", "0", "9", timeout_s=1800)
        return ask("LLEN", "list") + ask("LRANGE", "list", "0", "9")


# ---- PostgreSQL

_TOTALS = """
select count(*), sum(delta) from pgbench_history;
select sum(abalance), md5(string_agg(abalance::text, ',' order by aid)) from pgbench_accounts;
select sum(tbalance), md5(string_agg(tbalance::text, ',' order by tid)) from pgbench_tellers;
select sum(bbalance) from pgbench_branches;
select count(*), sum(a.aid % 7), max(length(repeat(b.filler, 20))) from pgbench_accounts a join pgbench_accounts b
  on a.aid = b.bid + (b.aid % 1000) group by a.bid order by 1;
"""


def _postgres(session: Session) -> bytes:
    """Sums and hashes of the tables that pgbench's transactions leave: its seed is fixed, and additions commute."""
    session.give_up_root()
    base = session.folder / "base"
    session.output(
        f"{POSTGRES}/initdb", "-D", base, "--username=loam", "--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale"
    )  # fmt: skip
    where = ("-h", session.folder, "-U", "loam")

    def answers() -> bool:
        return session.output(f"{POSTGRES}/pg_isready", *where, may_fail=True).endswith(b"accepting connections\n")

    with session.server(
        f"{POSTGRES}/postgres", "-D", base, "-k", session.folder, "-c", "listen_addresses=", "-c", "fsync=off",
        stop=signal.SIGINT,
    ):  # fmt: skip
        _wait(answers, "postgres")
        session.output(f"{POSTGRES}/pgbench", *where, "-i", "-q", "-s", "1", "postgres")
        session.output(
            f"{POSTGRES}/pgbench", *where, "-n", "-c", "4", "-j", "2", "-t", str(session.amount), "--random-seed=7",
            "postgres", timeout_s=1800,
        )  # fmt: skip
        return session.output(f"{POSTGRES}/psql", *where, "-At", "-f", "-", "postgres", given=_TOTALS.encode())


PROGRAMS = (
    Program("redis-server", ("redis-server",), "data read back, and its digest after a restart", _redis, 2000, 30_000,
            ("redis-server", "--version")),
    Program("redis-lists", ("redis-server",), "the length of a list and its first elements", _lists, 5000, 1_000_000,
            ("redis-server", "--version")),
    Program("postgres", (f"postgresql-{_VERSION}",), "totals and hashes of pgbench's tables", _postgres, 100, 10_000,
            (f"{POSTGRES}/postgres", "--version")),
)  # fmt: skip
