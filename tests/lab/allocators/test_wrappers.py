"""What a wrapper executes in the end: by its options, their values, its own words, and wrappers before wrappers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interposing import compile_c

from loam_lab.subjects.allocators import preflight, wrappers


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("redis-server --port 1", "redis-server --port 1"),
        ("setpriv --reuid=postgres --regid=postgres --init-groups /x/postgres -D d", "/x/postgres -D d"),
        ("/usr/bin/setpriv --reuid mysql --regid mysql --clear-groups mysqld --user=mysql", "mysqld --user=mysql"),
        ("setpriv --nnp -- mysqld", "mysqld"),
        ("env -i -u HOME LANG=C a_b=c redis-server x=y", "redis-server x=y"),
        ("nice -n 5 redis-server", "redis-server"),
        ("nice -5 redis-server", "redis-server"),
        ("nice --adjustment=5 redis-server", "redis-server"),
        ("taskset -c 0,1 redis-server", "redis-server"),
        ("taskset 0x3 redis-server -c x", "redis-server -c x"),
        ("chrt -f 10 redis-server", "redis-server"),
        ("timeout -s INT 10 redis-server", "redis-server"),
        ("numactl --membind 0 -N 0 redis-server", "redis-server"),
        ("runuser -u postgres -- postgres -D d", "postgres -D d"),
        ("taskset -c 0 setpriv --reuid=1 nice memcached", "memcached"),
        # With nothing behind it the wrapper itself is the command.
        ("env", "env"),
        ("nice -n 5", "nice -n 5"),
        ("taskset -c 0 nice", "nice"),
        ("timeout 10", "timeout 10"),
        ("setpriv --reuid", "setpriv --reuid"),
        ("env - A=b redis-server", "redis-server"),
    ],
)  # fmt: skip
def test_what_is_behind_a_wrapper(command: str, inner: str) -> None:
    assert list(wrappers.behind(command.split())) == inner.split()


def test_nothing_is_behind_nothing() -> None:
    assert list(wrappers.behind([])) == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_what_is_in_the_way_behind_a_wrapper_is_told(tmp_path: Path) -> None:
    static = compile_c(tmp_path, "static", "int main(void) { return 0; }", "-static")
    assert preflight.obstacles(["setpriv", "--nnp", str(static)]) == preflight.obstacles([str(static)]) != []
